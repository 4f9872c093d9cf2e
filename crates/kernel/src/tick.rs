//! The workers' loop: one tick after the other, as the supervisor commands.

use crate::gpu::*;
use crate::layout::*;
use crate::team::Team;
use crate::{frame, input, objects, timers, work};

/// What every worker knows about the current tick.
///
/// The order of the fields is chosen for the test that looks for loops of one lane in the compiled kernel
/// (`machine/tests/kernel.rs`). That test recognizes a thread's number in memory by its offset, so no field here may have
/// the offset that the thread's number has in [`Team`].
#[repr(C)]
pub struct Tick<'a> {
    pub number: u64,
    pub team: &'a Team,
    /// Events in the queue.
    pub events: u32,
    /// How many messages the host has taken from the ring of answers.
    pub taken: u32,
}

/// Writes the header of an empty state.
pub fn boot() {
    if group() == 0 && thread() == 0 {
        store(H_MAGIC, MAGIC);
        store(H_VERSION, VERSION);
        store64(H_DEADLINE, u64::MAX);
        let parts = [QUEUE, OBJECTS, TIMERS, WORK, PAGE_TABLE, BITMAPS, ARENA, STATE_END];
        let mut part = 0;
        while part < parts.len() as u32 {
            store(H_PARTS + part * 4, parts[part as usize]);
            part += 1;
        }
    }
}

/// Runs a worker: does the supervisor's commands until one of them is to leave. `tick` is what a worker does in a tick.
#[inline(always)]
pub fn work(workers: u32, tick: impl Fn(&Team)) {
    let team = Team::new(workers);
    let mut done = acquire(S_DONE);
    loop {
        let command = wait_for_command(done);
        if command == COMMAND_LEAVE {
            team.meet();
            return finish(&team, done);
        }
        tick(&team);
        finish(&team, done);
        done = done.wrapping_add(1);
    }
}

/// Waits for the next command and returns it. All lanes poll: they have nothing else to do.
fn wait_for_command(done: u32) -> u32 {
    while acquire(S_GO) == done {
        sleep(200);
    }
    fence();
    load(S_COMMAND)
}

/// Reports that the workers have done a command. The caller has waited for all of them ([`Team::meet`]).
fn finish(team: &Team, done: u32) {
    if team.leads() {
        fence();
        release(S_DONE, done.wrapping_add(1));
    }
}

/// One tick of the machine.
pub fn tick(team: &Team) {
    let mut tick =
        Tick { team, number: load64(S_COMMAND_NUMBER), events: load(S_COMMAND_STAGED), taken: load(S_COMMAND_TAKEN) };
    let mut clock = Phases::begin(team, PHASE_FRAME_END);
    input::input(&mut tick);
    clock.end(PHASE_INPUT);
    if tick.events != 0 {
        objects::objects(&tick);
        clock.end(PHASE_OBJECTS);
        timers::arm(&tick);
        clock.end(PHASE_TIMERS);
    }
    work::work(&tick);
    clock.end(PHASE_WORK);
    frame::end(&tick);
    clock.end(PHASE_FRAME_END);
}

/// Publishes which phase the workers are in, how long each phase took, and how many lanes had work in it.
pub struct Phases<'a> {
    team: &'a Team,
    since: u64,
    last: u32,
}

impl<'a> Phases<'a> {
    /// Begins with phase 1; the tick ends with the phase `last`.
    pub fn begin(team: &'a Team, last: u32) -> Self {
        if team.leads() {
            release(S_PHASE, 1);
        }
        Self { team, since: clock(), last }
    }

    pub fn end(&mut self, phase: u32) {
        self.team.tell_lanes(phase);
        if self.team.leads() {
            let now = clock();
            bump64(S_STATUS + (STATUS_TIME + phase) * 8, now - self.since);
            self.since = now;
            add(S_PROGRESS, 1);
            release(S_PHASE, if phase == self.last { PHASE_WAIT } else { phase + 1 });
        }
    }
}
