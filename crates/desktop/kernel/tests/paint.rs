//! Widgets paint nothing where geometry takes them as out of reach.

mod support;

use fastrand::Rng;
use gpu_run_desktop_kernel::event::{kinds, looks, properties as p};
use gpu_run_desktop_kernel::item::Brush;
use gpu_run_desktop_kernel::memory::*;
use gpu_run_desktop_kernel::paint::{edges, paint, reach};
use gpu_run_kernel::gpu::store;
use support::Desk;

/// How many items a widget has between two heights in pixels.
fn painted(widget: u32, part: u32, scale: f32, from: f32, to: f32) -> u32 {
    let clip = [-1_000_000, from as i32, 1_000_000, to as i32];
    let mut brush = Brush { at: 0, count: 0, clip, scale };
    paint(widget, part, &mut brush);
    brush.count
}

#[test]
fn nothing_is_painted_out_of_reach() {
    const FAR: f32 = 1e6;
    let mut random = Rng::with_seed(8);
    let mut desk = Desk::boot();
    desk.create(1, kinds::WINDOW, 0);
    (kinds::PANEL..=kinds::LAST).for_each(|kind| desk.create(kind, kind, 1));
    desk.create(100, kinds::BUTTON, kinds::SCROLL);
    for scale in [0.25, 1.0, 1.5, 4.0] {
        desk.resize(900, 700, scale);
        for _ in 0..20 {
            for kind in kinds::WINDOW..=kinds::LAST {
                desk.set(kind, p::HEIGHT, [0.0, 3.0, 20.0, 150.0][random.usize(..4)]);
                desk.set(kind, p::MIN_HEIGHT, 0.0);
                desk.set(kind, p::SHRINK, 0.0);
                desk.set(kind, p::FONT, [4.0, 14.0, 200.0][random.usize(..3)]);
                desk.set(kind, p::VALUE, random.f32());
                desk.set_word(kind, p::LOOK, random.u32(..=looks::TITLE));
                desk.set_word(kind, p::ICON, random.u32(..3));
                desk.text(kind, ["", "ÄÖÜgjq|", "One\nTwo\nThree\nFour\nFive\nSix"][random.usize(..3)]);
            }
            desk.set_word(kinds::CANVAS, p::PIXEL_SIZE, 20 | 30 << 16);
            desk.tick();
            for widget in kinds::WINDOW..=kinds::LAST {
                desk.world.look(|| {
                    [(D_FOCUS, widget), (D_RING, 1), (D_HOVER, widget)].iter().for_each(|(at, is)| store(*at, *is));
                    [W_HOT, W_ON].iter().for_each(|field| setf(*field, widget, 1.0));
                    let [_, top, _, bottom] = edges(widget, scale);
                    let reach = reach(widget, scale);
                    for part in 0..9 {
                        let above = painted(widget, part, scale, -FAR, top - reach);
                        let below = painted(widget, part, scale, bottom + reach, FAR);
                        assert_eq!((above, below), (0, 0), "widget {widget} at {scale}");
                    }
                });
            }
        }
    }
}
