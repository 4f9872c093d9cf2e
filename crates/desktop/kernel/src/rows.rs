//! What areas, lists, tables and panels that scroll look like. Only rows that show are painted, each as a part of its own: the parts of
//! a widget are painted at the same time.

use crate::event::{kinds, looks};
use crate::item::{Brush, Edges, grown};
use crate::list::{CELL_PAD, Columns, INSET};
use crate::math::{ceil, floor, round};
use crate::memory::*;
use crate::paint::{edges, hair, ring, text_colour};
use crate::text::Reader;
use crate::theme::{self, BAR_MARGIN, BAR_WIDTH, BAR_ZONE, Colour::*, colour, faded, mix};
use crate::{area, caret, font, lines, list, scroll, text};
use gpu_run_kernel::gpu::load;

/// The rows of a widget that show.
struct Shown {
    first: u32,
    count: u32,
    /// The first row's top on the desktop, and the height of each, in units.
    top: f32,
    height: f32,
}

impl Shown {
    fn of(widget: u32) -> Self {
        let is_area = get(W_KIND, widget) == kinds::AREA;
        let (height, inset, rows) = if is_area {
            (area::line_height(widget), getf(W_PAD_TOP, widget), get(T_LINES, widget))
        } else {
            (list::row_height(widget), INSET, list::rows(widget))
        };
        let scale = load(D_SCALE) as f32 / 256.0;
        let (from, to) = (get(W_CLIP_FROM, widget) >> 16, get(W_CLIP_TO, widget) >> 16);
        let view_top = getf(W_AT_Y, widget) + scroll::view_top(widget);
        let upper = view_top.max(from as f32 / scale);
        let lower = (getf(W_AT_Y, widget) + getf(W_H, widget)).min(to as f32 / scale);
        let content = view_top + inset - scroll::offset(widget);
        let first = floor((upper - content) / height).clamp(0, rows as i32) as u32;
        let behind = ceil((lower - content) / height).clamp(first as i32, rows as i32) as u32;
        let count = if lower > upper { behind - first } else { 0 };
        Self { first, count, top: content + first as f32 * height, height }
    }
}

/// How many parts a widget is painted in: what is behind the rows, the rows, and what is before them.
pub fn parts(widget: u32) -> u32 {
    Shown::of(widget).count + 2
}

pub fn paint(widget: u32, part: u32, brush: &mut Brush) {
    let edges = edges(widget, brush.scale);
    let shown = Shown::of(widget);
    let is_area = get(W_KIND, widget) == kinds::AREA;
    if part == 0 {
        brush.rectangle(edges, theme::CONTROL_RADIUS * brush.scale, colour(Field));
    } else if part <= shown.count {
        let all = brush.limit(inside(widget, edges, brush));
        let (row, top) = (shown.first + part - 1, shown.top + (part - 1) as f32 * shown.height);
        if is_area {
            line(widget, row, top, brush)
        } else {
            list_row(widget, row, top, shown.height, brush)
        }
        brush.clip = all;
    } else {
        front(widget, edges, brush);
    }
}

/// Where rows show: within the border, and below a table's header.
fn inside(widget: u32, edges: Edges, brush: &Brush) -> Edges {
    let within = grown(edges, -hair(brush));
    let top = round((getf(W_AT_Y, widget) + scroll::view_top(widget)) * brush.scale) as f32;
    [within[0], within[1].max(top), within[2], within[3]]
}

/// What lies over the rows: a table's header, the border, the scroll bar and the caret's area in focus.
fn front(widget: u32, edges: Edges, brush: &mut Brush) {
    let radius = theme::CONTROL_RADIUS * brush.scale;
    let kind = get(W_KIND, widget);
    if kind == kinds::TABLE {
        header(widget, edges, radius, brush);
    }
    scroll_bar(widget, edges, brush);
    let has_focus = load(D_FOCUS) == widget;
    let rest = mix(colour(FieldEdge), colour(Quiet), crate::math::ease(getf(W_HOT, widget)));
    if kind == kinds::AREA && has_focus {
        brush.border(edges, radius, 2.0 * hair(brush), colour(Accent));
    } else if kind == kinds::AREA {
        brush.border(edges, radius, hair(brush), rest);
    } else {
        brush.border(edges, radius, hair(brush), colour(ControlEdge));
        ring(widget, edges, radius, brush);
    }
}

/// A bar that is wider while the pointer is on it.
pub fn scroll_bar(widget: u32, edges: Edges, brush: &mut Brush) {
    let Some(bar) = scroll::bar(widget) else { return };
    let held = scroll::is_held(widget);
    let free = load(D_PRESS) == NONE || load(D_PRESS) == widget;
    let hot = held || free && load(D_HOVER) == widget && scroll::is_on_bar(widget);
    let scale = brush.scale;
    let width = if hot { BAR_WIDTH + 3.0 } else { BAR_WIDTH } * scale;
    let right = edges[2] - BAR_MARGIN * scale;
    let at = |y: f32| round((getf(W_AT_Y, widget) + y) * scale) as f32;
    if hot {
        let track = [right - width, at(bar.top), right, at(bar.top + bar.height)];
        brush.rectangle(track, width / 2.0, faded(colour(Quiet), 36));
    }
    let opacity = match () {
        _ if held => 230,
        _ if hot => 180,
        _ => 110,
    };
    let thumb = [right - width, at(bar.thumb_top), right, at(bar.thumb_top + bar.thumb_height)];
    brush.rectangle(thumb, width / 2.0, faded(colour(Quiet), opacity));
}

/// A panel that scrolls: its bar; with a surface of its own if its look says so.
pub fn panel(widget: u32, edges: Edges, brush: &mut Brush) {
    if get(W_LOOK, widget) == looks::STRONG {
        let radius = theme::CARD_RADIUS * brush.scale;
        brush.rectangle(edges, radius, colour(Card));
        brush.border(edges, radius, hair(brush), colour(CardEdge));
    }
    scroll_bar(widget, edges, brush);
}

/// A line of an area: what is selected of it, its text, and the caret.
fn line(widget: u32, line: u32, top: f32, brush: &mut Brush) {
    let (scale, size) = (brush.scale, getf(W_FONT, widget));
    let (first, end) = lines::range(widget, line);
    let focused = load(D_FOCUS) == widget;
    let left = getf(W_AT_X, widget) + getf(W_PAD_LEFT, widget);
    let at = |place: u32| round((left + area::width_to(widget, line, place)) * scale) as f32;
    let (upper, lower) = (round(top * scale) as f32, round((top + text::line_height(size)) * scale) as f32);
    let (from, to) = caret::selection(widget);
    // The caret of a wrapped line's end belongs to the next line.
    let last = lines::last_place(widget, line);
    if from != to && from <= last && to > first {
        // A line's end that is selected shows as a space.
        let more = if to > last && to > end { round(5.0 * scale) as f32 } else { 0.0 };
        let tint = if focused { colour(Selection) } else { faded(colour(Selection), 150) };
        brush.rectangle([at(from.max(first)), upper, at(to.min(end)) + more, lower], 0.0, tint);
    }
    let baseline = round((top + font::baseline() * size) * scale) as f32;
    brush.part_of_text(widget, first, end, left * scale, baseline, size * scale, text_colour(widget));
    let caret = get(W_CARET, widget);
    let here = caret >= first && caret <= last || caret > last && line + 1 == get(T_LINES, widget);
    if focused && here {
        let x = at(caret.min(end));
        let width = round(1.5 * scale).max(1) as f32;
        brush.rectangle([x, upper, x + width, lower], 0.0, colour(Accent));
    }
}

fn list_row(widget: u32, row: u32, top: f32, height: f32, brush: &mut Brush) {
    let scale = brush.scale;
    let at = |v: f32| round(v * scale) as f32;
    let left = getf(W_AT_X, widget) + INSET;
    let bar = if scroll::bar(widget).is_some() { BAR_ZONE } else { INSET };
    let right = getf(W_AT_X, widget) + getf(W_W, widget) - bar;
    let place = [at(left), at(top), at(right), at(top + height)];
    let (focused, disabled) = (load(D_FOCUS) == widget, has(widget, F_DISABLED));
    let chosen = get(W_SELECTED, widget) == row;
    let free = load(D_PRESS) == NONE || load(D_PRESS) == widget && !scroll::is_held(widget);
    let hot = free && load(D_HOVER) == widget && !scroll::is_on_bar(widget) && list::hot_row(widget) == row;
    let radius = 4.0 * scale;
    let mut ink = text_colour(widget);
    if chosen && focused && !disabled {
        brush.rectangle(place, radius, if hot { colour(AccentHot) } else { colour(Accent) });
        ink = colour(OnAccent);
    } else if chosen {
        brush.rectangle(place, radius, if disabled { colour(Track) } else { colour(Selection) });
    } else if hot {
        brush.rectangle(place, radius, faded(colour(Text), 18));
    }
    cells(widget, row + list::first_line(widget), top, height, ink, brush);
}

/// The header of a table: it hides the rows that scrolled up.
fn header(widget: u32, edges: Edges, radius: f32, brush: &mut Brush) {
    let scale = brush.scale;
    let [left, top, right, _] = edges;
    let height = list::row_height(widget);
    let bottom = round((getf(W_AT_Y, widget) + height) * scale) as f32;
    let all = brush.limit([left, top, right, bottom]);
    brush.rectangle(edges, radius, colour(Bar));
    cells(widget, 0, getf(W_AT_Y, widget), height, colour(Quiet), brush);
    brush.rectangle([left, bottom - hair(brush), right, bottom], 0.0, colour(ControlEdge));
    brush.clip = all;
}

/// The text of a row, or the texts of its cells.
fn cells(widget: u32, line: u32, top: f32, height: f32, ink: u32, brush: &mut Brush) {
    let size = getf(W_FONT, widget);
    let (mut from, end) = lines::range(widget, line);
    let middle = top + (height - text::line_height(size)) / 2.0;
    let baseline = round((middle + font::baseline() * size) * brush.scale) as f32;
    let left = getf(W_AT_X, widget) + INSET;
    if get(W_KIND, widget) == kinds::LIST {
        let room = getf(W_W, widget) - INSET - BAR_ZONE - 2.0 * CELL_PAD;
        return cell(widget, [from, end], [left + CELL_PAD, baseline, room], false, ink, brush);
    }
    let columns = Columns::of(widget);
    let text = Reader::of(widget);
    let (mut x, mut number) = (left, 0);
    while number < columns.count && from <= end {
        let to = list::cell(&text, from, end);
        let width = columns.width(number);
        let room = width - 2.0 * CELL_PAD;
        cell(widget, [from, to], [x + CELL_PAD, baseline, room], columns.has_numbers(number), ink, brush);
        x += width;
        from = to + 1;
        number += 1;
    }
}

/// A text that is shortened if there is no room for it: left, baseline in pixels, and room.
fn cell(widget: u32, [from, to]: [u32; 2], at: [f32; 3], right: bool, ink: u32, brush: &mut Brush) {
    const DOTS: u32 = 0x2026;
    let size = getf(W_FONT, widget);
    let text = Reader::of(widget);
    let room = (at[2].max(0.0) / size * font::EM + 0.5) as u32;
    // The longest beginning that leaves room for the dots.
    let (mut sum, mut short, mut short_sum, mut i) = (0, from, 0, from);
    while i < to && sum <= room {
        sum += font::advance(text.at(i));
        i += 1;
        if sum + font::advance(DOTS) <= room {
            (short, short_sum) = (i, sum);
        }
    }
    let fits = sum <= room;
    let used = if fits { sum } else { short_sum + font::advance(DOTS) };
    let aside = if right { room.saturating_sub(used) as f32 * size / font::EM } else { 0.0 };
    let (x, pixels) = ((at[0] + aside) * brush.scale, size * brush.scale);
    if fits {
        brush.part_of_text(widget, from, to, x, at[1], pixels, ink);
    } else if room > font::advance(DOTS) {
        brush.part_of_text(widget, from, short, x, at[1], pixels, ink);
        let scale = pixels / font::EM;
        brush.glyph(DOTS, x + short_sum as f32 * scale, at[1], scale, ink);
    }
}
