//! Layout: lists the visible widgets if others are visible than before, measures texts that changed, and places what changed, level by level.

use crate::memory::*;
use crate::{bar, flex, lines, lists, scroll, text, tree, window};
use gpu_run_kernel::gpu::load;
use gpu_run_kernel::team::Team;

pub fn layout(team: &Team) {
    lists::by_level(team);
    let listed = load(S_LISTED);
    team.for_each(listed, |i| {
        let widget = get(T_BY_LEVEL, i);
        if has(widget, F_MEASURE) {
            measure(widget);
        }
    });
    if team.leads() {
        size_desktop();
        bar::place();
        window::fit();
    }
    team.meet();
    let levels = load(S_LEVELS);
    let mut level = 0;
    while level < levels {
        lists::each_of(team, level, |widget, _| {
            if has(widget, F_DIRTY | F_RESIZED) {
                unmark(widget, F_DIRTY | F_RESIZED);
                set(T_CONTENT, widget, 0);
                if flex::is_container(widget) {
                    flex::place(widget, flex::pair(W_W, W_H, widget), get(W_DEFINITE, widget));
                }
            }
        });
        level += 1;
    }
    lines::find(team);
    if team.leads() {
        scroll::reveal();
    }
    team.meet();
}

/// Measures a widget's text. If that could give the widget another size, it must be placed again.
fn measure(widget: u32) {
    let content = || [W_CONTENT_WIDTH, W_CONTENT_HEIGHT].map(|field| get(field, widget));
    let before = content();
    text::measure(widget);
    unmark(widget, F_MEASURE);
    let after = content();
    let asks_for = [flex::asks_for_content_width(widget), !flex::is_container(widget)];
    if (0..2).any(|side| asks_for[side] && before[side] != after[side]) {
        tree::soil(widget);
    }
}

/// The desktop is as large as the frame.
fn size_desktop() {
    let scale = load(D_SCALE) as f32 / 256.0;
    let (w, h) = (load(D_WIDTH) as f32 / scale, load(D_HEIGHT) as f32 / scale);
    if getf(W_W, 0) != w || getf(W_H, 0) != h {
        setf(W_W, 0, w);
        setf(W_H, 0, h);
        set(W_DEFINITE, 0, flex::BOTH);
        mark(0, F_RESIZED);
    }
}
