//! What each kind of widget looks like.

use crate::event::{kinds, looks};
use crate::item::{Brush, Edges, grown};
use crate::math::{ease, round};
use crate::memory::*;
use crate::theme::{self, Colour::*, colour, faded, mix};
use crate::{bar as task_bar, canvas, caret, font, icons, lines, plot, rows, tabs, text, window};
use gpu_run_kernel::gpu::load;

/// How far beyond its upper and lower edges a widget can paint, in units, beside its text: the shadow of a window in front goes farthest.
const REACH: f32 = 48.0;

/// How many parts a widget is painted in: none, if nothing of it could show.
pub fn parts(widget: u32) -> u32 {
    match () {
        _ if !may_show(widget) => 0,
        _ if lines::has_lines(get(W_KIND, widget)) => rows::parts(widget),
        _ => 1,
    }
}

/// Whether what a widget may draw on is not empty, and within its reach. (To the right, texts reach as far as they are long.)
fn may_show(widget: u32) -> bool {
    let (from, to) = (get(W_CLIP_FROM, widget), get(W_CLIP_TO, widget));
    let scale = load(D_SCALE) as f32 / 256.0;
    let (top, height) = (getf(W_AT_Y, widget) * scale, getf(W_H, widget) * scale);
    let reach = reach(widget, scale);
    let is_beside = top - reach >= (to >> 16) as f32 || top + height + reach <= (from >> 16) as f32;
    (from & 0xFFFF) < (to & 0xFFFF) && (from >> 16) < (to >> 16) && !is_beside
}

/// How far above and below its edges a widget paints at most, in pixels, some of which are for rounding.
pub fn reach(widget: u32, scale: f32) -> f32 {
    (REACH + 2.0 * getf(W_FONT, widget)) * scale + 4.0
}

/// Makes the items of a part of a widget.
pub fn paint(widget: u32, part: u32, brush: &mut Brush) {
    let edges = edges(widget, brush.scale);
    match get(W_KIND, widget) {
        kinds::DESKTOP => brush.gradient(edges, 0.0, colour(DesktopTop), colour(DesktopBottom)),
        kinds::WINDOW => paint_window(widget, edges, brush),
        kinds::PANEL if get(W_LOOK, widget) == looks::STRONG => {
            let radius = theme::CARD_RADIUS * brush.scale;
            brush.rectangle(edges, radius, colour(Card));
            brush.border(edges, radius, hair(brush), colour(CardEdge));
        }
        kinds::LABEL => write(widget, text_colour(widget), 0.0, brush),
        kinds::BUTTON => button(widget, edges, brush),
        kinds::CHECKBOX | kinds::RADIO => choice(widget, edges, brush),
        kinds::SLIDER => slider(widget, edges, brush),
        kinds::FIELD => text_field(widget, edges, brush),
        kinds::TABS => tabs::paint(widget, edges, brush),
        kinds::CANVAS | kinds::IMAGE => canvas::paint(widget, brush),
        kinds::PLOT => plot::paint(widget, edges, brush),
        kinds::AREA | kinds::LIST | kinds::TABLE => rows::paint(widget, part, brush),
        kinds::SCROLL => rows::panel(widget, edges, brush),
        kinds::PROGRESS => bar(widget, edges, getf(W_VALUE, widget), brush),
        _ => {}
    }
}

/// The edges of a widget, at whole pixels.
pub fn edges(widget: u32, scale: f32) -> Edges {
    let (x, y) = (getf(W_AT_X, widget), getf(W_AT_Y, widget));
    [x, y, x + getf(W_W, widget), y + getf(W_H, widget)].map(|at| round(at * scale) as f32)
}

/// The width of the thinnest line: a unit, in whole pixels, rounded down.
pub fn hair(brush: &Brush) -> f32 {
    (brush.scale as u32).max(1) as f32
}

pub fn text_colour(widget: u32) -> u32 {
    match () {
        _ if has(widget, F_DISABLED) => colour(Disabled),
        _ if get(W_LOOK, widget) == looks::QUIET => colour(Quiet),
        _ => colour(Text),
    }
}

/// Writes a widget's text into its content box, `across` of the way from left to right, in the middle of its height.
fn write(widget: u32, colour: u32, across: f32, brush: &mut Brush) {
    let size = getf(W_FONT, widget);
    let (left, right) = (getf(W_PAD_LEFT, widget), getf(W_PAD_RIGHT, widget));
    let mut x = getf(W_AT_X, widget) + left;
    if across != 0.0 {
        let room = getf(W_W, widget) - left - right - text::width(widget, u32::MAX);
        x += room.max(0.0) * across;
    }
    let top = getf(W_AT_Y, widget) + (getf(W_H, widget) - text::line_height(size)) / 2.0;
    let baseline = round((top + font::baseline() * size) * brush.scale) as f32;
    brush.text(widget, x * brush.scale, baseline, size * brush.scale, colour);
}

/// A ring around a widget that has the focus by keyboard.
pub fn ring(widget: u32, edges: Edges, radius: f32, brush: &mut Brush) {
    if load(D_FOCUS) == widget && load(D_RING) != 0 {
        let gap = 3.0 * brush.scale;
        brush.border(grown(edges, gap), radius + gap, 2.0 * brush.scale, colour(Ring));
    }
}

fn paint_window(widget: u32, edges: Edges, brush: &mut Brush) {
    let (scale, front) = (brush.scale, load(D_FRONT) == widget);
    let snapped = has(widget, F_SNAPPED);
    let radius = if snapped { 0.0 } else { theme::WINDOW_RADIUS * scale };
    let [left, top, right, bottom] = edges;
    if !snapped {
        let drop = if front { 10.0 } else { 4.0 } * scale;
        let fade = if front { 32.0 } else { 16.0 } * scale;
        brush.shadow([left, top + drop, right, bottom + drop], radius, fade, colour(Shadow));
    }
    let under = top + round(theme::TITLE_BAR * scale) as f32;
    let all = brush.limit([left, top, right, under]);
    brush.rectangle([left, top, right, bottom], radius, colour(Bar));
    let title = brush.limit([left, top, right - window::buttons() * theme::TITLE_BUTTON * scale, under]);
    let size = theme::BODY;
    let x = (left + theme::MARGIN * scale).max(left);
    let baseline = theme::TITLE_BAR / 2.0 - text::line_height(size) / 2.0 + font::baseline() * size;
    let y = top + round(baseline * scale) as f32;
    let room = right - window::buttons() * theme::TITLE_BUTTON * scale - x;
    brush.short_text(widget, x, y, size * scale, room, if front { colour(Text) } else { colour(Quiet) });
    brush.clip = title;
    title_buttons(widget, edges, brush);
    brush.clip = all;
    brush.limit([left, under, right, bottom]);
    brush.rectangle([left, top, right, bottom], radius, colour(Window));
    brush.clip = all;
    let hair = hair(brush);
    brush.rectangle([left, under - hair, right, under], 0.0, colour(WindowEdge));
    brush.border(grown(edges, hair), radius + hair, hair, colour(WindowEdge));
}

/// The buttons that minimise, maximise and close a window.
fn title_buttons(widget: u32, edges: Edges, brush: &mut Brush) {
    let (scale, button) = (brush.scale, theme::TITLE_BUTTON * brush.scale);
    let [_, top, right, _] = edges;
    let hot = if load(D_HOVER) == widget { window::part_under_pointer(widget) } else { 0 };
    let pressed = load(D_PRESS) == widget && load(D_PART) == hot;
    let middle = top + theme::TITLE_BAR * scale / 2.0;
    let centre = [right - 2.5 * button, right - 1.5 * button, right - 0.5 * button];
    let parts = [(window::MINIMISE, centre[0]), (window::MAXIMISE, centre[1]), (window::CLOSE, centre[2])];
    for (part, x) in parts {
        if part == window::MINIMISE && !task_bar::exists() {
            continue;
        }
        let danger = part == window::CLOSE && hot == part;
        let ink = if danger { theme::WHITE } else { colour(Quiet) };
        if hot == part {
            let under = if danger { colour(Danger) } else { faded(colour(Text), 28) };
            brush.circle(x, middle, 13.0 * scale, if pressed { mix(under, colour(Text), 0.2) } else { under });
        }
        let (arm, width) = (4.0 * scale, 1.3 * scale);
        if part == window::CLOSE {
            brush.line([x - arm, middle - arm], [x + arm, middle + arm], width, ink);
            brush.line([x - arm, middle + arm], [x + arm, middle - arm], width, ink);
        } else if part == window::MINIMISE {
            let y = middle + round(2.0 * scale) as f32;
            brush.line([x - arm, y], [x + arm, y], width, ink);
        } else {
            let whole = [x - arm, middle - arm, x + arm, middle + arm].map(|at| round(at) as f32);
            brush.border(whole, 1.5 * scale, width, ink);
        }
    }
}

/// The colour of a control between rest, hovered and pressed.
fn state(widget: u32, rest: u32, hot: u32, down: u32) -> u32 {
    let warm = mix(rest, hot, ease(getf(W_HOT, widget)));
    mix(warm, down, ease(getf(W_DOWN, widget)))
}

fn button(widget: u32, edges: Edges, brush: &mut Brush) {
    let radius = theme::CONTROL_RADIUS * brush.scale;
    let (look, disabled) = (get(W_LOOK, widget), has(widget, F_DISABLED));
    let mut ink = text_colour(widget);
    match look {
        looks::STRONG if !disabled => {
            brush.rectangle(edges, radius, state(widget, colour(Accent), colour(AccentHot), colour(AccentDown)));
            ink = colour(OnAccent);
        }
        looks::QUIET => {
            let clear = faded(colour(Control), 0);
            brush.rectangle(edges, radius, state(widget, clear, colour(ControlHot), colour(ControlDown)));
        }
        _ => {
            brush.rectangle(edges, radius, state(widget, colour(Control), colour(ControlHot), colour(ControlDown)));
            brush.border(edges, radius, hair(brush), colour(ControlEdge));
        }
    }
    labelled(widget, ink, brush);
    ring(widget, edges, radius, brush);
}

/// A button's icon and its text, in its middle.
fn labelled(widget: u32, ink: u32, brush: &mut Brush) {
    let space = icons::space(widget);
    if space == 0.0 {
        return write(widget, ink, 0.5, brush);
    }
    let (width, size) = (text::width(widget, u32::MAX), getf(W_FONT, widget));
    let x = getf(W_AT_X, widget) + ((getf(W_W, widget) - space - width) / 2.0).max(0.0);
    let middle = getf(W_AT_Y, widget) + getf(W_H, widget) / 2.0;
    icons::paint(get(W_ICON, widget), x, middle - icons::SIZE / 2.0, ink, brush);
    let baseline = round((middle - text::line_height(size) / 2.0 + font::baseline() * size) * brush.scale) as f32;
    brush.text(widget, (x + space) * brush.scale, baseline, size * brush.scale, ink);
}

/// A checkbox or a radio button: a mark, and a text beside it.
fn choice(widget: u32, edges: Edges, brush: &mut Brush) {
    let (scale, disabled) = (brush.scale, has(widget, F_DISABLED));
    let side = round(theme::MARK * scale) as f32;
    let [left, top, _, bottom] = edges;
    let upper = top + round((bottom - top - side) / 2.0) as f32;
    let mark = [left, upper, left + side, upper + side];
    let is_radio = get(W_KIND, widget) == kinds::RADIO;
    let radius = if is_radio { side / 2.0 } else { 5.0 * scale };
    let on = ease(getf(W_ON, widget));
    let off = state(widget, colour(Field), colour(ControlHot), colour(ControlDown));
    let full =
        if disabled { colour(Disabled) } else { state(widget, colour(Accent), colour(AccentHot), colour(AccentDown)) };
    brush.rectangle(mark, radius, mix(off, full, on));
    brush.border(mark, radius, hair(brush), mix(colour(FieldEdge), full, on));
    let ink = faded(colour(OnAccent), round(on * 255.0) as u32);
    if on > 0.0 && is_radio {
        brush.circle(left + side / 2.0, upper + side / 2.0, (0.2 + 0.02 * on) * side, ink);
    } else if on > 0.0 {
        let at = |x: f32, y: f32| [left + x * side, upper + y * side];
        brush.line(at(0.27, 0.53), at(0.43, 0.69), 1.8 * scale, ink);
        brush.line(at(0.43, 0.69), at(0.74, 0.34), 1.8 * scale, ink);
    }
    write(widget, text_colour(widget), 0.0, brush);
    ring(widget, mark, radius, brush);
}

/// A track that is filled up to `value`.
fn bar(widget: u32, edges: Edges, value: f32, brush: &mut Brush) {
    let [left, top, right, bottom] = edges;
    let radius = (bottom - top) / 2.0;
    brush.rectangle(edges, radius, colour(Track));
    let width = (right - left) * value;
    if width > 0.0 {
        let fill = if has(widget, F_DISABLED) { colour(Disabled) } else { colour(Accent) };
        let before = brush.limit([left, top, left + width.max(2.0 * radius), bottom]);
        brush.rectangle([left, top, left + width.max(2.0 * radius), bottom], radius, fill);
        brush.clip = before;
    }
}

fn slider(widget: u32, edges: Edges, brush: &mut Brush) {
    let scale = brush.scale;
    let [left, top, right, bottom] = edges;
    let (radius, value) = (theme::THUMB * scale / 2.0, getf(W_VALUE, widget));
    let middle = round((top + bottom) / 2.0) as f32;
    let half = (theme::TRACK * scale / 2.0).max(1.0);
    bar(widget, [left, middle - half, right, middle + half], value, brush);
    let x = left + radius + (right - left - 2.0 * radius) * value;
    let (hot, down) = (ease(getf(W_HOT, widget)), ease(getf(W_DOWN, widget)));
    let thumb = [x - radius, middle - radius, x + radius, middle + radius];
    let edge = if has(widget, F_DISABLED) { colour(Disabled) } else { colour(Accent) };
    if hot > 0.0 {
        brush.circle(x, middle, radius + 5.0 * scale * hot, faded(colour(Accent), 40));
    }
    let drop = scale;
    brush.shadow([thumb[0], thumb[1] + drop, thumb[2], thumb[3] + drop], radius, 3.0 * scale, colour(Shadow));
    brush.circle(x, middle, radius, edge);
    brush.circle(x, middle, radius * (0.62 - 0.12 * down), colour(OnAccent));
    ring(widget, thumb, radius, brush);
}

fn text_field(widget: u32, edges: Edges, brush: &mut Brush) {
    let scale = brush.scale;
    let radius = theme::CONTROL_RADIUS * scale;
    let focused = load(D_FOCUS) == widget;
    brush.rectangle(edges, radius, colour(Field));
    let rest = mix(colour(FieldEdge), colour(Quiet), ease(getf(W_HOT, widget)));
    let (width, edge) = if focused { (2.0 * hair(brush), colour(Accent)) } else { (hair(brush), rest) };
    brush.border(edges, radius, width, edge);
    let [left, top, right, bottom] = edges;
    let pad = (getf(W_PAD_LEFT, widget) - 2.0) * scale;
    let before = brush.limit([left + pad, top, right - pad, bottom]);
    let size = getf(W_FONT, widget);
    let line = text::line_height(size);
    let y = getf(W_AT_Y, widget) + (getf(W_H, widget) - line) / 2.0;
    let x = getf(W_AT_X, widget) + getf(W_PAD_LEFT, widget) - getf(W_SCROLL, widget);
    let at = |place: u32| round((x + text::width(widget, place)) * scale) as f32;
    let (upper, lower) = (round(y * scale) as f32, round((y + line) * scale) as f32);
    let (from, to) = caret::selection(widget);
    if focused && from != to {
        brush.rectangle([at(from), upper, at(to), lower], 2.0 * scale, colour(Selection));
    }
    let baseline = round((y + font::baseline() * size) * scale) as f32;
    brush.text(widget, x * scale, baseline, size * scale, text_colour(widget));
    if focused {
        let caret = at(get(W_CARET, widget));
        let width = round(1.5 * scale).max(1) as f32;
        brush.rectangle([caret, upper, caret + width, lower], 0.0, colour(Accent));
    }
    brush.clip = before;
}
