//! How the desktop looks: one palette, one type scale, one spacing scale. Lengths are in units, colours are red, green, blue and opacity.

use crate::memory::{D_ACCENT, D_THEME};
use gpu_run_kernel::gpu::load;

// The type scale.
pub const SMALL: f32 = 12.0;
pub const BODY: f32 = 14.0;
pub const TITLE: f32 = 20.0;

// The spacing scale is 4, 8, 12, 16, 24.
pub const GAP: f32 = 12.0;
pub const MARGIN: f32 = 16.0;
/// The space around what is in a panel that scrolls: rings of the focus must have room.
pub const SCROLL_PAD: f32 = 6.0;

/// The height of a window's title bar, and the width of each of its buttons.
pub const TITLE_BAR: f32 = 36.0;
pub const TITLE_BUTTON: f32 = 36.0;
/// The smallest window.
pub const LEAST_WINDOW_W: f32 = 180.0;
pub const LEAST_WINDOW_H: f32 = 96.0;
/// How far from a window's edge the pointer takes hold of the edge.
pub const EDGE: f32 = 5.0;

// Radii of corners.
pub const CONTROL_RADIUS: f32 = 6.0;
pub const WINDOW_RADIUS: f32 = 10.0;
pub const CARD_RADIUS: f32 = 8.0;

/// The side of a checkbox's box, and the diameter of a slider's thumb.
pub const MARK: f32 = 18.0;
pub const THUMB: f32 = 18.0;
pub const TRACK: f32 = 4.0;

/// The scroll bar: its width, its distance from the edges, the least length of its thumb, and how wide the strip is that takes the pointer.
pub const BAR_WIDTH: f32 = 5.0;
pub const BAR_MARGIN: f32 = 4.0;
pub const BAR_LEAST: f32 = 28.0;
pub const BAR_ZONE: f32 = 15.0;
/// How much around what is scrolled into view shows, twice.
pub const NEAR: f32 = 16.0;

/// Microseconds that a transition takes.
pub const TRANSITION: f32 = 120_000.0;

/// Colours that mean something.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Colour {
    DesktopTop,
    DesktopBottom,
    Window,
    WindowEdge,
    Bar,
    Card,
    CardEdge,
    Text,
    Quiet,
    Disabled,
    Accent,
    AccentHot,
    AccentDown,
    OnAccent,
    Control,
    ControlHot,
    ControlDown,
    ControlEdge,
    Field,
    FieldEdge,
    Track,
    Selection,
    Ring,
    Shadow,
    Danger,
    Tip,
    OnTip,
}

const COLOURS: usize = 27;
pub const WHITE: u32 = 0xFFFF_FFFF;
const BLACK: u32 = 0xFF00_0000;

const fn rgb(hex: u32) -> u32 {
    rgba(hex << 8 | 0xFF)
}
const fn rgba(hex: u32) -> u32 {
    hex.swap_bytes()
}

static LIGHT: [u32; COLOURS] = [
    rgb(0xC9D9F0),
    rgb(0x9DB7DD),
    rgb(0xFBFBFD),
    rgba(0x1A21301F),
    rgb(0xF1F3F7),
    rgb(0xFFFFFF),
    rgb(0xE2E6ED),
    rgb(0x1B1F27),
    rgb(0x5C6472),
    rgb(0xA3AAB6),
    rgb(0x2563EB),
    rgb(0x1D57D8),
    rgb(0x1A48B4),
    rgb(0xFFFFFF),
    rgb(0xFFFFFF),
    rgb(0xF3F5F9),
    rgb(0xE3E7EE),
    rgb(0xCBD1DB),
    rgb(0xFFFFFF),
    rgb(0xBCC3CF),
    rgb(0xDCE1E9),
    rgb(0xBFD6FF),
    rgba(0x2563EBB0),
    rgba(0x0F1B3350),
    rgb(0xE5484D),
    rgb(0x262B35),
    rgb(0xF4F5F7),
];
static DARK: [u32; COLOURS] = [
    rgb(0x1C2433),
    rgb(0x10141C),
    rgb(0x20242C),
    rgba(0xFFFFFF10),
    rgb(0x292E38),
    rgb(0x282D36),
    rgb(0x363C47),
    rgb(0xECEEF2),
    rgb(0xA2ABBA),
    rgb(0x636B79),
    rgb(0x3B82F6),
    rgb(0x5694FA),
    rgb(0x2F6DDC),
    rgb(0xFFFFFF),
    rgb(0x333944),
    rgb(0x3D4450),
    rgb(0x2A2F38),
    rgb(0x474F5C),
    rgb(0x191C22),
    rgb(0x4A5260),
    rgb(0x3A414D),
    rgb(0x2B4C86),
    rgba(0x6AA2FFC0),
    rgba(0x000000A0),
    rgb(0xF0525A),
    rgb(0x3A414D),
    rgb(0xECEEF2),
];

/// Returns a colour of the current theme.
pub fn colour(which: Colour) -> u32 {
    let accent = load(D_ACCENT);
    let own = if accent != 0 { of_accent(which, accent) } else { 0 };
    if own != 0 { own } else { of_theme(which) }
}

fn of_theme(which: Colour) -> u32 {
    let table = if load(D_THEME) == 0 { &LIGHT } else { &DARK };
    table[which as usize]
}

/// The colours that follow from an accent; 0 for others.
fn of_accent(which: Colour, accent: u32) -> u32 {
    let is_light = load(D_THEME) == 0;
    match which {
        Colour::Accent => accent,
        Colour::AccentHot => mix(accent, if is_light { BLACK } else { WHITE }, 0.12),
        Colour::AccentDown => mix(accent, BLACK, 0.24),
        Colour::OnAccent => {
            if is_bright(accent) {
                BLACK
            } else {
                WHITE
            }
        }
        Colour::Selection => mix(of_theme(Colour::Field), accent, if is_light { 0.3 } else { 0.45 }),
        Colour::Ring => faded(accent, 0xB0),
        _ => 0,
    }
}

/// Whether black is easier to read on a colour than white.
fn is_bright(colour: u32) -> bool {
    let part = |shift: u32| {
        let value = (colour >> shift & 255) as f32 / 255.0;
        value * value
    };
    0.2126 * part(0) + 0.7152 * part(8) + 0.0722 * part(16) > 0.36
}

/// The colour of a plot's series.
pub fn series(number: u32) -> u32 {
    match number {
        0 => colour(Colour::Accent),
        1 => rgb(0xF08C00),
        2 => rgb(0x12A594),
        _ => rgb(0xA855F7),
    }
}

/// Returns the colour between two, `t` of the way.
pub fn mix(from: u32, to: u32, t: f32) -> u32 {
    let part = (t * 256.0) as u32;
    // Two channels at a time: each has 16 bits.
    let channels =
        |from: u32, to: u32| ((from & 0xFF_00FF) * (256 - part) + (to & 0xFF_00FF) * part + 0x80_0080) >> 8 & 0xFF_00FF;
    channels(from, to) | channels(from >> 8, to >> 8) << 8
}

/// Returns the colour with another opacity, of 255.
pub fn faded(colour: u32, opacity: u32) -> u32 {
    colour & 0x00FF_FFFF | ((colour >> 24) * opacity / 255) << 24
}
