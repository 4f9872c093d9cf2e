//! Runs: commands for one widget that follow each other in a tick. Many lanes do a tick's commands, a lane a run: what most commands
//! change is their widget's alone, and it does not matter which widget is changed first. The leader does what is left, in the order of
//! events.

use crate::event::{CREATE, DESTROY, SET, TEXT, TEXT_BEGINS};
use crate::input::command;
use crate::memory::*;
use crate::{text, tree};
use gpu_run_kernel::event::Event;
use gpu_run_kernel::gpu::{WARP, add, load, store};
use gpu_run_kernel::input::get as event;
use gpu_run_kernel::team::Team;

/// Fewer events than this the leader does by itself.
const FEW: u32 = WARP;

/// Notes that nothing was done of an event yet. Called for all events, in any order.
pub fn expect(i: u32, it: &Event) {
    store(EVENTS_LEFT + i * 4, i);
    store(EVENTS_DONE + i * 4, 0);
    if is_command(it) && it.key < WIDGETS {
        set(T_RUNS, it.key, 0);
    }
}

/// Does the runs that lanes can do, and lists the events that are left for the leader; returns how many these are.
pub fn spread(team: &Team, events: u32) -> u32 {
    // A widget exists for all of the tick, or for nothing of it.
    let changes_tree = |i| matches!(event(i).kind, CREATE | DESTROY) as u32;
    if events < FEW || team.reduce_over(events, changes_tree, u32::max) != 0 {
        return events;
    }
    team.for_each(events, |i| {
        if begins_run(i) {
            add(T_RUNS + event(i).key * 4, 1);
        }
    });
    team.for_each(events, |i| {
        if begins_run(i) {
            try_run(i, events);
        }
    });
    team.compact(events, |i| load(EVENTS_DONE + i * 4) == 0, |i, rank| store(EVENTS_LEFT + rank * 4, i))
}

fn is_command(it: &Event) -> bool {
    matches!(it.kind, SET | TEXT)
}

fn begins_run(i: u32) -> bool {
    let it = event(i);
    is_command(&it) && it.key < WIDGETS && (i == 0 || !goes_on(i - 1, it.key))
}

/// Whether an event is a command for this widget.
fn goes_on(i: u32, widget: u32) -> bool {
    let it = event(i);
    is_command(&it) && it.key == widget
}

/// Does a run, if it is its widget's only one, and changes nothing but its widget.
fn try_run(first: u32, events: u32) {
    let widget = event(first).key;
    if widget == 0 || get(T_RUNS, widget) != 1 || !tree::exists(widget) {
        return;
    }
    let (mut end, mut length) = (first, get(W_TEXT_LENGTH, widget));
    while end < events && goes_on(end, widget) {
        let it = event(end);
        let is_own = match it.kind {
            SET => tree::is_own(it.a),
            _ => {
                let begins = it.flags & TEXT_BEGINS != 0;
                length = if begins { 0 } else { length } + text::count(it.flags);
                (!begins || text::is_kept(widget, coming(end, events))) && length < text::room(widget)
            }
        };
        if !is_own {
            return;
        }
        end += 1;
    }
    let mut refused = 0;
    (first..end).for_each(|i| {
        refused += !command(i, events, &event(i)) as u32;
        store(EVENTS_DONE + i * 4, 1);
    });
    if refused != 0 {
        add(D_REFUSED, refused);
    }
}

/// How many characters a text will have that an event begins anew, with those of the events behind it.
pub fn coming(first: u32, events: u32) -> u32 {
    let it = event(first);
    let (mut sum, mut i) = (text::count(it.flags), first + 1);
    while i < events {
        let next = event(i);
        if next.kind != TEXT || next.key != it.key || next.flags & TEXT_BEGINS != 0 {
            break;
        }
        sum += text::count(next.flags);
        i += 1;
    }
    sum
}
