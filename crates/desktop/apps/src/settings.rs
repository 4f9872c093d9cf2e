//! Settings: what the whole desktop looks like.

use gpu_run_ui::{Event, Ui, Widget};
use std::io;

/// The accents that can be chosen, with their names.
const ACCENTS: [(&str, [u8; 3]); 6] = [
    ("Blue", [0x2F, 0x6F, 0xEB]),
    ("Teal", [0x0F, 0x8B, 0x8D]),
    ("Green", [0x2E, 0x8B, 0x57]),
    ("Amber", [0xC9, 0x7A, 0x0A]),
    ("Rose", [0xD1, 0x3B, 0x68]),
    ("Violet", [0x7C, 0x4D, 0xD9]),
];
/// How large everything can be, in percent.
const SCALES: [u32; 4] = [80, 100, 125, 150];
/// The rates that can be chosen, in frames a second.
const RATES: [u32; 4] = [30, 60, 120, 240];

pub fn run(ui: &Ui, _: &[String]) -> io::Result<()> {
    let figures = ui.status()?;
    let now = |name: &str| figures.iter().find(|(it, _)| it == name).map_or(0, |(_, value)| *value as u32);

    let window = ui.window("Settings").width(340.0);
    window.label("Appearance").title();
    let row = window.row().gap(20.0);
    let modes = ["Light", "Dark"].map(|mode| row.radio(mode));
    choose(&modes, Some(now("dark") as usize));

    window.label("Accent").quiet();
    let row = window.row().gap(14.0).wrap();
    let accents = ACCENTS.map(|(name, _)| row.radio(name));
    let accent = match now("accent") {
        // The palette's own is a blue.
        0 => Some(0),
        accent => {
            ACCENTS.iter().position(|(_, [red, green, blue])| u32::from_le_bytes([*red, *green, *blue, 0]) == accent)
        }
    };
    choose(&accents, accent);

    window.label("Size of everything").quiet();
    let row = window.row().gap(20.0);
    let scales = SCALES.map(|scale| row.radio(&format!("{scale} %")));
    choose(&scales, SCALES.iter().position(|scale| scale.abs_diff(now("scale_percent")) <= 1));

    window.label("Frames a second").quiet();
    let row = window.row().gap(20.0);
    let rates = RATES.map(|rate| row.radio(&rate.to_string()));
    choose(&rates, RATES.iter().position(|rate| *rate == now("rate")));

    while let Some(event) = ui.next()? {
        match event {
            Event::Changed(widget, value) if value > 0.5 => {
                let of = |choices: &[Widget]| choices.iter().position(|choice| *choice == widget);
                if let Some(mode) = of(&modes) {
                    ui.set_dark(mode == 1);
                }
                if let Some(at) = of(&accents) {
                    ui.set_accent(ACCENTS[at].1);
                }
                if let Some(at) = of(&scales) {
                    ui.set_scale(SCALES[at] as f32 / 100.0);
                }
                if let Some(at) = of(&rates) {
                    ui.set_rate(RATES[at]);
                }
            }
            Event::Closed(_) => break,
            _ => {}
        }
    }
    Ok(())
}

/// Switches one of several choices on, if it is one of them.
fn choose(choices: &[Widget], at: Option<usize>) {
    if let Some(choice) = at.and_then(|at| choices.get(at)) {
        choice.set_value(1.0);
    }
}
