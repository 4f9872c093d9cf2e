//! Lists and tables.

#[path = "support/acts.rs"]
mod acts;
mod support;

use acts::*;
use gpu_run_desktop_kernel::event::{self as e, keys, kinds, properties as p, touch as t};
use gpu_run_desktop_kernel::memory::*;
use support::Desk;

const LIST: u32 = 2;
const ROW: f32 = 28.0;

fn rows(count: u32) -> String {
    (0..count).map(|i| format!("Row {i}")).collect::<Vec<_>>().join("\n")
}

/// The middle of a row that shows.
fn row(desk: &Desk, number: u32) -> (f32, f32) {
    let [x, y, ..] = edges(desk, LIST);
    let header = if desk.of_widget(W_KIND, LIST) == kinds::TABLE { ROW } else { 0.0 };
    (x + 40.0, y + header + 4.0 + (number as f32 + 0.5) * ROW - scrolled(desk, LIST))
}

#[test]
fn rows_are_chosen_by_clicks_and_keys() {
    let mut desk = with(kinds::LIST, &rows(50));
    assert_eq!(desk.of_widget(W_SELECTED, LIST), NONE);
    let (x, y) = row(&desk, 2);
    desk.click(x, y);
    assert_eq!(desk.told(), [(e::CHOSEN, LIST, 2)]);
    (0..100).for_each(|_| desk.tick());
    desk.click(x, y);
    assert_eq!(desk.told(), []);
    for (key, to) in [
        (keys::DOWN, 3),
        (keys::UP, 2),
        (keys::END, 49),
        (keys::PAGE_UP, 44),
        (keys::PAGE_DOWN, 49),
        (keys::HOME, 0),
        (keys::PAGE_DOWN, 5),
    ] {
        desk.key(key, 0);
        assert_eq!(desk.told(), [(e::CHOSEN, LIST, to)], "key {key}");
        let [_, top, _, bottom] = edges(&desk, LIST);
        let (_, y) = row(&desk, to);
        assert!(y - ROW / 2.0 >= top && y + ROW / 2.0 <= bottom, "key {key}: row {to} shows");
    }
    desk.key(keys::HOME, 0);
    desk.told();
    desk.key(keys::UP, 0);
    assert_eq!(desk.told(), []);
    desk.key(keys::ENTER, 0);
    assert_eq!(desk.told(), [(e::ENTERED, LIST, 0)]);
}

#[test]
fn a_double_click_enters_a_row() {
    let mut desk = with(kinds::LIST, &rows(50));
    let (x, y) = row(&desk, 3);
    desk.click(x, y);
    desk.click(x, y);
    assert_eq!(desk.told(), [(e::CHOSEN, LIST, 3), (e::ENTERED, LIST, 3)]);
    // The third click begins anew, and so does one after a while.
    desk.click(x, y);
    (0..60).for_each(|_| desk.tick());
    desk.click(x, y);
    assert_eq!(desk.told(), []);
    (0..60).for_each(|_| desk.tick());
    touch(&mut desk, t::DOWN, (x, y));
    touch(&mut desk, t::UP, (x, y));
    touch(&mut desk, t::DOWN, (x, y));
    touch(&mut desk, t::UP, (x, y));
    assert_eq!(desk.told(), [(e::ENTERED, LIST, 3)]);
}

#[test]
fn the_owner_chooses_and_scrolls() {
    let mut desk = with(kinds::LIST, &rows(50));
    desk.set_word(LIST, p::SELECTED, 40);
    desk.tick();
    assert_eq!(desk.told(), []);
    assert!(scrolled(&desk, LIST) > 30.0 * ROW);
    desk.set(LIST, p::SCROLLED, 56.0);
    desk.tick();
    assert_eq!(scrolled(&desk, LIST), 56.0);
    desk.set(LIST, p::SCROLLED, -1.0);
    desk.set(LIST, p::SCROLLED, f32::NAN);
    desk.set_word(1, p::SELECTED, 1);
    let refused = desk.word(D_REFUSED);
    desk.tick();
    assert_eq!(desk.word(D_REFUSED), refused + 3);
}

#[test]
fn an_empty_last_line_is_no_row_and_no_row_is_nothing_to_choose() {
    let mut desk = with(kinds::LIST, "a\nb\n");
    let (x, y) = row(&desk, 0);
    desk.click(x, y);
    desk.key(keys::END, 0);
    assert_eq!(desk.told(), [(e::CHOSEN, LIST, 0), (e::CHOSEN, LIST, 1)]);
    let (x, y) = row(&desk, 2);
    desk.click(x, y);
    desk.text(LIST, "");
    desk.tick();
    (keys::ENTER..=keys::PAGE_DOWN).filter(|key| *key != keys::ESCAPE).for_each(|key| desk.key(key, 0));
    assert_eq!(desk.told(), []);
}

#[test]
fn a_table_keeps_its_header_and_counts_rows_below_it() {
    let text =
        format!("Name\tSize\n{}", (0..50).map(|i| format!("File {i}\t{}", i * i)).collect::<Vec<_>>().join("\n"));
    let mut desk = with(kinds::TABLE, &text);
    let [x, y, ..] = edges(&desk, LIST);
    let header = |desk: &Desk| -> Vec<u32> {
        let (pixels, (width, _)) = (desk.pixels(), desk.size());
        let rows = y as u32 + 2..(y + ROW) as u32 - 1;
        rows.flat_map(|row| pixels[(row * width + x as u32 + 4) as usize..][..200].to_vec()).collect()
    };
    let before = header(&desk);
    let middle = desk.middle(LIST);
    wheel(&mut desk, middle, 100.0);
    assert!(before == header(&desk), "the header moved");
    let (x, y) = row(&desk, 5);
    desk.click(x, y);
    desk.key(keys::END, 0);
    assert_eq!(desk.told(), [(e::CHOSEN, LIST, 5), (e::CHOSEN, LIST, 49)]);
    // The header is no row.
    let [x, y, ..] = edges(&desk, LIST);
    desk.click(x + 20.0, y + 10.0);
    assert_eq!(desk.told(), []);
    desk.key(keys::HOME, 0);
    assert_eq!(scrolled(&desk, LIST), 0.0);
}

#[test]
fn columns_are_as_wide_as_their_cells_and_numbers_are_known() {
    use gpu_run_desktop_kernel::list::Columns;
    let mut desk = with(kinds::TABLE, "Name\tKind\tSize\tAt\na\ttext\t12 kB\t09:30\nb\timage file\t1,200\t\nc");
    let widths = |desk: &Desk| {
        desk.world.look(|| {
            let columns = Columns::of(LIST);
            (0..columns.count).map(|i| (columns.width(i), columns.has_numbers(i))).collect::<Vec<_>>()
        })
    };
    desk.set(1, p::WIDTH, 400.0);
    desk.tick();
    let found = widths(&desk);
    assert_eq!(found.iter().map(|column| column.1).collect::<Vec<_>>(), [false, false, true, true]);
    let sum: f32 = found.iter().map(|column| column.0).sum();
    assert!((sum - (desk.number(W_W, LIST) - 19.0)).abs() < 0.01, "{sum}");
    assert!(found[1].0 > found[3].0 && found.iter().all(|column| column.0 > 25.0), "{found:?}");
    // In a narrow table the widest column gives, and they still fill it.
    desk.set(1, p::WIDTH, 280.0);
    desk.tick();
    let narrow = widths(&desk);
    let sum: f32 = narrow.iter().map(|column| column.0).sum();
    assert!((sum - (desk.number(W_W, LIST) - 19.0)).abs() < 0.01, "{sum}");
    assert!(narrow[3].0 == found[3].0 && narrow[1].0 < found[1].0, "{narrow:?}");
}

#[test]
fn ten_thousand_rows_have_few_items() {
    let mut desk = with(
        kinds::TABLE,
        &format!("Row\tNumber\n{}", (0..10_000).map(|i| format!("A row\t{i}\n")).collect::<String>()),
    );
    assert_eq!(desk.word(D_REFUSED), 0);
    let middle = desk.middle(LIST);
    wheel(&mut desk, middle, 140_000.0);
    assert_eq!(scrolled(&desk, LIST), 140_000.0);
    let items = desk.word(S_ITEMS);
    assert!(items < 200, "{items} items");
    let (x, y) = row(&desk, 5001);
    desk.click(x, y);
    assert_eq!(desk.told(), [(e::CHOSEN, LIST, 5001)]);
    assert_drawn_as_at_once(&desk, "in the middle");
    // Rows that are added leave the view where it is; beyond the end means the end.
    desk.set(LIST, p::SCROLLED, 1e9);
    desk.tick();
    let end = scrolled(&desk, LIST);
    desk.post(gpu_run_kernel::event::Event {
        kind: e::TEXT,
        flags: 2,
        key: LIST,
        a: 0x000A_0041,
        ..Default::default()
    });
    desk.tick();
    assert_eq!(scrolled(&desk, LIST), end + ROW);
    desk.destroy(1);
    desk.tick();
    assert_eq!(desk.word(D_TEXT_COUNT), 0);
}

#[test]
fn the_row_under_the_pointer_shows_and_follows_the_wheel() {
    let mut desk = with(kinds::LIST, &rows(50));
    let start = desk.pixels();
    let (x, y) = row(&desk, 2);
    desk.pointer(e::MOVE, x, y);
    desk.settle();
    let hot = desk.pixels();
    assert_ne!(start, hot);
    // Within the row, nothing is drawn.
    let frames = desk.word(S_FRAMES);
    desk.pointer(e::MOVE, x + 3.0, y + 2.0);
    desk.settle();
    assert_eq!(desk.word(S_FRAMES), frames);
    wheel(&mut desk, (x, y), ROW);
    desk.settle();
    assert_drawn_as_at_once(&desk, "after the wheel");
    desk.pointer(e::MOVE, 2.0, 2.0);
    wheel(&mut desk, (x, y), -ROW);
    desk.pointer(e::MOVE, 2.0, 2.0);
    desk.settle();
    assert!(start == desk.pixels());
}

#[test]
fn a_finger_scrolls_a_list_and_chooses() {
    let mut desk = with(kinds::LIST, &rows(50));
    let at = row(&desk, 4);
    swipe(&mut desk, at, (at.0, at.1 - 84.0));
    assert_eq!((scrolled(&desk, LIST), desk.told()), (84.0, vec![]));
    let at = row(&desk, 4);
    touch(&mut desk, t::DOWN, at);
    touch(&mut desk, t::UP, at);
    assert_eq!(desk.told(), [(e::CHOSEN, LIST, 4)]);
}
