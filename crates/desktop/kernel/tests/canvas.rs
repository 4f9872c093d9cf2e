//! Canvases, images and plots: pixels, values, and what the pointer and the keys do there.

mod support;

use fastrand::Rng;
use gpu_run_desktop_kernel::event::{self as e, keys, kinds::*, modifiers, properties as p};
use gpu_run_desktop_kernel::memory::*;
use gpu_run_desktop_kernel::plot;
use gpu_run_kernel::event::Event;
use support::Desk;

const SHOWN: u32 = 2;

fn size(width: u32, height: u32) -> u32 {
    width | height << 16
}

/// A window with a canvas of so many pixels.
fn desk(groups: u32, threads: u32, pixels: u32) -> Desk {
    let mut desk = Desk::of(groups, threads);
    desk.resize(300, 240, 1.0);
    desk.create(1, WINDOW, 0);
    [(p::LEFT, 20.0), (p::TOP, 10.0)].iter().for_each(|(what, value)| desk.set(1, *what, *value));
    desk.create(SHOWN, CANVAS, 1);
    desk.set_word(SHOWN, p::STYLE, e::style::START << e::style::ALIGN_SELF);
    desk.set_word(SHOWN, p::PIXEL_SIZE, pixels);
    desk.tick();
    desk
}

/// Sets up to four pixels from number `first` on.
fn put(desk: &mut Desk, widget: u32, first: u32, colours: &[u32]) {
    let mut words = [0u128; 4];
    colours.iter().enumerate().for_each(|(i, colour)| words[i] = *colour as u128);
    let bits = words[0] | words[1] << 24 | words[2] << 48 | words[3] << 72;
    let [b, id, wait] = [0, 32, 64].map(|shift| (bits >> shift) as u32);
    desk.post(Event { kind: e::PIXELS, flags: colours.len() as u16, key: widget, a: first, b, id, wait });
}

fn run(desk: &mut Desk, widget: u32, first: u32, count: u32, colour: u32) {
    let flags = e::PIXELS_RUN;
    desk.post(Event { kind: e::PIXELS, flags, key: widget, a: first, b: colour, id: count, wait: 0 });
}

fn pixels(desk: &Desk, widget: u32) -> Vec<u32> {
    let (first, size) = (desk.of_widget(W_PIXELS, widget), desk.of_widget(W_PIXEL_SIZE, widget));
    (0..(size & 0xFFFF) * (size >> 16)).map(|i| desk.word(PIXEL_ARENA + (first + BANDS + i) * 4)).collect()
}

#[test]
fn pixels_are_shown_as_they_are() {
    let mut desk = desk(1, 32, size(20, 16));
    let colours: Vec<u32> = (0..320).map(|i| (i * 12_345) & 0xFF_FFFF).collect();
    colours.chunks(4).enumerate().for_each(|(i, four)| put(&mut desk, SHOWN, i as u32 * 4, four));
    desk.tick();
    assert_eq!(pixels(&desk, SHOWN), colours);
    let (left, top) = (desk.number(W_AT_X, SHOWN) as u32, desk.number(W_AT_Y, SHOWN) as u32);
    let check = |desk: &Desk, factor: u32| {
        let shown = desk.pixels();
        for (x, y) in (4..16 * factor).flat_map(|x| (4..12 * factor).map(move |y| (x, y))) {
            let found = shown[((top + y) * 300 + left + x) as usize] & 0xFF_FFFF;
            let given = colours[(y / factor * 20 + x / factor) as usize];
            let near = (0..3).all(|i| (found >> (8 * i) & 255).abs_diff(given >> (8 * i) & 255) <= 2);
            assert!(near, "{x} {y}: {found:06x}, not {given:06x}");
        }
    };
    check(&desk, 1);
    desk.set(SHOWN, p::WIDTH, 60.0);
    desk.set(SHOWN, p::HEIGHT, 48.0);
    desk.tick();
    check(&desk, 3);
}

#[test]
fn a_canvas_that_is_scaled_keeps_its_ratio_and_shows_means() {
    let mut desk = desk(1, 32, size(64, 64));
    (0..64).for_each(|row| run(&mut desk, SHOWN, row * 64, 64, if row % 2 == 0 { 0xFF_FFFF } else { 0 }));
    desk.set(SHOWN, p::WIDTH, 100.0);
    desk.set(SHOWN, p::HEIGHT, 16.0);
    desk.tick();
    let (left, top) = (desk.number(W_AT_X, SHOWN) as usize, desk.number(W_AT_Y, SHOWN) as usize);
    let shown = desk.pixels();
    // 16 by 16 in the middle of 100: half of the light everywhere, which is the value 188.
    for (x, y) in (46..54).flat_map(|x| (3..13).map(move |y| (x, y))) {
        assert!((shown[(top + y) * 300 + left + x] & 255).abs_diff(188) <= 2);
    }
    assert_eq!(shown[(top + 8) * 300 + left + 20], shown[(top + 8) * 300 + left - 3]);
}

#[test]
fn the_later_of_two_colours_counts_for_every_team() {
    let of = |groups: u32, threads: u32| {
        let (mut random, mut desk) = (Rng::with_seed(9), desk(groups, threads, size(30, 20)));
        desk.create(3, IMAGE, 1);
        let mut wanted = vec![0; 600];
        for tick in 0..4 {
            for _ in 0..300 {
                let (first, colour) = (random.u32(..600), random.u32(..1 << 24));
                let left = 600 - first;
                if random.bool() {
                    let count = random.u32(1..=left.min(100));
                    run(&mut desk, SHOWN, first, count, colour);
                    wanted[first as usize..(first + count) as usize].fill(colour);
                } else {
                    let colours: Vec<u32> = (0..random.u32(1..=left.min(4))).map(|i| colour ^ (i * 77)).collect();
                    put(&mut desk, SHOWN, first, &colours);
                    wanted[first as usize..][..colours.len()].copy_from_slice(&colours);
                }
            }
            // The same tick may give the place of pixels to others, and back.
            if tick == 2 {
                desk.set_word(SHOWN, p::PIXEL_SIZE, 0);
                desk.set_word(3, p::PIXEL_SIZE, size(10, 10));
                run(&mut desk, 3, 5, 50, 0x77);
                desk.set_word(SHOWN, p::PIXEL_SIZE, size(30, 20));
                wanted.fill(0);
            }
            desk.tick();
            assert!(pixels(&desk, SHOWN) == wanted, "tick {tick}");
        }
        desk
    };
    let first = of(1, 32);
    for (groups, threads) in [(1, 64), (3, 32), (2, 128)] {
        let other = of(groups, threads);
        assert!(first.state() == other.state() && first.pixels() == other.pixels());
    }
}

#[test]
fn what_is_not_a_widgets_pixel_is_refused() {
    let mut desk = desk(1, 32, size(10, 10));
    desk.create(3, PANEL, 1);
    desk.create(4, IMAGE, 1);
    run(&mut desk, SHOWN, 99, 2, 1);
    run(&mut desk, SHOWN, 100, 1, 1);
    run(&mut desk, SHOWN, 5, u32::MAX, 1);
    run(&mut desk, SHOWN, 5, 0, 1);
    run(&mut desk, 3, 0, 1, 1);
    run(&mut desk, 4, 0, 1, 1);
    put(&mut desk, 77, 0, &[1]);
    desk.set_word(3, p::PIXEL_SIZE, size(2, 2));
    desk.set_word(4, p::PIXEL_SIZE, size(2, 0));
    desk.set_word(4, p::PIXEL_SIZE, size(2048, 1027));
    desk.tick();
    assert_eq!(desk.word(D_REFUSED), 10);
    assert!(pixels(&desk, SHOWN).iter().all(|pixel| *pixel == 0));
}

#[test]
fn room_for_pixels_is_used_again() {
    let mut desk = desk(1, 64, size(1000, 1000));
    for widget in 3..6 {
        desk.create(widget, IMAGE, 1);
        desk.set_word(widget, p::PIXEL_SIZE, size(500, 400));
    }
    desk.tick();
    let used = 1_600_000 + 4 * BANDS;
    assert_eq!(desk.word(D_PIXEL_COUNT), used);
    // No room: the old pixels stay.
    run(&mut desk, SHOWN, 0, 1_000_000, 0x123456);
    desk.set_word(SHOWN, p::PIXEL_SIZE, size(1900, 1000));
    desk.tick();
    assert_eq!((desk.word(D_REFUSED), desk.word(D_PIXEL_COUNT)), (1, used));
    assert_eq!(desk.word(PIXEL_ARENA + (desk.of_widget(W_PIXELS, SHOWN) + BANDS + 999_999) * 4), 0x123456);
    desk.destroy(4);
    desk.create(6, CANVAS, 1);
    desk.set_word(6, p::PIXEL_SIZE, size(100, 100));
    desk.tick();
    assert_eq!(desk.of_widget(W_PIXELS, 6), 1_200_000 + 2 * BANDS);
    desk.destroy(1);
    desk.tick();
    assert_eq!((desk.word(D_PIXEL_COUNT), desk.word(D_PIXELS)), (0, NONE));
}

#[test]
fn a_canvas_takes_the_pointer_and_the_keys() {
    let mut desk = desk(1, 32, size(40, 20));
    desk.set(SHOWN, p::WIDTH, 80.0);
    desk.set(SHOWN, p::HEIGHT, 40.0);
    desk.tick();
    let (x, y) = (desk.number(W_AT_X, SHOWN), desk.number(W_AT_Y, SHOWN));
    for (kind, dx, dy) in [(e::MOVE, 5.0, 5.0), (e::PRESS, 5.0, 5.0), (e::MOVE, 21.0, 11.0), (e::RELEASE, 500.0, -3.0)]
    {
        desk.pointer(kind, x + dx, y + dy);
        desk.tick();
    }
    let place = |x: u32, y: u32| x | y << 16;
    let told = [place(2, 2), place(10, 5), place(39, 0), place(39, 0)].map(|at| (e::POINTED, SHOWN, at));
    assert_eq!(desk.told(), told);
    desk.key(keys::LEFT, 0);
    desk.key(keys::ESCAPE, 0);
    desk.type_text("w");
    let told = [keys::LEFT, keys::ESCAPE, 'w' as u32 | e::KEYED_CHARACTER].map(|key| (e::KEYED, SHOWN, key));
    assert_eq!(desk.told(), told);
    // Tab goes on, and keys with Alt are the window's.
    desk.key(keys::RIGHT, modifiers::ALT);
    desk.key(keys::TAB, 0);
    assert_eq!(desk.told(), []);
}

fn point(desk: &mut Desk, plot: u32, series: u16, value: f32) {
    desk.post(Event { kind: e::POINT, flags: series, key: plot, a: value.to_bits(), ..Event::default() });
}

#[test]
fn plots_keep_the_last_values_and_scale_by_them() {
    let mut desk = desk(1, 32, 0);
    desk.create(3, PLOT, 1);
    desk.tick();
    let greatest = |desk: &Desk| desk.world.look(|| plot::greatest(3));
    for (value, rounded) in [(0.03, 0.05), (0.7, 1.0), (1.0, 1.0), (3.0, 5.0), (42.0, 50.0), (180.0, 200.0)] {
        point(&mut desk, 3, 1, value);
        desk.tick();
        assert!((greatest(&desk) / rounded - 1.0).abs() < 1e-5, "{value}: {}", greatest(&desk));
    }
    // The large values are forgotten.
    (0..600).for_each(|i| point(&mut desk, 3, 1, (i % 8) as f32));
    desk.tick();
    assert_eq!(greatest(&desk), 10.0);
    desk.set(3, p::GREATEST, 30.0);
    desk.tick();
    assert_eq!(greatest(&desk), 30.0);
    point(&mut desk, 3, 4, 1.0);
    point(&mut desk, 3, 0, f32::NAN);
    point(&mut desk, SHOWN, 0, 1.0);
    desk.tick();
    assert_eq!(desk.word(D_REFUSED), 3);
    desk.destroy(3);
    desk.tick();
    assert_eq!([D_PLOTS, D_PLOTS_2].map(|word| desk.word(word)), [0, 0]);
}

#[test]
fn only_the_tiles_around_changed_pixels_are_drawn() {
    let mut desk = desk(1, 32, size(128, 128));
    desk.settle();
    for (first, most) in [(64 * 128 + 7, 4 * 5), (0, 4 * 5)] {
        let tiles = desk.word(S_TILES);
        put(&mut desk, SHOWN, first, &[0xFFFFFF]);
        desk.tick();
        let drawn = desk.word(S_TILES) - tiles;
        assert!((1..=most).contains(&drawn), "{drawn} tiles");
    }
}

#[test]
fn a_scaled_canvas_drawn_in_steps_is_the_one_drawn_at_once() {
    let mut random = Rng::with_seed(4);
    let mut desk = desk(1, 32, size(50, 90));
    for step in 0..40 {
        if step % 8 == 0 {
            desk.set_word(SHOWN, p::PIXEL_SIZE, size(random.u32(1..100), random.u32(1..200)));
            desk.set(SHOWN, p::WIDTH, random.f32() * 200.0);
            desk.set(SHOWN, p::HEIGHT, random.f32() * 170.0);
        }
        if step % 11 == 0 {
            // The same number and size, and as many changes as before.
            desk.destroy(SHOWN);
            desk.create(SHOWN, CANVAS, 1);
            desk.set_word(SHOWN, p::PIXEL_SIZE, size(60, 40));
        }
        for _ in 0..4 {
            run(&mut desk, SHOWN, random.u32(..2000), random.u32(1..9), random.u32(..1 << 24));
        }
        desk.settle();
        let mut fresh = desk.resumed();
        fresh.tick();
        assert!(desk.pixels() == fresh.pixels(), "step {step}");
    }
}

#[test]
fn an_accent_gives_its_tones_and_readable_text() {
    use gpu_run_desktop_kernel::theme::{Colour, colour};
    let mut desk = desk(1, 32, 0);
    let on = |desk: &mut Desk, accent: u32| {
        desk.post(Event { kind: e::ACCENT, a: accent, ..Event::default() });
        desk.tick();
        assert_eq!(desk.world.look(|| colour(Colour::Accent)) & 0xFF_FFFF, accent);
        desk.world.look(|| colour(Colour::OnAccent))
    };
    assert_eq!(on(&mut desk, 0x00_D0FF), 0xFF00_0000);
    assert_eq!(on(&mut desk, 0x80_2010), 0xFFFF_FFFF);
    assert_eq!(on(&mut desk, 0), 0xFFFF_FFFF);
    desk.post(Event { kind: e::ACCENT, a: 1 << 24, ..Event::default() });
    desk.tick();
    assert_eq!(desk.word(D_REFUSED), 1);
}

#[test]
fn a_button_with_an_icon_alone_is_square() {
    let mut desk = desk(1, 32, 0);
    desk.create(3, PANEL, 1);
    desk.set_word(3, p::STYLE, 0);
    for widget in 4..7 {
        desk.create(widget, BUTTON, 3);
    }
    desk.text(4, "Save");
    desk.text(5, "Save");
    [5, 6].iter().for_each(|widget| desk.set_word(*widget, p::ICON, e::icons::SAVE));
    desk.tick();
    assert_eq!(desk.number(W_W, 6), desk.number(W_H, 6));
    assert_eq!(desk.number(W_W, 5), desk.number(W_W, 4) + 24.0);
    desk.set_word(4, p::ICON, e::icons::LAST + 1);
    desk.tick();
    assert_eq!(desk.word(D_REFUSED), 1);
}
