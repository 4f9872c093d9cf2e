//! Overlays: what lies above all windows: the bar, the open menu, the tooltip. They are no widgets with a place in the layout; they are
//! painted last, and take the pointer and the keys first.

use crate::item::Brush;
use crate::memory::*;
use crate::{bar, menu, tooltip};
use gpu_run_kernel::gpu::{load, store};

/// How many there are. Each is made by a lane of its own.
pub const LAYERS: u32 = 3;

/// Writes an empty desktop's state of them.
pub fn boot() {
    let words = [D_WINDOWS, D_BAR_HOT, D_BAR_DOWN, D_MENU, D_MENU_AT, D_TIP_NEXT, D_TIP, D_PIXELS];
    words.iter().for_each(|word| store(*word, NONE));
}

/// Forgets a widget that is removed.
pub fn forget(widget: u32) {
    for word in [D_BAR_HOT, D_BAR_DOWN, D_MENU, D_TIP_NEXT, D_TIP] {
        if load(word) == widget {
            store(word, NONE);
        }
    }
}

pub fn paint(layer: u32, brush: &mut Brush) {
    match layer {
        0 => bar::paint(brush),
        1 => menu::paint(brush),
        _ => tooltip::paint(brush),
    }
}

/// The pointer came to a place, with this widget under it. Returns whether an overlay lies above the widget.
pub fn point(hit: u32) -> bool {
    let on_menu = menu::point(hit);
    bar::point(!on_menu) || on_menu
}

/// The pointer's button went down. Returns whether that was for an overlay.
pub fn press(hit: u32) -> bool {
    tooltip::hide();
    menu::press(hit) || bar::press()
}

/// The pointer's button went up. Returns whether that was for an overlay.
pub fn release() -> bool {
    menu::release() || bar::release()
}

/// A key went down. Returns whether that was for an overlay.
pub fn key(key: u32) -> bool {
    tooltip::hide();
    menu::key(key) || bar::key(key)
}

/// Whether an overlay lies where the pointer is.
pub fn is_under_pointer() -> bool {
    menu::is_under_pointer() || bar::part_under_pointer() != NONE
}

/// Whether an overlay lies at a place in 256ths of a unit.
pub fn is_at(x: i32, y: i32) -> bool {
    let before = [load(D_POINTER_X), load(D_POINTER_Y)];
    store(D_POINTER_X, x as u32);
    store(D_POINTER_Y, y as u32);
    let is_there = is_under_pointer();
    store(D_POINTER_X, before[0]);
    store(D_POINTER_Y, before[1]);
    is_there
}
