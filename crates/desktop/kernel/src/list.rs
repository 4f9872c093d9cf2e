//! Lists and tables: rows are the lines of the text. A table's first line names its columns, and stays while the rows scroll.

use crate::dispatch::{pointer, tell};
use crate::event::{CHOSEN, ENTERED, keys::*, kinds};
use crate::math::floor;
use crate::memory::*;
use crate::text::Reader;
use crate::theme::BAR_ZONE;
use crate::{font, lines, scroll, text};
use gpu_run_kernel::gpu::{load, store};
use gpu_run_kernel::team::Team;

/// The space around all rows, and left and right of a cell's text.
pub const INSET: f32 = 4.0;
pub const CELL_PAD: f32 = 10.0;
const TAB: u32 = '\t' as u32;

pub fn is_list(widget: u32) -> bool {
    matches!(get(W_KIND, widget), kinds::LIST | kinds::TABLE)
}

pub fn row_height(list: u32) -> f32 {
    text::line_height(getf(W_FONT, list)) + 8.0
}

/// The line of the first row.
pub fn first_line(list: u32) -> u32 {
    (get(W_KIND, list) == kinds::TABLE) as u32
}

/// How many rows there are. An empty line at the end is none.
pub fn rows(list: u32) -> u32 {
    let count = get(T_LINES, list);
    let ends_empty = count != 0 && lines::start(list, count - 1) == get(W_TEXT_LENGTH, list);
    (count - ends_empty as u32).saturating_sub(first_line(list))
}

/// The height of all rows and what is around them.
pub fn content(list: u32) -> f32 {
    rows(list) as f32 * row_height(list) + 2.0 * INSET
}

/// Where a row lies in the content.
pub fn place(list: u32, row: u32) -> (f32, f32) {
    let top = INSET + row as f32 * row_height(list);
    (top, top + row_height(list))
}

pub fn selected_row(list: u32) -> Option<(f32, f32)> {
    let row = get(W_SELECTED, list);
    if row < rows(list) { Some(place(list, row)) } else { None }
}

/// The row that the pointer is on, or [`NONE`].
pub fn hot_row(list: u32) -> u32 {
    if !is_list(list) {
        return NONE;
    }
    lines::know(list);
    let (x, y) = pointer();
    let (x, y) = (x - getf(W_AT_X, list), y - getf(W_AT_Y, list));
    let row = floor((y - scroll::view_top(list) + scroll::offset(list) - INSET) / row_height(list));
    let inside = x >= 0.0 && x < getf(W_W, list) && y >= scroll::view_top(list) && y < getf(W_H, list);
    if inside && (0..rows(list) as i32).contains(&row) { row as u32 } else { NONE }
}

pub fn press(list: u32, is_double: bool) {
    let row = hot_row(list);
    if row != NONE {
        select(list, row);
        if is_double {
            tell(ENTERED, list, row);
        }
    }
}

/// Chooses a row for the user.
fn select(list: u32, row: u32) {
    if get(W_SELECTED, list) != row {
        set(W_SELECTED, list, row);
        tell(CHOSEN, list, row);
    }
    store(D_REVEAL, list);
    store(D_CHANGED, 1);
}

/// Returns whether the key was one of a list's.
pub fn key(list: u32, key: u32) -> bool {
    lines::know(list);
    let count = rows(list) as i32;
    let selected = get(W_SELECTED, list);
    let at = if selected < count as u32 { selected as i32 } else { -1 };
    let page = (((getf(W_H, list) - scroll::view_top(list)) / row_height(list)) as i32 - 1).max(1);
    let target = match key {
        UP if at < 0 => count - 1,
        UP => at - 1,
        DOWN => at + 1,
        HOME => 0,
        END => count - 1,
        PAGE_UP => at - page,
        PAGE_DOWN => at + page,
        ENTER if at >= 0 => {
            tell(ENTERED, list, selected);
            return true;
        }
        _ => return false,
    };
    if count > 0 {
        select(list, target.clamp(0, count - 1) as u32);
    }
    true
}

// --- Columns ---------------------------------------------------------------------------------------------------------------

/// A bit of a column's greatest width: not all its cells are numbers.
const NOT_NUMBERS: u32 = 1 << 31;

fn column(table: u32, number: u32) -> u32 {
    COLUMNS + (table * MAX_COLUMNS + number) * 4
}

/// The characters of a cell. The cells of a row follow each other: `from` is behind the tabulator of the one before.
pub fn cell(text: &Reader, from: u32, end: u32) -> u32 {
    let mut to = from;
    while to < end && text.at(to) != TAB {
        to += 1;
    }
    to
}

/// Finds the widths of a table's columns: all rows at once, for one column after the other.
pub fn measure_columns(team: &Team, table: u32) {
    let text = Reader::of(table);
    let (_, header) = lines::range(table, 0);
    let mut count = 1;
    (0..header).for_each(|i| count += (text.at(i) == TAB) as u32);
    let count = count.min(MAX_COLUMNS);
    let mut number = 0;
    while number < count {
        let all = |a: u32, b: u32| (a & !NOT_NUMBERS).max(b & !NOT_NUMBERS) | (a | b) & NOT_NUMBERS;
        let most = team.reduce_over(get(T_LINES, table), |line| cell_width(table, &text, line, number), all);
        if team.leads() {
            store(column(table, number), most);
        }
        number += 1;
    }
    team.meet();
    if team.leads() {
        set(T_COLUMNS, table, count);
    }
    team.meet();
}

fn cell_width(table: u32, text: &Reader, line: u32, number: u32) -> u32 {
    let (mut from, end) = lines::range(table, line);
    let mut to = cell(text, from, end);
    let mut skipped = 0;
    while skipped < number {
        if to >= end {
            return 0;
        }
        from = to + 1;
        to = cell(text, from, end);
        skipped += 1;
    }
    let (mut width, mut digits, mut others, mut i) = (0, 0, 0, from);
    while i < to {
        let code = text.at(i);
        width += font::advance(code);
        digits += (48..58).contains(&code) as u32;
        others += !is_numeric(code) as u32;
        i += 1;
    }
    let is_text = line != 0 && to > from && (digits == 0 || others > 2);
    width | if is_text { NOT_NUMBERS } else { 0 }
}

/// Characters of numbers; two others, of a unit, may come with them.
fn is_numeric(code: u32) -> bool {
    (48..58).contains(&code) || matches!(u8::try_from(code), Ok(b' ' | b'.' | b',' | b'+' | b'-' | b'%' | b':'))
}

/// The columns of a table: their widths, and which have numbers.
pub struct Columns {
    table: u32,
    pub count: u32,
    /// What the first column has beside its own width, and the greatest width of a column.
    rest: f32,
    most: f32,
}

impl Columns {
    /// Every column is as wide as its widest cell, and the first has what is left. If there is too little, the widest give.
    pub fn of(table: u32) -> Self {
        let count = get(T_COLUMNS, table);
        let room = (getf(W_W, table) - INSET - BAR_ZONE).max(0.0);
        let mut it = Self { table, count, rest: 0.0, most: f32::INFINITY };
        let sum = it.sum_within(f32::INFINITY).0;
        if sum <= room {
            it.rest = room - sum;
            return it;
        }
        // Columns that are narrower than their share leave more to the others, some of which may be narrower than that.
        let (mut narrow, mut steps) = (0, 0);
        it.most = room / count as f32;
        while steps < count {
            let (sum, within) = it.sum_within(it.most);
            if within == narrow || within == count {
                break;
            }
            narrow = within;
            it.most = (room - sum) / (count - within) as f32;
            steps += 1;
        }
        it
    }

    /// The sum of the widths that are at most this, and how many there are.
    fn sum_within(&self, most: f32) -> (f32, u32) {
        let (mut sum, mut count, mut number) = (0.0, 0, 0);
        while number < self.count {
            let width = self.natural(number);
            if width <= most {
                sum += width;
                count += 1;
            }
            number += 1;
        }
        (sum, count)
    }

    fn natural(&self, number: u32) -> f32 {
        let units = load(column(self.table, number)) & !NOT_NUMBERS;
        units as f32 * getf(W_FONT, self.table) / font::EM + 2.0 * CELL_PAD
    }

    pub fn width(&self, number: u32) -> f32 {
        self.natural(number).min(self.most) + if number == 0 { self.rest } else { 0.0 }
    }

    pub fn has_numbers(&self, number: u32) -> bool {
        number != 0 && load(column(self.table, number)) & NOT_NUMBERS == 0
    }
}
