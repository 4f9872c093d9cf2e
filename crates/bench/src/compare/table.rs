//! The table on the terminal: each row is printed as soon as its program is done, in columns wide enough for any value.

use super::set::{Report, Row};
use super::{Setting, describe, show_ratio};
use gpu_run_console::units::{show_count, show_duration};

const COLUMNS: [(&str, usize); 8] = [
    ("device/s", 9),
    ("Wasmtime/s", 11),
    ("ratio", 7),
    ("1 on device", 12),
    ("1 Wasmtime", 11),
    ("to PTX", 8),
    ("load", 8),
    ("again", 8),
];
const HANDWRITTEN: [(&str, usize); 2] = [("CUDA/s", 8), ("of it", 6)];

#[derive(Debug)]
pub(super) struct Table {
    setting: [String; 2],
    /// Width of the first column.
    width: usize,
    columns: Vec<(&'static str, usize)>,
}

impl Table {
    pub(super) fn new(setting: &Setting, names: &[&str], handwritten: bool) -> Self {
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let more = if handwritten { &HANDWRITTEN[..] } else { &[] };
        let columns = COLUMNS.iter().chain(more).copied().collect();
        Self { setting: describe(setting), width: longest.max("geometric mean".len()), columns }
    }

    pub(super) fn heading(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| (*title).to_owned()).collect();
        format!("{}\n\n{}", self.setting.join("\n"), self.line("", &titles))
    }

    pub(super) fn row(&self, row: &Row) -> String {
        let figures = match &row.figures {
            Ok(figures) => figures,
            // The rest of the error is printed on stderr at the end.
            Err(error) => {
                return format!(
                    "{:width$}  failed: {}\n",
                    row.name,
                    error.lines().next().unwrap_or(""),
                    width = self.width
                );
            }
        };
        let mut cells = vec![
            show_count(figures.device_rate),
            show_count(figures.wasmtime_rate),
            show_ratio(figures.ratio()),
            show_duration(figures.device_latency),
            show_duration(figures.wasmtime_latency),
            show_duration(figures.to_ptx),
            show_duration(figures.load),
            figures.warm_start.map_or("-".into(), show_duration),
        ];
        if let Some(rate) = figures.handwritten_rate {
            cells.extend([show_count(rate), format!("{:.0} %", figures.device_rate / rate * 100.0)]);
        }
        self.line(&row.name, &cells)
    }

    pub(super) fn footing(&self, report: &Report) -> String {
        let mut text = match report.geometric_mean() {
            Some(mean) => self.line("geometric mean", &["".into(), "".into(), show_ratio(mean)]),
            None => "nothing was measured\n".into(),
        };
        text += "\nratio: device/s to Wasmtime/s; 1: one instance alone\n\
                 load: PTX to a program on the device; again: module to a program on the device, from the cache\n";
        if report.measured().any(|(_, figures)| figures.handwritten_rate.is_some()) {
            text += "CUDA: a kernel written by hand, kernel time only\n";
        }
        for (name, figures) in report.measured() {
            if let Some(build) = &figures.build {
                text += &format!("{name}: {build}\n");
            }
        }
        text
    }

    /// Prints cells right-aligned under their titles.
    fn line(&self, name: &str, cells: &[String]) -> String {
        let cells = cells.iter().zip(&self.columns).map(|(cell, (_, width))| format!("{cell:>width$}"));
        let text = format!("{name:width$}{}", cells.collect::<String>(), width = self.width);
        text.trim_end().to_owned() + "\n"
    }
}
