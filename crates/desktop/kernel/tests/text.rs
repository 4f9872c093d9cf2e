//! Texts and their memory.

mod support;

use fastrand::Rng;
use gpu_run_desktop_kernel::event::kinds;
use gpu_run_desktop_kernel::memory::*;
use gpu_run_desktop_kernel::text;
use support::Desk;

const WIDGETS_WITH_TEXT: u32 = 20;

/// A random place of a text.
fn place(random: &mut Rng, length: usize) -> u32 {
    random.usize(..=length) as u32
}

#[test]
fn random_changes_of_many_texts_are_those_of_strings() {
    let mut random = Rng::with_seed(2);
    let mut desk = Desk::boot();
    desk.create(1, kinds::WINDOW, 0);
    (2..2 + WIDGETS_WITH_TEXT).for_each(|widget| desk.create(widget, kinds::LABEL, 1));
    desk.tick();
    let mut models = vec![Vec::<u32>::new(); WIDGETS_WITH_TEXT as usize];
    for step in 0..20_000 {
        let which = random.usize(..models.len());
        let (widget, model) = (2 + which as u32, &mut models[which]);
        desk.world.look(|| match random.u32(..8) {
            0 => {
                text::clear(widget);
                model.clear();
            }
            1 | 2 => {
                let (a, b) = (place(&mut random, model.len()), place(&mut random, model.len()));
                let (from, to) = (a.min(b), a.max(b));
                text::remove(widget, from, to);
                model.drain(from as usize..to as usize);
            }
            _ => {
                let at = place(&mut random, model.len());
                let codes: Vec<u32> = (0..random.u32(..40)).map(|_| random.u32(1..0x10000)).collect();
                assert_eq!(text::insert(widget, at, codes.iter().copied()), codes.len() as u32);
                model.splice(at as usize..at as usize, codes);
            }
        });
        let mut found = Vec::new();
        desk.world.look(|| text::each(widget, |_, code| found.push(code)));
        assert!(found == *model, "step {step}");
    }
    desk.destroy(1);
    desk.tick();
    assert_eq!(desk.word(D_TEXT_COUNT), 0);
    // All pieces have become the largest ones again.
    let free: Vec<u32> = (0..TEXT_ORDERS).map(|order| desk.word(TEXT_FREE + order * 4)).collect();
    assert!(free[..free.len() - 1].iter().all(|first| *first == 0) && free[free.len() - 1] != 0, "{free:?}");
}

#[test]
fn when_the_memory_is_full_texts_stay_as_they_are() {
    let mut desk = Desk::boot();
    desk.create(1, kinds::WINDOW, 0);
    (2..8).for_each(|widget| desk.create(widget, kinds::AREA, 1));
    desk.tick();
    let pushed: Vec<u32> =
        desk.world.look(|| (2..8).map(|widget| text::push(widget, (0..MAX_TEXT + 5).map(|i| i & 0xFF))).collect());
    assert_eq!(pushed[..3], [MAX_TEXT; 3]);
    // A text that grows needs its old memory meanwhile: the fourth finds no space for its second half.
    assert_eq!(pushed[3..], [MAX_TEXT / 2, MAX_TEXT / 4, MAX_TEXT / 8]);
    assert!(desk.word(D_TEXT_COUNT) <= TEXT_UNITS);
    desk.world.look(|| {
        text::clear(2);
        assert_eq!(text::push(7, (0..50_000).map(|i| i & 0xFF)), 50_000);
    });
    desk.destroy(1);
    desk.tick();
    assert_eq!(desk.word(D_TEXT_COUNT), 0);
}
