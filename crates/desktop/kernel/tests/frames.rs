//! Frames: what was drawn step by step is what would be drawn at once, and every team draws the same.

mod support;

use fastrand::Rng;
use gpu_run_desktop_kernel::event::{self as e, effects, kinds, properties as p};
use gpu_run_desktop_kernel::memory::*;
use gpu_run_kernel::event::Event;
use gpu_run_kernel::gpu::store;
use support::Desk;
use support::random::{self, AT_FIRST, Range, act, farewell};

const RANGE: Range = Range { widgets: AT_FIRST, width: 300, height: 220 };

fn begin(desk: &mut Desk) {
    desk.post_all(random::begin(RANGE));
    desk.tick();
}

fn step(desk: &mut Desk, random: &mut Rng) {
    desk.post_all(act(random, RANGE));
}

fn differing(a: &Desk, b: &Desk) -> Option<usize> {
    let (a, b) = (a.pixels(), b.pixels());
    assert_eq!(a.len(), b.len());
    a.iter().zip(&b).position(|(a, b)| a != b)
}

/// Makes the desktop forget everything that it could make anew: what it drew, what it measured, and where it placed things.
fn forget(desk: &Desk) {
    desk.world.look(|| {
        [S_KNOWN, S_LISTED, S_ORDERED].iter().for_each(|word| store(*word, 0));
        (0..MAX_TILES * 2).for_each(|word| store(TILES + word * 4, 0));
        (0..RANGE.width * RANGE.height).for_each(|pixel| store(PIXELS + pixel * 4, 0));
        for widget in (0..WIDGETS).filter(|widget| get(W_KIND, *widget) != 0) {
            [T_KEPT, T_LINES, T_COLUMNS, T_CONTENT].iter().for_each(|field| set(*field, widget, 0));
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
    desk.post_all(farewell(RANGE));
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

#[test]
fn what_is_left_out_comes_back_and_nothing_else_changes() {
    let mut desk = Desk::boot();
    begin(&mut desk);
    desk.settle();
    let all = desk.pixels();
    let mut with = |effects: u32| {
        desk.post(Event { kind: e::EFFECTS, a: effects, ..Event::default() });
        desk.settle();
        desk.pixels()
    };
    let without = with(effects::NO_SHADOWS);
    let window = |x: usize, y: usize| all[y * RANGE.width as usize + x];
    assert_ne!(all, without, "windows have shadows");
    assert_eq!(without[40 * RANGE.width as usize + 60], window(60, 40), "what is in a window stays");
    assert_eq!(with(effects::NONE), without);
    assert_eq!(with(effects::ALL), all);
    assert_eq!(with(effects::NONE + 1), all, "an unknown one changes nothing");
}

#[test]
fn without_transitions_a_button_is_hot_at_once() {
    let mut desk = Desk::boot();
    begin(&mut desk);
    desk.post(Event { kind: e::EFFECTS, a: effects::NONE, ..Event::default() });
    let (x, y) = desk.middle(4);
    desk.pointer(e::MOVE, x, y);
    desk.tick();
    desk.tick();
    assert_eq!(desk.number(W_HOT, 4), 1.0);
    assert_eq!(desk.word(D_MOVING) & !1, 0);
}

#[test]
fn users_and_displays_say_together_how_large_everything_is() {
    let mut desk = Desk::boot();
    let mut scale = |display: f32, user: u32| {
        desk.resize(RANGE.width, RANGE.height, display);
        desk.post(Event { kind: e::ZOOM, a: user, ..Event::default() });
        desk.tick();
        desk.word(D_SCALE)
    };
    assert_eq!(scale(1.0, 320), 320);
    assert_eq!(scale(2.0, 320), 640);
    assert_eq!(scale(4.0, 1024), 1024, "at most four times");
    assert_eq!(scale(0.5, 64), 64, "at least a quarter");
    assert_eq!(scale(1.0, 63), 64, "what is out of range is refused");
    assert_eq!(scale(1.0, 256), 256);
    assert_eq!(desk.word(D_REFUSED), 1);
    // A window that has the size of a user's units is larger in pixels.
    desk.create(1, kinds::WINDOW, 0);
    [(p::LEFT, 10.0), (p::TOP, 10.0), (p::WIDTH, 200.0), (p::HEIGHT, 180.0)]
        .iter()
        .for_each(|(what, value)| desk.set(1, *what, *value));
    desk.tick();
    // Whether the window is there, at a place to the right of its edge.
    let reaches = |desk: &Desk| desk.pixels()[120 * 300 + 225] == desk.pixels()[120 * 300 + 100];
    assert!(!reaches(&desk));
    desk.post(Event { kind: e::ZOOM, a: 288, ..Event::default() });
    desk.tick();
    assert!(reaches(&desk));
}
