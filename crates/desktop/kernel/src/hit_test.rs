//! Hit test: what is under the pointer, for each input that needs to know. All widgets are looked at in parallel, as the user saw them
//! in the last frame; the frontmost is found by a reduction.

use crate::event::*;
use crate::memory::*;
use gpu_run_kernel::gpu::{load, store};
use gpu_run_kernel::input::get as event;
use gpu_run_kernel::team::Team;

pub fn hit_test(team: &Team) {
    let (inputs, used, scale) = (load(S_INPUTS), load(D_USED), load(D_SCALE) as f32);
    let mut i = 0;
    // The wheel turns where the pointer was before.
    let mut pointer = [D_POINTER_X, D_POINTER_Y].map(|word| load(word) as i32 as f32 / 256.0 * scale / 256.0);
    while i < inputs {
        let it = event(load(INPUTS + i * 8));
        let is_pointer = matches!(it.kind, MOVE | PRESS | RELEASE);
        if is_pointer || matches!(it.kind, WHEEL | TOUCH) {
            let mut place = [it.a as i32 as f32 / 256.0, it.b as i32 as f32 / 256.0];
            if is_pointer {
                pointer = place;
            } else if it.kind == WHEEL {
                place = pointer;
            }
            let [x, y] = place;
            let order =
                team.reduce_over(used, |w| if is_at(w, x, y, scale / 256.0) { get(W_ORDER, w) } else { 0 }, u32::max);
            let found =
                team.reduce_over(used, |w| if order != 0 && get(W_ORDER, w) == order { w + 1 } else { 0 }, u32::max);
            if team.leads() {
                store(INPUTS + i * 8 + 4, found.wrapping_sub(1));
            }
        }
        i += 1;
    }
    team.meet();
}

/// Whether a widget shows at this pixel.
fn is_at(widget: u32, x: f32, y: f32, scale: f32) -> bool {
    if get(W_KIND, widget) == 0 || get(W_ORDER, widget) == 0 {
        return false;
    }
    let (from, to) = (get(W_CLIP_FROM, widget), get(W_CLIP_TO, widget));
    let inside = |at: f32, from: f32, size: f32| at >= from * scale && at < (from + size) * scale;
    let clipped = |at: f32, from: u32, to: u32| at >= (from & 0xFFFF) as f32 && at < (to & 0xFFFF) as f32;
    inside(x, getf(W_AT_X, widget), getf(W_W, widget))
        && inside(y, getf(W_AT_Y, widget), getf(W_H, widget))
        && clipped(x, from, to)
        && clipped(y, from >> 16, to >> 16)
}
