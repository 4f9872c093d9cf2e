//! Commands that many lanes do at the same time come to the same as one after the other.

mod support;

use fastrand::Rng;
use gpu_run_desktop_kernel::event::{self as e, kinds, looks, properties as p, style as s};
use gpu_run_desktop_kernel::memory::*;
use gpu_run_kernel::event::Event;
use support::Desk;
use support::events::{create, destroy, set, set_word, text};

/// Widget 1 is a window with a widget of each kind, whose numbers are those of their kinds.
fn begin(desk: &mut Desk) {
    desk.resize(300, 220, 1.0);
    desk.create(1, kinds::WINDOW, 0);
    (kinds::PANEL..=kinds::PROGRESS).for_each(|kind| desk.create(kind, kind, 1));
    (kinds::AREA..=kinds::TABS).for_each(|kind| desk.create(kind, kind, kinds::PANEL));
    desk.create(kinds::TOOLTIP, kinds::TOOLTIP, kinds::BUTTON);
    desk.set(kinds::LABEL, p::WIDTH, 90.0);
    desk.tick();
}

fn command(random: &mut Rng) -> Vec<Event> {
    let widget = random.u32(0..20);
    let one = match random.u32(..14) {
        0 | 1 => set(widget, random.u32(..=p::BOTTOM), random.u32(..150) as f32 - 5.0),
        2 => set(widget, p::VALUE, random.f32() * 1.2),
        3 => set_word(widget, p::LOOK, random.u32(..looks::TITLE + 3)),
        4 => set_word(widget, p::DISABLED, random.u32(..2)),
        5 => set(widget, p::FONT, random.u32(2..30) as f32),
        6 => set_word(widget, p::STYLE_PART | s::HIDDEN << 8 | 1 << 16, random.bool() as u32),
        7 => set_word(widget, [p::SELECTED, p::FOCUS, p::READ_ONLY, p::ICON][random.usize(..4)], random.u32(..3)),
        8 => Event { kind: e::POINT, key: widget, a: 1f32.to_bits(), ..Event::default() },
        9 => {
            // More of a text, in pieces of any length, some of which is too long.
            let flags = random.u16(..8);
            let [a, b, id] = [0, 1, 2].map(|i| (0x41 + i + random.u32(..10)) | 0x61 << 16);
            return vec![Event { kind: e::TEXT, flags, key: widget, a, b, id, ..Event::default() }; random.usize(1..4)];
        }
        _ => {
            let letters = (0..random.u32(..70)).map(|_| random.alphabetic()).collect::<String>();
            return text(widget, &letters);
        }
    };
    vec![one]
}

fn commands(random: &mut Rng) -> Vec<Event> {
    let mut all = Vec::new();
    while all.len() < 60 {
        all.extend(command(random));
    }
    all
}

#[test]
fn at_the_same_time_is_as_one_after_the_other() {
    let mut random = Rng::with_seed(12);
    let (mut at_once, mut in_steps) = (Desk::boot(), Desk::boot());
    [&mut at_once, &mut in_steps].into_iter().for_each(begin);
    for step in 0..40 {
        let events = commands(&mut random);
        at_once.post_all(events.iter().copied());
        at_once.settle();
        for event in events {
            in_steps.post(event);
            in_steps.tick();
        }
        in_steps.settle();
        assert_eq!(at_once.word(D_REFUSED), in_steps.word(D_REFUSED), "step {step}");
        for widget in 0..20 {
            assert_eq!(at_once.text_of(widget), in_steps.text_of(widget), "step {step}: the text of {widget}");
            let fields = [W_VALUE, W_LOOK, W_FONT, W_CARET, W_ANCHOR, W_SELECTED, W_ICON, W_ORDER];
            for field in (W_STYLE..W_CONTENT_WIDTH).step_by(4 * WIDGETS as usize).chain(fields) {
                let [one, other] = [&at_once, &in_steps].map(|desk| desk.of_widget(field, widget));
                assert_eq!(one, other, "step {step}: field {} of {widget}", (field - W_KIND) / (4 * WIDGETS));
            }
        }
        assert!(at_once.pixels() == in_steps.pixels(), "step {step}: the pixels");
    }
}

#[test]
fn every_team_does_the_same() {
    let run = |groups: u32, threads: u32| {
        let mut random = Rng::with_seed(13);
        let mut desk = Desk::of(groups, threads);
        begin(&mut desk);
        for step in 0..25 {
            desk.post_all(commands(&mut random));
            if step % 5 == 0 {
                desk.post_all([destroy(kinds::LABEL), create(kinds::LABEL, kinds::LABEL, 1)]);
                desk.post_all(commands(&mut random));
            }
            desk.tick();
        }
        desk
    };
    let first = run(1, 32);
    for (groups, threads) in [(1, 64), (2, 64), (4, 128)] {
        let other = run(groups, threads);
        assert!(first.state() == other.state(), "{groups} workgroups of {threads} threads: the states differ");
        assert!(first.pixels() == other.pixels(), "{groups} workgroups of {threads} threads: the pixels differ");
    }
}

#[test]
fn a_text_of_the_same_size_keeps_its_memory() {
    let mut desk = Desk::boot();
    begin(&mut desk);
    let labels = 100..140;
    labels.clone().for_each(|label| desk.create(label, kinds::LABEL, 1));
    let write = |desk: &mut Desk, letter: &str, length: usize| {
        labels.clone().for_each(|label| desk.text(label, &letter.repeat(length)));
        desk.tick();
        labels.clone().map(|label| desk.of_widget(W_TEXT, label)).collect::<Vec<u32>>()
    };
    let first = write(&mut desk, "a", 40);
    assert_eq!(write(&mut desk, "b", 50), first);
    assert!(labels.clone().all(|label| desk.text_of(label) == "b".repeat(50)));
    assert_eq!(desk.word(D_TEXT_COUNT), 40 * 4);
    // One that needs less takes less.
    write(&mut desk, "c", 12);
    assert_eq!(desk.word(D_TEXT_COUNT), 40);
    write(&mut desk, "", 0);
    assert_eq!(desk.word(D_TEXT_COUNT), 0);
}
