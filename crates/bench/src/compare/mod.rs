//! Compares the device with Wasmtime on all cores.
//!
//! ```text
//! on_device    our side: compiles, loads, runs instances
//! on_wasmtime  the other side: the same instances, each in a store of its own, on all cores
//! handwritten  the same work as a CUDA kernel, if there is one and nvcc is installed
//! measure      lets the sides take turns, compares their outputs, and returns figures
//! hostcalls    how long a host call takes
//! set          the programs of a set, with table, json and chart
//! own          the user's own program, with verdict
//! ```

mod chart;
mod handwritten;
mod hostcalls;
mod json;
mod measure;
mod on_device;
mod on_wasmtime;
pub mod own;
pub mod set;
mod table;
mod verdict;

pub use hostcalls::NAME as HOST_CALLS;
pub use set::Program;

use gpu_run_compiler::Layout;
use gpu_run_console::units::three_digits;
use gpu_run_device::Device;
use std::time::Duration;

/// How to compile programs, and how long to measure them.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Instances that run at once on the device.
    pub instances: u32,
    /// How long one round of one side may take.
    pub budget: Duration,
    /// `None` means the layout that suits the number of instances.
    pub layout: Option<Layout>,
    /// The PTX target.
    pub sm: u32,
    /// Whether to measure several builds and use the fastest.
    pub tunes: bool,
}

impl Options {
    fn layout(&self, device: &dyn Device, instances: u32) -> Layout {
        self.layout.unwrap_or(Layout::suited(device.is_gpu(), instances))
    }
}

/// What the figures were measured on.
#[derive(Debug)]
struct Setting {
    /// `cuda:0`
    device: String,
    /// `NVIDIA H200`
    device_name: String,
    /// The driver's version, on a GPU.
    driver: Option<String>,
    host: String,
    threads: usize,
    instances: u32,
}

impl Setting {
    fn new(device: &dyn Device, instances: u32) -> Self {
        let properties = device.properties();
        Self {
            device: properties.id.clone(),
            device_name: properties.name.clone(),
            driver: if device.is_gpu() { driver_version("/proc/driver/nvidia/version") } else { None },
            host: processor("/proc/cpuinfo").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            threads: host_threads(),
            instances,
        }
    }
}

/// Returns how many threads Wasmtime runs on.
fn host_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}

/// Extracts `580.159.04` from `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build`.
fn driver_version(file: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
}

fn processor(file: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Describes both sides for the table and the picture: gpu-run's, then Wasmtime's.
fn describe(setting: &Setting) -> [String; 2] {
    let driver = setting.driver.as_ref().map_or(String::new(), |driver| format!(", driver {driver}"));
    let instances = show_grouped(setting.instances);
    [
        format!(
            "gpu-run {} on {} ({}{driver}), {instances} instances",
            env!("CARGO_PKG_VERSION"),
            setting.device_name,
            setting.device
        ),
        format!("Wasmtime {} on {}, {} threads", on_wasmtime::VERSION, setting.host, setting.threads),
    ]
}

/// `215×`, `6.54×`, `0.42×`
fn show_ratio(ratio: f64) -> String {
    format!("{}×", three_digits(ratio))
}

/// `65,536`
fn show_grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds for JSON.
fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
