//! The words of a script: names of kinds, properties, keywords and keys.

use crate::event::{keys, kinds, looks, modifiers, properties as p, style as s};

/// Finds a name in a table.
pub(crate) fn find(table: &[(&str, u32)], name: &str) -> Option<u32> {
    table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Lists the names of a table, for messages.
pub(crate) fn names(table: &[(&str, u32)]) -> String {
    table.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

pub(crate) const KINDS: [(&str, u32); 9] = [
    ("window", kinds::WINDOW),
    ("panel", kinds::PANEL),
    ("label", kinds::LABEL),
    ("button", kinds::BUTTON),
    ("checkbox", kinds::CHECKBOX),
    ("radio", kinds::RADIO),
    ("slider", kinds::SLIDER),
    ("field", kinds::FIELD),
    ("progress", kinds::PROGRESS),
];

/// Properties that are numbers.
pub(crate) const NUMBERS: [(&str, u32); 28] = [
    ("width", p::WIDTH),
    ("height", p::HEIGHT),
    ("min-width", p::MIN_WIDTH),
    ("min-height", p::MIN_HEIGHT),
    ("max-width", p::MAX_WIDTH),
    ("max-height", p::MAX_HEIGHT),
    ("basis", p::BASIS),
    ("grow", p::GROW),
    ("shrink", p::SHRINK),
    ("aspect", p::ASPECT),
    ("gap-x", p::GAP_X),
    ("gap-y", p::GAP_Y),
    ("pad-left", p::PAD_LEFT),
    ("pad-top", p::PAD_TOP),
    ("pad-right", p::PAD_RIGHT),
    ("pad-bottom", p::PAD_BOTTOM),
    ("margin-left", p::MARGIN_LEFT),
    ("margin-top", p::MARGIN_TOP),
    ("margin-right", p::MARGIN_RIGHT),
    ("margin-bottom", p::MARGIN_BOTTOM),
    ("left", p::LEFT),
    ("top", p::TOP),
    ("right", p::RIGHT),
    ("bottom", p::BOTTOM),
    ("content-width", p::CONTENT_WIDTH),
    ("content-height", p::CONTENT_HEIGHT),
    ("value", p::VALUE),
    ("font", p::FONT),
];

/// Short forms that set several properties to the same number.
pub(crate) const SHORT: [(&str, &[u32]); 3] = [
    ("gap", &[p::GAP_X, p::GAP_Y]),
    ("pad", &[p::PAD_LEFT, p::PAD_TOP, p::PAD_RIGHT, p::PAD_BOTTOM]),
    ("margin", &[p::MARGIN_LEFT, p::MARGIN_TOP, p::MARGIN_RIGHT, p::MARGIN_BOTTOM]),
];

/// A property of style that is a keyword: its place in the word of style, and what it can be.
#[derive(Debug)]
pub(crate) struct Keyword {
    pub(crate) name: &'static str,
    pub(crate) shift: u32,
    pub(crate) mask: u32,
    pub(crate) values: &'static [(&'static str, u32)],
}

const fn keyword(name: &'static str, shift: u32, mask: u32, values: &'static [(&'static str, u32)]) -> Keyword {
    Keyword { name, shift, mask, values }
}

pub(crate) const KEYWORDS: [Keyword; 8] = [
    keyword("direction", s::DIRECTION, 3, &DIRECTIONS),
    keyword("wrap", s::WRAP, 3, &[("no", 0), ("yes", 1), ("reverse", 2)]),
    keyword("align", s::ALIGN_ITEMS, 7, ALIGNS),
    keyword("self", s::ALIGN_SELF, 7, ALIGNS),
    keyword("content", s::ALIGN_CONTENT, 15, &CONTENTS),
    keyword("justify", s::JUSTIFY, 15, &CONTENTS),
    keyword("absolute", s::ABSOLUTE, 1, &SWITCH),
    keyword("hidden", s::HIDDEN, 1, &SWITCH),
];

const DIRECTIONS: [(&str, u32); 4] =
    [("row", s::ROW), ("column", s::COLUMN), ("row-reverse", s::ROW_REVERSE), ("column-reverse", s::COLUMN_REVERSE)];
/// Without those that share out the space between several.
const ALIGNS: &[(&str, u32)] = CONTENTS.split_at(7).0;
const CONTENTS: [(&str, u32); 10] = [
    ("normal", s::NORMAL),
    ("start", s::START),
    ("end", s::END),
    ("flex-start", s::FLEX_START),
    ("flex-end", s::FLEX_END),
    ("center", s::CENTER),
    ("stretch", s::STRETCH),
    ("between", s::BETWEEN),
    ("around", s::AROUND),
    ("evenly", s::EVENLY),
];
pub(crate) const SWITCH: [(&str, u32); 2] = [("no", 0), ("yes", 1)];

pub(crate) const LOOKS: [(&str, u32); 4] =
    [("plain", looks::PLAIN), ("strong", looks::STRONG), ("quiet", looks::QUIET), ("title", looks::TITLE)];

pub(crate) const THEMES: [(&str, u32); 2] = [("light", 0), ("dark", 1)];

pub(crate) const KEYS: [(&str, u32); 14] = [
    ("tab", keys::TAB),
    ("enter", keys::ENTER),
    ("space", keys::SPACE),
    ("escape", keys::ESCAPE),
    ("left", keys::LEFT),
    ("right", keys::RIGHT),
    ("up", keys::UP),
    ("down", keys::DOWN),
    ("home", keys::HOME),
    ("end", keys::END),
    ("backspace", keys::BACKSPACE),
    ("delete", keys::DELETE),
    ("all", keys::SELECT_ALL),
    ("f4", keys::F4),
];

pub(crate) const MODIFIERS: [(&str, u32); 3] =
    [("shift", modifiers::SHIFT), ("control", modifiers::CONTROL), ("alt", modifiers::ALT)];
