//! A picture that all instances draw together.

use crate::device;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// A picture that all instances draw together, and that `gpu-run --png FILE` writes when they have ended.
///
/// ```
/// use gpu_run_guest::{Frame, fast, time};
///
/// let frame = Frame::new(640, 360);
/// for (x, y) in frame.pixels() {
///     let wave = fast::sin(x as f32 / 40.0 + time() as f32) * 0.5 + 0.5;
///     frame.set_pixel(x, y, [(255.0 * wave) as u8, (y * 255 / 360) as u8, 128]);
/// }
/// ```
///
/// ```text
/// gpu-run --instances 4096 --png picture.png app.wasm
/// ```
///
/// Without `--png`, nothing is drawn. Outside gpu-run, one instance draws the whole picture, and writes it in the format PPM to
/// the file that the environment variable `GPU_RUN_PPM` names, if there is one, when the frame is dropped:
///
/// ```text
/// wasmtime run --dir . --env GPU_RUN_PPM=picture.ppm app.wasm
/// ```
#[derive(Debug)]
pub struct Frame {
    width: u32,
    height: u32,
    paper: Paper,
}

#[derive(Debug)]
enum Paper {
    /// In the device's memory.
    Device,
    /// Here, and then in a file.
    Own(Vec<AtomicU32>, PathBuf),
    Nowhere,
}

/// Answers of `device::picture`, see `abi/src/guest.rs` of gpu-run.
const WANTED: u32 = 1;
const TOO_LARGE: u32 = 2;
const ANOTHER: u32 = 3;

const MAX_PIXELS: u64 = 1 << 26;
const MAX_SIDE: u32 = 1 << 16;

/// The variable that names a file for the picture where there is no gpu-run.
const PPM: &str = "GPU_RUN_PPM";

impl Frame {
    /// Begins a picture, or takes part in one: all instances name the same width and height. It is black at first.
    ///
    /// # Panics
    ///
    /// if the picture has no pixels, more than 2²⁶ (8192 × 8192, for instance), or more than 65,536 on a side; under `--png` also
    /// if a picture of another size was begun before, by this instance or another one.
    ///
    /// ```
    /// let frame = gpu_run_guest::Frame::new(640, 360);
    /// assert_eq!((frame.width(), frame.height()), (640, 360));
    /// ```
    #[must_use]
    pub fn new(width: u32, height: u32) -> Self {
        let pixels = u64::from(width) * u64::from(height);
        assert!(pixels > 0, "a picture of {width} × {height} pixels has none");
        let fits = pixels <= MAX_PIXELS && width <= MAX_SIDE && height <= MAX_SIDE;
        assert!(
            fits,
            "a picture of {width} × {height} pixels is too large: it has at most {MAX_PIXELS}, and {MAX_SIDE} on a side"
        );
        let paper = match device::picture(width, height) {
            WANTED => Paper::Device,
            TOO_LARGE => panic!("there is no room for a picture of {width} × {height} pixels on this device"),
            ANOTHER => {
                let size = device::picture_size();
                let (begun_width, begun_height) = (size as u32, size >> 32);
                panic!("a picture of {width} × {height} pixels: one of {begun_width} × {begun_height} was begun before")
            }
            _ => match env::var_os(PPM) {
                Some(path) => Paper::Own((0..pixels).map(|_| AtomicU32::new(0)).collect(), path.into()),
                None => Paper::Nowhere,
            },
        };
        Self { width, height, paper }
    }

    /// Returns the width in pixels.
    ///
    /// ```
    /// assert_eq!(gpu_run_guest::Frame::new(3, 2).width(), 3);
    /// ```
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the height in pixels.
    ///
    /// ```
    /// assert_eq!(gpu_run_guest::Frame::new(3, 2).height(), 2);
    /// ```
    #[must_use]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Returns the pixels that this instance is to draw, so that all instances together draw each pixel once: of N instances,
    /// each draws every Nth. Neighbours draw neighbouring pixels, which the device stores together.
    ///
    /// ```
    /// let frame = gpu_run_guest::Frame::new(2, 2);
    /// let pixels: Vec<_> = frame.pixels().collect();
    /// assert_eq!(pixels, [(0, 0), (1, 0), (0, 1), (1, 1)], "natively, one instance draws all");
    /// ```
    pub fn pixels(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (width, pixels) = (self.width, u64::from(self.width) * u64::from(self.height));
        let (first, step) = match crate::instances() {
            Some(instances) => (crate::instance(), instances),
            None => (0, 1),
        };
        let numbers = (first..pixels).step_by(step.try_into().unwrap_or(usize::MAX));
        numbers.map(move |number| number as u32).map(move |number| (number % width, number / width))
    }

    /// Draws a pixel: column `x` from the left, row `y` from the top, in red, green and blue. One outside the picture is not
    /// drawn.
    ///
    /// ```
    /// let frame = gpu_run_guest::Frame::new(640, 360);
    /// frame.set_pixel(0, 359, [255, 128, 0]); // the lower left corner, in orange
    /// frame.set_pixel(640, 0, [255, 128, 0]); // nothing
    /// ```
    #[inline]
    pub fn set_pixel(&self, x: u32, y: u32, [red, green, blue]: [u8; 3]) {
        if x >= self.width || y >= self.height {
            return;
        }
        let (index, rgb) = (y * self.width + x, u32::from_be_bytes([0, red, green, blue]));
        match &self.paper {
            Paper::Device => device::pixel(index, rgb),
            Paper::Own(pixels, _) => pixels[index as usize].store(rgb, Relaxed),
            Paper::Nowhere => {}
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let Paper::Own(pixels, path) = &self.paper else { return };
        let mut bytes = format!("P6\n{} {}\n255\n", self.width, self.height).into_bytes();
        bytes.extend(pixels.iter().flat_map(|pixel| pixel.load(Relaxed).to_be_bytes().into_iter().skip(1)));
        if let Err(error) = fs::write(path, bytes) {
            eprintln!("{PPM}={}: {error}", path.display());
        }
    }
}

/// Returns the time of the picture, in seconds: what `gpu-run --time` says, otherwise 0. A program that draws the same picture
/// for the same time can be run once for each picture of a film.
///
/// ```
/// let angle = gpu_run_guest::time() * std::f64::consts::TAU;
/// assert_eq!(angle, 0.0);
/// ```
///
/// ```text
/// for i in $(seq 0 99); do gpu-run --time "$i" --instances 4096 --png "film-$i.png" app.wasm; done
/// ```
#[must_use]
#[inline]
pub fn time() -> f64 {
    device::time()
}
