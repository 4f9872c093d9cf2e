//! Draws the Mandelbrot set; `--time` zooms in.
//!
//! ```text
//! cargo build --release --target wasm32-wasip1 --example mandelbrot
//! gpu-run --instances 65536 --png mandelbrot.png --time 3 target/wasm32-wasip1/release/examples/mandelbrot.wasm
//! ```

use gpu_run_guest::{Frame, instances, shared, time};

const STEPS: u32 = 500;

fn main() {
    let frame = Frame::new(1280, 720);
    let scale = 3.0 * 0.5f64.powf(time()) / f64::from(frame.width());
    let mut inside = 0;
    for (x, y) in frame.pixels() {
        let right = (f64::from(x) - f64::from(frame.width()) / 2.0) * scale - 0.7436439;
        let up = (f64::from(y) - f64::from(frame.height()) / 2.0) * scale + 0.1318259;
        let steps = steps(right, up);
        inside += u64::from(steps == STEPS);
        frame.set_pixel(x, y, colour(steps));
    }
    let (sum, ended) = (shared::U64::new(0), shared::U32::new(2));
    sum.add(inside);
    shared::fence();
    if u64::from(ended.add(1)) + 1 == instances().unwrap_or(1) {
        shared::fence();
        println!("{} pixels are inside the set", sum.load());
    }
}

/// Returns after how many steps the point escapes.
fn steps(right: f64, up: f64) -> u32 {
    let (mut x, mut y, mut steps) = (0.0, 0.0, 0);
    while x * x + y * y < 4.0 && steps < STEPS {
        (x, y) = (x * x - y * y + right, 2.0 * x * y + up);
        steps += 1;
    }
    steps
}

fn colour(steps: u32) -> [u8; 3] {
    if steps == STEPS {
        return [0; 3];
    }
    let part = |by: u32| (steps * by % 511).abs_diff(255) as u8;
    [part(3), part(5), part(11)]
}
