//! Transitions: how far each active widget has come to being hovered, pressed or switched on. They go by the animation's clock, so they
//! look the same at any rate.

use crate::dispatch::{is_active, takes_input};
use crate::event::{effects, kinds};
use crate::memory::*;
use crate::theme::TRANSITION;
use crate::{bar, menu, tooltip, tree};
use gpu_run_kernel::gpu::{load, or, store};
use gpu_run_kernel::team::Team;

/// Microseconds from one frame to the next.
pub fn period() -> u32 {
    1_000_000 / load(D_RATE)
}

pub fn animate(team: &Team) {
    if team.leads() {
        store(S_MOVING, 0);
    }
    team.meet();
    let step = if load(D_EFFECTS) >= effects::NONE { 1.0 } else { period() as f32 / TRANSITION };
    let (hover, pressed) = (load(D_HOVER), load(D_PRESS));
    team.for_each(load(D_USED), |widget| {
        let (hot, down, on) = if tree::exists(widget) && takes_input(get(W_KIND, widget)) {
            let hot = is_active(widget) && widget == hover && (pressed == NONE || pressed == widget);
            (hot || menu::is_open_of(widget), hot && widget == pressed, is_on(widget))
        } else if let Some(states) = bar::states(widget) {
            states
        } else {
            return;
        };
        let moving = approach(W_HOT, widget, hot, step)
            | approach(W_DOWN, widget, down, step)
            | approach(W_ON, widget, on, step);
        if moving {
            or(S_MOVING, 1);
        }
    });
    if team.leads() {
        store(D_MOVING, load(S_MOVING) | tooltip::animate() as u32);
    }
    team.meet();
}

/// Whether a widget is switched on. The line of a tab bar always goes to its end.
fn is_on(widget: u32) -> bool {
    match get(W_KIND, widget) {
        kinds::CHECKBOX | kinds::RADIO => getf(W_VALUE, widget) >= 0.5,
        kind => kind == kinds::TABS,
    }
}

/// Moves a field towards 1 or 0; returns whether it is still on the way.
fn approach(field: u32, widget: u32, up: bool, step: f32) -> bool {
    let at = getf(field, widget);
    let next = if up { (at + step).min(1.0) } else { (at - step).max(0.0) };
    if next != at {
        setf(field, widget, next);
    }
    next != if up { 1.0 } else { 0.0 }
}
