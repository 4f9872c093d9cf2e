// benches/programs' n-body, written by hand for CUDA: five bodies, 2000 steps in f64, one thread an instance. All state
// is in registers: loops over bodies are unrolled.
//
//     nvcc -O3 -arch=native nbody.cu -o nbody && ./nbody 65536

#include "timing.cuh"

constexpr int BODIES = 5;
constexpr int STEPS = 2000;
constexpr double STEP = 0.01;
constexpr double SOLAR_MASS = 4.0 * 3.14159265358979323846 * 3.14159265358979323846;
constexpr double DAYS = 365.24;

struct State {
    double x[BODIES], y[BODIES], z[BODIES];
    double vx[BODIES], vy[BODIES], vz[BODIES];
};

// Sun, Jupiter, Saturn, Uranus, Neptune. A function, so that every mass is a constant where it is used.
__device__ __forceinline__ constexpr double mass(int body) {
    return SOLAR_MASS * (body == 0   ? 1.0
                         : body == 1 ? 0.0009547919384243266
                         : body == 2 ? 0.0002858859806661308
                         : body == 3 ? 0.00004366244043351563
                                     : 0.000051513890204661145);
}

__device__ __forceinline__ void place(State& s, int body, double x, double y, double z, double vx, double vy, double vz) {
    s.x[body] = x, s.y[body] = y, s.z[body] = z;
    s.vx[body] = vx * DAYS, s.vy[body] = vy * DAYS, s.vz[body] = vz * DAYS;
}

__device__ __forceinline__ void solar_system(State& s) {
    place(s, 0, 0, 0, 0, 0, 0, 0);
    place(s, 1, 4.84143144246472, -1.1603200440274284, -0.10362204447112311,
          0.001660076642744037, 0.007699011184197404, -0.0000690460016972063);
    place(s, 2, 8.34336671824458, 4.124798564124305, -0.403523417114321,
          -0.002767425107268624, 0.004998528012349172, 0.000023041729757376393);
    place(s, 3, 12.894369562139131, -15.111151401698631, -0.22330757889265573,
          0.002964601375647616, 0.0023784717395948095, -0.000029658956854023756);
    place(s, 4, 15.379697114850917, -25.919314609987964, 0.17925877295037118,
          0.0026806777249038932, 0.001628241700382423, -0.00009515922545197159);
}

__device__ __forceinline__ void balance(State& s) {
    double px = 0, py = 0, pz = 0;
#pragma unroll
    for (int i = 0; i < BODIES; ++i) px += s.vx[i] * mass(i), py += s.vy[i] * mass(i), pz += s.vz[i] * mass(i);
    s.vx[0] -= px / SOLAR_MASS, s.vy[0] -= py / SOLAR_MASS, s.vz[0] -= pz / SOLAR_MASS;
}

__device__ __forceinline__ void advance(State& s) {
#pragma unroll
    for (int i = 0; i < BODIES; ++i) {
#pragma unroll
        for (int j = i + 1; j < BODIES; ++j) {
            const double dx = s.x[i] - s.x[j], dy = s.y[i] - s.y[j], dz = s.z[i] - s.z[j];
            const double squared = dx * dx + dy * dy + dz * dz;
            const double pull = STEP / (squared * sqrt(squared));
            const double to_i = mass(j) * pull, to_j = mass(i) * pull;
            s.vx[i] -= dx * to_i, s.vy[i] -= dy * to_i, s.vz[i] -= dz * to_i;
            s.vx[j] += dx * to_j, s.vy[j] += dy * to_j, s.vz[j] += dz * to_j;
        }
    }
#pragma unroll
    for (int i = 0; i < BODIES; ++i) {
        s.x[i] += STEP * s.vx[i], s.y[i] += STEP * s.vy[i], s.z[i] += STEP * s.vz[i];
    }
}

__device__ __forceinline__ double energy(const State& s) {
    double sum = 0;
#pragma unroll
    for (int i = 0; i < BODIES; ++i) {
        sum += 0.5 * mass(i) * (s.vx[i] * s.vx[i] + s.vy[i] * s.vy[i] + s.vz[i] * s.vz[i]);
#pragma unroll
        for (int j = i + 1; j < BODIES; ++j) {
            const double dx = s.x[i] - s.x[j], dy = s.y[i] - s.y[j], dz = s.z[i] - s.z[j];
            sum -= mass(i) * mass(j) / sqrt(dx * dx + dy * dy + dz * dz);
        }
    }
    return sum;
}

__global__ void simulate(unsigned instances, double* out) {
    const unsigned instance = blockIdx.x * blockDim.x + threadIdx.x;
    if (instance >= instances) return;
    State s;
    solar_system(s);
    s.vx[1] *= 1.0 + static_cast<double>(instance % 65536) / 65536.0 * 1e-3;
    balance(s);
#pragma unroll 1
    for (int step = 0; step < STEPS; ++step) advance(s);
    out[instance] = energy(s);
}

// The last digits may differ from the program's, for multiplications and additions are fused here; the ninth does not.
static std::string show(const double& energy) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9f", energy);
    return text;
}

int main(int argc, char** argv) { return measure(simulate, 128, instances_of(argc, argv), show); }
