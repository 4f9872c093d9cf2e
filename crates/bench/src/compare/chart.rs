//! The picture: each program's rate relative to Wasmtime's, as bars on a logarithmic scale from 1×.
//!
//! A self-contained SVG file, in light or dark colours according to the reader's system. Text is never drawn over bars
//! and marks but in columns of its own; text that does not fit its column is cut off.

use super::set::Report;
use super::{describe, show_grouped, show_ratio};
use gpu_run_console::units::show_count;
use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
const MARGIN: f64 = 24.0;
const TOP: f64 = 128.0;
const ROW: f64 = 28.0;
const BAR: f64 = 16.0;
/// From a row's top to the baseline of its text.
const BASELINE: f64 = 19.0;
/// Where bars can begin; names end before it.
const LEFT: f64 = 170.0;
/// Where bars end.
const RIGHT: f64 = 620.0;
/// Right edges of the columns after the bars: ratio, our rate, Wasmtime's rate.
const COLUMNS: [f64; 3] = [748.0, 842.0, WIDTH - MARGIN];
/// Width of such a column's text.
const COLUMN: f64 = 78.0;
/// The least space between two texts.
const GAP: f64 = 12.0;
/// Text sizes in pixels, as in `STYLE`.
const NORMAL: f64 = 13.0;
const SMALL: f64 = 12.0;

const STYLE: &str = "\
  .back { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e } .grid { stroke: #d8dee4 } .one { stroke: #59636e }
  .bar { fill: #2f81d7 } .mean { fill: #1f2328 } .cuda { fill: #bc4c00 }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117 } .text { fill: #e6edf3 } .quiet { fill: #9198a1 } .grid { stroke: #30363d } .one { stroke: #9198a1 }
    .bar { fill: #4493f8 } .mean { fill: #e6edf3 } .cuda { fill: #f0883e }
  }
  text { font: 13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif }
  .small { font-size: 12px } .title { font-size: 18px; font-weight: 600 }
  .end { text-anchor: end } .middle { text-anchor: middle }";

pub(super) fn svg(report: &Report) -> String {
    let scale = Scale::new(&ratios(report));
    let mean = report.geometric_mean();
    let rows = report.rows.len() + usize::from(mean.is_some());
    let bottom = TOP + ROW * rows as f64;
    let mut chart = Chart { scale, body: String::new() };
    chart.heading(report);
    chart.grid(bottom);
    let mut y = TOP;
    for row in &report.rows {
        chart.name(y, &row.name);
        match &row.figures {
            Ok(figures) => {
                chart.bar(y, figures.ratio(), "bar");
                let rates = [figures.device_rate, figures.wasmtime_rate].map(|rate| format!("{}/s", show_count(rate)));
                chart.columns(y, "text", &[&show_ratio(figures.ratio()), &rates[0], &rates[1]]);
                if let Some(rate) = figures.handwritten_rate {
                    let x = chart.scale.x(rate / figures.wasmtime_rate);
                    chart.rect(x - 2.0, y + 3.0, 4.0, ROW - 6.0, "cuda");
                }
            }
            Err(_) => chart.columns(y, "quiet", &["failed"]),
        }
        y += ROW;
    }
    if let Some(mean) = mean {
        chart.line(LEFT, y, COLUMNS[2], y, "grid");
        chart.name(y, "geometric mean");
        chart.bar(y, mean, "mean");
        chart.columns(y, "text", &[&show_ratio(mean)]);
    }
    chart.finish(bottom + 16.0)
}

/// Returns all ratios that are drawn.
fn ratios(report: &Report) -> Vec<f64> {
    let handwritten =
        report.measured().filter_map(|(_, figures)| Some(figures.handwritten_rate? / figures.wasmtime_rate));
    report.measured().map(|(_, figures)| figures.ratio()).chain(handwritten).collect()
}

/// Whole decades, always including 1× and 10×.
struct Scale {
    first: i32,
    last: i32,
}

impl Scale {
    fn new(ratios: &[f64]) -> Self {
        let decades = || ratios.iter().map(|ratio| ratio.log10()).filter(|decade| decade.is_finite());
        // Ratios are of two measured rates: more than nine decades must be a mistake, and would only be drawn badly.
        let bound = |decade: f64| decade.clamp(-9.0, 9.0) as i32;
        Self { first: bound(decades().fold(0.0, f64::min).floor()), last: bound(decades().fold(1.0, f64::max).ceil()) }
    }

    fn x(&self, ratio: f64) -> f64 {
        let part = (ratio.log10() - f64::from(self.first)) / f64::from(self.last - self.first);
        LEFT + part.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }
}

struct Chart {
    scale: Scale,
    body: String,
}

impl Chart {
    fn heading(&mut self, report: &Report) {
        self.text(MARGIN, 34.0, "text title", "Instances a second, against Wasmtime on all cores");
        for (line, y) in describe(&report.setting).iter().zip([56.0, 74.0]) {
            self.text(MARGIN, y, "quiet small", &fit(line, SMALL, WIDTH - 2.0 * MARGIN));
        }
        self.columns(TOP - 12.0 - BASELINE, "quiet", &["ratio", "gpu-run", "Wasmtime"]);
        if report.measured().any(|(_, figures)| figures.handwritten_rate.is_some()) {
            let legend = "the same by hand in CUDA, kernel only";
            let x = COLUMNS[2] - width(legend, SMALL);
            self.text(x, 34.0, "quiet small", legend);
            self.rect(x - GAP, 24.0, 4.0, 12.0, "cuda");
        }
    }

    /// Draws a line for each decade, labelled with its ratio; with many decades, only every second or third has a
    /// label.
    fn grid(&mut self, bottom: f64) {
        let decades = self.scale.first..=self.scale.last;
        let widest = decades.clone().map(|decade| width(&power(decade), SMALL)).fold(0.0, f64::max);
        let apart = (RIGHT - LEFT) / f64::from(self.scale.last - self.scale.first);
        let step = ((widest + GAP) / apart).ceil() as i32;
        for decade in decades {
            let x = self.scale.x(10f64.powi(decade));
            self.line(x, TOP - 6.0, x, bottom, if decade == 0 { "one" } else { "grid" });
            if decade % step == 0 {
                self.text(x, TOP - 12.0, "quiet small middle", &power(decade));
            }
        }
    }

    fn name(&mut self, y: f64, name: &str) {
        let name = fit(name, NORMAL, LEFT - GAP - MARGIN);
        self.text(LEFT - GAP, y + BASELINE, "text end", &name);
    }

    /// Draws a bar from 1× to the ratio, to either side.
    fn bar(&mut self, y: f64, ratio: f64, class: &str) {
        let (one, end) = (self.scale.x(1.0), self.scale.x(ratio));
        let (from, to) = if end < one { (end, one) } else { (one, end) };
        self.rect(from, y + (ROW - BAR) / 2.0, (to - from).max(1.0), BAR, class);
    }

    /// Writes the figures after the bars.
    fn columns(&mut self, y: f64, colour: &str, texts: &[&str]) {
        for (text, x) in texts.iter().zip(COLUMNS) {
            self.text(x, y + BASELINE, &format!("{colour} small end"), &fit(text, SMALL, COLUMN));
        }
    }

    // Writing to a `String` cannot fail.
    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let _ = writeln!(self.body, r#"<text x="{x:.1}" y="{y:.1}" class="{class}">{}</text>"#, escape(text));
    }

    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        let size = format!(r#"width="{width:.1}" height="{height:.1}""#);
        let _ = writeln!(self.body, r#"<rect x="{x:.1}" y="{y:.1}" {size} rx="2" class="{class}"/>"#);
    }

    fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, class: &str) {
        let _ = writeln!(self.body, r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" class="{class}"/>"#);
    }

    fn finish(self, height: f64) -> String {
        let size = format!(r#"width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}""#);
        let back = format!(r#"<rect width="{WIDTH}" height="{height}" class="back"/>"#);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" {size}>\n<style>\n{STYLE}\n</style>\n{back}\n{}</svg>\n",
            self.body
        )
    }
}

/// Writes a power of ten as `1/100×` or `1,000×`.
fn power(decade: i32) -> String {
    let power = show_grouped(10u32.saturating_pow(decade.unsigned_abs()));
    if decade < 0 { format!("1/{power}×") } else { format!("{power}×") }
}

/// Cuts off text that is wider than `room`.
fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut cut: Vec<char> = text.chars().collect();
    while !cut.is_empty() && width(&cut.iter().collect::<String>(), size) + width("…", size) > room {
        cut.pop();
    }
    cut.into_iter().chain(['…']).collect()
}

/// Returns an upper bound of a text's width, in the widest of `STYLE`'s fonts: DejaVu Sans.
fn width(text: &str, size: f64) -> f64 {
    let ems = text.chars().map(|c| match c {
        'f' | 'i' | 'j' | 'l' | 'r' | 't' | 'I' | 'J' | ' ' | '.' | ',' | ':' | ';' | '-' | '/' | '(' | ')' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '&' | '…' => 1.0,
        c if c.is_ascii_uppercase() || matches!(c, '×' | '+' | '<' | '=' | '>' | '~' | '#') => 0.84,
        c if c.is_ascii() => 0.64,
        _ => 1.3,
    });
    ems.sum::<f64>() * size
}

/// Escapes text for XML: names come from files and may contain anything.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
