//! Frames: what was drawn step by step is what would be drawn at once, and every team draws the same.

mod support;

use fastrand::Rng;
use gpu_run_desktop_kernel::event::{self as e, keys, kinds, looks, modifiers, properties as p};
use gpu_run_desktop_kernel::memory::*;
use gpu_run_kernel::event::Event;
use gpu_run_kernel::gpu::store;
use support::Desk;

const WIDTH: u32 = 300;
const HEIGHT: u32 = 220;

/// Does something that a user or an owner could do.
fn step(desk: &mut Desk, random: &mut Rng) {
    let widget = random.u32(0..30);
    let (x, y) = (random.f32() * WIDTH as f32, random.f32() * HEIGHT as f32);
    match random.u32(..40) {
        0 => desk.create(widget, kinds::WINDOW, 0),
        1..=3 => desk.create(widget, random.u32(2..=kinds::LAST), random.u32(0..30)),
        4 => desk.destroy(widget),
        5 | 6 => desk.text(widget, &"The quick brown fox jumps"[..random.usize(..25)]),
        7 | 8 => desk.set(widget, random.u32(..=p::LAST_STYLE), random.u32(..200) as f32),
        9 => desk.set(widget, p::VALUE, random.f32()),
        10 => desk.set_word(widget, p::LOOK, random.u32(..=looks::TITLE)),
        11 => desk.set(widget, p::FONT, 8.0 + random.f32() * 20.0),
        12 => desk.set_word(widget, p::STYLE, random.u32(..) & !(1 << e::style::HIDDEN)),
        13 => desk.set_word(widget, p::DISABLED, random.u32(..2)),
        14 => desk.post(Event { kind: e::THEME, a: random.u32(..2), ..Event::default() }),
        15 => {
            let (less, scale) = (random.u32(..40), [1.0, 1.0, 1.5, 2.0][random.usize(..4)]);
            desk.resize(WIDTH - less, HEIGHT - less, scale);
        }
        16..=18 => desk.pointer(e::MOVE, x, y),
        19 => desk.pointer(e::PRESS, x, y),
        20 => desk.pointer(e::RELEASE, x, y),
        21 | 22 => {
            let with = [0, modifiers::SHIFT, modifiers::CONTROL, modifiers::ALT][random.usize(..4)];
            desk.post(Event { kind: e::KEY, key: random.u32(1..=keys::F4), a: with, ..Event::default() });
        }
        23 => desk.post(Event { kind: e::TYPE, key: random.u32(32..300), ..Event::default() }),
        24 => desk.text(0, ["", "Files\nPlot", "Files\n-\nA longer name of an app"][random.usize(..3)]),
        25 => desk.text(widget, ["One\nTwo\n-\nThree", "A\nB"][random.usize(..2)]),
        26 => desk.set_word(widget, p::SELECTED, random.u32(..4)),
        27 => desk.set_word(widget, [p::OPEN, p::MINIMISED][random.usize(..2)], random.u32(..2)),
        28 => desk.set_word(widget, p::PIXEL_SIZE, random.u32(..40) | random.u32(..30) << 16),
        29 | 30 => pixels(desk, random, widget),
        31 => (0..random.u32(..20)).for_each(|_| {
            let (flags, value) = (random.u16(..5), random.f32() * 70.0);
            desk.post(Event { kind: e::POINT, flags, key: widget, a: value.to_bits(), ..Event::default() });
        }),
        32 => desk.set_word(widget, p::ICON, random.u32(..20)),
        34..=39 => step_in_lines(desk, random, widget),
        _ => match random.u32(..3) {
            0 => desk.post(Event { kind: e::ACCENT, a: random.u32(..1 << 24), ..Event::default() }),
            1 => desk.post(Event { kind: e::KEY, key: keys::APPS, ..Event::default() }),
            _ => desk.set(widget, p::GREATEST, random.f32() * 50.0),
        },
    }
}

/// Sets some pixels of a canvas, many of them more than once.
fn pixels(desk: &mut Desk, random: &mut Rng, widget: u32) {
    for _ in 0..random.u32(..40) {
        let (runs, a) = (random.bool(), random.u32(..300));
        let flags = if runs { e::PIXELS_RUN } else { random.u16(1..=4) };
        let [b, id, wait] = [random.u32(..), if runs { random.u32(1..100) } else { random.u32(..) }, random.u32(..)];
        desk.post(Event { kind: e::PIXELS, flags, key: widget, a, b, id, wait });
    }
}

/// The same, with what scrolls and has lines.
fn step_in_lines(desk: &mut Desk, random: &mut Rng, widget: u32) {
    // The numbers of the first ones are those of their kinds.
    let widget = if random.bool() { random.u32(kinds::AREA..=kinds::SCROLL) } else { widget };
    let at = |random: &mut Rng, size: u32| random.u32(..size * 256);
    match random.u32(..10) {
        0 | 1 => {
            let texts =
                ["One\ttwo\nA\t1\nB\t20\nC\t3", "A line that is broken\nsomewhere ", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"];
            desk.text(widget, texts[random.usize(..3)]);
        }
        2 | 3 => {
            let turned = random.i32(-60..60) * 256;
            desk.post(Event { kind: e::WHEEL, b: turned as u32, ..Event::default() });
        }
        4 => desk.set_word(widget, p::SELECTED, random.u32(..6)),
        5 => desk.set(widget, p::SCROLLED, random.u32(..100) as f32),
        6 => {
            let (key, with) = (random.u32(keys::COPY..=keys::PAGE_DOWN), [0, modifiers::SHIFT][random.usize(..2)]);
            desk.post(Event { kind: e::KEY, key, a: with, ..Event::default() });
        }
        7 => desk.set_word(widget, p::READ_ONLY, random.u32(..2)),
        8 => desk.post(Event { kind: e::PASTE, flags: 4, a: 0x000A_0041, b: 0x0042_0020, ..Event::default() }),
        _ => {
            let (a, b) = (at(random, WIDTH), at(random, HEIGHT));
            desk.post(Event { kind: e::TOUCH, flags: random.u16(..4), a, b, ..Event::default() });
        }
    }
}

fn begin(desk: &mut Desk) {
    desk.resize(WIDTH, HEIGHT, 1.0);
    desk.create(1, kinds::WINDOW, 0);
    desk.set(1, p::LEFT, 20.0);
    desk.set(1, p::TOP, 10.0);
    for (i, kind) in (kinds::PANEL..=kinds::LAST).enumerate() {
        desk.create(2 + i as u32, kind, 1);
        desk.text(2 + i as u32, "Fox");
    }
    // The kinds that have pixels have some, and the button a menu and a tooltip.
    [kinds::CANVAS, kinds::IMAGE]
        .iter()
        .for_each(|kind| desk.set_word(2 + kind - kinds::PANEL, p::PIXEL_SIZE, 24 | 16 << 16));
    for (widget, kind, parent) in [(27, kinds::MENU, 4), (28, kinds::TOOLTIP, 4), (29, kinds::WINDOW, 0)] {
        desk.create(widget, kind, parent);
        desk.text(widget, "Cut\nCopy");
    }
    desk.set(29, p::LEFT, 200.0);
    desk.tick();
}

fn differing(a: &Desk, b: &Desk) -> Option<usize> {
    let (a, b) = (a.pixels(), b.pixels());
    assert_eq!(a.len(), b.len());
    a.iter().zip(&b).position(|(a, b)| a != b)
}

/// Makes the desktop forget everything that it could make anew: what it drew, what it measured, and where it placed things.
fn forget(desk: &Desk) {
    desk.world.look(|| {
        store(S_KNOWN, 0);
        (0..MAX_TILES * 2).for_each(|word| store(TILES + word * 4, 0));
        (0..WIDTH * HEIGHT).for_each(|pixel| store(PIXELS + pixel * 4, 0));
        for widget in (0..WIDGETS).filter(|widget| get(W_KIND, *widget) != 0) {
            [T_KEPT, T_LINES, T_COLUMNS].iter().for_each(|field| set(*field, widget, 0));
            mark(widget, F_DIRTY);
        }
    });
}

#[test]
fn what_was_drawn_in_steps_is_what_is_drawn_at_once() {
    let steps = if std::env::var_os("GPU_RUN_TEST_ALL").is_some() { 10_000 } else { 150 };
    let mut random = Rng::with_seed(7);
    let mut desk = Desk::boot();
    begin(&mut desk);
    let mut changed = 0;
    for number in 0..steps {
        let drawn = desk.word(S_TILES);
        (0..random.u32(2..9)).for_each(|_| step(&mut desk, &mut random));
        desk.settle();
        changed += (desk.word(S_TILES) != drawn) as u32;
        let (in_steps, width) = (desk.pixels(), desk.size().0 as usize);
        forget(&desk);
        desk.tick();
        let at = in_steps.iter().zip(desk.pixels()).position(|(a, b)| *a != b);
        assert_eq!(at.map(|at| (at % width, at / width)), None, "step {number}: a pixel differs");
    }
    assert!(changed > steps / 3, "{changed} of {steps} steps drew something");
}

#[test]
fn a_resumed_desktop_has_the_same_pixels_and_the_same_state() {
    let mut random = Rng::with_seed(5);
    let mut desk = Desk::boot();
    begin(&mut desk);
    for number in 0..15 {
        (0..4).for_each(|_| step(&mut desk, &mut random));
        desk.tick();
        let mut resumed = desk.resumed();
        resumed.tick();
        desk.tick();
        assert_eq!(differing(&desk, &resumed), None, "step {number}");
        assert!(desk.state() == resumed.state(), "step {number}: the states differ");
    }
}

#[test]
fn every_team_draws_the_same() {
    let run = |groups: u32, threads: u32| {
        let mut random = Rng::with_seed(3);
        let mut desk = Desk::of(groups, threads);
        begin(&mut desk);
        for _ in 0..12 {
            (0..6).for_each(|_| step(&mut desk, &mut random));
            desk.tick();
        }
        desk
    };
    let first = run(1, 32);
    for (groups, threads) in [(1, 64), (2, 64), (4, 128)] {
        let other = run(groups, threads);
        assert_eq!(differing(&first, &other), None, "{groups} workgroups of {threads} threads");
        assert!(first.state() == other.state(), "{groups} workgroups of {threads} threads: the states differ");
    }
}

#[test]
fn nothing_is_drawn_when_nothing_changed() {
    let mut desk = Desk::boot();
    begin(&mut desk);
    desk.settle();
    desk.tick();
    let (frames, tiles) = (desk.word(S_FRAMES), desk.word(S_TILES));
    (0..5).for_each(|_| desk.tick());
    assert_eq!((desk.word(S_FRAMES), desk.word(S_TILES)), (frames, tiles));
    // A text that changes draws its own tiles only.
    desk.text(4, "Ox");
    desk.tick();
    let drawn = desk.word(S_TILES) - tiles;
    assert!((1..60).contains(&drawn), "{drawn} tiles");
}

#[test]
fn closed_windows_leave_nothing_behind() {
    let mut random = Rng::with_seed(11);
    let mut desk = Desk::boot();
    begin(&mut desk);
    for _ in 0..60 {
        (0..10).for_each(|_| step(&mut desk, &mut random));
        desk.tick();
    }
    (1..30).for_each(|widget| desk.destroy(widget));
    desk.text(0, "");
    desk.tick();
    assert_eq!((desk.word(D_COUNT), desk.word(D_TEXT_COUNT)), (0, 0));
    assert_eq!([D_PIXEL_COUNT, D_PLOTS, D_PLOTS_2].map(|word| desk.word(word)), [0, 0, 0]);
    assert_eq!([desk.of_widget(W_FIRST, 0), desk.word(D_WINDOWS), desk.word(D_PIXELS)], [NONE; 3]);
}

#[test]
fn transitions_go_by_time_and_not_by_frames() {
    let hot = |rate: u32| {
        let mut desk = Desk::boot();
        desk.post(Event { kind: e::RATE, a: rate, ..Event::default() });
        begin(&mut desk);
        let (x, y) = desk.middle(4);
        desk.pointer(e::MOVE, x, y);
        (0..rate / 20).for_each(|_| desk.tick());
        desk.number(W_HOT, 4)
    };
    let at_60 = hot(60);
    assert!((0.3..0.5).contains(&at_60), "{at_60}");
    for rate in [120, 240] {
        assert!((hot(rate) - at_60).abs() < 0.01);
    }
}
