//! The sun and the four giant planets, 2000 steps in f64, after the Computer Language Benchmarks Game. Each instance has
//! planets that set off a little differently. Prints the energy at the end.

use bench_programs::instance;
use std::f64::consts::PI;

const STEPS: usize = 2000;
const STEP: f64 = 0.01;
const SOLAR_MASS: f64 = 4.0 * PI * PI;
const DAYS: f64 = 365.24;

#[derive(Clone, Copy)]
struct Body {
    position: [f64; 3],
    velocity: [f64; 3],
    mass: f64,
}

fn body(position: [f64; 3], velocity: [f64; 3], mass: f64) -> Body {
    Body { position, velocity: velocity.map(|v| v * DAYS), mass: mass * SOLAR_MASS }
}

/// Sun, Jupiter, Saturn, Uranus, Neptune.
fn solar_system() -> Vec<Body> {
    vec![
        body([0.0; 3], [0.0; 3], 1.0),
        body(
            [4.841_431_442_464_72, -1.160_320_044_027_428_4, -0.103_622_044_471_123_11],
            [0.001_660_076_642_744_037, 0.007_699_011_184_197_404, -0.000_069_046_001_697_206_3],
            0.000_954_791_938_424_326_6,
        ),
        body(
            [8.343_366_718_244_58, 4.124_798_564_124_305, -0.403_523_417_114_321],
            [-0.002_767_425_107_268_624, 0.004_998_528_012_349_172, 0.000_023_041_729_757_376_393],
            0.000_285_885_980_666_130_8,
        ),
        body(
            [12.894_369_562_139_131, -15.111_151_401_698_631, -0.223_307_578_892_655_73],
            [0.002_964_601_375_647_616, 0.002_378_471_739_594_809_5, -0.000_029_658_956_854_023_756],
            0.000_043_662_440_433_515_63,
        ),
        body(
            [15.379_697_114_850_917, -25.919_314_609_987_964, 0.179_258_772_950_371_18],
            [0.002_680_677_724_903_893_2, 0.001_628_241_700_382_423, -0.000_095_159_225_451_971_59],
            0.000_051_513_890_204_661_145,
        ),
    ]
}

/// Makes Jupiter up to a thousandth faster, so that every instance has a future of its own.
fn nudge(bodies: &mut [Body], instance: u32) {
    bodies[1].velocity[0] *= 1.0 + f64::from(instance % 65_536) / 65_536.0 * 1e-3;
}

/// Gives the sun the velocity that keeps the centre of mass where it is.
fn balance(bodies: &mut [Body]) {
    for axis in 0..3 {
        let momentum: f64 = bodies.iter().map(|body| body.velocity[axis] * body.mass).sum();
        bodies[0].velocity[axis] -= momentum / SOLAR_MASS;
    }
}

fn distance_squared(a: &Body, b: &Body) -> f64 {
    a.position.iter().zip(b.position).map(|(p, q)| (p - q) * (p - q)).sum()
}

fn energy(bodies: &[Body]) -> f64 {
    let mut energy = 0.0;
    for (i, body) in bodies.iter().enumerate() {
        energy += 0.5 * body.mass * body.velocity.iter().map(|v| v * v).sum::<f64>();
        for other in &bodies[i + 1..] {
            energy -= body.mass * other.mass / distance_squared(body, other).sqrt();
        }
    }
    energy
}

fn advance(bodies: &mut [Body]) {
    for i in 0..bodies.len() {
        let (head, tail) = bodies.split_at_mut(i + 1);
        let body = &mut head[i];
        for other in tail {
            let squared = distance_squared(body, other);
            let pull = STEP / (squared * squared.sqrt());
            for axis in 0..3 {
                let towards = body.position[axis] - other.position[axis];
                body.velocity[axis] -= towards * other.mass * pull;
                other.velocity[axis] += towards * body.mass * pull;
            }
        }
    }
    for body in bodies {
        for axis in 0..3 {
            body.position[axis] += STEP * body.velocity[axis];
        }
    }
}

fn main() {
    let mut bodies = solar_system();
    nudge(&mut bodies, instance());
    balance(&mut bodies);
    for _ in 0..STEPS {
        advance(&mut bodies);
    }
    println!("{:.9}", energy(&bodies));
}
