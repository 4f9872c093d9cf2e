// What the hand-written kernels share: launching, timing, and one line of JSON that says what was measured.
//
// A kernel is one thread an instance: `kernel(instances, out)`, thread i writes what instance i computed to `out[i]`.

#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

static void check(cudaError_t status, const char* what) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
        std::exit(1);
    }
}

// The number of instances, from the command line `INSTANCES [DEVICE]`; takes that device.
static unsigned instances_of(int argc, char** argv) {
    char* end = nullptr;
    const unsigned long count = argc == 2 || argc == 3 ? std::strtoul(argv[1], &end, 10) : 0;
    if (end == nullptr || *end != '\0' || count == 0 || count > 0x7fffffffUL) {
        std::fprintf(stderr, "usage: %s INSTANCES [DEVICE]\n", argv[0]);
        std::exit(2);
    }
    check(cudaSetDevice(argc == 3 ? std::atoi(argv[2]) : 0), "cudaSetDevice");
    return static_cast<unsigned>(count);
}

// Launches once to warm up and five times to measure, the best of which counts; prints the line. `show` makes of one
// result what the program prints for it.
template <typename Result>
static int measure(void (*kernel)(unsigned, Result*), int block, unsigned instances, std::string (*show)(const Result&)) {
    Result* out = nullptr;
    check(cudaMalloc(&out, sizeof(Result) * static_cast<size_t>(instances)), "cudaMalloc");
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    const unsigned blocks = (instances + block - 1) / block;
    float best = 0;
    for (int run = 0; run < 6; ++run) {
        check(cudaEventRecord(begin), "cudaEventRecord");
        kernel<<<blocks, block>>>(instances, out);
        check(cudaGetLastError(), "launch");
        check(cudaEventRecord(end), "cudaEventRecord");
        check(cudaEventSynchronize(end), "kernel");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
        if (run == 1 || (run > 1 && milliseconds < best)) best = milliseconds;
    }
    Result first;
    check(cudaMemcpy(&first, out, sizeof(Result), cudaMemcpyDeviceToHost), "cudaMemcpy");
    const double seconds = best / 1e3;
    std::printf("{\"instances\": %u, \"seconds\": %.9g, \"per_second\": %.9g, \"check\": \"%s\"}\n", instances, seconds,
                instances / seconds, show(first).c_str());
    check(cudaFree(out), "cudaFree");
    return 0;
}
