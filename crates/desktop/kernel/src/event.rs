//! Events of the desktop, from the host and to the host: kinds, and what their words mean. Host and device are both compiled with this
//! file. An event is six words: kind and flags (16 bits each), `key`, `a`, `b`, `id`, `wait` (`gpu_run_kernel::event`).

// --- Commands: `key` is a widget, whose number the sender chooses ----------------------------------------------------------

/// Makes a widget of the kind `a` as the last child of the widget `b`; `id` is its owner.
pub const CREATE: u16 = 32;
/// Removes a widget and everything in it.
pub const DESTROY: u16 = 33;
/// Sets the property `a` to `b`.
pub const SET: u16 = 34;
/// Adds up to six characters of 16 bits, in `a`, `b` and `id`, to the text. Flags: how many, and [`TEXT_BEGINS`].
pub const TEXT: u16 = 35;
/// A flag of [`TEXT`]: the text begins anew.
pub const TEXT_BEGINS: u16 = 1 << 8;
/// Sets pixels of a canvas or image, from number `a` on, row by row: as many as the flags say, at most four, each 24 bits (red is the
/// lowest byte), in `b`, `id` and `wait`. With the flag [`PIXELS_RUN`], `id` pixels have the colour `b`.
pub const PIXELS: u16 = 36;
/// A flag of [`PIXELS`].
pub const PIXELS_RUN: u16 = 1 << 8;
/// Adds the value `a` (a 32-bit float) to the series `flags` of a plot.
pub const POINT: u16 = 37;

// --- Input -----------------------------------------------------------------------------------------------------------------

/// The pointer is at `a`, `b`, in 256ths of a pixel (signed).
pub const MOVE: u16 = 48;
/// The pointer's button `key` went down or up there.
pub const PRESS: u16 = 49;
pub const RELEASE: u16 = 50;
/// The wheel turned, so that the content goes by `a` to the left and `b` up, in 256ths of a pixel (signed).
pub const WHEEL: u16 = 51;
/// A key went down: `key` is one of [`keys`], `a` has bits of [`modifiers`].
pub const KEY: u16 = 52;
/// The character `key` was typed.
pub const TYPE: u16 = 53;
/// The finger `key` is at `a`, `b`, in 256ths of a pixel. Flags: one of [`touch`].
pub const TOUCH: u16 = 54;
/// Text from the clipboard, in pieces as those of [`TEXT`]. It takes the place of the selection in the widget that has the focus.
pub const PASTE: u16 = 55;

// --- Settings --------------------------------------------------------------------------------------------------------------

/// The frame has `a` by `b` pixels, and `key` / 256 pixels for one unit of length.
pub const RESIZE: u16 = 64;
/// Theme: `a` is 0 for light, 1 for dark.
pub const THEME: u16 = 65;
/// `a` frames per second.
pub const RATE: u16 = 66;
/// The colour of what is chosen and of main actions: `a`, 24 bits, red is the lowest byte.
pub const ACCENT: u16 = 67;
/// How large the user wants everything: `a` / 256 times as large. [`RESIZE`] has what the display asks for.
pub const ZOOM: u16 = 68;
/// What is left out where drawing takes too long: `a` is one of [`effects`].
pub const EFFECTS: u16 = 69;

// --- To the owner: `key` is the widget, `b` its owner ----------------------------------------------------------------------

/// A button was clicked that has no menu.
pub const CLICKED: u16 = 80;
/// The value is now `a` (a 32-bit float), or the text changed.
pub const CHANGED: u16 = 81;
/// A window was closed.
pub const CLOSED: u16 = 82;
/// Enter was pressed in a text field.
pub const ENTERED: u16 = 83;
/// The row, the entry or the tab `a` was chosen. Of the desktop itself, widget 0: an entry of the menu of apps.
pub const CHOSEN: u16 = 84;
/// The characters from `a` to the one before `id` of the text were copied. For the host, which keeps the clipboard.
pub const COPIED: u16 = 85;
/// The pointer on a canvas: `a` is the pixel's column, in the low half, and row. Flags: 0 moved with the button down, 1 pressed, 2 released.
pub const POINTED: u16 = 86;
/// A key went down while a canvas had the focus: `a` is one of [`keys`], or a character with [`KEYED_CHARACTER`] added.
pub const KEYED: u16 = 87;
pub const KEYED_CHARACTER: u32 = 1 << 31;
/// The wheel turned on a canvas: `a` is how far down, in units (a 32-bit float).
pub const WHEELED: u16 = 88;

/// From nothing on, each leaves out what the one before does, and more.
pub mod effects {
    pub const ALL: u32 = 0;
    pub const NO_SHADOWS: u32 = 1;
    /// Nor transitions: what changes its look does so at once.
    pub const NONE: u32 = 2;
}

pub mod touch {
    pub const DOWN: u16 = 0;
    pub const MOVED: u16 = 1;
    pub const UP: u16 = 2;
    pub const CANCELLED: u16 = 3;
}

pub mod keys {
    pub const TAB: u32 = 1;
    pub const ENTER: u32 = 2;
    pub const SPACE: u32 = 3;
    pub const ESCAPE: u32 = 4;
    pub const LEFT: u32 = 5;
    pub const RIGHT: u32 = 6;
    pub const UP: u32 = 7;
    pub const DOWN: u32 = 8;
    pub const HOME: u32 = 9;
    pub const END: u32 = 10;
    pub const BACKSPACE: u32 = 11;
    pub const DELETE: u32 = 12;
    /// Selects the whole text, as Ctrl+A does.
    pub const SELECT_ALL: u32 = 13;
    pub const F4: u32 = 14;
    pub const COPY: u32 = 15;
    pub const CUT: u32 = 16;
    pub const PAGE_UP: u32 = 17;
    pub const PAGE_DOWN: u32 = 18;
    /// Opens the menu of apps.
    pub const APPS: u32 = 19;
}

pub mod modifiers {
    pub const SHIFT: u32 = 1;
    pub const CONTROL: u32 = 2;
    pub const ALT: u32 = 4;
}

/// Kinds of widgets.
pub mod kinds {
    pub const WINDOW: u32 = 1;
    pub const PANEL: u32 = 2;
    pub const LABEL: u32 = 3;
    pub const BUTTON: u32 = 4;
    pub const CHECKBOX: u32 = 5;
    pub const RADIO: u32 = 6;
    pub const SLIDER: u32 = 7;
    pub const FIELD: u32 = 8;
    pub const PROGRESS: u32 = 9;
    /// A text of several lines.
    pub const AREA: u32 = 10;
    /// Rows, which are the lines of the text.
    pub const LIST: u32 = 11;
    /// Rows of cells, with tabulators between them; the first line has the names of the columns.
    pub const TABLE: u32 = 12;
    /// A panel that scrolls.
    pub const SCROLL: u32 = 13;
    /// A row of tabs, whose names are the lines of the text.
    pub const TABS: u32 = 14;
    /// A menu beneath the button that it is in. Its entries are the lines of the text.
    pub const MENU: u32 = 15;
    /// What is said about the widget that it is in, after the pointer rested there.
    pub const TOOLTIP: u32 = 16;
    /// Pixels that the owner sets, and that take input.
    pub const CANVAS: u32 = 17;
    /// Pixels that the owner sets.
    pub const IMAGE: u32 = 18;
    /// The last values of up to four series, as lines.
    pub const PLOT: u32 = 19;
    pub const LAST: u32 = PLOT;
    /// The desktop itself, widget 0.
    pub const DESKTOP: u32 = 255;
}

/// Icons: what [`properties::ICON`] can be.
pub mod icons {
    pub const NONE: u32 = 0;
    pub const FOLDER: u32 = 1;
    pub const FILE: u32 = 2;
    pub const TERMINAL: u32 = 3;
    pub const CHART: u32 = 4;
    pub const TEXT: u32 = 5;
    pub const PEN: u32 = 6;
    pub const GEAR: u32 = 7;
    pub const SPARKLE: u32 = 8;
    pub const GRID: u32 = 9;
    pub const PLUS: u32 = 10;
    pub const CLOSE: u32 = 11;
    pub const REFRESH: u32 = 12;
    pub const SAVE: u32 = 13;
    pub const PLAY: u32 = 14;
    pub const STOP: u32 = 15;
    pub const UP: u32 = 16;
    pub const HOME: u32 = 17;
    pub const PAUSE: u32 = 18;
    pub const LAST: u32 = PAUSE;
}

/// Looks: what [`properties::LOOK`] can be.
pub mod looks {
    /// As the kind is by itself.
    pub const PLAIN: u32 = 0;
    /// A button that stands for the main action; a panel with a surface of its own.
    pub const STRONG: u32 = 1;
    /// A label or button that stays in the background.
    pub const QUIET: u32 = 2;
    /// A label in the size of headings.
    pub const TITLE: u32 = 3;
}

/// Properties that [`SET`] sets. Those up to [`LAST_STYLE`](properties::LAST_STYLE) are lengths and factors of style, 32-bit floats,
/// in the order of the fields from `W_WIDTH` on; NaN is `auto` or none.
pub mod properties {
    pub const WIDTH: u32 = 0;
    pub const HEIGHT: u32 = 1;
    pub const MIN_WIDTH: u32 = 2;
    pub const MIN_HEIGHT: u32 = 3;
    pub const MAX_WIDTH: u32 = 4;
    pub const MAX_HEIGHT: u32 = 5;
    pub const BASIS: u32 = 6;
    pub const GROW: u32 = 7;
    pub const SHRINK: u32 = 8;
    pub const ASPECT: u32 = 9;
    pub const GAP_X: u32 = 10;
    pub const GAP_Y: u32 = 11;
    pub const PAD_LEFT: u32 = 12;
    pub const PAD_TOP: u32 = 13;
    pub const PAD_RIGHT: u32 = 14;
    pub const PAD_BOTTOM: u32 = 15;
    pub const MARGIN_LEFT: u32 = 16;
    pub const MARGIN_TOP: u32 = 17;
    pub const MARGIN_RIGHT: u32 = 18;
    pub const MARGIN_BOTTOM: u32 = 19;
    pub const LEFT: u32 = 20;
    pub const TOP: u32 = 21;
    pub const RIGHT: u32 = 22;
    pub const BOTTOM: u32 = 23;
    pub const CONTENT_WIDTH: u32 = 24;
    pub const CONTENT_HEIGHT: u32 = 25;
    pub const LAST_STYLE: u32 = CONTENT_HEIGHT;
    /// The word of [`style`](super::style).
    pub const STYLE: u32 = 32;
    /// Added to what follows: sets one keyword of the word of style. Bits 8 to 15 are its shift, bits 16 to 23 its mask.
    pub const STYLE_PART: u32 = 1 << 31;
    /// 0 to 1, a 32-bit float.
    pub const VALUE: u32 = 33;
    pub const LOOK: u32 = 34;
    /// The size of the text in units, a 32-bit float.
    pub const FONT: u32 = 35;
    /// 1: the widget takes no input.
    pub const DISABLED: u32 = 36;
    /// 1: the widget gets the focus.
    pub const FOCUS: u32 = 37;
    /// The chosen row or tab, from 0; [`u32::MAX`]: none.
    pub const SELECTED: u32 = 38;
    /// 1: a menu is open.
    pub const OPEN: u32 = 39;
    /// 1: a text area takes no typing.
    pub const READ_ONLY: u32 = 40;
    /// 1: a window is hidden, and waits in the bar at the bottom.
    pub const MINIMISED: u32 = 41;
    /// How many pixels a canvas or image has: the width in the low half, and the height.
    pub const PIXEL_SIZE: u32 = 42;
    /// The greatest value that a plot shows, a 32-bit float; NaN: that of its values.
    pub const GREATEST: u32 = 43;
    /// The icon before a button's text, one of `icons`; 0: none.
    pub const ICON: u32 = 44;
    /// How far the content is scrolled, in units, a 32-bit float; a value beyond the end means the end, also when text is added.
    pub const SCROLLED: u32 = 45;
}

/// The keywords of style, packed in one word. The number is the shift.
pub mod style {
    /// 2 bits: row, column, and both reversed.
    pub const DIRECTION: u32 = 0;
    pub const ROW: u32 = 0;
    pub const COLUMN: u32 = 1;
    pub const ROW_REVERSE: u32 = 2;
    pub const COLUMN_REVERSE: u32 = 3;
    /// 2 bits: no, yes, reversed.
    pub const WRAP: u32 = 2;
    /// 3 bits each, of [`ALIGNS`]; 0 is `normal` for items and `auto` for self.
    pub const ALIGN_ITEMS: u32 = 4;
    pub const ALIGN_SELF: u32 = 7;
    /// 4 bits each, of the same and the last three.
    pub const ALIGN_CONTENT: u32 = 10;
    pub const JUSTIFY: u32 = 14;
    pub const NORMAL: u32 = 0;
    pub const START: u32 = 1;
    pub const END: u32 = 2;
    pub const FLEX_START: u32 = 3;
    pub const FLEX_END: u32 = 4;
    pub const CENTER: u32 = 5;
    pub const STRETCH: u32 = 6;
    /// How many keywords align items.
    pub const ALIGNS: u32 = 7;
    pub const BETWEEN: u32 = 7;
    pub const AROUND: u32 = 8;
    pub const EVENLY: u32 = 9;
    /// 1 bit: placed by its insets, apart from its siblings.
    pub const ABSOLUTE: u32 = 18;
    /// 1 bit: not there, `display: none`.
    pub const HIDDEN: u32 = 19;
}
