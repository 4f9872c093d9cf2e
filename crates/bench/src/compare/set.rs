//! Measures the programs of a set, and how long a host call takes. A program that fails gets a row that says so, and
//! the others are still measured.

use super::handwritten::Handwritten;
use super::hostcalls::{self, HostCalls};
use super::measure::{self, Figures};
use super::{Options, Setting, chart, describe, json, table};
use crate::Sheet;
use anyhow::{Context as _, Result};
use gpu_run_console::terminal;
use gpu_run_device::Device;
use gpu_run_run::Source;
use std::path::Path;
use std::sync::Arc;

/// A program to measure.
#[derive(Debug)]
pub struct Program {
    pub name: String,
    /// Its module, or why there is none.
    pub source: Result<Source>,
}

/// All results.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) setting: Setting,
    pub(super) rows: Vec<Row>,
    /// `None` if not measured.
    pub(super) host_calls: Option<Result<HostCalls, String>>,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) wasm_bytes: usize,
    /// The figures, or an error message.
    pub(super) figures: Result<Figures, String>,
}

/// Measures programs and, with `host_calls`, host calls. The picture is written to `svg`. Returns whether none failed.
pub fn measure(
    mut device: Arc<dyn Device>,
    programs: Vec<Program>,
    host_calls: bool,
    options: &Options,
    sheet: &mut Sheet,
    svg: &Path,
) -> Result<bool> {
    let handwritten = if device.is_gpu() { Handwritten::find(device.properties()) } else { None };
    let (setting, count) = (Setting::new(&*device, options.instances), programs.len());
    let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
    let table = table::Table::new(&setting, &names, handwritten.is_some());
    match count {
        0 => sheet.write(&format!("{}\n\n", describe(&setting)[0]))?,
        _ => sheet.write(&table.heading())?,
    }
    let mut report = Report { setting, rows: Vec::new(), host_calls: None };
    for (at, Program { name, source }) in programs.into_iter().enumerate() {
        let place = format!("{name} ({} of {count})", at + 1);
        let wasm_bytes = source.as_ref().map_or(0, |source| source.wasm.len());
        let figures = source.and_then(|source| {
            measure::measure(&place, &device, &source, &name, options, report.setting.threads, handwritten.as_ref())
        });
        let row = Row { name, wasm_bytes, figures: figures.map_err(message) };
        sheet.write(&table.row(&row))?;
        if row.figures.is_err() {
            // A kernel fault has destroyed the context.
            device = reopen(device);
        }
        report.rows.push(row);
        write_picture(svg, &report)?;
        sheet.keep(|| json::value(&report))?;
    }
    if count > 0 {
        sheet.write(&table.footing(&report))?;
    }
    if host_calls {
        let figures = hostcalls::measure(&device, options).map_err(message);
        let gap = if count == 0 { "" } else { "\n" };
        sheet.write(&format!("{gap}{}", hostcalls::text(&figures)))?;
        report.host_calls = Some(figures);
    }
    sheet.end(|| json::value(&report))?;
    Ok(tell_failures(&report))
}

fn message(error: anyhow::Error) -> String {
    format!("{error:#}")
}

/// Opens the device anew. If that fails, returns the old one, whose next use will report the error.
fn reopen(old: Arc<dyn Device>) -> Arc<dyn Device> {
    if !old.is_gpu() {
        return old;
    }
    gpu_run_device::open(&old.properties().id).unwrap_or(old)
}

fn write_picture(svg: &Path, report: &Report) -> Result<()> {
    std::fs::write(svg, chart::svg(report)).with_context(|| format!("cannot write {}", svg.display()))
}

/// Prints the full errors, of which the table shows only one line each. Returns whether there are none.
fn tell_failures(report: &Report) -> bool {
    let rows = report.rows.iter().map(|row| (row.name.as_str(), row.figures.as_ref().err()));
    let calls = report.host_calls.iter().map(|calls| (hostcalls::NAME, calls.as_ref().err()));
    let mut well = true;
    for (name, error) in rows.chain(calls) {
        if let Some(error) = error {
            terminal::say(&format!("error: {name}: {error}\n"));
            well = false;
        }
    }
    well
}

impl Report {
    pub(super) fn measured(&self) -> impl Iterator<Item = (&str, &Figures)> {
        self.rows.iter().filter_map(|row| Some((row.name.as_str(), row.figures.as_ref().ok()?)))
    }

    /// Returns the geometric mean of the ratios to Wasmtime; `None` if nothing was measured.
    pub(super) fn geometric_mean(&self) -> Option<f64> {
        let logarithms: Vec<f64> = self.measured().map(|(_, figures)| figures.ratio().ln()).collect();
        (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
    }
}
