//! Which devices there are.

use crate::args::DeviceChoice;
use crate::failure::Failure;
use crate::output::Standard;
use crate::units::show_size;
use anyhow::Result;
use gpu_run_device::Device;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Opens the device `--device` names. `auto` is the best there is: for now, `cpu`.
pub(crate) fn open(choice: DeviceChoice) -> Result<Arc<dyn Device>> {
    match choice {
        DeviceChoice::Auto | DeviceChoice::Cpu => cpu(),
        DeviceChoice::Cuda(index) => Err(Failure::environment(format!("no CUDA device: cuda:{index}: {}", no_cuda()))
            .hint("--device cpu runs the same PTX on this machine's processor")
            .into()),
    }
}

fn cpu() -> Result<Arc<dyn Device>> {
    Ok(gpu_run_device::cpu::open())
}

/// `gpu-run devices`
pub(crate) fn list() -> Result<u8> {
    let device = open(DeviceChoice::Cpu)?;
    let properties = device.properties();
    let row = [
        properties.id.clone(),
        properties.name.clone(),
        format!("sm_{}", properties.target),
        properties.processors.to_string(),
        show_size(properties.memory_bytes),
    ];
    let text = format!("{}\ncuda: not available: {}\n", table(&[row]), no_cuda());
    Standard::stdout()?.write_all(text.as_bytes())?;
    Ok(0)
}

/// Why there is no CUDA device.
fn no_cuda() -> &'static str {
    if Path::new("/proc/driver/nvidia/version").exists() {
        "an NVIDIA driver is installed, but this version of gpu-run does not drive it yet"
    } else {
        "this machine has no NVIDIA driver, and this version of gpu-run does not drive one yet"
    }
}

const HEADINGS: [&str; 5] = ["DEVICE", "NAME", "TARGET", "PROCESSORS", "MEMORY"];

fn table(rows: &[[String; 5]]) -> String {
    let heading = HEADINGS.map(String::from);
    let lines: Vec<&[String; 5]> = std::iter::once(&heading).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let show = |line: &&[String; 5]| {
        let cells: Vec<_> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let row = ["cpu", "a long name", "sm_90", "2", "1 GiB"].map(String::from);
        let text = table(&[row]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0].find("TARGET"), lines[1].find("sm_90"));
        assert_eq!(lines[0].find("MEMORY"), lines[1].find("1 GiB"));
    }
}
