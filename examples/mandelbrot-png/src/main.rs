//! `mandelbrot-png [ZOOM]`: writes the Mandelbrot set to mandelbrot-ZOOM.png, each zoom a quarter closer to a spiral
//! at its edge.

use miniz_oxide::deflate::compress_to_vec_zlib;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::{env, fs};

const WIDTH: u32 = 96;
const HEIGHT: u32 = 64;
const ITERATIONS: u32 = 200;
const CENTRE: (f64, f64) = (-0.743_643_887_037, 0.131_825_904_206);

/// How many iterations the point takes to leave, or `None` if it stays.
fn escape(re: f64, im: f64) -> Option<u32> {
    let (mut x, mut y) = (0.0f64, 0.0f64);
    (0..ITERATIONS).find(|_| {
        (x, y) = (x * x - y * y + re, 2.0 * x * y + im);
        x * x + y * y > 4.0
    })
}

fn colour(iterations: Option<u32>) -> [u8; 3] {
    let Some(n) = iterations else { return [0, 0, 0] };
    let t = f64::from(n) / f64::from(ITERATIONS);
    let channel = |scale: f64, a: i32, b: i32| (scale * (1.0 - t).powi(a) * t.powi(b) * 255.0) as u8;
    [channel(9.0, 1, 3), channel(15.0, 2, 2), channel(8.5, 3, 1)]
}

/// The picture as PNG wants it: rows of RGB, each after a filter byte (1: the difference to the pixel on the left).
fn picture(zoom: u32) -> Vec<u8> {
    let pixel = 3.0 / f64::from(WIDTH) * 0.75f64.powi(zoom as i32);
    let mut rows = Vec::with_capacity((HEIGHT * (WIDTH * 3 + 1)) as usize);
    for row in 0..HEIGHT {
        rows.push(1);
        let mut left = [0u8; 3];
        for column in 0..WIDTH {
            let re = CENTRE.0 + (f64::from(column) - f64::from(WIDTH) / 2.0) * pixel;
            let im = CENTRE.1 + (f64::from(row) - f64::from(HEIGHT) / 2.0) * pixel;
            let rgb = colour(escape(re, im));
            rows.extend(rgb.iter().zip(left).map(|(now, before)| now.wrapping_sub(before)));
            left = rgb;
        }
    }
    rows
}

fn crc32(parts: &[&[u8]]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
    };
    !parts.iter().copied().flatten().fold(!0, step)
}

fn write_chunk(out: &mut impl Write, kind: &[u8; 4], data: &[u8]) -> io::Result<()> {
    out.write_all(&(data.len() as u32).to_be_bytes())?;
    out.write_all(kind)?;
    out.write_all(data)?;
    out.write_all(&crc32(&[kind, data]).to_be_bytes())
}

fn write_png(path: &str, rows: &[u8]) -> io::Result<()> {
    let mut header = Vec::new();
    header.extend(WIDTH.to_be_bytes());
    header.extend(HEIGHT.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]); // 8 bits a channel, RGB, deflate, the standard filters, not interlaced

    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(b"\x89PNG\r\n\x1a\n")?;
    write_chunk(&mut out, b"IHDR", &header)?;
    write_chunk(&mut out, b"IDAT", &compress_to_vec_zlib(rows, 6))?;
    write_chunk(&mut out, b"IEND", &[])?;
    out.flush()
}

fn main() -> ExitCode {
    let zoom = env::args().nth(1).and_then(|zoom| zoom.parse().ok()).unwrap_or(0);
    let path = format!("mandelbrot-{zoom}.png");
    let rows = picture(zoom);
    match write_png(&path, &rows).and_then(|()| fs::metadata(&path)) {
        Ok(metadata) => {
            println!("{path}: {WIDTH} x {HEIGHT}, zoom {zoom}, {} bytes from {}", metadata.len(), rows.len());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("mandelbrot-png: {path}: {error}");
            ExitCode::FAILURE
        }
    }
}
