//! The system monitor: what the desktop does, as live plots and figures.

use gpu_run_ui::{Event, Ui};
use std::collections::HashMap;
use std::io;
use std::time::Duration;

const PERIOD: Duration = Duration::from_millis(500);
/// Phases that are plotted, each with the name of its figure.
const PHASES: [(&str, &str); 4] =
    [("Layout", "layout_us"), ("Order", "order_us"), ("Geometry", "geometry_us"), ("Raster", "raster_us")];

pub fn run(ui: &Ui, _: &[String]) -> io::Result<()> {
    let window = ui.window("Monitor").width(460.0).height(520.0);
    let head = window.row().gap(24.0);
    let rate = head.label("– frames/s").title();
    let busy = head.label("").quiet();
    window.label("Time of a frame by phase: layout, order, geometry, raster (ms)").quiet();
    let phases = window.plot().height(130.0);
    window.label("Frames a second").quiet();
    let frames = window.plot().height(90.0);
    let columns = ["Figure", "Value"];
    let table = window.table(&columns).grow(1.0).min_height(120.0);

    let mut before: HashMap<String, f64> = HashMap::new();
    ui.tick_in(Duration::ZERO);
    while let Some(event) = ui.next()? {
        match event {
            Event::Tick => {
                let figures = ui.status()?;
                let now: HashMap<String, f64> = figures.iter().cloned().collect();
                let gained = |name: &str| {
                    let value = |of: &HashMap<String, f64>| of.get(name).copied().unwrap_or(0.0);
                    if before.is_empty() { 0.0 } else { (value(&now) - value(&before)).max(0.0) }
                };
                let (drawn, time) = (gained("frames"), gained("time_us").max(1.0));
                let per_second = drawn / time * 1e6;
                rate.set_text(&format!("{per_second:.0} frames/s"));
                let work: f64 = now
                    .keys()
                    .filter(|name| name.ends_with("_us") && *name != "time_us" && *name != "wait_us")
                    .map(|name| gained(name))
                    .sum();
                busy.set_text(&format!("{:.1} % busy", work / time * 100.0));
                frames.add_point(0, per_second as f32);
                for (series, (_, name)) in PHASES.iter().enumerate() {
                    let mean = if drawn > 0.0 { gained(name) / drawn / 1e3 } else { 0.0 };
                    phases.add_point(series as u16, mean as f32);
                }
                let rows: Vec<_> = figures.iter().map(|(name, value)| vec![shown(name), number(*value)]).collect();
                table.set_rows(&columns, &rows);
                before = now;
                ui.tick_in(PERIOD);
            }
            Event::Closed(_) => break,
            _ => {}
        }
    }
    Ok(())
}

/// A figure's name for people: `layout_us` is `Layout (µs)`.
fn shown(name: &str) -> String {
    let (name, unit) = match name.strip_suffix("_us") {
        Some(name) => (name, " (µs)"),
        None => (name, ""),
    };
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect::<String>() + unit)
}

/// A number with spaces between thousands.
fn number(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
