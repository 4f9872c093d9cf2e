//! No text of the picture is where another text, a bar, a mark or a line is, whatever was measured.

use super::super::Setting;
use super::super::set::{Report, Row};
use super::super::tests::{figures, report, row};
use super::*;
use proptest::prelude::*;

struct Area {
    what: String,
    x: [f64; 2],
    y: [f64; 2],
}

impl Area {
    fn overlaps(&self, other: &Area) -> bool {
        let apart = |a: [f64; 2], b: [f64; 2]| a[1] <= b[0] || b[1] <= a[0];
        !apart(self.x, other.x) && !apart(self.y, other.y)
    }
}

/// The value of an attribute, as a number.
fn number(tag: &str, name: &str) -> f64 {
    let value = tag.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no number {name} in {tag}"))
}

/// Where a line of the picture draws text, if it does.
fn text(line: &str) -> Option<Area> {
    let (tag, rest) = line.strip_prefix("<text")?.split_once('>')?;
    let text = rest.strip_suffix("</text>")?.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let has = |class: &str| tag.contains(class);
    let size = if has("title") {
        18.0
    } else if has("small") {
        SMALL
    } else {
        NORMAL
    };
    let width = width(&text, size) * if has("title") { 1.1 } else { 1.0 };
    let (x, y) = (number(tag, "x"), number(tag, "y"));
    let left = if has("end") {
        x - width
    } else if has("middle") {
        x - width / 2.0
    } else {
        x
    };
    Some(Area { what: text, x: [left, left + width], y: [y - 0.8 * size, y + 0.25 * size] })
}

/// Where a line of the picture draws a bar, a mark or a line; the background is none.
fn mark(line: &str) -> Option<Area> {
    let area = |x, y| Some(Area { what: line.to_owned(), x, y });
    if line.starts_with("<line") {
        let [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map(|name| number(line, name));
        return area([x1 - 0.5, x2 + 0.5], [y1 - 0.5, y2 + 0.5]);
    }
    if !line.starts_with("<rect") || line.contains("class=\"back\"") {
        return None;
    }
    let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| number(line, name));
    area([x, x + width], [y, y + height])
}

#[track_caller]
fn nothing_overlaps(svg: &str) {
    let texts: Vec<Area> = svg.lines().filter_map(text).collect();
    let marks: Vec<Area> = svg.lines().filter_map(mark).collect();
    assert!(texts.len() > 5 && marks.len() > 1, "{svg}");
    for (at, text) in texts.iter().enumerate() {
        assert!(text.x[0] >= 0.0 && text.x[1] <= WIDTH, "{} is cut off", text.what);
        for other in texts[at + 1..].iter().chain(&marks) {
            assert!(!text.overlaps(other), "{} and {} overlap in:\n{svg}", text.what, other.what);
        }
    }
}

fn rate() -> impl Strategy<Value = f64> {
    (-3.0..12.0f64).prop_map(|decade| 10f64.powf(decade))
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let figures = (rate(), rate(), proptest::option::of(rate()))
        .prop_map(|(device, wasmtime, handwritten)| figures(device, wasmtime, handwritten));
    let any_row = ("\\PC{0,40}", proptest::option::weighted(0.8, figures))
        .prop_map(|(name, figures)| row(&name, figures.ok_or_else(|| "no".to_owned())));
    proptest::collection::vec(any_row, 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_label_of_the_picture_overlaps_another_or_a_mark(rows in rows(), host in "\\PC{0,120}") {
        let Report { setting, host_calls, .. } = report();
        nothing_overlaps(&svg(&Report { setting: Setting { host, ..setting }, rows, host_calls }));
    }
}

#[test]
fn the_picture_in_the_readme_is_drawn_like_that() {
    nothing_overlaps(include_str!("../../../../docs/h200.svg"));
}

/// What was measured on an H200: the marks of the two programs were where their ratios were printed.
#[test]
fn a_mark_close_behind_its_bar_is_not_in_the_ratio() {
    let rows = vec![
        row("sha256", Ok(figures(3.47e6, 10.8e3, Some(6.4e6)))),
        row("n-body", Ok(figures(8.48e6, 51.6e3, Some(16.0e6)))),
        row("close", Ok(figures(8.48e6, 51.6e3, Some(9.0e6)))),
    ];
    nothing_overlaps(&svg(&Report { rows, ..report() }));
}
