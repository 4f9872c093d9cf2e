//! Flexbox, as CSS has it, for one container: sizes, and the places of its children.
//!
//! The steps are those of CSS Flexible Box Layout, section 9, and where browsers differ from its text, this follows browsers (as taffy
//! does, which the tests compare with). Lengths are units or `auto`; there are no percentages and no baselines.
//!
//! [`size`] asks how large a widget would be; it changes nothing but what is remembered ([`SIZES`]) and the working fields of the
//! widgets below. [`place`] gives a container's children their sizes and places. A subtree is worked on by one lane at a time.

use crate::event::{kinds, style as s};
use crate::flex_items::*;
use crate::memory::*;
use crate::{lines, scroll, tree};
use gpu_run_kernel::gpu::{load, store};

/// No value: `auto`, none. All comparisons with it are false, and `min` and `max` ignore it.
pub const AUTO: f32 = f32::NAN;
/// Space that a size may take, where it is no length: as much or as little as the content likes.
pub const MAX_CONTENT: f32 = f32::INFINITY;
pub const MIN_CONTENT: f32 = f32::NEG_INFINITY;

pub const HORIZONTAL: u32 = 1;
pub const VERTICAL: u32 = 2;
pub const BOTH: u32 = 3;

#[derive(Clone, Copy)]
pub struct Size {
    pub w: f32,
    pub h: f32,
}

impl Size {
    #[inline(always)]
    pub fn main(self, row: bool) -> f32 {
        if row { self.w } else { self.h }
    }
    #[inline(always)]
    pub fn cross(self, row: bool) -> f32 {
        self.main(!row)
    }
    #[inline(always)]
    pub fn of(row: bool, main: f32, cross: f32) -> Self {
        if row { Self { w: main, h: cross } } else { Self { w: cross, h: main } }
    }
    /// Derives a missing side from the other.
    #[inline(always)]
    pub fn with_aspect(self, ratio: f32) -> Self {
        match (self.w.is_nan(), self.h.is_nan(), ratio.is_nan()) {
            (false, true, false) => Self { w: self.w, h: self.w / ratio },
            (true, false, false) => Self { w: self.h * ratio, h: self.h },
            _ => self,
        }
    }
    #[inline(always)]
    pub fn or(self, other: Self) -> Self {
        Self { w: or(self.w, other.w), h: or(self.h, other.h) }
    }
}

#[inline(always)]
pub fn or(a: f32, b: f32) -> f32 {
    if a.is_nan() { b } else { a }
}
/// `value` between `least` and `most`, of which the first wins; each may be [`AUTO`], and of `AUTO` it is `AUTO`.
#[inline(always)]
pub fn clamp(value: f32, least: f32, most: f32) -> f32 {
    if value.is_nan() { value } else { value.min(most).max(least) }
}
/// The same for a space, which may be a keyword.
#[inline(always)]
fn clamp_space(space: f32, least: f32, most: f32) -> f32 {
    if space.is_finite() { space.min(most).max(least) } else { space }
}
#[inline(always)]
fn definite(space: f32) -> f32 {
    if space.is_finite() { space } else { AUTO }
}

#[inline(always)]
pub fn keyword(widget: u32, shift: u32, mask: u32) -> u32 {
    get(W_STYLE, widget) >> shift & mask
}
#[inline(always)]
pub fn pair(width: u32, height: u32, widget: u32) -> Size {
    Size { w: getf(width, widget), h: getf(height, widget) }
}
pub fn padding(widget: u32) -> Size {
    Size {
        w: getf(W_PAD_LEFT, widget) + getf(W_PAD_RIGHT, widget),
        h: getf(W_PAD_TOP, widget) + getf(W_PAD_BOTTOM, widget),
    }
}
pub fn margins(widget: u32) -> Size {
    Size {
        w: getf(W_MARGIN_LEFT, widget) + getf(W_MARGIN_RIGHT, widget),
        h: getf(W_MARGIN_TOP, widget) + getf(W_MARGIN_BOTTOM, widget),
    }
}

/// What a container knows before its children are asked.
#[derive(Clone, Copy)]
pub struct Box {
    pub node: u32,
    pub row: bool,
    pub reverse: bool,
    pub wrap: bool,
    pub wrap_reverse: bool,
    pub least: Size,
    pub most: Size,
    pub inset: Size,
    pub gap: Size,
    /// The outer and inner size as far as they are known.
    pub outer: Size,
    pub inner: Size,
    /// Whether the known main size is definite (if there is one), whether there is a definite main or cross size, and whether the
    /// space in the cross axis is definite.
    pub main_known_is_definite: bool,
    pub has_definite_main: bool,
    pub has_definite_cross: bool,
    pub cross_space_is_definite: bool,
    /// The size of the container, as it is found.
    pub container: Size,
    pub container_inner: Size,
}

/// Returns the size of a widget of which `known` is given and `space` is available; each side may be [`AUTO`] in `known`. Bits of
/// `definite_sides` say which of the known sides are definite (bit 0 width, bit 1 height); `axis` says which sides are asked for.
pub fn size(node: u32, known: Size, definite_sides: u32, space: Size, axis: u32) -> Size {
    if !is_container(node) {
        let found = leaf(node, known);
        return if lines::has_lines(get(W_KIND, node)) { squeezed(node, found, known, space) } else { found };
    }
    let (known, sides) = match begin(node, known, definite_sides) {
        begun if !begun.0.w.is_nan() && !begun.0.h.is_nan() => return begun.0,
        begun if axis == HORIZONTAL && !begun.0.w.is_nan() => return Size { w: begun.0.w, h: 0.0 },
        begun => begun,
    };
    let key = [known.w.to_bits(), known.h.to_bits(), space.w.to_bits(), space.h.to_bits(), sides | axis << 2 | 16];
    let count = get(T_KEPT, node);
    let mut at = SIZES + node * KEPT * 32;
    let mut entry = 0;
    while entry < count.min(KEPT) {
        if (0..5).all(|word| load(at + word * 4) == key[word as usize]) {
            return Size { w: f32::from_bits(load(at + 20)), h: f32::from_bits(load(at + 24)) };
        }
        at += 32;
        entry += 1;
    }
    let mut found = container(node, known, sides, space, axis, false);
    if get(W_KIND, node) == kinds::SCROLL && known.h.is_nan() && space.h == MIN_CONTENT {
        // What a panel cannot show it scrolls: it needs no height of its own.
        let (least, most) = limits(node);
        found.h = clamp(0.0, least.h, most.h).max(padding(node).h);
    }
    at = SIZES + (node * KEPT + count % KEPT) * 32;
    (0..5).for_each(|word| store(at + word * 4, key[word as usize]));
    store(at + 20, found.w.to_bits());
    store(at + 24, found.h.to_bits());
    // The count stays in the range that says which entry is the oldest.
    set(T_KEPT, node, if count + 1 == 2 * KEPT { KEPT } else { count + 1 });
    found
}

/// Gives the children of a container of this size their sizes and places.
pub fn place(node: u32, known: Size, definite_sides: u32) {
    let (known, sides) = begin(node, known, definite_sides);
    container(node, known, sides, known, BOTH, true);
}

/// The size that a widget of this size really has: a container may be held apart by its own limits.
pub fn final_size(node: u32, given: Size) -> Size {
    if !is_container(node) {
        return leaf(node, given);
    }
    let row = is_row(node);
    let (least, most) = limits(node);
    let cross = clamp(given.cross(row), least.cross(row), most.cross(row)).max(padding(node).cross(row));
    Size::of(row, given.main(row), cross)
}

/// What scrolls can be smaller than it likes to be.
fn squeezed(node: u32, found: Size, known: Size, space: Size) -> Size {
    let side = |found: f32, known: f32, space: f32, least: f32| {
        if known.is_nan() && space == MIN_CONTENT { found.min(least) } else { found }
    };
    let least = scroll::LEAST;
    let pad = padding(node);
    let (w, h) = (side(found.w, known.w, space.w, least), side(found.h, known.h, space.h, least));
    Size { w: w.max(pad.w), h: h.max(pad.h) }
}

fn leaf(node: u32, known: Size) -> Size {
    let pad = padding(node);
    let content = pair(W_CONTENT_WIDTH, W_CONTENT_HEIGHT, node);
    let found = known.or(Size { w: content.w + pad.w, h: content.h + pad.h });
    Size { w: found.w.max(pad.w), h: found.h.max(pad.h) }
}

pub fn is_container(node: u32) -> bool {
    // Other widgets have menus and tooltips as children, which have no place in them.
    get(W_FIRST, node) != NONE && tree::holds_widgets(get(W_KIND, node))
}
/// Whether the size of a widget or of another one could depend on the width of its content. That of a container's content is nobody's
/// concern; a width that is given is enough, except in a row, where the content says how much a widget may shrink.
pub fn asks_for_content_width(node: u32) -> bool {
    let is_in_row = is_row(get(W_PARENT, node)) && keyword(node, s::ABSOLUTE, 1) == 0;
    !is_container(node) && (getf(W_WIDTH, node).is_nan() || is_in_row)
}
pub fn is_row(node: u32) -> bool {
    keyword(node, s::DIRECTION, 1) == 0
}

fn limits(node: u32) -> (Size, Size) {
    let ratio = getf(W_ASPECT, node);
    let least = pair(W_MIN_WIDTH, W_MIN_HEIGHT, node).with_aspect(ratio);
    (least, pair(W_MAX_WIDTH, W_MAX_HEIGHT, node).with_aspect(ratio))
}

/// Adds the sides that follow from the container's own limits.
fn begin(node: u32, known: Size, sides: u32) -> (Size, u32) {
    let (least, most) = limits(node);
    let pad = padding(node);
    let fixed = |least: f32, most: f32, pad: f32| if most <= least { least.max(pad) } else { AUTO };
    let own = Size { w: fixed(least.w, most.w, pad.w), h: fixed(least.h, most.h, pad.h) };
    (known.or(own), sides | known.w.is_nan() as u32 | (known.h.is_nan() as u32) << 1)
}

fn container(node: u32, known: Size, sides: u32, space: Size, axis: u32, placing: bool) -> Size {
    let row = is_row(node);
    let inset = padding(node);
    let (least, most) = limits(node);
    let side = |row: bool| sides & if row { 1 } else { 2 } != 0;
    let wrap = keyword(node, s::WRAP, 3);
    let mut it = Box {
        node,
        row,
        reverse: keyword(node, s::DIRECTION, 2) != 0,
        wrap: wrap != 0,
        wrap_reverse: wrap == 2,
        least,
        most,
        inset,
        gap: pair(W_GAP_X, W_GAP_Y, node),
        outer: known,
        inner: Size { w: known.w - inset.w, h: known.h - inset.h },
        main_known_is_definite: side(row),
        has_definite_main: side(row) && !known.main(row).is_nan(),
        has_definite_cross: side(!row) && !known.cross(row).is_nan(),
        cross_space_is_definite: false,
        container: Size { w: 0.0, h: 0.0 },
        container_inner: Size { w: 0.0, h: 0.0 },
    };
    it.cross_space_is_definite = it.has_definite_cross || space.cross(row).is_finite();
    let within = |known: f32, space: f32, inset: f32| {
        let space = or(known, space);
        if space.is_finite() { (space - inset).max(0.0) } else { space }
    };
    let space = Size { w: within(known.w, space.w, inset.w), h: within(known.h, space.h, inset.h) };

    basis(&it, space);
    lines(&it, space);
    let main = it.inner.main(row);
    if main.is_nan() {
        main_size(&mut it, space);
    } else {
        it.container = Size::of(row, main + inset.main(row), 0.0);
        it.container_inner = Size::of(row, main, 0.0);
    }
    it.outer = Size::of(row, it.container.main(row), it.outer.cross(row));
    it.inner = Size::of(row, it.container_inner.main(row), it.inner.cross(row));
    if !placing && axis == if row { HORIZONTAL } else { VERTICAL } {
        return Size::of(row, it.container.main(row), 0.0);
    }
    flexible_lengths(&it);
    hypothetical_cross(&it, known, space);
    line_cross(&it, known);
    let total = container_cross(&mut it, known);
    if placing {
        used_cross(&it);
        align(&it, total);
        place_absolute(&it);
    }
    it.container
}

/// The size of the space that a child may take in the cross axis, for its flex basis.
fn cross_space(it: &Box, child: u32, space: Size, least: f32, most: f32) -> f32 {
    let cross = space.cross(it.row);
    if cross.is_finite() {
        let cross = or(it.inner.cross(it.row), cross) - margins(child).cross(it.row);
        clamp(cross.max(0.0), least, most)
    } else if cross == MIN_CONTENT {
        or(least, MIN_CONTENT)
    } else {
        or(most, MAX_CONTENT)
    }
}

/// Step 3: the flex base size and hypothetical main size of each child.
fn basis(it: &Box, space: Size) {
    let row = it.row;
    let main_axis = if row { HORIZONTAL } else { VERTICAL };
    each(it.node, |child| {
        let ratio = getf(W_ASPECT, child);
        let own = pair(W_WIDTH, W_HEIGHT, child).with_aspect(ratio);
        let plain_least = pair(W_MIN_WIDTH, W_MIN_HEIGHT, child);
        let least = plain_least.with_aspect(ratio);
        let most = pair(W_MAX_WIDTH, W_MAX_HEIGHT, child).with_aspect(ratio);
        let across = cross_space(it, child, space, least.cross(row), most.cross(row));
        let mut known_cross = clamp(own.cross(row), least.cross(row), most.cross(row));
        let mut cross_is_definite = !own.cross(row).is_nan();
        if align_self(it.node, child) == s::STRETCH && known_cross.is_nan() {
            known_cross = definite(across);
            cross_is_definite = !it.wrap && it.has_definite_cross && !it.inner.cross(row).is_nan();
        }
        let known = Size::of(row, AUTO, known_cross);
        let given = or(getf(W_BASIS, child), own.main(row));
        let mut bits = BASIS_IS_DEFINITE;
        let mut basis = given;
        if given.is_nan() {
            if cross_is_definite && !ratio.is_nan() && !known_cross.is_nan() {
                basis = if row { known_cross * ratio } else { known_cross / ratio };
            } else {
                bits = 0;
                let main = if space.main(row) == MIN_CONTENT { MIN_CONTENT } else { MAX_CONTENT };
                basis = size(child, known, BOTH, Size::of(row, main, across), main_axis).main(row);
            }
        }
        let pad = padding(child).main(row);
        let basis = basis.max(pad);
        let mut smallest = plain_least.main(row);
        if smallest.is_nan() {
            let content = size(child, known, BOTH, Size::of(row, MIN_CONTENT, across), main_axis).main(row);
            smallest = content.min(own.main(row)).min(most.main(row)).max(pad);
        }
        set(T_BITS, child, bits);
        setf(T_BASIS, child, basis);
        setf(T_INNER_BASIS, child, basis - pad);
        setf(T_LEAST, child, smallest);
        let floor = smallest.max(least.main(row)).max(pad);
        setf(T_HYPO_MAIN, child, clamp(basis, floor, most.main(row)));
    });
}

/// Step 5: collects children into lines. The first child of each line is marked.
fn lines(it: &Box, space: Size) {
    let row = it.row;
    let mut limit = MAX_CONTENT;
    if it.wrap && it.main_known_is_definite {
        let (most, main) = (it.most.main(row), space.main(row));
        limit = if !most.is_nan() {
            let within = or(definite(main), most);
            clamp(if it.has_definite_main { within } else { within.min(most) }, it.least.main(row), AUTO)
        } else if !row && !it.has_definite_main && main.is_finite() {
            MAX_CONTENT
        } else {
            main
        };
    }
    let (mut length, mut first) = (0.0, true);
    each(it.node, |child| {
        let outer = getf(T_HYPO_MAIN, child) + margins(child).main(row);
        length += outer + if first { 0.0 } else { it.gap.main(row) };
        if first || length > limit {
            set(T_BITS, child, get(T_BITS, child) | BEGINS_LINE);
            length = outer;
        }
        first = false;
    });
}

/// Step 4, for a container whose main size depends on its content.
fn main_size(it: &mut Box, space: Size) {
    let (row, main) = (it.row, space.main(it.row));
    let inset = it.inset.main(row);
    let mut longest = 0.0f32;
    let mut count = 0;
    if main.is_finite() || main == MIN_CONTENT && it.wrap {
        each_line(it.node, |first, items| {
            let mut sum = 0.0;
            each_of_line(it.node, first, |child| {
                let outer = getf(T_BASIS, child).max(pair(W_MIN_WIDTH, W_MIN_HEIGHT, child).main(row));
                sum += (outer + margins(child).main(row)).max(padding(child).main(row));
            });
            longest = longest.max(sum + gaps(it.gap.main(row), items));
            count += 1;
        });
        longest += inset;
        if main.is_finite() && count > 1 {
            longest = longest.max(main);
        }
    } else {
        each_line(it.node, |first, items| {
            each_of_line(it.node, first, |child| fraction(it, child, space));
            let (mut sum, mut largest) = (0.0, 0.0f32);
            each_of_line(it.node, first, |child| {
                let fraction = getf(T_FRACTION, child);
                let basis = getf(T_BASIS, child);
                let change = if fraction > 0.0 {
                    getf(W_GROW, child).max(1.0) * fraction
                } else if fraction < 0.0 {
                    let factor = getf(W_SHRINK, child).max(1.0) * getf(T_INNER_BASIS, child);
                    if factor == 0.0 { 0.0 } else { factor * fraction }
                } else {
                    0.0
                };
                let outer = basis + change + margins(child).main(row);
                if it.wrap && row {
                    largest = largest.max(outer);
                }
                sum += outer;
            });
            longest = longest.max(largest.max(sum + gaps(it.gap.main(row), items)));
        });
        longest += inset;
    }
    let outer = clamp(longest, it.least.main(row), it.most.main(row)).max(inset);
    it.container = Size::of(row, outer, 0.0);
    it.container_inner = Size::of(row, (outer - inset).max(0.0), 0.0);
    it.inner = Size::of(row, (outer - inset).max(0.0), it.inner.cross(row));
}

/// What a child asks of a container that is as large as its content: the share of growing or shrinking that gives it its content's size.
fn fraction(it: &Box, child: u32, space: Size) {
    let row = it.row;
    let ratio = getf(W_ASPECT, child);
    let own = pair(W_WIDTH, W_HEIGHT, child).with_aspect(ratio);
    let least = pair(W_MIN_WIDTH, W_MIN_HEIGHT, child);
    let most = pair(W_MAX_WIDTH, W_MAX_HEIGHT, child);
    let margin = margins(child).main(row);
    let basis = getf(T_BASIS, child);
    let clamping = if row { basis.max(own.main(row)) } else { basis };
    let basis_least = if getf(W_SHRINK, child) == 0.0 { clamping } else { AUTO };
    let basis_most = if getf(W_GROW, child) == 0.0 { clamping } else { AUTO };
    let smallest = getf(T_LEAST, child);
    let low = or(least.main(row), basis_least).max(basis_least);
    let low = or(low, smallest).max(smallest);
    let high = or(or(most.main(row), basis_most).min(basis_most), f32::INFINITY);
    let preferred = own.main(row);
    let contribution = if !preferred.is_nan() && (high <= low || high <= preferred) {
        preferred.min(high).max(low) + margin
    } else if high <= low {
        low + margin
    } else {
        let inner = if preferred.is_nan() {
            measured(it, child, space, ratio, own)
        } else {
            preferred.max(padding(child).main(row))
        };
        let inner = if row { inner } else { inner.max(basis) };
        clamp(inner + margin, least.main(row), most.main(row))
    };
    let difference = contribution - margin - basis;
    let fraction = if difference > 0.0 {
        difference / getf(W_GROW, child).max(1.0)
    } else if difference < 0.0 {
        difference / (getf(W_SHRINK, child).max(1.0) * getf(T_INNER_BASIS, child))
    } else {
        0.0
    };
    setf(T_FRACTION, child, fraction);
}

/// The main size of a child's content.
fn measured(it: &Box, child: u32, space: Size, ratio: f32, own: Size) -> f32 {
    let row = it.row;
    let least = pair(W_MIN_WIDTH, W_MIN_HEIGHT, child);
    let most = pair(W_MAX_WIDTH, W_MAX_HEIGHT, child);
    let mut across = space.cross(row);
    if across.is_finite() {
        across = (or(it.inner.cross(row), across) - margins(child).cross(row)).max(0.0);
    }
    let across = clamp_space(across, least.cross(row), most.cross(row));
    let (transferred_least, transferred_most) = (least.with_aspect(ratio), most.with_aspect(ratio));
    let mut known = clamp(own.cross(row), transferred_least.cross(row), transferred_most.cross(row));
    if align_self(it.node, child) == s::STRETCH && known.is_nan() {
        known = definite(across);
    }
    let axis = if row { HORIZONTAL } else { VERTICAL };
    let space = Size::of(row, space.main(row), across);
    let content = size(child, Size::of(row, AUTO, known), BOTH, space, axis).main(row);
    let transferred = if row { known * ratio } else { known / ratio };
    content.max(transferred)
}
