//! Settings: what the whole desktop looks like.

use gpu_run_ui::{Event, Ui};
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
/// The rates that can be chosen, in frames a second.
const RATES: [u32; 4] = [30, 60, 120, 240];

pub fn run(ui: &Ui, _: &[String]) -> io::Result<()> {
    let window = ui.window("Settings").width(340.0);
    window.label("Appearance").title();
    let modes = window.row().gap(20.0);
    let light = modes.radio("Light");
    let dark = modes.radio("Dark");
    light.set_value(1.0);

    window.label("Accent").quiet();
    let row = window.row().gap(14.0).wrap();
    let accents: Vec<_> = ACCENTS.iter().map(|(name, _)| row.radio(name)).collect();
    accents[0].set_value(1.0);

    window.label("Frames a second").quiet();
    let row = window.row().gap(20.0);
    let rates: Vec<_> = RATES.iter().map(|rate| row.radio(&rate.to_string())).collect();
    rates[1].set_value(1.0);

    while let Some(event) = ui.next()? {
        match event {
            Event::Changed(widget, value) if value > 0.5 => {
                if widget == light || widget == dark {
                    ui.set_dark(widget == dark);
                }
                if let Some(at) = accents.iter().position(|accent| *accent == widget) {
                    ui.set_accent(ACCENTS[at].1);
                }
                if let Some(at) = rates.iter().position(|rate| *rate == widget) {
                    ui.set_rate(RATES[at]);
                }
            }
            Event::Closed(_) => break,
            _ => {}
        }
    }
    Ok(())
}
