//! `mandelbrot THREADS`: scoped threads compute rows of the Mandelbrot set and write into parts of one picture.

use std::thread;
use std_programs::threads;

const WIDTH: usize = 96;
const HEIGHT: usize = 64;

fn iterations(x: f64, y: f64) -> u8 {
    let (mut re, mut im) = (0.0, 0.0);
    for i in 0..100 {
        if re * re + im * im > 4.0 {
            return i;
        }
        (re, im) = (re * re - im * im + x, 2.0 * re * im + y);
    }
    100
}

fn main() {
    let threads = threads();
    let mut picture = vec![0u8; WIDTH * HEIGHT];
    let pixels = picture.len().div_ceil(threads);
    thread::scope(|scope| {
        for (part, pixel) in picture.chunks_mut(pixels).zip((0..).step_by(pixels)) {
            scope.spawn(move || {
                for (slot, at) in part.iter_mut().zip(pixel..) {
                    let (x, y) = ((at % WIDTH) as f64, (at / WIDTH) as f64);
                    *slot = iterations(x / WIDTH as f64 * 3.0 - 2.0, y / HEIGHT as f64 * 2.0 - 1.0);
                }
            });
        }
    });
    for row in picture.chunks(WIDTH).step_by(8) {
        println!("{}", row.iter().step_by(2).map(|i| b" .:-=+*#%@@"[*i as usize / 10] as char).collect::<String>());
    }
    let checksum = picture
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    println!("{checksum:016x}");
}
