//! Lines of texts: where each begins. They are found for all characters at once when a text changed; that an area breaks lines at
//! its width is found by one lane for each paragraph.
//!
//! The list of a text's lines is as long as its memory: line `i` begins at the character in word `i`.

use crate::event::kinds;
use crate::memory::*;
use crate::text::Reader;
use crate::{font, list};
use gpu_run_kernel::gpu::{load, store};
use gpu_run_kernel::team::Team;

const LINE_END: u32 = '\n' as u32;
const SPACE: u32 = ' ' as u32;

/// Whether kinds of this number have texts of lines.
pub fn has_lines(kind: u32) -> bool {
    matches!(kind, kinds::AREA | kinds::LIST | kinds::TABLE)
}

fn address(widget: u32, line: u32) -> u32 {
    TEXT_LINES + (get(W_TEXT, widget) * UNIT_TEXT + line) * 4
}

/// The first character of a line.
pub fn start(widget: u32, line: u32) -> u32 {
    if line == 0 { 0 } else { load(address(widget, line)) }
}

/// The characters of a line: the first, and the one behind its last, which is the line's end or begins the next line.
pub fn range(widget: u32, line: u32) -> (u32, u32) {
    let text = Reader::of(widget);
    let from = start(widget, line);
    if line + 1 >= get(T_LINES, widget) {
        return (from, text.length);
    }
    let next = start(widget, line + 1);
    (from, if text.at(next - 1) == LINE_END { next - 1 } else { next })
}

/// The last place of a line at which the caret shows in this line.
pub fn last_place(widget: u32, line: u32) -> u32 {
    let last = line + 1 >= get(T_LINES, widget);
    if last { get(W_TEXT_LENGTH, widget) } else { start(widget, line + 1) - 1 }
}

/// The line that a character is in.
pub fn line_of(widget: u32, place: u32) -> u32 {
    let (mut low, mut high) = (0, get(T_LINES, widget).max(1));
    while high - low > 1 {
        let middle = (low + high) / 2;
        if start(widget, middle) <= place { low = middle } else { high = middle }
    }
    low
}

/// The width at which an area breaks lines, in units of its font; 0: lines are not broken.
fn width(widget: u32) -> u32 {
    if get(W_KIND, widget) != kinds::AREA {
        return 0;
    }
    let room = getf(W_W, widget) - getf(W_PAD_LEFT, widget) - getf(W_PAD_RIGHT, widget);
    ((room / getf(W_FONT, widget) * font::EM) as u32).max(1)
}

fn are_known(widget: u32) -> bool {
    get(T_LINES, widget) != 0 && get(T_WRAP, widget) == width(widget)
}

/// Calls `body` with the first character of each line of the paragraph that begins at `from`, and returns where the next one begins;
/// behind the last paragraph that is one more than the text has.
#[inline(always)]
fn each_line(text: &Reader, from: u32, width: u32, mut body: impl FnMut(u32)) -> u32 {
    body(from);
    let (mut line, mut sum) = (from, 0);
    // Behind the last space: the place, and the width up to it.
    let (mut word, mut before_word) = (from, 0);
    let mut i = from;
    while i < text.length {
        let code = text.at(i);
        if code == LINE_END {
            break;
        }
        let advance = font::advance(code);
        if width != 0 && sum + advance > width && code != SPACE && i > line {
            if word > line {
                (line, sum) = (word, sum - before_word);
            } else {
                (line, sum) = (i, 0);
            }
            (word, before_word) = (line, 0);
            body(line);
        }
        sum += advance;
        if code == SPACE {
            (word, before_word) = (i + 1, sum);
        }
        i += 1;
    }
    i + 1
}

/// Finds the lines of one text now, by one lane. Most are found by [`find`] before anybody asks.
pub fn know(widget: u32) {
    if are_known(widget) {
        return;
    }
    let (text, width) = (Reader::of(widget), width(widget));
    let (mut from, mut count) = (0, 0);
    while from <= text.length {
        from = each_line(&text, from, width, |line| {
            if count > 0 {
                store(address(widget, count), line);
            }
            count += 1;
        });
    }
    set(T_LINES, widget, count);
    set(T_WRAP, widget, width);
    set(T_COLUMNS, widget, 0);
}

/// Finds the lines of all visible texts that changed.
pub fn find(team: &Team) {
    let listed = load(S_LISTED);
    let asks = |widget: u32| {
        let kind = get(W_KIND, widget);
        has_lines(kind) && (!are_known(widget) || kind == kinds::TABLE && get(T_COLUMNS, widget) == 0)
    };
    let count = team.compact(listed, |i| asks(get(T_BY_LEVEL, i)), |i, rank| set(T_OFFSET, rank, get(T_BY_LEVEL, i)));
    let mut i = 0;
    while i < count {
        let widget = get(T_OFFSET, i);
        if !are_known(widget) {
            find_in(team, widget);
        }
        if get(W_KIND, widget) == kinds::TABLE {
            list::measure_columns(team, widget);
        }
        i += 1;
    }
}

fn find_in(team: &Team, widget: u32) {
    let (text, width) = (Reader::of(widget), width(widget));
    let begins = |i: u32| i == 0 || text.at(i - 1) == LINE_END;
    let put = |i: u32, rank: u32| {
        if rank != 0 {
            store(address(widget, rank), i);
        }
    };
    let count = if width == 0 {
        team.compact(text.length + 1, begins, put)
    } else {
        team.for_each(text.length + 1, |i| store(BEGINNINGS + i * 4, begins(i) as u32));
        team.for_each(text.length + 1, |i| {
            if begins(i) {
                each_line(&text, i, width, |line| store(BEGINNINGS + line * 4, 1));
            }
        });
        team.compact(text.length + 1, |i| load(BEGINNINGS + i * 4) != 0, put)
    };
    if team.leads() {
        set(T_LINES, widget, count);
        set(T_WRAP, widget, width);
        set(T_COLUMNS, widget, 0);
    }
    team.meet();
}
