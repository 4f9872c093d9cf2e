//! Opening and listing devices.

use anyhow::Result;
use gpu_run_console::failure::Failure;
use gpu_run_console::terminal;
use gpu_run_console::units::show_size;
use gpu_run_device::{Device, DeviceList, Error, Properties, cpu, cuda};
use std::sync::Arc;

/// Opens the device that `--device` names. `auto` is the first usable GPU. If there is none, it is `cpu`, and one line
/// on stderr says why, unless the computer has no NVIDIA hardware or driver at all: then nobody expects a GPU.
pub(crate) fn open(list: &DeviceList) -> Result<Arc<dyn Device>> {
    if list.is_of_several() {
        return Err(Failure::usage(format!("--device {list}: only `gpu-run map` runs on several devices"))
            .hint("name one of them, as in --device cuda:0")
            .into());
    }
    Ok(open_all(list, false)?.swap_remove(0))
}

/// Opens all devices that `--device` names: at least one. A process that continues for another leaves out those that
/// cannot be opened any more, as long as one can.
pub(crate) fn open_all(list: &DeviceList, is_continued: bool) -> Result<Vec<Arc<dyn Device>>> {
    if *list == DeviceList::Auto {
        return Ok(vec![cuda::first().unwrap_or_else(|error| {
            let line = format!("running on cpu: {}", error.to_string().replace('\n', " "));
            match cuda::is_expected() {
                true => terminal::say(&format!("gpu-run: {line}\n")),
                false => tracing::info!("{line}"),
            }
            cpu::open()
        })]);
    }
    let opened = if is_continued { list.open_usable() } else { list.open() };
    opened.map_err(|error| unopened(list, &error).into())
}

fn unopened(list: &DeviceList, error: &Error) -> Failure {
    let what = if list.is_of_several() { "--device" } else { "no CUDA device:" };
    let failure = Failure::machine(format!("{what} {list}: {error}"));
    match cuda::probe() {
        Ok(found) if !found.is_empty() && list.is_of_several() => failure.hint("`gpu-run devices` lists the devices"),
        _ => failure.hint("--device cpu runs the same PTX on this machine's processor"),
    }
}

/// Opens a lost device anew, with nothing on it.
pub(crate) fn reopen(device: &dyn Device) -> Result<Arc<dyn Device>> {
    let id = &device.properties().id;
    gpu_run_device::open(id)
        .map_err(|error| Failure::environment(format!("{id} was lost and cannot be opened again: {error}")).into())
}

/// `gpu-run devices`
pub(crate) fn list() -> Result<u8> {
    let found = cuda::probe();
    let mut rows = vec![row(cpu::open().properties())];
    rows.extend(found.iter().flatten().map(row));
    let mut text = format!("{}\n", table(&rows));
    if let Err(error) = found {
        text += &format!("cuda: not available: {error}\n");
    }
    terminal::print(&text)?;
    Ok(0)
}

fn row(properties: &Properties) -> [String; 5] {
    [
        properties.id.clone(),
        properties.name.clone(),
        format!("sm_{}", properties.target),
        properties.processors.to_string(),
        show_size(properties.memory_bytes),
    ]
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
