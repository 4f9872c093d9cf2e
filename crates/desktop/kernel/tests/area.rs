//! Text areas, and the clipboard.

#[path = "support/acts.rs"]
mod acts;
mod support;

use acts::*;
use fastrand::Rng;
use gpu_run_desktop_kernel::event::{self as e, keys, kinds, modifiers, properties as p};
use gpu_run_desktop_kernel::memory::*;
use gpu_run_desktop_kernel::{lines, scroll};
use gpu_run_kernel::event::Event;
use gpu_run_kernel::gpu::store;
use support::Desk;

const AREA: u32 = 2;
const LINE: f32 = 20.0;
const SHIFT: u32 = modifiers::SHIFT;
const CONTROL: u32 = modifiers::CONTROL;

/// An area with this text that has the focus, the caret at its beginning.
fn area(text: &str) -> Desk {
    let mut desk = with(kinds::AREA, text);
    desk.set_word(AREA, p::FOCUS, 1);
    desk.tick();
    desk
}

fn caret(desk: &Desk) -> u32 {
    desk.of_widget(W_CARET, AREA)
}

fn selected(desk: &Desk) -> String {
    let (a, b) = (caret(desk), desk.of_widget(W_ANCHOR, AREA));
    desk.text_of(AREA).chars().skip(a.min(b) as usize).take(a.abs_diff(b) as usize).collect()
}

/// The lines as they are broken.
fn broken(desk: &Desk) -> Vec<String> {
    let text: Vec<char> = desk.text_of(AREA).chars().collect();
    desk.world.look(|| {
        lines::know(AREA);
        let range = |line| lines::range(AREA, line);
        (0..get(T_LINES, AREA))
            .map(|line| text[range(line).0 as usize..range(line).1 as usize].iter().collect())
            .collect()
    })
}

const FOX: &str = "The quick brown fox jumps over the lazy dog and then it rests in the shade of a tree";

#[test]
fn typing_and_keys() {
    let mut desk = area("");
    desk.type_text("Hello");
    desk.key(keys::ENTER, 0);
    desk.type_text("wörld");
    assert_eq!((desk.text_of(AREA), caret(&desk)), ("Hello\nwörld".into(), 11));
    assert_eq!(desk.told(), [(e::CHANGED, AREA, 0); 3]);
    desk.key(keys::HOME, 0);
    assert_eq!(caret(&desk), 6);
    desk.key(keys::BACKSPACE, 0);
    assert_eq!(desk.text_of(AREA), "Hellowörld");
    desk.key(keys::ENTER, 0);
    desk.key(keys::UP, 0);
    assert_eq!(caret(&desk), 0);
    desk.key(keys::END, 0);
    assert_eq!(caret(&desk), 5);
    desk.key(keys::DELETE, 0);
    desk.key(keys::HOME, CONTROL);
    desk.key(keys::DELETE, 0);
    assert_eq!(desk.text_of(AREA), "ellowörld");
    desk.key(keys::END, CONTROL);
    desk.key(keys::SPACE, 0);
    assert_eq!(desk.text_of(AREA), "ellowörld ");
    // Words.
    desk.text(AREA, "one  two(three)\nfour");
    desk.key(keys::HOME, CONTROL);
    let stops: Vec<u32> = (0..7)
        .map(|_| {
            desk.key(keys::RIGHT, CONTROL);
            caret(&desk)
        })
        .collect();
    assert_eq!(stops, [5, 8, 9, 14, 16, 20, 20]);
    let stops: Vec<u32> = (0..7)
        .map(|_| {
            desk.key(keys::LEFT, CONTROL);
            caret(&desk)
        })
        .collect();
    assert_eq!(stops, [16, 14, 9, 8, 5, 0, 0]);
    desk.key(keys::DELETE, CONTROL);
    assert_eq!(desk.text_of(AREA), "two(three)\nfour");
    desk.key(keys::RIGHT, SHIFT | CONTROL);
    assert_eq!(selected(&desk), "two");
    desk.key(keys::SELECT_ALL, 0);
    desk.type_text("x");
    assert_eq!(desk.text_of(AREA), "x");
}

#[test]
fn lines_break_between_words_and_within_words_that_are_too_long() {
    let mut desk = area(FOX);
    let lines = broken(&desk);
    assert!(lines.len() > 2 && lines.iter().all(|line| line.len() < 50), "{lines:?}");
    assert!(lines[..lines.len() - 1].iter().all(|line| line.ends_with(' ')), "{lines:?}");
    desk.text(AREA, &"w".repeat(100));
    desk.tick();
    let lines = broken(&desk);
    assert!(lines.len() > 2 && lines[0].len() == lines[1].len(), "{lines:?}");
    desk.text(AREA, "a\n\nb\n");
    desk.tick();
    assert_eq!(broken(&desk), ["a", "", "b", ""]);
    // A wider window breaks them elsewhere.
    desk.text(AREA, FOX);
    desk.tick();
    let before = broken(&desk).len();
    desk.set(1, p::WIDTH, 200.0);
    desk.tick();
    assert!(broken(&desk).len() > before);
}

#[test]
fn up_and_down_keep_their_column() {
    let mut desk = area("a long first line\nshort\nanother long line\n");
    desk.key(keys::END, 0);
    desk.key(keys::LEFT, 0);
    let column = caret(&desk);
    desk.key(keys::DOWN, 0);
    assert_eq!(caret(&desk), 18 + 5);
    desk.key(keys::DOWN, 0);
    assert!((24 + column).abs_diff(caret(&desk)) < 3, "{}", caret(&desk));
    desk.key(keys::DOWN, SHIFT);
    assert_eq!(caret(&desk), 42);
    desk.key(keys::UP, 0);
    desk.key(keys::UP, 0);
    desk.key(keys::UP, 0);
    assert_eq!(caret(&desk), column);
    desk.key(keys::UP, 0);
    assert_eq!(caret(&desk), 0);
    (0..5).for_each(|_| desk.key(keys::DOWN, 0));
    assert_eq!(caret(&desk), 42);
    desk.key(keys::PAGE_UP, SHIFT);
    assert_eq!((caret(&desk), selected(&desk).len() as u32), (column, 42 - column));
}

#[test]
fn the_pointer_places_the_caret_and_selects() {
    let mut desk = area("first line\nsecond line\nthird line");
    let [x, y, ..] = edges(&desk, AREA);
    let at = |line: f32, x_in: f32| (x + 10.0 + x_in, y + 8.0 + (line + 0.5) * LINE);
    let (left, top) = at(1.0, 0.0);
    desk.click(left, top);
    assert_eq!(caret(&desk), 11);
    drag(&mut desk, at(0.0, -5.0), at(2.0, -5.0));
    assert_eq!(selected(&desk), "first line\nsecond line\n");
    drag(&mut desk, at(6.0, 200.0), at(0.0, -9.0));
    assert_eq!(selected(&desk), "first line\nsecond line\nthird line");
    (0..60).for_each(|_| desk.tick());
    let (left, top) = at(1.0, 20.0);
    desk.click(left, top);
    desk.click(left, top);
    assert_eq!(selected(&desk), "second");
}

#[test]
fn the_caret_stays_in_view() {
    let mut desk = area("");
    for i in 0..30 {
        desk.type_text(&format!("line {i}"));
        desk.key(keys::ENTER, 0);
    }
    let most = 31.0 * LINE + 16.0 - desk.number(W_H, AREA);
    assert_eq!(scrolled(&desk, AREA), most);
    let middle = desk.middle(AREA);
    wheel(&mut desk, middle, -200.0);
    assert_eq!(scrolled(&desk, AREA), most - 200.0);
    desk.type_text("x");
    assert_eq!(scrolled(&desk, AREA), most);
    desk.key(keys::HOME, CONTROL);
    assert_eq!(scrolled(&desk, AREA), 0.0);
    desk.key(keys::PAGE_DOWN, 0);
    desk.key(keys::PAGE_DOWN, 0);
    assert!(scrolled(&desk, AREA) > 0.0);
}

#[test]
fn a_terminal_shows_its_end_until_the_user_scrolls_back() {
    let mut desk = area("");
    desk.set_word(AREA, p::READ_ONLY, 1);
    desk.set(AREA, p::SCROLLED, 1e6);
    let write = |desk: &mut Desk, count: u32| {
        for _ in 0..count {
            desk.post(Event { kind: e::TEXT, flags: 2, key: AREA, a: 0x000A_0041, ..Event::default() });
        }
        desk.tick();
    };
    write(&mut desk, 20);
    let end = |lines: f32, desk: &Desk| lines * LINE + 16.0 - desk.number(W_H, AREA);
    assert_eq!(scrolled(&desk, AREA), end(21.0, &desk));
    write(&mut desk, 5);
    assert_eq!(scrolled(&desk, AREA), end(26.0, &desk));
    let middle = desk.middle(AREA);
    wheel(&mut desk, middle, -60.0);
    write(&mut desk, 5);
    assert_eq!(scrolled(&desk, AREA), end(26.0, &desk) - 60.0);
    wheel(&mut desk, middle, 900.0);
    write(&mut desk, 5);
    assert_eq!(scrolled(&desk, AREA), end(36.0, &desk));
    // Nothing is typed into it, but it is copied from.
    desk.told();
    desk.type_text("x");
    desk.key(keys::ENTER, 0);
    desk.key(keys::BACKSPACE, 0);
    paste(&mut desk, "paste");
    desk.key(keys::SELECT_ALL, 0);
    desk.key(keys::CUT, 0);
    assert_eq!(desk.told(), [(e::COPIED, AREA, 0)]);
    assert_eq!(desk.of_widget(W_TEXT_LENGTH, AREA), 70);
}

fn copied(desk: &Desk) -> String {
    (0..desk.word(S_COPIED)).map(|i| char::from_u32(desk.word(COPIED_TEXT + i * 4)).unwrap()).collect()
}

#[test]
fn copy_cut_and_paste() {
    let mut desk = area("one two three");
    desk.key(keys::COPY, 0);
    assert_eq!(desk.told(), []);
    desk.key(keys::RIGHT, CONTROL);
    desk.key(keys::RIGHT, CONTROL | SHIFT);
    desk.key(keys::COPY, 0);
    let told = desk.told_events();
    assert_eq!(
        (told.len(), told[0].kind, told[0].key, told[0].a, told[0].id, told[0].b),
        (1, e::COPIED, AREA, 4, 8, 1002)
    );
    assert_eq!(copied(&desk), "two ");
    desk.key(keys::CUT, 0);
    assert_eq!((copied(&desk), desk.text_of(AREA)), ("two ".into(), "one three".into()));
    assert_eq!(desk.told(), [(e::COPIED, AREA, 4), (e::CHANGED, AREA, 0)]);
    paste(&mut desk, "a longer text\r\nof two lines ");
    assert_eq!(desk.text_of(AREA), "one a longer text\nof two lines three");
    assert_eq!(desk.told(), [(e::CHANGED, AREA, 0)]);
    desk.key(keys::SELECT_ALL, 0);
    paste(&mut desk, "x");
    assert_eq!(desk.text_of(AREA), "x");
    // A field has one line.
    desk.create(3, kinds::FIELD, 1);
    desk.text(3, "some words here");
    desk.set_word(3, p::FOCUS, 1);
    desk.tick();
    desk.key(keys::HOME, 0);
    desk.key(keys::RIGHT, CONTROL);
    desk.key(keys::RIGHT, CONTROL | SHIFT);
    paste(&mut desk, "new\n\twords ");
    assert_eq!(desk.text_of(3), "some new  words here");
    let (x, y) = desk.middle(3);
    let left = edges(&desk, 3)[0];
    desk.click(left + 20.0, y);
    desk.click(left + 20.0, y);
    desk.key(keys::CUT, 0);
    assert_eq!((copied(&desk), desk.text_of(3)), ("some".into(), " new  words here".into()), "{x}");
}

/// A text that is edited in the plainest way.
#[derive(Default)]
struct Model {
    text: Vec<char>,
    caret: usize,
    anchor: usize,
}

impl Model {
    fn put(&mut self, text: &str) {
        let (from, to) = (self.caret.min(self.anchor), self.caret.max(self.anchor));
        self.text.splice(from..to, text.chars());
        self.go(from + text.chars().count(), false);
    }

    fn go(&mut self, to: usize, selects: bool) {
        self.caret = to;
        if !selects {
            self.anchor = to;
        }
    }

    fn erase(&mut self, back: bool) {
        if self.caret == self.anchor {
            self.anchor = if back { self.caret.saturating_sub(1) } else { (self.caret + 1).min(self.text.len()) };
        }
        self.put("");
    }
}

#[test]
fn random_edits_are_those_of_a_string() {
    let steps = if std::env::var_os("GPU_RUN_TEST_ALL").is_some() { 20_000 } else { 200 };
    let mut random = Rng::with_seed(1);
    let mut desk = area("");
    let mut model = Model::default();
    let key = |desk: &mut Desk, key, with| desk.post(Event { kind: e::KEY, key, a: with, ..Event::default() });
    for step in 0..steps {
        for _ in 0..random.usize(1..4) {
            let selects = random.u32(..3) == 0;
            let with = if selects { SHIFT } else { 0 };
            match random.u32(..12) {
                0..=3 => {
                    let code = [' ', 'a', 'm', 'W', 'é'][random.usize(..5)];
                    desk.post(Event { kind: e::TYPE, key: code as u32, ..Event::default() });
                    model.put(&code.to_string());
                }
                4 => {
                    key(&mut desk, keys::ENTER, 0);
                    model.put("\n");
                }
                5 => {
                    key(&mut desk, keys::BACKSPACE, 0);
                    model.erase(true);
                }
                6 => {
                    key(&mut desk, keys::DELETE, 0);
                    model.erase(false);
                }
                7 => {
                    desk.post(Event {
                        kind: e::PASTE,
                        flags: 6,
                        a: 0x0042_0041,
                        b: 0x0020_000A,
                        id: 0x0044_0043,
                        ..Event::default()
                    });
                    model.put("AB\n CD");
                }
                8 => {
                    key(&mut desk, keys::END, with | CONTROL);
                    model.go(model.text.len(), selects);
                }
                9 => {
                    key(&mut desk, keys::HOME, with | CONTROL);
                    model.go(0, selects);
                }
                _ => {
                    let right = random.bool();
                    for _ in 0..random.u32(..20) {
                        key(&mut desk, if right { keys::RIGHT } else { keys::LEFT }, with);
                        let (from, to) = (model.caret.min(model.anchor), model.caret.max(model.anchor));
                        let target = match (from != to && !selects, right) {
                            (true, true) => to,
                            (true, false) => from,
                            (false, true) => (model.caret + 1).min(model.text.len()),
                            (false, false) => model.caret.saturating_sub(1),
                        };
                        model.go(target, selects);
                    }
                }
            }
        }
        desk.tick();
        let text: String = model.text.iter().collect();
        assert_eq!(desk.text_of(AREA), text, "step {step}");
        let places = (caret(&desk) as usize, desk.of_widget(W_ANCHOR, AREA) as usize);
        assert_eq!(places, (model.caret, model.anchor), "step {step}");
        if step % 50 == 0 {
            assert_drawn_as_at_once(&desk, &format!("step {step}"));
        }
    }
}

#[test]
fn lines_found_by_all_threads_are_those_found_by_one() {
    let mut random = Rng::with_seed(4);
    for (groups, threads) in [(1, 32), (2, 64)] {
        let mut desk = area("");
        (desk.groups, desk.threads) = (groups, threads);
        for case in 0..20 {
            let text: String =
                (0..random.usize(..400)).map(|_| ['a', 'W', ' ', ' ', '\n', '\t', 'i'][random.usize(..7)]).collect();
            desk.text(AREA, &text);
            desk.tick();
            let by_all = broken(&desk);
            desk.world.look(|| store(T_LINES + AREA * 4, 0));
            assert_eq!(by_all, broken(&desk), "case {case}: {text:?}");
            assert_eq!(by_all.concat(), text.replace('\n', ""), "case {case}");
        }
    }
}

#[test]
fn a_long_text_is_edited_in_its_middle() {
    let text = format!("{FOX}\n").repeat(65_536 / FOX.len());
    let mut desk = area(&text);
    assert_eq!(desk.word(D_REFUSED), 0);
    for _ in 0..100 {
        desk.key(keys::PAGE_DOWN, 0);
    }
    let at = caret(&desk) as usize;
    desk.type_text("x");
    desk.key(keys::ENTER, 0);
    let mut expected = text.clone();
    expected.insert_str(at, "x\n");
    assert!(desk.text_of(AREA) == expected);
    let items = desk.word(S_ITEMS);
    assert!(items < 600, "{items} items");
    assert_drawn_as_at_once(&desk, "in the middle");
    // It fits twice and once more, and then no more.
    let used = desk.word(D_TEXT_COUNT);
    desk.text(AREA, &"y".repeat(MAX_TEXT as usize));
    desk.tick();
    assert_eq!((desk.of_widget(W_TEXT_LENGTH, AREA), desk.word(D_REFUSED)), (MAX_TEXT, 0));
    paste(&mut desk, "z");
    assert_eq!((desk.of_widget(W_TEXT_LENGTH, AREA), desk.word(D_REFUSED)), (MAX_TEXT, 1));
    desk.destroy(1);
    desk.tick();
    assert_eq!(desk.word(D_TEXT_COUNT), 0, "{used}");
}

#[test]
fn every_key_is_drawn_as_at_once_and_by_every_team() {
    let run = |groups: u32, threads: u32| {
        let mut random = Rng::with_seed(9);
        let mut desk = area(&format!("{FOX}\n{FOX}\n\n{FOX}"));
        (desk.groups, desk.threads) = (groups, threads);
        for _ in 0..12 {
            let with = [0, SHIFT, CONTROL, SHIFT | CONTROL][random.usize(..4)];
            let key = random.u32(keys::ENTER..=keys::PAGE_DOWN);
            if !matches!(key, keys::ESCAPE | keys::SELECT_ALL) {
                desk.key(key, with);
            }
            desk.type_text("o");
            let middle = desk.middle(AREA);
            wheel(&mut desk, middle, random.f32() * 60.0 - 30.0);
            if (groups, threads) == (1, 32) {
                desk.settle();
                assert_drawn_as_at_once(&desk, "a key");
            } else {
                desk.settle();
            }
        }
        desk
    };
    let first = run(1, 32);
    for (groups, threads) in [(1, 64), (2, 64)] {
        let other = run(groups, threads);
        assert!(first.pixels() == other.pixels() && first.state() == other.state(), "{groups} by {threads}");
    }
    assert!(first.world.look(|| scroll::bar(AREA).is_some()));
}
