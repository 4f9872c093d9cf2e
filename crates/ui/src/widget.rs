//! Widgets: how they are made, how they are changed.

use crate::canvas::Canvas;
use crate::connection::Connection;
use crate::event::{self, kinds, looks, properties as p, style as s};
use crate::icon::Icon;
use crate::style::{Align, Justify};
use crate::wire::{self, Record};
use std::fmt;
use std::io;
use std::rc::Rc;

/// A widget of this app. Clones are the same widget, and equal.
///
/// A widget stays until it or what it is in is destroyed or closed, not until the last clone is dropped. What is said of one that
/// is gone has no effect.
#[derive(Clone)]
pub struct Widget {
    connection: Rc<Connection>,
    number: u32,
}

impl PartialEq for Widget {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Widget {}

impl fmt::Debug for Widget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Widget({})", self.number)
    }
}

impl Widget {
    pub(crate) fn new(connection: &Rc<Connection>, number: u32) -> Self {
        Self { connection: connection.clone(), number }
    }

    pub(crate) fn make(connection: &Rc<Connection>, parent: u32, kind: u32, text: &str) -> Self {
        let widget = Self::new(connection, connection.new_widget());
        connection.send(Record { kind: event::CREATE, key: widget.number, a: kind, b: parent, ..Record::default() });
        if !text.is_empty() {
            widget.set_text(text);
        }
        widget
    }

    fn child(&self, kind: u32, text: &str) -> Self {
        Self::make(&self.connection, self.number, kind, text)
    }

    pub(crate) fn send(&self, record: Record) {
        self.connection.send(Record { key: self.number, ..record });
    }
}

/// What can be in a window, or in a container.
impl Widget {
    /// A container whose children are side by side, in the middle of its height.
    pub fn row(&self) -> Self {
        self.child(kinds::PANEL, "").style(s::DIRECTION, 3, s::ROW).align(Align::Center)
    }

    /// A container whose children are one below the other.
    pub fn column(&self) -> Self {
        self.child(kinds::PANEL, "")
    }

    /// A column that scrolls.
    pub fn scroll(&self) -> Self {
        self.child(kinds::SCROLL, "")
    }

    /// A text of one line.
    pub fn label(&self, text: &str) -> Self {
        self.child(kinds::LABEL, text)
    }

    /// A button.
    pub fn button(&self, text: &str) -> Self {
        self.child(kinds::BUTTON, text)
    }

    /// A box that is checked or not.
    pub fn checkbox(&self, text: &str) -> Self {
        self.child(kinds::CHECKBOX, text)
    }

    /// A radio button. Of those in one container, one is chosen.
    pub fn radio(&self, text: &str) -> Self {
        self.child(kinds::RADIO, text)
    }

    /// A slider, from 0 to 1.
    pub fn slider(&self) -> Self {
        self.child(kinds::SLIDER, "")
    }

    /// A progress bar, from 0 to 1.
    pub fn progress(&self) -> Self {
        self.child(kinds::PROGRESS, "")
    }

    /// A text of one line that the user writes.
    pub fn field(&self, text: &str) -> Self {
        self.child(kinds::FIELD, text)
    }

    /// A text of several lines that the user writes.
    pub fn area(&self, text: &str) -> Self {
        self.child(kinds::AREA, text)
    }

    /// Rows, of which one can be chosen.
    pub fn list(&self, rows: &[&str]) -> Self {
        self.child(kinds::LIST, &rows.join("\n"))
    }

    /// Rows of cells, with names over the columns.
    pub fn table(&self, columns: &[&str]) -> Self {
        self.child(kinds::TABLE, &columns.join("\t"))
    }

    /// Tabs, of which one is chosen. What they stand for is shown and hidden by the app: [`Widget::set_hidden`].
    pub fn tabs(&self, names: &[&str]) -> Self {
        self.child(kinds::TABS, &names.join("\n"))
    }

    /// A menu that opens when this button is clicked. An entry `-` is a line between others.
    pub fn menu(&self, entries: &[&str]) -> Self {
        self.child(kinds::MENU, &entries.join("\n"))
    }

    /// Has a text shown when the pointer rests on this widget. Returns this widget.
    pub fn tooltip(self, text: &str) -> Self {
        self.child(kinds::TOOLTIP, text);
        self
    }

    /// Pixels that the app sets, and that take the pointer and keys.
    pub fn canvas(&self, width: usize, height: usize) -> Canvas {
        Canvas::new(self.child(kinds::CANVAS, ""), width, height)
    }

    /// Pixels that the app sets.
    pub fn image(&self, width: usize, height: usize) -> Canvas {
        Canvas::new(self.child(kinds::IMAGE, ""), width, height)
    }

    /// The last values of up to four series, as lines.
    pub fn plot(&self) -> Self {
        self.child(kinds::PLOT, "")
    }
}

/// What a widget shows.
impl Widget {
    /// Sets the text: a window's title, a list's rows, and so on.
    pub fn set_text(&self, text: &str) {
        self.connection.send_text(self.number, text, true);
    }

    /// Adds to the text.
    pub fn add_text(&self, text: &str) {
        self.connection.send_text(self.number, text, false);
    }

    /// Sets the rows of a table, below the names of its columns.
    pub fn set_rows(&self, columns: &[&str], rows: &[Vec<String>]) {
        let rows = rows.iter().map(|row| format!("\n{}", row.join("\t")));
        self.set_text(&(columns.join("\t") + &rows.collect::<String>()));
    }

    /// Asks for the text, as the user has changed it.
    pub fn text(&self) -> io::Result<String> {
        let bytes = self.connection.ask(Record { kind: wire::TEXT_OF, key: self.number, ..Record::default() })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Sets the value of a slider, a progress bar, a checkbox or a radio button, from 0 to 1.
    pub fn set_value(&self, value: f32) {
        self.property(p::VALUE, value.clamp(0.0, 1.0).to_bits());
    }

    /// Chooses a row or a tab.
    pub fn select(&self, row: Option<usize>) {
        self.property(p::SELECTED, row.map_or(u32::MAX, |row| row as u32));
    }

    /// Scrolls to the end, and stays there when text is added.
    pub fn scroll_to_end(&self) {
        self.property(p::SCROLLED, f32::MAX.to_bits());
    }

    /// Adds a value to a series of a plot.
    pub fn add_point(&self, series: u16, value: f32) {
        self.send(Record { kind: event::POINT, flags: series, a: value.to_bits(), ..Record::default() });
    }

    /// Sets the greatest value that a plot shows; without it, that of its values.
    pub fn greatest(self, value: f32) -> Self {
        self.property(p::GREATEST, value.to_bits());
        self
    }

    /// Shows the widget, or takes it out of the layout.
    pub fn set_hidden(&self, hidden: bool) {
        self.property(p::STYLE_PART | s::HIDDEN << 8 | 1 << 16, hidden.into());
    }

    /// A disabled widget takes no input.
    pub fn set_disabled(&self, disabled: bool) {
        self.property(p::DISABLED, disabled.into());
    }

    /// A text area that takes no typing.
    pub fn read_only(self) -> Self {
        self.property(p::READ_ONLY, 1);
        self
    }

    /// Gives the widget the focus.
    pub fn focus(&self) {
        self.property(p::FOCUS, 1);
    }

    /// Removes the widget and what is in it.
    pub fn destroy(&self) {
        self.send(Record { kind: event::DESTROY, ..Record::default() });
    }

    /// A button for the main action.
    pub fn strong(self) -> Self {
        self.property(p::LOOK, looks::STRONG);
        self
    }

    /// A label or a button that stays in the background.
    pub fn quiet(self) -> Self {
        self.property(p::LOOK, looks::QUIET);
        self
    }

    /// A label in the size of headings.
    pub fn title(self) -> Self {
        self.property(p::LOOK, looks::TITLE);
        self
    }

    /// A picture before a button's text.
    pub fn icon(self, icon: Icon) -> Self {
        self.property(p::ICON, icon as u32);
        self
    }

    fn property(&self, property: u32, value: u32) {
        self.send(Record { kind: event::SET, a: property, b: value, ..Record::default() });
    }
}

macro_rules! lengths {
    ($($(#[$doc:meta])* $name:ident = $($property:ident),+;)*) => {
        /// Layout, as CSS has it. Lengths are in units.
        impl Widget {
            $($(#[$doc])* pub fn $name(self, value: f32) -> Self {
                $(self.property(p::$property, value.to_bits());)+
                self
            })*
        }
    };
}

lengths! {
    /// The width.
    width = WIDTH;
    /// The height.
    height = HEIGHT;
    /// The least width.
    min_width = MIN_WIDTH;
    /// The least height.
    min_height = MIN_HEIGHT;
    /// The greatest width.
    max_width = MAX_WIDTH;
    /// The greatest height.
    max_height = MAX_HEIGHT;
    /// The share of the space that is left which the widget takes.
    grow = GROW;
    /// The share of the space that lacks which the widget gives up. Default: 1.
    shrink = SHRINK;
    /// The size along the container's direction before growing and shrinking.
    basis = BASIS;
    /// The space between children.
    gap = GAP_X, GAP_Y;
    /// The space around the content.
    pad = PAD_LEFT, PAD_TOP, PAD_RIGHT, PAD_BOTTOM;
    /// The space around the widget.
    margin = MARGIN_LEFT, MARGIN_TOP, MARGIN_RIGHT, MARGIN_BOTTOM;
    /// A window's place.
    left = LEFT;
    /// A window's place.
    top = TOP;
    /// The size of the text.
    font = FONT;
}

impl Widget {
    /// Lets the children of a row or column go on in the next line where there is no room.
    pub fn wrap(self) -> Self {
        self.style(s::WRAP, 3, 1)
    }

    /// Where a container places its children across its direction.
    pub fn align(self, align: Align) -> Self {
        self.style(s::ALIGN_ITEMS, 7, align.code())
    }

    /// Where the widget itself is placed across its container's direction.
    pub fn align_self(self, align: Align) -> Self {
        self.style(s::ALIGN_SELF, 7, align.code())
    }

    /// How a container shares out the space that is left, along its direction.
    pub fn justify(self, justify: Justify) -> Self {
        self.style(s::JUSTIFY, 15, justify.code())
    }

    /// Sets a part of the word of style.
    fn style(self, shift: u32, mask: u32, value: u32) -> Self {
        self.property(p::STYLE_PART | shift << 8 | mask << 16, value);
        self
    }
}
