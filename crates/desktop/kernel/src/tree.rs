//! The widget tree: makes, changes and removes widgets. One lane at a time calls these functions.

use crate::event::{icons, kinds, looks, properties, style as s};
use crate::flex::AUTO;
use crate::memory::*;
use crate::{bar, canvas, caret, lines, list, lists, menu, overlay, plot, scroll, tabs, text, theme};
use gpu_run_kernel::gpu::{load, store};

const COLUMN: u32 = s::COLUMN << s::DIRECTION;
/// A bit of `W_STYLE` that no owner sets: the widget has no place in the layout. Menus, tooltips, minimised windows.
pub const APART: u32 = 1 << 20;
/// Bits of `W_STYLE`, of which one is enough for a widget not to be there.
pub const GONE: u32 = 1 << s::HIDDEN | APART;
const CENTERED: u32 = s::CENTER << s::ALIGN_ITEMS;

/// Fields whose first value is not 0.
const NO_WIDGETS: [u32; 7] = [W_PARENT, W_FIRST, W_LAST, W_NEXT, W_PREVIOUS, W_TEXT, W_LINK];
const AUTOS: [u32; 12] = [
    W_WIDTH,
    W_HEIGHT,
    W_MIN_WIDTH,
    W_MIN_HEIGHT,
    W_MAX_WIDTH,
    W_MAX_HEIGHT,
    W_BASIS,
    W_ASPECT,
    W_LEFT,
    W_TOP,
    W_RIGHT,
    W_BOTTOM,
];

/// Whether there is a widget with this number.
pub fn exists(widget: u32) -> bool {
    widget < WIDGETS && get(W_KIND, widget) != 0
}

/// Makes a widget of its kind's style, without a place in the tree.
pub fn reset(widget: u32, kind: u32) {
    let mut field = W_KIND;
    while field < FIELDS_END {
        set(field, widget, 0);
        field += W_PARENT - W_KIND;
    }
    set(W_KIND, widget, kind);
    NO_WIDGETS.iter().for_each(|field| set(*field, widget, NONE));
    AUTOS.iter().for_each(|field| setf(*field, widget, AUTO));
    setf(W_SHRINK, widget, 1.0);
    setf(W_FONT, widget, theme::BODY);
    setf(W_GREATEST, widget, AUTO);
    let pad = |horizontal: f32, vertical: f32| {
        setf(W_PAD_LEFT, widget, horizontal);
        setf(W_PAD_RIGHT, widget, horizontal);
        setf(W_PAD_TOP, widget, vertical);
        setf(W_PAD_BOTTOM, widget, vertical);
    };
    let content = |width: f32, height: f32| {
        setf(W_CONTENT_WIDTH, widget, width);
        setf(W_CONTENT_HEIGHT, widget, height);
    };
    let gap = |gap: f32| {
        setf(W_GAP_X, widget, gap);
        setf(W_GAP_Y, widget, gap);
    };
    let mut style = 0;
    match kind {
        kinds::WINDOW => {
            style = COLUMN | 1 << s::ABSOLUTE;
            pad(theme::MARGIN, theme::MARGIN);
            setf(W_PAD_TOP, widget, theme::MARGIN + theme::TITLE_BAR);
            gap(theme::GAP);
            setf(W_LEFT, widget, 0.0);
            setf(W_TOP, widget, 0.0);
            setf(W_MIN_WIDTH, widget, theme::LEAST_WINDOW_W);
            setf(W_MIN_HEIGHT, widget, theme::LEAST_WINDOW_H);
        }
        kinds::PANEL => {
            style = COLUMN;
            gap(theme::GAP);
        }
        kinds::BUTTON => pad(16.0, 6.0),
        kinds::CHECKBOX | kinds::RADIO => {
            pad(0.0, 2.0);
            setf(W_PAD_LEFT, widget, theme::MARK + 8.0);
        }
        kinds::SLIDER => content(160.0, theme::THUMB + 6.0),
        kinds::FIELD => {
            pad(10.0, 6.0);
            content(180.0, 0.0);
        }
        kinds::PROGRESS => content(160.0, 6.0),
        kinds::TABS => pad(0.0, 8.0),
        kinds::MENU | kinds::TOOLTIP => style = APART,
        kinds::PLOT => content(240.0, 120.0),
        kinds::CANVAS | kinds::IMAGE => {}
        kinds::SCROLL => {
            style = COLUMN;
            gap(theme::GAP);
            pad(theme::SCROLL_PAD, theme::SCROLL_PAD);
            setf(W_PAD_RIGHT, widget, theme::BAR_ZONE + theme::SCROLL_PAD);
        }
        kinds::AREA => {
            pad(10.0, 8.0);
            setf(W_PAD_RIGHT, widget, theme::BAR_ZONE + 3.0);
            content(240.0, 96.0);
        }
        kinds::LIST | kinds::TABLE => {
            content(240.0, 140.0);
            set(W_SELECTED, widget, NONE);
        }
        _ => style = CENTERED,
    }
    set(W_STYLE, widget, style);
    if text::is_measured(kind) {
        mark(widget, F_MEASURE);
    }
}

/// Makes a widget as the last child of `parent`. Returns false if the number, the kind or the parent is not allowed.
pub fn create(widget: u32, kind: u32, parent: u32, owner: u32) -> bool {
    let allowed =
        widget > 0 && widget < WIDGETS && !exists(widget) && (1..=kinds::LAST).contains(&kind) && exists(parent);
    if !allowed || get(W_DEPTH, parent) + 2 >= MAX_LEVELS || (kind == kinds::WINDOW) != (parent == 0) {
        return false;
    }
    if !may_hold(get(W_KIND, parent), kind) {
        return false;
    }
    reset(widget, kind);
    set(W_OWNER, widget, owner);
    set(W_DEPTH, widget, get(W_DEPTH, parent) + 1);
    [T_KEPT, T_LINES, T_COLUMNS, T_CONTENT].iter().for_each(|field| set(*field, widget, 0));
    append(widget, parent);
    store(D_COUNT, load(D_COUNT) + 1);
    store(D_USED, load(D_USED).max(widget + 1));
    if kind == kinds::WINDOW {
        store(D_FRONT, widget);
        bar::add(widget);
    }
    true
}

/// Whether widgets of a kind have others in them, with places of their own.
pub fn holds_widgets(kind: u32) -> bool {
    matches!(kind, kinds::DESKTOP | kinds::WINDOW | kinds::PANEL | kinds::SCROLL)
}

fn may_hold(parent: u32, kind: u32) -> bool {
    match kind {
        kinds::MENU => parent == kinds::BUTTON,
        kinds::TOOLTIP => crate::dispatch::takes_input(parent),
        _ => holds_widgets(parent),
    }
}

fn append(widget: u32, parent: u32) {
    let last = get(W_LAST, parent);
    set(W_PARENT, widget, parent);
    set(W_PREVIOUS, widget, last);
    set(W_NEXT, widget, NONE);
    if last == NONE {
        set(W_FIRST, parent, widget)
    } else {
        set(W_NEXT, last, widget)
    }
    set(W_LAST, parent, widget);
    lists::forget();
    touch(widget);
}

fn unlink(widget: u32) {
    let (parent, previous, next) = (get(W_PARENT, widget), get(W_PREVIOUS, widget), get(W_NEXT, widget));
    if previous == NONE {
        set(W_FIRST, parent, next)
    } else {
        set(W_NEXT, previous, next)
    }
    if next == NONE {
        set(W_LAST, parent, previous)
    } else {
        set(W_PREVIOUS, next, previous)
    }
    lists::forget();
    touch(parent);
}

/// Brings a window to the front.
pub fn raise(window: u32) {
    store(D_FRONT, window);
    bar::restore(window);
    if get(W_NEXT, window) != NONE {
        unlink(window);
        append(window, 0);
    }
}

/// Removes a widget and everything in it.
pub fn destroy(widget: u32) -> bool {
    if widget == 0 || !exists(widget) {
        return false;
    }
    unlink(widget);
    set(W_PARENT, widget, NONE);
    // From the innermost outwards: each widget is removed when it has no children left.
    let mut at = widget;
    loop {
        while get(W_FIRST, at) != NONE {
            at = get(W_FIRST, at);
        }
        let (parent, next) = (get(W_PARENT, at), get(W_NEXT, at));
        forget(at);
        if at == widget {
            break;
        }
        set(W_FIRST, parent, next);
        at = parent;
    }
    if load(D_FRONT) == widget {
        store(D_FRONT, bar::frontmost());
    }
    true
}

fn forget(widget: u32) {
    text::clear(widget);
    canvas::free(widget);
    plot::free(widget);
    bar::remove(widget);
    overlay::forget(widget);
    set(W_KIND, widget, 0);
    set(W_ORDER, widget, 0);
    store(D_COUNT, load(D_COUNT) - 1);
    if load(D_REVEAL) == widget {
        store(D_REVEAL, 0);
    }
    for word in [D_HOVER, D_PRESS, D_FOCUS] {
        if load(word) == widget {
            store(word, NONE);
        }
    }
}

/// Notes that a widget has changed: layout must look at it, and a frame must be drawn.
pub fn touch(widget: u32) {
    soil(widget);
    store(D_CHANGED, 1);
}

/// Notes that layout must look at a widget, and at everything that its size could change. Several lanes may do so at the same time.
pub fn soil(widget: u32) {
    let mut at = widget;
    // Layout leaves nothing dirty that is visible: what is dirty was touched since then, and all that it is in.
    while at != NONE && !(has(at, F_DIRTY) && get(W_ORDER, at) != 0) {
        mark(at, F_DIRTY);
        set(T_KEPT, at, 0);
        at = get(W_PARENT, at);
    }
}

/// Whether [`change`] changes only the widget itself by this property, and what layout must look at.
pub fn is_own(property: u32) -> bool {
    use properties::*;
    matches!(property, 0..=LAST_STYLE | STYLE..=DISABLED | READ_ONLY | GREATEST | ICON | STYLE_PART..)
}

/// Notes that layout must place a widget again, whose size and content do not depend on what changed.
pub fn moved(widget: u32) {
    touch(get(W_PARENT, widget));
}

/// Sets a property. Returns false if there is no such widget or property, or the value is not allowed.
pub fn change(widget: u32, property: u32, value: u32) -> bool {
    if widget == 0 || !exists(widget) {
        return false;
    }
    let number = f32::from_bits(value);
    match property {
        ..=properties::LAST_STYLE => {
            let may_be_auto = AUTOS.contains(&(W_WIDTH + property * (W_HEIGHT - W_WIDTH)));
            let only_moves = (properties::MARGIN_LEFT..=properties::BOTTOM).contains(&property);
            let least = if only_moves { -1e6 } else { 0.0 };
            let in_range = (least..=1e6).contains(&number) && (property != properties::ASPECT || number > 0.0);
            let allowed = if number.is_nan() { may_be_auto } else { in_range };
            if !allowed {
                return false;
            }
            // One word stands for all NaN, so that equal states have equal bytes.
            setf(W_WIDTH + property * (W_HEIGHT - W_WIDTH), widget, if number.is_nan() { AUTO } else { number });
            if only_moves { moved(widget) } else { touch(widget) }
        }
        properties::STYLE => restyle(widget, value),
        properties::STYLE_PART.. => {
            let (shift, mask) = (property >> 8 & 31, (property >> 16 & 15) << (property >> 8 & 31));
            restyle(widget, get(W_STYLE, widget) & !mask | value << shift & mask);
        }
        properties::VALUE if (0.0..=1.0).contains(&number) => set(W_VALUE, widget, value),
        properties::LOOK if value <= looks::TITLE => {
            set(W_LOOK, widget, value);
            if get(W_KIND, widget) == kinds::LABEL {
                let size = if value == looks::TITLE { theme::TITLE } else { theme::BODY };
                setf(W_FONT, widget, size);
                mark(widget, F_MEASURE);
                touch(widget);
            }
        }
        properties::FONT if (4.0..=200.0).contains(&number) => {
            set(W_FONT, widget, value);
            mark(widget, F_MEASURE);
            touch(widget);
        }
        properties::DISABLED => {
            unmark(widget, F_DISABLED);
            mark(widget, if value != 0 { F_DISABLED } else { 0 });
        }
        properties::FOCUS => {
            store(D_FOCUS, if value != 0 { widget } else { NONE });
            store(D_REVEAL, if value != 0 { widget } else { 0 });
        }
        properties::SELECTED if list::is_list(widget) => {
            set(W_SELECTED, widget, value);
            store(D_REVEAL, widget);
        }
        properties::READ_ONLY if caret::has_caret(get(W_KIND, widget)) => {
            unmark(widget, F_READ_ONLY);
            mark(widget, if value != 0 { F_READ_ONLY } else { 0 });
        }
        properties::SCROLLED if scroll::scrolls(widget) && number >= 0.0 => set(W_SCROLL, widget, value),
        properties::SELECTED if get(W_KIND, widget) == kinds::TABS => tabs::set_selected(widget, value),
        properties::OPEN if get(W_KIND, widget) == kinds::MENU => menu::set_open(widget, value != 0),
        properties::MINIMISED if get(W_KIND, widget) == kinds::WINDOW => match value {
            0 if bar::is_minimised(widget) => raise(widget),
            0 => {}
            _ => bar::minimise(widget),
        },
        properties::PIXEL_SIZE => return canvas::resize(widget, value),
        properties::GREATEST if number.is_nan() || number > 0.0 && number.is_finite() => {
            setf(W_GREATEST, widget, if number.is_nan() { AUTO } else { number });
        }
        properties::ICON if value <= icons::LAST => {
            set(W_ICON, widget, value);
            mark(widget, F_MEASURE);
            touch(widget);
        }
        _ => return false,
    }
    store(D_CHANGED, 1);
    true
}

fn restyle(widget: u32, style: u32) {
    let before = get(W_STYLE, widget);
    let style = style & ((1 << (s::HIDDEN + 1)) - 1) | before & APART;
    set(W_STYLE, widget, style);
    if (style ^ before) & GONE != 0 {
        lists::forget();
    }
    touch(widget);
}

/// Takes a widget out of the layout, or back into it.
pub fn set_apart(widget: u32, apart: bool) {
    set(W_STYLE, widget, get(W_STYLE, widget) & !APART | if apart { APART } else { 0 });
    lists::forget();
    touch(widget);
}

/// Begins a text anew that will have so many characters soon.
pub fn begin_text(widget: u32, length: u32) {
    text::begin(widget, length);
    set(W_CARET, widget, 0);
    set(W_ANCHOR, widget, 0);
}

/// Adds characters to a text. Returns false if there was no room for all.
pub fn write(widget: u32, count: u32, codes: [u32; 3]) -> bool {
    let pushed = text::append(widget, count, codes);
    // The desktop is as large as the frame, and texts of lines as they are told to be.
    if widget != 0 && !lines::has_lines(get(W_KIND, widget)) {
        mark(widget, F_MEASURE);
    }
    store(D_CHANGED, 1);
    pushed == count
}
