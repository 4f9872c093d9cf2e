//! The later steps of flexbox ([`crate::flex`]): from the children's base sizes to their places.

use crate::event::{kinds, style as s};
use crate::flex::*;
use crate::memory::*;
use crate::tree::GONE;

/// Bits of `T_BITS`.
pub const FROZEN: u32 = 1;
pub const BASIS_IS_DEFINITE: u32 = 2;
pub const BEGINS_LINE: u32 = 4;

/// Whether a child takes part in its container's lines.
#[inline(always)]
fn flows(child: u32) -> bool {
    get(W_STYLE, child) & (1 << s::ABSOLUTE | GONE) == 0
}

/// Returns the first child that flows, from `child` on in the direction `link`.
#[inline(always)]
fn flowing(mut child: u32, link: u32) -> u32 {
    while child != NONE && !flows(child) {
        child = get(link, child);
    }
    child
}

/// Calls `body` for each child that flows.
#[inline(always)]
pub fn each(node: u32, mut body: impl FnMut(u32)) {
    let mut child = flowing(get(W_FIRST, node), W_NEXT);
    while child != NONE {
        body(child);
        child = flowing(get(W_NEXT, child), W_NEXT);
    }
}

/// Calls `body` for each child of the line that begins with `first`.
#[inline(always)]
pub fn each_of_line(_node: u32, first: u32, mut body: impl FnMut(u32)) {
    let mut child = first;
    loop {
        body(child);
        child = flowing(get(W_NEXT, child), W_NEXT);
        if child == NONE || get(T_BITS, child) & BEGINS_LINE != 0 {
            return;
        }
    }
}

/// The same, from the line's last child to its first.
#[inline(always)]
fn each_of_line_reversed(node: u32, first: u32, mut body: impl FnMut(u32)) {
    let mut child = first;
    each_of_line(node, first, |last| child = last);
    loop {
        body(child);
        if child == first {
            return;
        }
        child = flowing(get(W_PREVIOUS, child), W_PREVIOUS);
    }
}

/// Calls `body` for each line, with its first child and how many it has.
#[inline(always)]
pub fn each_line(node: u32, mut body: impl FnMut(u32, u32)) {
    let mut first = flowing(get(W_FIRST, node), W_NEXT);
    while first != NONE {
        let (mut count, mut next) = (0, first);
        loop {
            count += 1;
            next = flowing(get(W_NEXT, next), W_NEXT);
            if next == NONE || get(T_BITS, next) & BEGINS_LINE != 0 {
                break;
            }
        }
        body(first, count);
        first = next;
    }
}

/// The same, from the last line to the first, with its first child only.
#[inline(always)]
fn each_line_reversed(node: u32, mut body: impl FnMut(u32)) {
    let mut child = flowing(get(W_LAST, node), W_PREVIOUS);
    while child != NONE {
        if get(T_BITS, child) & BEGINS_LINE != 0 {
            body(child);
        }
        child = flowing(get(W_PREVIOUS, child), W_PREVIOUS);
    }
}

/// The space between `count` things that are `gap` apart.
#[inline(always)]
pub fn gaps(gap: f32, count: u32) -> f32 {
    if count <= 1 { 0.0 } else { gap * (count - 1) as f32 }
}

/// How a child is aligned in its line; `normal` is `stretch`.
pub fn align_self(node: u32, child: u32) -> u32 {
    let own = keyword(child, s::ALIGN_SELF, 7);
    let align = if own == 0 { keyword(node, s::ALIGN_ITEMS, 7) } else { own };
    if align == s::NORMAL { s::STRETCH } else { align }
}

fn is_stretched(it: &Box, child: u32) -> bool {
    align_self(it.node, child) == s::STRETCH && pair(W_WIDTH, W_HEIGHT, child).cross(it.row).is_nan()
}

/// Which sides of a child are definite, once it has its main size.
fn definite_sides(it: &Box, child: u32) -> u32 {
    let own = pair(W_WIDTH, W_HEIGHT, child).with_aspect(getf(W_ASPECT, child));
    let main = it.has_definite_main || get(T_BITS, child) & BASIS_IS_DEFINITE != 0;
    let cross = is_stretched(it, child) || !own.cross(it.row).is_nan() || !it.row && it.cross_space_is_definite;
    let (width, height) = if it.row { (main, cross) } else { (cross, main) };
    width as u32 | (height as u32) << 1
}

/// Step 6: the children's main sizes.
pub fn flexible_lengths(it: &Box) {
    each_line(it.node, |first, items| flexible_line(it, first, gaps(it.gap.main(it.row), items)));
}

fn flexible_line(it: &Box, first: u32, gap: f32) {
    let (row, node) = (it.row, it.node);
    let inner = or(it.inner.main(row), 0.0);
    let mut hypothetical = gap;
    let mut sum = 0.0;
    each_of_line(node, first, |child| sum += getf(T_HYPO_MAIN, child) + margins(child).main(row));
    hypothetical += sum;
    let (growing, shrinking) = (hypothetical < inner, hypothetical > inner);
    // A panel that scrolls does not make its content smaller.
    let exact = !growing && !shrinking || shrinking && get(W_KIND, node) == kinds::SCROLL;
    each_of_line(node, first, |child| {
        let (basis, hypo) = (getf(T_BASIS, child), getf(T_HYPO_MAIN, child));
        setf(T_TARGET_MAIN, child, hypo);
        let stiff = getf(W_GROW, child) == 0.0 && getf(W_SHRINK, child) == 0.0;
        let frozen = exact || stiff || growing && basis > hypo || shrinking && basis < hypo;
        set(T_BITS, child, get(T_BITS, child) & !FROZEN | if frozen { FROZEN } else { 0 });
    });
    if exact {
        return;
    }
    let used = |child: u32| {
        let frozen = get(T_BITS, child) & FROZEN != 0;
        getf(if frozen { T_TARGET_MAIN } else { T_BASIS }, child) + margins(child).main(row)
    };
    let mut sum = 0.0;
    each_of_line(node, first, |child| sum += used(child));
    let initial = inner - (gap + sum);
    loop {
        let (mut space, mut grow, mut shrink, mut all_frozen) = (0.0, 0.0, 0.0, true);
        each_of_line(node, first, |child| {
            space += used(child);
            if get(T_BITS, child) & FROZEN == 0 {
                all_frozen = false;
                grow += getf(W_GROW, child);
                shrink += getf(W_SHRINK, child);
            }
        });
        if all_frozen {
            return;
        }
        let left = inner - (gap + space);
        let free = if growing && grow < 1.0 {
            (initial * grow - gap).min(left)
        } else if shrinking && shrink < 1.0 {
            (initial * shrink - gap).max(left)
        } else {
            left
        };
        let mut scaled = 0.0;
        each_of_line(node, first, |child| {
            if get(T_BITS, child) & FROZEN == 0 {
                scaled += getf(T_INNER_BASIS, child) * getf(W_SHRINK, child);
            }
        });
        let mut total = 0.0;
        each_of_line(node, first, |child| {
            if get(T_BITS, child) & FROZEN != 0 {
                return;
            }
            let basis = getf(T_BASIS, child);
            let mut target = getf(T_TARGET_MAIN, child);
            if free.is_normal() {
                if growing && grow > 0.0 {
                    target = basis + free * (getf(W_GROW, child) / grow);
                } else if shrinking && shrink > 0.0 && scaled > 0.0 {
                    target = basis + free * (getf(T_INNER_BASIS, child) * getf(W_SHRINK, child) / scaled);
                }
            }
            let most = pair(W_MAX_WIDTH, W_MAX_HEIGHT, child).main(row);
            let clamped = clamp(target, getf(T_LEAST, child), most).max(0.0);
            setf(T_VIOLATION, child, clamped - target);
            setf(T_TARGET_MAIN, child, clamped);
            total += clamped - target;
        });
        each_of_line(node, first, |child| {
            let violation = getf(T_VIOLATION, child);
            let freezes = if total > 0.0 {
                violation > 0.0
            } else if total < 0.0 {
                violation < 0.0
            } else {
                true
            };
            if freezes && get(T_BITS, child) & FROZEN == 0 {
                set(T_BITS, child, get(T_BITS, child) | FROZEN);
            }
        });
    }
}

/// Step 7: the children's hypothetical cross sizes.
pub fn hypothetical_cross(it: &Box, known: Size, space: Size) {
    let row = it.row;
    let known_line = !it.wrap && !known.cross(row).is_nan();
    each(it.node, |child| {
        setf(T_HYPO_CROSS, child, 0.0);
        if known_line && is_stretched(it, child) {
            return;
        }
        let ratio = getf(W_ASPECT, child);
        let own = pair(W_WIDTH, W_HEIGHT, child).with_aspect(ratio).cross(row);
        let least = pair(W_MIN_WIDTH, W_MIN_HEIGHT, child).with_aspect(ratio).cross(row);
        let most = pair(W_MAX_WIDTH, W_MAX_HEIGHT, child).with_aspect(ratio).cross(row);
        let (pad, margin) = (padding(child).cross(row), margins(child));
        let cross = if !own.is_nan() {
            clamp(own, least, most).max(pad)
        } else {
            let main = (it.container.main(row) - margin.main(row)).max(0.0);
            let mut across = space.cross(row);
            if across.is_finite() {
                across = clamp((across - margin.cross(row)).max(0.0), least, most).max(pad);
            }
            let known = Size::of(row, getf(T_TARGET_MAIN, child), AUTO);
            let axis = if row { VERTICAL } else { HORIZONTAL };
            let found = size(child, known, definite_sides(it, child), Size::of(row, main, across), axis);
            clamp(found.cross(row), least, most).max(pad)
        };
        setf(T_HYPO_CROSS, child, cross);
    });
}

/// Steps 8 and 9: the lines' cross sizes.
pub fn line_cross(it: &Box, known: Size) {
    let row = it.row;
    let (inset, least, most) = (it.inset.cross(row), it.least.cross(row), it.most.cross(row));
    let known = known.cross(row);
    let (mut total, mut count) = (0.0, 0);
    each_line(it.node, |first, _| {
        let cross = if !it.wrap && !known.is_nan() {
            (clamp(known, least, most) - inset).max(0.0)
        } else {
            let mut cross = 0.0f32;
            each_of_line(it.node, first, |child| {
                cross = cross.max(getf(T_HYPO_CROSS, child) + margins(child).cross(row));
            });
            if it.wrap { cross } else { clamp(cross, least - inset, most - inset) }
        };
        setf(T_LINE_CROSS, first, cross);
        total += cross;
        count += 1;
    });
    let content = keyword(it.node, s::ALIGN_CONTENT, 15);
    if content == s::NORMAL || content == s::STRETCH {
        let inner = (clamp(or(known, least), least, most) - inset).max(0.0);
        let total = total + gaps(it.gap.cross(row), count);
        if total < inner {
            let more = (inner - total) / count as f32;
            each_line(it.node, |first, _| setf(T_LINE_CROSS, first, getf(T_LINE_CROSS, first) + more));
        }
    }
}

/// Step 15: the container's cross size. Returns the sum of the lines' cross sizes.
pub fn container_cross(it: &mut Box, known: Size) -> f32 {
    let row = it.row;
    let (mut total, mut count) = (0.0, 0);
    each_line(it.node, |first, _| {
        total += getf(T_LINE_CROSS, first);
        count += 1;
    });
    let inset = it.inset.cross(row);
    let own = total + gaps(it.gap.cross(row), count) + inset;
    let outer = clamp(or(known.cross(row), own), it.least.cross(row), it.most.cross(row)).max(inset);
    it.container = Size::of(row, it.container.main(row), outer);
    it.container_inner = Size::of(row, it.container_inner.main(row), (outer - inset).max(0.0));
    total
}

/// Step 11: the children's cross sizes.
pub fn used_cross(it: &Box) {
    let row = it.row;
    each_line(it.node, |first, _| {
        let line = getf(T_LINE_CROSS, first);
        each_of_line(it.node, first, |child| {
            let cross = if is_stretched(it, child) {
                let least = pair(W_MIN_WIDTH, W_MIN_HEIGHT, child).cross(row);
                let most = pair(W_MAX_WIDTH, W_MAX_HEIGHT, child).cross(row);
                clamp((line - margins(child).cross(row)).max(0.0), least, most)
            } else {
                getf(T_HYPO_CROSS, child)
            };
            setf(T_TARGET_CROSS, child, cross);
        });
    });
}

/// The keyword that is used, given the free space and how many things share it.
fn fallback(free: f32, count: u32, keyword: u32) -> u32 {
    let (mut keyword, mut safe) = (keyword, false);
    if count <= 1 || free <= 0.0 {
        (keyword, safe) = match keyword {
            s::STRETCH | s::BETWEEN => (s::FLEX_START, true),
            s::AROUND | s::EVENLY => (s::CENTER, true),
            other => (other, false),
        };
    }
    if free <= 0.0 && safe { s::START } else { keyword }
}

/// The offset of a thing from the one before it.
fn offset(free: f32, count: u32, gap: f32, keyword: u32, reversed: bool, first: bool) -> f32 {
    let n = count as f32;
    if !first {
        let free = free.max(0.0);
        return gap
            + match keyword {
                s::BETWEEN => free / (n - 1.0),
                s::AROUND => free / n,
                s::EVENLY => free / (n + 1.0),
                _ => 0.0,
            };
    }
    match keyword {
        s::FLEX_START if reversed => free,
        s::FLEX_END if !reversed => free,
        s::END => free,
        s::CENTER => free / 2.0,
        s::AROUND if free >= 0.0 => free / n / 2.0,
        s::EVENLY if free >= 0.0 => free / (n + 1.0),
        s::AROUND | s::EVENLY => free / 2.0,
        _ => 0.0,
    }
}

/// Steps 12 to 16: places the children.
pub fn align(it: &Box, total: f32) {
    let (row, node) = (it.row, it.node);
    let (gap, cross_gap) = (it.gap.main(row), it.gap.cross(row));
    let mut count = 0;
    each_line(node, |_, _| count += 1);
    let content = match keyword(node, s::ALIGN_CONTENT, 15) {
        s::NORMAL => s::STRETCH,
        other => other,
    };
    let free = it.container_inner.cross(row) - total - gaps(cross_gap, count);
    let content = fallback(free, count, content);
    let pad = pair(W_PAD_LEFT, W_PAD_TOP, node);
    let mut cross = pad.cross(row);
    let mut first_line = true;
    let mut line = |first: u32| {
        let line_offset = offset(free, count, cross_gap, content, it.wrap_reverse, first_line);
        first_line = false;
        place_line(it, first, gap, pad.main(row), cross + line_offset);
        cross += line_offset + getf(T_LINE_CROSS, first);
    };
    if it.wrap_reverse {
        each_line_reversed(node, &mut line);
    } else {
        each_line(node, |first, _| line(first));
    }
}

fn place_line(it: &Box, first: u32, gap: f32, from: f32, cross: f32) {
    let (row, node) = (it.row, it.node);
    let (mut used, mut count) = (0.0, 0);
    each_of_line(node, first, |child| {
        used += getf(T_TARGET_MAIN, child) + margins(child).main(row);
        count += 1;
    });
    let free = it.container_inner.main(row) - (gaps(gap, count) + used);
    let justify = match keyword(node, s::JUSTIFY, 15) {
        s::NORMAL => s::FLEX_START,
        other => other,
    };
    let justify = fallback(free, count, justify);
    let line = getf(T_LINE_CROSS, first);
    let (mut main, mut is_first) = (from, true);
    let mut put = |child: u32| {
        let before = offset(free, count, gap, justify, it.reverse, is_first);
        is_first = false;
        let margin = margins(child);
        let outer = getf(T_TARGET_CROSS, child) + margin.cross(row);
        let space = line - outer;
        let aside = match align_self(node, child) {
            s::FLEX_START | s::STRETCH if it.wrap_reverse => space,
            s::FLEX_END if !it.wrap_reverse => space,
            s::END => space,
            s::CENTER => space / 2.0,
            _ => 0.0,
        };
        let given = Size::of(row, getf(T_TARGET_MAIN, child), getf(T_TARGET_CROSS, child));
        let size = final_size(child, given);
        let start = pair(W_MARGIN_LEFT, W_MARGIN_TOP, child);
        let at = Size::of(row, main + before + start.main(row), cross + aside + start.cross(row));
        give(child, at, size, definite_sides(it, child));
        main += before + margin.main(row) + size.main(row);
    };
    if it.reverse {
        each_of_line_reversed(node, first, &mut put);
    } else {
        each_of_line(node, first, &mut put);
    }
}

/// Places the children that are placed by their insets. One that has none on an axis is at the start.
pub fn place_absolute(it: &Box) {
    let mut child = get(W_FIRST, it.node);
    while child != NONE {
        if get(W_STYLE, child) & (1 << s::ABSOLUTE | GONE) == 1 << s::ABSOLUTE {
            place_by_insets(it.container, child);
        }
        child = get(W_NEXT, child);
    }
}

fn place_by_insets(area: Size, child: u32) {
    let ratio = getf(W_ASPECT, child);
    let pad = padding(child);
    let least = pair(W_MIN_WIDTH, W_MIN_HEIGHT, child).with_aspect(ratio);
    let least = Size { w: least.w.max(pad.w), h: least.h.max(pad.h) };
    let most = pair(W_MAX_WIDTH, W_MAX_HEIGHT, child).with_aspect(ratio);
    let within = |size: Size| Size { w: clamp(size.w, least.w, most.w), h: clamp(size.h, least.h, most.h) };
    let margin = margins(child);
    let from = pair(W_LEFT, W_TOP, child);
    let to = pair(W_RIGHT, W_BOTTOM, child);
    let room =
        |area: f32, from: f32, to: f32, margin: f32| ((area - or(to, 0.0) - or(from, 0.0)).max(0.0) - margin).max(0.0);
    let room = Size { w: room(area.w, from.w, to.w, margin.w), h: room(area.h, from.h, to.h, margin.h) };
    let mut known = within(pair(W_WIDTH, W_HEIGHT, child).with_aspect(ratio));
    if known.w.is_nan() && !from.w.is_nan() && !to.w.is_nan() {
        known = within(Size { w: room.w, h: known.h }.with_aspect(ratio));
    }
    if known.h.is_nan() && !from.h.is_nan() && !to.h.is_nan() {
        known = within(Size { w: known.w, h: room.h }.with_aspect(ratio));
    }
    let found = if known.w.is_nan() || known.h.is_nan() {
        within(known.or(size(child, known, BOTH, within(room), BOTH)))
    } else {
        known
    };
    let place = |area: f32, from: f32, to: f32, size: f32, start: f32, end: f32| {
        if from.is_nan() && !to.is_nan() { area - to - size - end } else { or(from, 0.0) + start }
    };
    let (left, right) = (getf(W_MARGIN_LEFT, child), getf(W_MARGIN_RIGHT, child));
    let (top, bottom) = (getf(W_MARGIN_TOP, child), getf(W_MARGIN_BOTTOM, child));
    let x = place(area.w, from.w, to.w, found.w, left, right);
    let y = place(area.h, from.h, to.h, found.h, top, bottom);
    give(child, Size { w: x, h: y }, found, BOTH);
}

/// Gives a child its place and size. If the size is another one, the child's own children must be placed again.
fn give(child: u32, at: Size, size: Size, definite: u32) {
    let same = getf(W_W, child) == size.w && getf(W_H, child) == size.h && get(W_DEFINITE, child) == definite;
    if !same {
        mark(child, F_RESIZED);
    }
    setf(W_X, child, at.w);
    setf(W_Y, child, at.h);
    setf(W_W, child, size.w);
    setf(W_H, child, size.h);
    set(W_DEFINITE, child, definite);
}
