//! The layout of the desktop's memory. The machine's own layout (`gpu_run_kernel::layout`) comes first and stays what it is.
//!
//! ```text
//! 0 ─ constants ─ STATE ─ the machine's state ─ STATE_END ─ its scratch ─ ROOM ─ the desktop's state ─ ROOM_END ─ its scratch ─ MEMORY_END
//! ```
//!
//! The state is `STATE..STATE_END` and `ROOM..ROOM_END`: checkpoints have both. Everything in the desktop's scratch follows from the
//! state: lists that a frame makes anew, results that are kept to save work, the frame buffer.
//!
//! Widgets are numbers. A *field* is an array with one word for each widget; constants whose names begin with `W_` are fields of the
//! state, with `T_` fields of scratch.

// Host and device are both compiled with this file, and have this constant at the same place.
use crate::MACHINE_BYTES;

/// The first words of the desktop's state.
pub const MAGIC: u32 = u32::from_le_bytes(*b"GPRD");
pub const VERSION: u32 = 3;

/// The phases, by their numbers in the machine's counters. These have room for seven: the frame end is counted with the raster.
pub const PHASE_NAMES: [&str; 8] =
    ["wait", "input", "hit test", "dispatch", "layout", "order", "geometry", "raster and frame end"];
pub const LAST_PHASE: u32 = 7;

/// Widgets that can exist at the same time. Number 0 is the desktop itself.
pub const WIDGETS: u32 = 1 << 16;
/// No widget.
pub const NONE: u32 = u32::MAX;
/// The largest frame, in pixels.
pub const MAX_WIDTH: u32 = 3840;
pub const MAX_HEIGHT: u32 = 2160;

/// The desktop's state begins here.
pub const ROOM: u32 = MACHINE_BYTES;
const HEADER_BYTES: u32 = 4096;
const FIELD_BYTES: u32 = WIDGETS * 4;

/// Declares consecutive words from `$from` on, `$step` bytes apart.
macro_rules! words {
    ($from:expr, $step:expr; $($(#[$doc:meta])* $name:ident)*) => {
        words!(@ $from, $step, 0; $($(#[$doc])* $name)*);
    };
    (@ $from:expr, $step:expr, $n:expr; $(#[$doc:meta])* $name:ident $($rest:tt)*) => {
        $(#[$doc])* pub const $name: u32 = $from + $step * ($n);
        words!(@ $from, $step, $n + 1; $($rest)*);
    };
    (@ $from:expr, $step:expr, $n:expr;) => {};
}

// --- The header of the state ----------------------------------------------------------------------------------------------

words! { ROOM, 4;
    D_MAGIC
    D_VERSION
    /// The frame's size in pixels, and pixels for one unit of length, in 256ths.
    D_WIDTH
    D_HEIGHT
    D_SCALE
    /// 0: light, 1: dark.
    D_THEME
    /// Frames per second that the animation clock assumes.
    D_RATE
    /// The animation clock, in microseconds.
    D_CLOCK
    /// Widgets that exist, and one more than the largest number that was ever used.
    D_COUNT
    D_USED
    /// Not 0: something changed since the last frame was laid out and drawn.
    D_CHANGED
    /// Not 0: a widget's animation is under way.
    D_MOVING
    /// The pointer, in 256ths of a unit.
    D_POINTER_X
    D_POINTER_Y
    /// The widgets that are under the pointer, pressed, and focused.
    D_HOVER
    D_PRESS
    D_FOCUS
    /// The part of the pressed widget (`dispatch`), and where in it the pointer went down.
    D_PART
    D_GRAB_X
    D_GRAB_Y
    /// Not 0: the focus came by keyboard, and is shown by a ring.
    D_RING
    /// The window in front.
    D_FRONT
    /// Units of text in use, and those that were ever given out (`text_heap`).
    D_TEXT_COUNT
    D_TEXT_USED
    /// Events that were refused.
    D_REFUSED
    /// The accent's colour; 0: the theme's own.
    D_ACCENT
    /// The first window in the bar, in the order in which they were made.
    D_WINDOWS
    /// What the pointer is on and presses in the bar (`bar`).
    D_BAR_HOT
    D_BAR_DOWN
    /// The menu that is open, its entry that is marked, and whether the pointer went down in it.
    D_MENU
    D_MENU_AT
    D_MENU_DOWN
    /// The tooltip that waits to be shown, since when, and the one that is shown, and its place in 256ths of a unit.
    D_TIP_NEXT
    D_TIP_SINCE
    D_TIP
    D_TIP_X
    D_TIP_Y
    /// The widget with the lowest pixels, how much of their room is in use, and how often pixels were changed.
    D_PIXELS
    D_PIXEL_COUNT
    D_PIXELS_CHANGED
    /// Which of the plots' places are in use, as bits.
    D_PLOTS
    D_PLOTS_2
    /// The size of the desktop without the bar, as windows were fitted to it.
    D_ROOM_W
    D_ROOM_H
    /// The widget that scrolls into view after layout; 0: none.
    D_REVEAL
    /// Where moving the caret up and down would like to be, in units from the text's left, plus 1; 0: where the caret is.
    D_GOAL
    /// The last press: when and on which widget, and its place in 256ths of a unit.
    D_CLICK_AT
    D_CLICK_ON
    D_CLICK_X
    D_CLICK_Y
    /// The finger that is down, plus 1; what it does (`touch`) and to which widget; where it went down and where it is.
    D_FINGER
    D_FINGER_DOES
    D_FINGER_ON
    D_FINGER_FROM_X
    D_FINGER_FROM_Y
    D_FINGER_X
    D_FINGER_Y
    /// What `D_SCALE` is the product of, in 256ths: what the display asks for, and what the user does.
    D_RATIO
    D_ZOOM
    /// What is left out, one of `effects`.
    D_EFFECTS
}
/// The first free piece of text of each size, plus 1; 0: none.
pub const TEXT_FREE: u32 = ROOM + 2048;

// --- Fields of the state --------------------------------------------------------------------------------------------------

const FIELDS: u32 = ROOM + HEADER_BYTES;
words! { FIELDS, FIELD_BYTES;
    /// The widget's kind; 0: there is no widget with this number.
    W_KIND
    W_PARENT
    W_FIRST
    W_LAST
    W_NEXT
    W_PREVIOUS
    /// Levels below the desktop.
    W_DEPTH
    /// Bits (`F_…`).
    W_FLAGS
    /// Chosen by the owner; events to the owner carry it.
    W_OWNER
    /// The text's piece of memory and its size (`text_heap`), how many characters are before its gap, and how many there are.
    W_TEXT
    W_TEXT_ORDER
    W_TEXT_GAP
    W_TEXT_LENGTH
    /// What a slider, a progress bar, a checkbox or a radio button shows: 0 to 1.
    W_VALUE
    /// The look, of those the kind has (`theme`).
    W_LOOK
    /// The size of the text, in units.
    W_FONT
    /// The caret of a text field or area, and the other end of its selection.
    W_CARET
    W_ANCHOR
    /// How far a text field is scrolled to the left, and other widgets up; a value beyond the end means the end.
    W_SCROLL
    /// Style, as in CSS (`flex`). Lengths are in units; NaN is `auto` or none.
    W_STYLE
    W_WIDTH
    W_HEIGHT
    W_MIN_WIDTH
    W_MIN_HEIGHT
    W_MAX_WIDTH
    W_MAX_HEIGHT
    W_BASIS
    W_GROW
    W_SHRINK
    W_ASPECT
    W_GAP_X
    W_GAP_Y
    W_PAD_LEFT
    W_PAD_TOP
    W_PAD_RIGHT
    W_PAD_BOTTOM
    W_MARGIN_LEFT
    W_MARGIN_TOP
    W_MARGIN_RIGHT
    W_MARGIN_BOTTOM
    W_LEFT
    W_TOP
    W_RIGHT
    W_BOTTOM
    /// The size of the content of a widget without children, such as a text.
    W_CONTENT_WIDTH
    W_CONTENT_HEIGHT
    /// Layout's result: the place in the parent, and the size.
    W_X
    W_Y
    W_W
    W_H
    /// What the size was derived from: bit 0 the width is definite, bit 1 the height.
    W_DEFINITE
    /// The place on the desktop, in units.
    W_AT_X
    W_AT_Y
    /// The part of the frame that the widget may draw on: left and top, right and bottom, each in 16 bits, in pixels.
    W_CLIP_FROM
    W_CLIP_TO
    /// The place in the order of drawing, from 1; 0: not visible.
    W_ORDER
    /// How far the transitions to hovered, pressed and checked have come, 0 to 1.
    W_HOT
    W_DOWN
    W_ON
    /// A maximised or snapped window's place and size before.
    W_OLD_X
    W_OLD_Y
    W_OLD_W
    W_OLD_H
    /// The chosen tab or row; [`NONE`]: none.
    W_SELECTED
    /// A button's icon.
    W_ICON
    /// The next window in the bar, or the next widget with pixels.
    W_LINK
    /// A canvas's or image's size in pixels (height and width, each in 16 bits), and where its words begin in the room for pixels.
    W_PIXEL_SIZE
    W_PIXELS
    /// The place of a window's entry in the bar, and its width, in units.
    W_ENTRY_X
    W_ENTRY_W
    /// A plot's place for its values, from 1, and the greatest value that it shows.
    W_PLOT
    W_GREATEST
    FIELDS_END
}

/// Texts: pieces of 1, 2, 4, … units of 16 characters of 16 bits.
pub const TEXT_UNITS: u32 = 1 << 16;
pub const UNIT_BYTES: u32 = 32;
pub const UNIT_TEXT: u32 = 16;
/// How many sizes of pieces there are.
pub const TEXT_ORDERS: u32 = 15;
/// The longest text: a piece always has space for one more character.
pub const MAX_TEXT: u32 = (UNIT_TEXT << (TEXT_ORDERS - 1)) - 1;
pub const TEXT_ARENA: u32 = FIELDS_END;
/// For each unit a word: the size of the free piece that begins there, plus 1; 0: none does.
pub const TEXT_PIECES: u32 = TEXT_ARENA + TEXT_UNITS * UNIT_BYTES;
/// The values of plots: for each of `SERIES` how many were added, and the last `VALUES`.
pub const PLOTS: u32 = 64;
pub const SERIES: u32 = 4;
pub const VALUES: u32 = 256;
pub const PLOT_BYTES: u32 = SERIES * (VALUES + 1) * 4;
pub const PLOT_ARENA: u32 = TEXT_PIECES + TEXT_UNITS * 4;
/// The pixels of canvases and images, one word each: red, green, blue. Before those of a widget there is a word for each of `BANDS`
/// equal parts of its height, which is another number whenever a pixel of that part has changed.
pub const BANDS: u32 = 32;
pub const PIXEL_ROOM: u32 = (1 << 21) + 4096;
pub const PIXEL_ARENA: u32 = (PLOT_ARENA + PLOTS * PLOT_BYTES).next_multiple_of(4096);
/// Here the desktop's state ends.
pub const ROOM_END: u32 = PIXEL_ARENA + PIXEL_ROOM * 4;

// Bits of W_FLAGS.
/// Layout must look at the widget again.
pub const F_DIRTY: u32 = 1;
/// The text changed: the size of the content must be measured.
pub const F_MEASURE: u32 = 2;
pub const F_DISABLED: u32 = 4;
/// A window that fills the desktop, or half of it.
pub const F_SNAPPED: u32 = 16;
/// The parent gave the widget another size: its children must be placed again.
pub const F_RESIZED: u32 = 32;
/// A text that takes no typing.
pub const F_READ_ONLY: u32 = 128;

// --- Scratch --------------------------------------------------------------------------------------------------------------

const SCRATCH: u32 = ROOM_END;
words! { SCRATCH, 4;
    /// Not 0: this scratch belongs to this state. A fresh one has no frame buffer yet.
    S_KNOWN
    /// Widgets in the list by level (0: the list must be made anew), levels, items of the display list, and items in the lists of blocks.
    S_LISTED
    S_LEVELS
    S_ITEMS
    S_BY_BLOCK
    /// Inputs of this tick that need to know what is under the pointer.
    S_INPUTS
    /// Messages to owners in this tick.
    S_MESSAGES
    /// Tiles drawn in this tick; frames that drew something, and all tiles drawn, both as wrapping counts.
    S_DRAWN
    S_FRAMES
    S_TILES
    /// Not 0: something is still moving.
    S_MOVING
    /// Pixels to write in this tick: how many lists.
    S_WRITES
    /// How many characters were copied last, and are in [`COPIED_TEXT`].
    S_COPIED
    /// Parts of widgets to paint.
    S_PARTS
    /// Tiles to draw that are listed so far.
    S_TO_DRAW
    /// Of these, how many were taken by warps that had drawn their first ones.
    S_NEXT_TO_DRAW
    /// Words of glyphs' images that are in use; not 0: there is no space for another; not 0: an image is missing in this frame.
    S_COVERAGE
    S_COVERAGE_FULL
    S_COVERAGE_MISSING
    /// 0: the list in the order of drawing must be made anew.
    S_ORDERED
}
/// Levels of widgets that there can be: sizes are found by functions that call themselves, and a thread's stack is short.
pub const MAX_LEVELS: u32 = 16;
/// Where each level begins in the list of widgets by level.
pub const LEVELS: u32 = SCRATCH + 256;
/// The inputs of a tick: index of the event, widget under the pointer.
pub const INPUTS: u32 = SCRATCH + 4096;
pub const MAX_INPUTS: u32 = 8192;
/// Messages to owners: kind, widget, value, owner, and the event's `id`.
pub const MESSAGES: u32 = INPUTS + MAX_INPUTS * 8;
pub const MAX_MESSAGES: u32 = 8192;
pub const MESSAGE_BYTES: u32 = 20;
/// Pixels to write: the first, how many, and up to four colours, of which the first is that of all beyond four.
pub const WRITES: u32 = MESSAGES + MAX_MESSAGES * MESSAGE_BYTES;
pub const WRITE_BYTES: u32 = 24;
/// The tick's events (`runs`): which are left for the leader, and whether each was done.
pub const EVENTS_LEFT: u32 = WRITES + MAX_INPUTS * WRITE_BYTES;
pub const EVENTS_DONE: u32 = EVENTS_LEFT + MAX_INPUTS * 4;
/// Where the lines of texts begin (`lines`): for each character that [`TEXT_ARENA`] has space for, a word.
pub const TEXT_LINES: u32 = EVENTS_DONE + MAX_INPUTS * 4;
/// Of the text whose lines are being found: for each character, whether a line begins with it.
pub const BEGINNINGS: u32 = TEXT_LINES + TEXT_UNITS * UNIT_TEXT * 4;
/// The characters that were copied last, one word each.
pub const COPIED_TEXT: u32 = BEGINNINGS + (MAX_TEXT + 1) * 4;
/// The columns of each table: their greatest widths in units of the font, and [`NOT_NUMBERS`].
pub const MAX_COLUMNS: u32 = 16;
pub const COLUMNS: u32 = COPIED_TEXT + (MAX_TEXT + 1) * 4;
/// Parts of widgets to paint, in the order of drawing: the widget, the part, its number of items, and the items before it.
pub const MAX_PARTS: u32 = 1 << 17;
pub const PARTS: u32 = COLUMNS + WIDGETS * MAX_COLUMNS * 4;
pub const PART_BYTES: u32 = 16;
/// The font's outlines as lines: x0, y0, x1, y1.
pub const LINES: u32 = PARTS + MAX_PARTS * PART_BYTES;
pub const MAX_LINES: u32 = 1 << 14;
/// The advance of each character.
pub const ADVANCES: u32 = LINES + MAX_LINES * 16;
pub const CODES: u32 = 1 << 16;
const SCRATCH_FIELDS: u32 = ADVANCES + CODES * 4;
words! { SCRATCH_FIELDS, FIELD_BYTES;
    /// The widgets by level, and in the order of drawing.
    T_BY_LEVEL
    T_BY_ORDER
    /// Visible children, and where they begin in the list by level.
    T_CHILDREN
    T_FIRST
    /// For each place in the list by level: the visible widgets at and below that one, and at and below those before it in its level.
    T_SIZE
    T_BEFORE
    /// What its children may draw on, as `W_CLIP_FROM` and `W_CLIP_TO`, and how far they are scrolled up.
    T_INSIDE_FROM
    T_INSIDE_TO
    T_UP
    /// Where the widget's items begin in the display list.
    T_ITEM
    /// How many sizes are remembered (`flex`).
    T_KEPT
    /// How many lines the text has (0: not known), and the width that they were broken for; a table's columns (0: not known).
    T_LINES
    T_WRAP
    T_COLUMNS
    /// The height of what is in a panel that scrolls, plus 1; 0: not known.
    T_CONTENT
    /// Runs of commands for the widget in this tick.
    T_RUNS
    // What `flex` works with, for each child of the container that it lays out.
    T_BASIS
    T_INNER_BASIS
    T_LEAST
    T_HYPO_MAIN
    T_HYPO_CROSS
    T_TARGET_MAIN
    T_TARGET_CROSS
    T_FRACTION
    T_VIOLATION
    T_OFFSET
    /// Bits: frozen; its basis is definite; it begins a line.
    T_BITS
    /// Of the first child of a line: the line's cross size and offset.
    T_LINE_CROSS
    T_LINE_OFFSET
    SCRATCH_FIELDS_END
}
/// Remembered sizes of each widget: `KEPT` of them, 32 bytes each.
pub const KEPT: u32 = 6;
pub const SIZES: u32 = SCRATCH_FIELDS_END;
/// The display list.
pub const MAX_ITEMS: u32 = 1 << 17;
pub const ITEM_BYTES: u32 = 64;
pub const ITEMS: u32 = SIZES + WIDGETS * KEPT * 32;
/// Blocks of 128 by 128 pixels: where the items of each begin and end in the lists of items by block.
pub const BLOCK: u32 = 128;
pub const MAX_BLOCKS: u32 = MAX_WIDTH.div_ceil(BLOCK) * MAX_HEIGHT.div_ceil(BLOCK);
/// For each [`CHUNK`] of items the pixels that they can touch, as an item has them.
pub const CHUNK: u32 = 32;
pub const CHUNKS: u32 = ITEMS + MAX_ITEMS * ITEM_BYTES;
pub const BLOCKS: u32 = CHUNKS + MAX_ITEMS / CHUNK * 8;
/// A hash of the items of each block with their order (two words), and whether it is another than in the frame before.
pub const BLOCK_HASHES: u32 = BLOCKS + MAX_BLOCKS.next_multiple_of(16) * 8;
pub const BLOCK_CHANGED: u32 = BLOCK_HASHES + MAX_BLOCKS * 8;
pub const BY_BLOCK: u32 = BLOCK_CHANGED + MAX_BLOCKS.next_multiple_of(16) * 4;
pub const MAX_BY_BLOCK: u32 = 1 << 20;
/// Tiles of 32 by 8 pixels: what each shows, as a hash, and whether it was drawn in this frame.
pub const TILE_WIDTH: u32 = 32;
pub const TILE_HEIGHT: u32 = 8;
pub const MAX_TILES: u32 = MAX_WIDTH / TILE_WIDTH * MAX_HEIGHT.div_ceil(TILE_HEIGHT);
pub const TILES: u32 = BY_BLOCK + MAX_BY_BLOCK * 4;
pub const DAMAGE: u32 = TILES + MAX_TILES * 8;
/// The tiles to draw: each one's number, the place of the first item that it shows, and which of the items from there on show, and which
/// of these do not touch all of its columns.
pub const TO_DRAW: u32 = (DAMAGE + MAX_TILES * 4).next_multiple_of(16);
pub const TO_DRAW_BYTES: u32 = 16;
/// For each item that is a glyph, its image (`glyphs`): the address, or 0; left and top in pixels; words in a row; rows.
pub const IMAGES: u32 = TO_DRAW + MAX_TILES * TO_DRAW_BYTES;
pub const IMAGE_BYTES: u32 = 16;
/// A table of the images that there are, by what they show, and the images, two pixels in a word.
pub const KEPT_IMAGES: u32 = IMAGES + MAX_ITEMS * IMAGE_BYTES;
pub const MAX_KEPT_IMAGES: u32 = 1 << 14;
pub const KEPT_IMAGE_BYTES: u32 = 32;
pub const COVERAGE: u32 = KEPT_IMAGES + MAX_KEPT_IMAGES * KEPT_IMAGE_BYTES;
pub const MAX_COVERAGE: u32 = 1 << 22;
/// The frame buffer, one word a pixel: red, green, blue, 255.
pub const PIXELS: u32 = COVERAGE + MAX_COVERAGE * 4;
pub const MEMORY_END: u32 = PIXELS + MAX_WIDTH * MAX_HEIGHT * 4;
/// The size that the module is linked with (.cargo/config.toml).
pub const DESKTOP_BYTES: u32 = 150_994_944;
const _: () = assert!(MEMORY_END <= DESKTOP_BYTES && ROOM_END.is_multiple_of(4096));
