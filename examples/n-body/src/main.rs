//! `n-body [STEPS] [SEED]`: the sun and the four giant planets, from the Computer Language Benchmarks Game.
//! A seed other than 0 nudges the planets, so that every seed has a future of its own.

use std::env;
use std::f64::consts::PI;

const SOLAR_MASS: f64 = 4.0 * PI * PI;
const DAYS: f64 = 365.24;
const STEP: f64 = 0.01;

#[derive(Clone, Copy)]
struct Body {
    name: &'static str,
    position: [f64; 3],
    velocity: [f64; 3],
    mass: f64,
}

fn planet(name: &'static str, position: [f64; 3], velocity: [f64; 3], mass: f64) -> Body {
    Body { name, position, velocity: velocity.map(|v| v * DAYS), mass: mass * SOLAR_MASS }
}

fn solar_system() -> Vec<Body> {
    vec![
        planet("Sun", [0.0; 3], [0.0; 3], 1.0),
        planet(
            "Jupiter",
            [4.841_431_442_464_72, -1.160_320_044_027_428_4, -0.103_622_044_471_123_11],
            [0.001_660_076_642_744_037, 0.007_699_011_184_197_404, -0.000_069_046_001_697_206_3],
            0.000_954_791_938_424_326_6,
        ),
        planet(
            "Saturn",
            [8.343_366_718_244_58, 4.124_798_564_124_305, -0.403_523_417_114_321],
            [-0.002_767_425_107_268_624, 0.004_998_528_012_349_172, 0.000_023_041_729_757_376_393],
            0.000_285_885_980_666_130_8,
        ),
        planet(
            "Uranus",
            [12.894_369_562_139_131, -15.111_151_401_698_631, -0.223_307_578_892_655_73],
            [0.002_964_601_375_647_616, 0.002_378_471_739_594_809_5, -0.000_029_658_956_854_023_756],
            0.000_043_662_440_433_515_63,
        ),
        planet(
            "Neptune",
            [15.379_697_114_850_917, -25.919_314_609_987_964, 0.179_258_772_950_371_18],
            [0.002_680_677_724_903_893_2, 0.001_628_241_700_382_423, -0.000_095_159_225_451_971_59],
            0.000_051_513_890_204_661_145,
        ),
    ]
}

fn nudge(bodies: &mut [Body], seed: u32) {
    let mut state = seed;
    for velocity in bodies.iter_mut().flat_map(|body| &mut body.velocity) {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *velocity *= 1.0 + f64::from(state >> 16) / 65536.0 * 1e-3;
    }
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
    let mut args = env::args().skip(1);
    let steps = args.next().and_then(|s| s.parse().ok()).unwrap_or(1000u32);
    let seed = args.next().and_then(|s| s.parse().ok()).unwrap_or(0u32);

    let mut bodies = solar_system();
    if seed != 0 {
        nudge(&mut bodies, seed);
    }
    balance(&mut bodies);
    println!("energy before {:.9}", energy(&bodies));
    (0..steps).for_each(|_| advance(&mut bodies));
    println!("energy after  {:.9}", energy(&bodies));
    for Body { name, position: [x, y, z], .. } in &bodies {
        println!("{name:<8} {x:>14.9} {y:>14.9} {z:>14.9}");
    }
    println!("bits {:016x}", bodies[1].position[0].to_bits());
}
