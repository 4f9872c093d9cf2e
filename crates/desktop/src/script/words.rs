//! The words of a script: kinds, properties, keywords and keys. Whoever adds a word adds a row, and a line in docs/desktop.md.

use crate::event::{icons, keys, kinds as k, looks, modifiers, properties as p, style as s};

/// Names, and what each stands for.
pub(crate) type Table = [(&'static str, u32)];

/// Finds a name in a table.
pub(crate) fn find(table: &Table, name: &str) -> Option<u32> {
    table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Lists names, for messages.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// A kind of widgets, and the kinds that can have one in them.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) number: u32,
    pub(crate) within: &'static [u32],
}

const fn kind(name: &'static str, number: u32, within: &'static [u32]) -> Kind {
    Kind { name, number, within }
}

const HOLD_WIDGETS: &[u32] = &[k::WINDOW, k::PANEL, k::SCROLL];
const TAKE_INPUT: &[u32] =
    &[k::BUTTON, k::CHECKBOX, k::RADIO, k::SLIDER, k::FIELD, k::AREA, k::LIST, k::TABLE, k::TABS, k::CANVAS];

pub(crate) const KINDS: [Kind; 19] = [
    kind("window", k::WINDOW, &[k::DESKTOP]),
    kind("panel", k::PANEL, HOLD_WIDGETS),
    kind("scroll", k::SCROLL, HOLD_WIDGETS),
    kind("label", k::LABEL, HOLD_WIDGETS),
    kind("button", k::BUTTON, HOLD_WIDGETS),
    kind("checkbox", k::CHECKBOX, HOLD_WIDGETS),
    kind("radio", k::RADIO, HOLD_WIDGETS),
    kind("slider", k::SLIDER, HOLD_WIDGETS),
    kind("progress", k::PROGRESS, HOLD_WIDGETS),
    kind("field", k::FIELD, HOLD_WIDGETS),
    kind("area", k::AREA, HOLD_WIDGETS),
    kind("list", k::LIST, HOLD_WIDGETS),
    kind("table", k::TABLE, HOLD_WIDGETS),
    kind("tabs", k::TABS, HOLD_WIDGETS),
    kind("menu", k::MENU, &[k::BUTTON]),
    kind("tooltip", k::TOOLTIP, TAKE_INPUT),
    kind("canvas", k::CANVAS, HOLD_WIDGETS),
    kind("image", k::IMAGE, HOLD_WIDGETS),
    kind("plot", k::PLOT, HOLD_WIDGETS),
];

/// Lists the names of kinds, for messages.
pub(crate) fn kinds(numbers: &[u32]) -> String {
    list(KINDS.iter().filter(|kind| numbers.contains(&kind.number)).map(|kind| kind.name))
}

/// What stands behind a property's `=`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Takes {
    /// A number, or `auto`.
    Number,
    /// One of these words.
    Word(&'static Table),
    /// Columns and rows of pixels, such as `160x100`.
    Size,
    /// The number of a row or a tab, from 0, or `none`.
    Row,
}

/// A property: what it sets, all to the same value, and the kinds that have it; none named: all.
#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) sets: &'static [u32],
    pub(crate) of: &'static [u32],
}

const fn all(name: &'static str, takes: Takes, sets: &'static [u32]) -> Property {
    Property { name, takes, sets, of: &[] }
}

const fn of(name: &'static str, takes: Takes, sets: &'static [u32], of: &'static [u32]) -> Property {
    Property { name, takes, sets, of }
}

/// The property that sets one keyword of style.
const fn part(shift: u32, mask: u32) -> u32 {
    p::STYLE_PART | shift << 8 | mask << 16
}
const DIRECTION: u32 = part(s::DIRECTION, 3);
const WRAP: u32 = part(s::WRAP, 3);
const ALIGN: u32 = part(s::ALIGN_ITEMS, 7);
const SELF: u32 = part(s::ALIGN_SELF, 7);
const CONTENT: u32 = part(s::ALIGN_CONTENT, 15);
const JUSTIFY: u32 = part(s::JUSTIFY, 15);
const ABSOLUTE: u32 = part(s::ABSOLUTE, 1);
const HIDDEN: u32 = part(s::HIDDEN, 1);

use Takes::{Number, Row, Size, Word};

pub(crate) const PROPERTIES: [Property; 50] = [
    all("width", Number, &[p::WIDTH]),
    all("height", Number, &[p::HEIGHT]),
    all("min-width", Number, &[p::MIN_WIDTH]),
    all("min-height", Number, &[p::MIN_HEIGHT]),
    all("max-width", Number, &[p::MAX_WIDTH]),
    all("max-height", Number, &[p::MAX_HEIGHT]),
    all("basis", Number, &[p::BASIS]),
    all("grow", Number, &[p::GROW]),
    all("shrink", Number, &[p::SHRINK]),
    all("aspect", Number, &[p::ASPECT]),
    all("gap", Number, &[p::GAP_X, p::GAP_Y]),
    all("gap-x", Number, &[p::GAP_X]),
    all("gap-y", Number, &[p::GAP_Y]),
    all("pad", Number, &[p::PAD_LEFT, p::PAD_TOP, p::PAD_RIGHT, p::PAD_BOTTOM]),
    all("pad-left", Number, &[p::PAD_LEFT]),
    all("pad-top", Number, &[p::PAD_TOP]),
    all("pad-right", Number, &[p::PAD_RIGHT]),
    all("pad-bottom", Number, &[p::PAD_BOTTOM]),
    all("margin", Number, &[p::MARGIN_LEFT, p::MARGIN_TOP, p::MARGIN_RIGHT, p::MARGIN_BOTTOM]),
    all("margin-left", Number, &[p::MARGIN_LEFT]),
    all("margin-top", Number, &[p::MARGIN_TOP]),
    all("margin-right", Number, &[p::MARGIN_RIGHT]),
    all("margin-bottom", Number, &[p::MARGIN_BOTTOM]),
    all("left", Number, &[p::LEFT]),
    all("top", Number, &[p::TOP]),
    all("right", Number, &[p::RIGHT]),
    all("bottom", Number, &[p::BOTTOM]),
    all("content-width", Number, &[p::CONTENT_WIDTH]),
    all("content-height", Number, &[p::CONTENT_HEIGHT]),
    all("direction", Word(&DIRECTIONS), &[DIRECTION]),
    all("wrap", Word(&WRAPS), &[WRAP]),
    all("align", Word(ALIGNS), &[ALIGN]),
    all("self", Word(ALIGNS), &[SELF]),
    all("content", Word(&CONTENTS), &[CONTENT]),
    all("justify", Word(&CONTENTS), &[JUSTIFY]),
    all("absolute", Word(&SWITCH), &[ABSOLUTE]),
    all("hidden", Word(&SWITCH), &[HIDDEN]),
    all("font", Number, &[p::FONT]),
    all("look", Word(&LOOKS), &[p::LOOK]),
    all("disabled", Word(&SWITCH), &[p::DISABLED]),
    of("value", Number, &[p::VALUE], &[k::CHECKBOX, k::RADIO, k::SLIDER, k::PROGRESS]),
    of("icon", Word(&ICONS), &[p::ICON], &[k::BUTTON]),
    of("focus", Word(&SWITCH), &[p::FOCUS], TAKE_INPUT),
    of("selected", Row, &[p::SELECTED], &[k::LIST, k::TABLE, k::TABS]),
    of("scrolled", Number, &[p::SCROLLED], &[k::SCROLL, k::AREA, k::LIST, k::TABLE]),
    of("open", Word(&SWITCH), &[p::OPEN], &[k::MENU]),
    of("read-only", Word(&SWITCH), &[p::READ_ONLY], &[k::FIELD, k::AREA]),
    of("minimised", Word(&SWITCH), &[p::MINIMISED], &[k::WINDOW]),
    of("pixels", Size, &[p::PIXEL_SIZE], &[k::CANVAS, k::IMAGE]),
    of("greatest", Number, &[p::GREATEST], &[k::PLOT]),
];

const DIRECTIONS: [(&str, u32); 4] =
    [("row", s::ROW), ("column", s::COLUMN), ("row-reverse", s::ROW_REVERSE), ("column-reverse", s::COLUMN_REVERSE)];
const WRAPS: [(&str, u32); 3] = [("no", 0), ("yes", 1), ("reverse", 2)];
/// Without those that share out the space between several.
const ALIGNS: &Table = CONTENTS.split_at(7).0;
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
const SWITCH: [(&str, u32); 2] = [("no", 0), ("yes", 1)];
const LOOKS: [(&str, u32); 4] =
    [("plain", looks::PLAIN), ("strong", looks::STRONG), ("quiet", looks::QUIET), ("title", looks::TITLE)];
const ICONS: [(&str, u32); 19] = [
    ("none", icons::NONE),
    ("folder", icons::FOLDER),
    ("file", icons::FILE),
    ("terminal", icons::TERMINAL),
    ("chart", icons::CHART),
    ("text", icons::TEXT),
    ("pen", icons::PEN),
    ("gear", icons::GEAR),
    ("sparkle", icons::SPARKLE),
    ("grid", icons::GRID),
    ("plus", icons::PLUS),
    ("close", icons::CLOSE),
    ("refresh", icons::REFRESH),
    ("save", icons::SAVE),
    ("play", icons::PLAY),
    ("stop", icons::STOP),
    ("up", icons::UP),
    ("home", icons::HOME),
    ("pause", icons::PAUSE),
];

pub(crate) const THEMES: [(&str, u32); 2] = [("light", 0), ("dark", 1)];

pub(crate) const KEYS: [(&str, u32); 19] = [
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
    ("page-up", keys::PAGE_UP),
    ("page-down", keys::PAGE_DOWN),
    ("backspace", keys::BACKSPACE),
    ("delete", keys::DELETE),
    ("all", keys::SELECT_ALL),
    ("copy", keys::COPY),
    ("cut", keys::CUT),
    ("apps", keys::APPS),
    ("f4", keys::F4),
];

pub(crate) const MODIFIERS: [(&str, u32); 3] =
    [("shift", modifiers::SHIFT), ("control", modifiers::CONTROL), ("alt", modifiers::ALT)];

#[cfg(test)]
mod tests {
    use super::*;

    /// Between two headings of docs/desktop.md.
    fn documented() -> &'static str {
        let page = include_str!("../../../../docs/desktop.md");
        page.split("\n## ").find(|section| section.starts_with("Scripts")).unwrap()
    }

    #[test]
    fn the_document_has_every_word_and_no_other_kind() {
        let words = |table: &'static Table| table.iter().map(|(name, _)| *name);
        let of_property = |property: &'static Property| match property.takes {
            Takes::Word(table) => words(table).collect(),
            _ => Vec::new(),
        };
        let properties = || PROPERTIES.iter();
        let shapes = super::super::shapes::SHAPES.iter().map(|shape| shape.name);
        let names = KINDS.iter().map(|kind| kind.name).chain(properties().map(|it| it.name)).chain(shapes);
        let values = properties().flat_map(of_property).chain(words(&KEYS)).chain(words(&MODIFIERS));
        for name in names.chain(values) {
            assert!(documented().contains(&format!("`{name}`")), "docs/desktop.md does not have `{name}`");
        }
    }

    /// `tests/script/words.rs` has the desktop do what is in this file.
    #[test]
    fn the_script_with_every_word_has_every_word() {
        let script = include_str!("../../tests/script/every-word.txt");
        for property in &PROPERTIES {
            assert!(script.contains(&format!(" {}=", property.name)), "{}", property.name);
        }
        let gallery = include_str!("../../../../docs/desktop/gallery.txt");
        for (text, kind) in KINDS.iter().flat_map(|kind| [(script, kind), (gallery, kind)]) {
            let begin = format!("{} ", kind.name);
            assert!(text.lines().any(|line| line.trim_start().starts_with(&begin)), "{begin}");
        }
        for (name, _) in KEYS.iter().chain(&MODIFIERS) {
            assert!(
                script.lines().any(|line| line.starts_with("key ") && line.contains(&format!(" {name}"))),
                "{name}"
            );
        }
    }

    #[test]
    fn no_name_stands_for_two_things() {
        let mut names: Vec<&str> = PROPERTIES.iter().map(|property| property.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        let numbers: Vec<u32> = KINDS.iter().map(|kind| kind.number).collect();
        assert!((1..=k::LAST).all(|number| numbers.contains(&number)), "a kind has no word");
    }
}
