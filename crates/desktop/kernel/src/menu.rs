//! Menus: the lines of a text, of which one is chosen. A menu opens beneath its button, above everything, and is kept inside the desktop.
//! Widget 0's text is the menu of apps. Only one menu is open at a time.

use crate::dispatch::{is_active, pointer, tell};
use crate::event::{CHOSEN, keys::*, kinds};
use crate::item::Brush;
use crate::math::round;
use crate::memory::*;
use crate::theme::{self, Colour::*, colour};
use crate::{bar, font, paint, text};
use gpu_run_kernel::gpu::{load, store};

const ENTRY: f32 = 30.0;
const SEPARATOR: f32 = 9.0;
const PAD: f32 = 6.0;
/// The space beside a text.
const INSET: f32 = 12.0;
const LEAST_WIDTH: f32 = 160.0;
/// The space between a menu and its button, and between a menu and the desktop's edge.
const BESIDE: f32 = 4.0;

/// The menu of apps.
pub const APPS: u32 = 0;

/// The menu that is open, if its button is visible.
fn shown() -> u32 {
    let menu = load(D_MENU);
    let visible = match menu {
        NONE => false,
        APPS => bar::exists(),
        _ => get(W_ORDER, get(W_PARENT, menu)) != 0,
    };
    if visible { menu } else { NONE }
}

/// Whether a menu is open, and takes the keys.
pub fn is_open() -> bool {
    shown() != NONE
}

/// Whether this button's menu is open.
pub fn is_open_of(button: u32) -> bool {
    let menu = load(D_MENU);
    menu != NONE && menu != APPS && get(W_PARENT, menu) == button
}

/// The menu of a button, or [`NONE`].
pub fn of(button: u32) -> u32 {
    let mut child = get(W_FIRST, button);
    while child != NONE && get(W_KIND, child) != kinds::MENU {
        child = get(W_NEXT, child);
    }
    child
}

pub fn set_open(menu: u32, open: bool) {
    match open {
        true => show(menu),
        false if load(D_MENU) == menu => show(NONE),
        false => {}
    }
}

fn show(menu: u32) {
    store(D_MENU, menu);
    store(D_MENU_AT, NONE);
    store(D_MENU_DOWN, 0);
    store(D_CHANGED, 1);
}

pub fn close() {
    if load(D_MENU) != NONE {
        show(NONE);
    }
}

/// Opens a menu, or closes it if it is open.
pub fn toggle(menu: u32) {
    show(if shown() == menu { NONE } else { menu });
}

/// A line of a menu.
struct Entry {
    number: u32,
    /// The first character and the one after the last.
    from: u32,
    to: u32,
    /// From the menu's top.
    y: f32,
    height: f32,
    is_separator: bool,
}

/// Calls `body` with each entry; returns the width and the height of all.
#[inline(always)]
fn entries(menu: u32, mut body: impl FnMut(&Entry)) -> (f32, f32) {
    let (mut y, mut widest) = (PAD, 0);
    text::lines(menu, |number, from, to, width| {
        let is_separator = to - from == 1 && text::Reader::of(menu).at(from) == b'-' as u32;
        let height = if is_separator { SEPARATOR } else { ENTRY };
        body(&Entry { number, from, to, y, height, is_separator });
        y += height;
        widest = widest.max(width);
    });
    let width = round(widest as f32 * theme::BODY / font::EM) as f32 + 2.0 * (PAD + INSET);
    (width.max(LEAST_WIDTH), y + PAD)
}

/// Left, top, width and height in units.
fn place(menu: u32) -> [f32; 4] {
    let (width, height) = entries(menu, |_| {});
    let (room_w, room_h) = (getf(W_W, 0), getf(W_H, 0));
    let (x, y) = if menu == APPS {
        (bar::PAD, bar::top() - height - BESIDE)
    } else {
        let button = get(W_PARENT, menu);
        let top = getf(W_AT_Y, button);
        let (below, above) = (top + getf(W_H, button) + BESIDE, top - height - BESIDE);
        (getf(W_AT_X, button), if below + height > room_h - BESIDE && above >= BESIDE { above } else { below })
    };
    let inside = |at: f32, size: f32, room: f32| at.min(room - size - BESIDE).max(BESIDE);
    [inside(x, width, room_w), inside(y, height, room_h), width, height]
}

/// Whether the pointer is on a menu, and on which of its entries.
fn under_pointer(menu: u32) -> (bool, u32) {
    let [left, top, width, height] = place(menu);
    let (x, y) = (pointer().0 - left, pointer().1 - top);
    if x < 0.0 || y < 0.0 || x >= width || y >= height {
        return (false, NONE);
    }
    let mut found = NONE;
    entries(menu, |it| {
        if y >= it.y && y < it.y + it.height && !it.is_separator {
            found = it.number;
        }
    });
    (true, found)
}

/// Whether a menu is open where the pointer is.
pub fn is_under_pointer() -> bool {
    shown() != NONE && under_pointer(shown()).0
}

fn mark(entry: u32) {
    if load(D_MENU_AT) != entry {
        store(D_MENU_AT, entry);
        store(D_CHANGED, 1);
    }
}

/// The pointer moved. Returns whether it is on the menu.
pub fn point(hit: u32) -> bool {
    let menu = shown();
    if menu == NONE {
        return false;
    }
    let (inside, entry) = under_pointer(menu);
    // Leaving the menu to one side does not take back what the keyboard marked.
    if inside {
        mark(entry);
    } else if menu != APPS && hit != NONE && hit != get(W_PARENT, menu) && is_beside(menu, hit) {
        show(of(hit));
    }
    inside
}

/// Whether a widget is another button with a menu, in the same row as this menu's.
fn is_beside(menu: u32, button: u32) -> bool {
    let same = get(W_PARENT, button) == get(W_PARENT, get(W_PARENT, menu));
    same && get(W_KIND, button) == kinds::BUTTON && is_active(button) && of(button) != NONE
}

/// The pointer's button went down. Returns whether that was for the menu.
pub fn press(hit: u32) -> bool {
    let menu = shown();
    if menu == NONE {
        return false;
    }
    if under_pointer(menu).0 {
        store(D_MENU_DOWN, 1);
        return true;
    }
    close();
    // A press on the menu's own button only closes it.
    if menu == APPS { bar::part_under_pointer() == APPS } else { hit == get(W_PARENT, menu) }
}

pub fn release() -> bool {
    let (menu, down) = (shown(), load(D_MENU_DOWN));
    store(D_MENU_DOWN, 0);
    if menu == NONE || down == 0 {
        return false;
    }
    choose(menu, under_pointer(menu).1);
    true
}

fn choose(menu: u32, entry: u32) {
    if entry != NONE {
        close();
        tell(CHOSEN, menu, entry);
    }
}

/// A key went down. Returns whether a menu is open, which takes all keys.
pub fn key(key: u32) -> bool {
    let menu = shown();
    if menu == NONE {
        return false;
    }
    match key {
        DOWN => go(menu, 1),
        UP => go(menu, -1),
        HOME => {
            mark(NONE);
            go(menu, 1);
        }
        END => {
            mark(NONE);
            go(menu, -1);
        }
        ENTER | SPACE => choose(menu, load(D_MENU_AT)),
        LEFT => beside(menu, W_PREVIOUS),
        RIGHT => beside(menu, W_NEXT),
        _ => close(),
    }
    true
}

/// Marks the next entry that is no separator, or the one before; after the last comes the first.
fn go(menu: u32, step: i32) {
    let at = load(D_MENU_AT);
    let (mut first, mut last, mut before, mut after) = (NONE, NONE, NONE, NONE);
    entries(menu, |it| {
        if it.is_separator {
            return;
        }
        first = first.min(it.number);
        last = it.number;
        if at != NONE && it.number < at {
            before = it.number;
        }
        if at != NONE && it.number > at {
            after = after.min(it.number);
        }
    });
    mark(if step > 0 {
        if after == NONE { first } else { after }
    } else if before == NONE {
        last
    } else {
        before
    });
}

/// Opens the menu of the next button with one, or of the one before.
fn beside(menu: u32, link: u32) {
    if menu == APPS {
        return;
    }
    let mut at = get(link, get(W_PARENT, menu));
    while at != NONE && !(is_beside(menu, at) && get(W_ORDER, at) != 0) {
        at = get(link, at);
    }
    if at != NONE {
        show(of(at));
    }
}

pub fn paint(brush: &mut Brush) {
    let menu = shown();
    if menu == NONE || get(W_TEXT_LENGTH, menu) == 0 {
        return;
    }
    let scale = brush.scale;
    let [x, y, w, h] = place(menu);
    let edges = [x, y, x + w, y + h].map(|at| round(at * scale) as f32);
    let [left, top, right, bottom] = edges;
    let radius = theme::CARD_RADIUS * scale;
    brush.shadow([left, top + 6.0 * scale, right, bottom + 6.0 * scale], radius, 18.0 * scale, colour(Shadow));
    brush.rectangle(edges, radius, colour(Card));
    brush.border(edges, radius, paint::hair(brush), colour(CardEdge));
    let before = brush.limit(edges);
    let (pad, hair) = (round(PAD * scale) as f32, paint::hair(brush));
    entries(menu, |it| {
        let line = [left + pad, top + it.y * scale, right - pad, top + (it.y + it.height) * scale];
        let line = line.map(|at| round(at) as f32);
        if it.is_separator {
            let middle = round((line[1] + line[3]) / 2.0) as f32;
            return brush.rectangle([left, middle, right, middle + hair], 0.0, colour(CardEdge));
        }
        let marked = load(D_MENU_AT) == it.number;
        if marked {
            brush.rectangle(line, theme::CONTROL_RADIUS * scale - 1.0, colour(Accent));
        }
        let size = theme::BODY;
        let text = (it.height - text::line_height(size)) / 2.0 + font::baseline() * size;
        let baseline = top + round((it.y + text) * scale) as f32;
        let ink = if marked { colour(OnAccent) } else { colour(Text) };
        brush.part_of_text(menu, it.from, it.to, line[0] + INSET * scale, baseline, size * scale, ink);
    });
    brush.clip = before;
}
