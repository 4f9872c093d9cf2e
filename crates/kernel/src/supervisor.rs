//! The supervisor: one warp that watches the bus, the clock and the workers.
//!
//! Each round of its loop looks at the bus once. One look reads the control words and the next eight messages of the ring:
//! lane *l* reads word *l* mod 4 of message *l* / 4. The supervisor answers pings at once, and stages other events for the
//! next tick. When the workers are idle and the next tick is due, it commands that tick. Every millisecond it publishes a
//! heartbeat, with all counters, and one at once when it has done the last tick that it may do.

use crate::event;
use crate::gpu::*;
use crate::layout::*;
use crate::tagged::{LOW, lap_tag};

/// The control words ([`ControlWords`]), known to all lanes.
#[derive(Clone, Copy, Default)]
struct Control {
    stop: bool,
    leave: u32,
    limit: u64,
    period: u32,
    hold: u32,
    sleep: u32,
    time: u32,
    ticks: u32,
    pong_taken: u32,
    out_taken: u32,
    ledger_taken: u32,
    #[cfg(feature = "faults")]
    mute: u32,
    fresh: u32,
}

/// The supervisor's own state: the same in all lanes, except for `word`. Times are in nanoseconds of the device's clock.
struct Supervisor {
    control: Control,
    /// The control word that this lane read last.
    word: u64,
    /// The number of commands given.
    go: u32,
    /// The number of the next tick.
    tick: u64,
    in_head: u32,
    pong_head: u32,
    ledger_head: u32,
    /// The number of events staged for the next tick, and in which of the two copies.
    staged: u32,
    side: u32,
    /// When the next tick is due.
    due: u64,
    /// When this launch began.
    began: u64,
    /// The number of ticks commanded in this launch.
    ticks: u32,
    /// The number of this launch.
    launch: u32,
    iterations: u32,
    /// When the last heartbeat was published.
    beat: u64,
    /// The workers' progress count, and when it last changed.
    progress: u32,
    moved: u64,
    /// The number of the request that the machine holds for, or 0.
    held: u32,
    /// When the launch before this one left; at the end, when this launch left.
    left: u64,
    /// The tick that was next when the host asked this launch to leave; all ones if it has not asked.
    asked: u64,
    /// Whether this launch is the first of new code and has not begun a tick yet.
    arriving: bool,
    /// The limit at which this launch has told the host that it reached it; all ones: none.
    told: u64,
}

pub fn supervise() {
    let mut it = Supervisor::begin();
    loop {
        let now = same64(clock());
        // Loaded before the bus is read, so that both loads are under way at the same time.
        let done = acquire(S_DONE);
        // The lanes do not read the bus all at the same time: one lane may see a new limit although another has not seen an
        // event that the host wrote before it. Only for a limit known before this look have all lanes seen the events.
        let limit = it.control.limit;
        let found = it.look();
        let idle = shuffle(done, 0) == it.go;
        if idle && it.is_over(now) {
            it.left = now;
            it.command(COMMAND_LEAVE);
            break;
        }
        let began = idle && it.begin_tick(now, found, limit);
        it.watch(now, idle && !began);
        it.iterations = it.iterations.wrapping_add(1);
        if found == 0 && !began {
            sleep(it.control.sleep);
        }
    }
    while acquire(S_DONE) != it.go {
        sleep(100);
    }
    it.publish(same64(clock()));
    it.end();
}

impl Supervisor {
    fn begin() -> Self {
        let now = same64(clock());
        let launch = load64(status(STATUS_LAUNCHES)) as u32 + 1;
        let beat = load64(S_BEAT);
        let due = load64(S_DUE);
        let it = Self {
            control: Control::default(),
            word: !0,
            go: load(S_GO),
            tick: load64(H_TICK),
            in_head: load(S_IN_HEAD),
            pong_head: load(S_PONG_HEAD),
            ledger_head: load(S_LEDGER_HEAD),
            staged: load(S_STAGED),
            side: load(S_SIDE),
            due: if due == 0 { now } else { due },
            began: now,
            ticks: 0,
            launch,
            iterations: load64(status(STATUS_ITERATIONS)) as u32,
            beat: if beat == 0 { now } else { beat },
            progress: shuffle(acquire(S_PROGRESS), 0),
            moved: now,
            held: 0,
            left: load64(S_LEFT),
            asked: u64::MAX,
            arriving: false,
            told: u64::MAX,
        };
        // The ballot: lane 0 must not write the number of launches before all lanes have read it.
        if ballot(1) != 0 && lane() == 0 {
            store64(status(STATUS_LAUNCHES), launch as u64);
        }
        it
    }

    /// Stores what the next launch continues with.
    fn end(&self) {
        if lane() == 0 {
            store(S_IN_HEAD, self.in_head);
            store(S_PONG_HEAD, self.pong_head);
            store(S_LEDGER_HEAD, self.ledger_head);
            store(S_STAGED, self.staged);
            store(S_SIDE, self.side);
            store64(S_DUE, self.due);
            store64(S_BEAT, self.beat);
            store64(S_LEFT, self.left);
            fence_system();
        }
    }

    /// Looks at the bus once; returns how many messages it took from the ring.
    fn look(&mut self) -> u32 {
        let word = bus_load(CONTROL + lane() % CONTROL_WORDS * 8);
        let slot = self.in_head.wrapping_add(lane() / 4);
        let message = bus_load(IN_RING + slot % IN_CAPACITY * RING_LINE + lane() % 4 * 8);
        let changed = word != self.word;
        self.word = word;
        if ballot(changed as u32) != 0 {
            self.hear();
        }
        let there = ballot((message & !LOW == lap_tag(slot, IN_CAPACITY)) as u32).trailing_ones() / 4;
        if there == 0 { 0 } else { self.take(there, message & LOW) }
    }

    /// Distributes the control words to all lanes, and notes requests to leave and the arrival of new code.
    #[inline(never)]
    fn hear(&mut self) {
        let (low, high) = (self.word as u32, (self.word >> 32) as u32);
        let word = |which: u32| shuffle(low, which);
        self.control = Control {
            stop: word(C_SHUTDOWN) != 0,
            leave: word(C_LEAVE),
            limit: word(C_LIMIT) as u64 | (shuffle(high, C_LIMIT) as u64) << 32,
            period: word(C_PERIOD),
            hold: word(C_HOLD),
            sleep: word(C_SLEEP),
            time: word(C_TIME),
            ticks: word(C_TICKS),
            pong_taken: word(C_PONG_TAKEN),
            out_taken: word(C_OUT_TAKEN),
            ledger_taken: word(C_LEDGER_TAKEN),
            #[cfg(feature = "faults")]
            mute: word(C_MUTE),
            fresh: word(C_FRESH),
        };
        let leave = self.control.leave;
        if self.asked == u64::MAX && leave != 0 && leave.wrapping_sub(self.launch) as i32 >= 0 {
            self.asked = self.tick;
        }
        if self.control.fresh == self.launch && self.ticks == 0 && !self.arriving {
            self.arriving = true;
            self.tell_arrival(0);
        }
    }

    /// In the first launch of new code: publishes when the old code left, when this launch began, and when its first tick
    /// began (`first`; 0: not yet).
    fn tell_arrival(&self, first: u64) {
        if lane() == 0 {
            store64(status(STATUS_LEFT), self.left);
            store64(status(STATUS_BACK), self.began);
            store64(status(STATUS_FIRST), first);
        }
    }

    /// Takes messages from the ring, up to the first that has to wait, and returns how many. `there` messages have arrived;
    /// four lanes hold the words of one message.
    fn take(&mut self, there: u32, words: u64) -> u32 {
        let first = lane() & !3;
        let before = (1u32 << first) - 1;
        let kind = shuffle(words as u32, first) & 0xFFFF;
        let is = |kind_asked: u16| kind == kind_asked as u32;
        let mine = lane() / 4 < there;
        let leads = lane() == first;
        let pings = ballot((mine && leads && is(event::PING)) as u32);
        let marks = ballot((mine && leads && is(event::MARK)) as u32);
        let others = ballot((mine && leads) as u32) & !pings & !marks;
        let ping = self.pong_head.wrapping_add((pings & before).count_ones());
        let place = self.staged + (others & before).count_ones();
        // The tick of a mark is in its second word.
        let tick = shuffle((words >> 16) as u32, first + 1);
        let waits = match () {
            _ if is(event::PING) => ping.wrapping_sub(self.control.pong_taken) >= PONG_CAPACITY,
            _ if is(event::MARK) => tick as u64 > self.tick,
            _ => place >= STAGED_MAX,
        };
        let waiting = ballot((mine && waits) as u32).trailing_zeros() / 4;
        let taken = there.min(waiting);
        if lane() / 4 < taken {
            if is(event::PING) {
                let pong = if leads { words | event::REPLY as u64 } else { words };
                let at = PONG_RING + ping % PONG_CAPACITY * RING_LINE + lane() % 4 * 8;
                bus_put(at, pong | lap_tag(ping, PONG_CAPACITY));
            } else if !is(event::MARK) {
                store64(self.staging() + place * RING_LINE + lane() % 4 * 8, words);
            }
        }
        let gone = if taken == 8 { u32::MAX } else { (1u32 << (taken * 4)) - 1 };
        self.pong_head = self.pong_head.wrapping_add((pings & gone).count_ones());
        self.staged += (others & gone).count_ones();
        self.in_head = self.in_head.wrapping_add(taken);
        if lane() == 0 && taken != 0 {
            bus_put(IN_TAKEN, self.in_head as u64);
        }
        taken
    }

    /// Returns whether the launch leaves at this tick boundary.
    fn is_over(&self, now: u64) -> bool {
        let control = &self.control;
        let late = control.time != 0 && now - self.began > control.time as u64 * 1000;
        if late && lane() == 0 {
            bump64(status(STATUS_LIMITS), 1);
        }
        // A launch that is asked to leave does so right after a tick, when the most time is left until the next. If no tick
        // may begin, it does not wait for one.
        let stays = self.tick >= control.limit || control.hold != 0;
        control.stop
            || self.asked != u64::MAX && (self.tick != self.asked || stays)
            || late
            || control.ticks != 0 && self.ticks >= control.ticks
    }

    /// Commands the next tick, if it is due and may begin; returns whether it did.
    fn begin_tick(&mut self, now: u64, found: u32, limit: u64) -> bool {
        let control = self.control;
        if control.hold != self.held {
            self.held = control.hold;
            if control.hold != 0 {
                self.publish(now);
            }
        }
        // With a limit, all events of the tick are in the ring already, and the tick must take all of them: it begins after a
        // look that took nothing, or when no more events can be staged.
        let complete = limit == u64::MAX || found == 0 || self.staged == STAGED_MAX;
        if control.hold != 0 || self.tick >= limit.min(control.limit) || now < self.due || !complete {
            return false;
        }
        let behind = now - self.due;
        if control.period != 0 && behind > control.period as u64 / 2 && lane() == 0 {
            bump64(status(STATUS_LATE), 1);
        }
        // A machine that is more than eight periods behind does not try to catch up.
        self.due = if behind > 8 * control.period as u64 { now } else { self.due } + control.period as u64;
        if self.arriving {
            self.arriving = false;
            self.tell_arrival(now);
        }
        self.hand_over();
        self.command(COMMAND_TICK);
        self.tick += 1;
        self.ticks += 1;
        true
    }

    /// Gives the staged events to the tick, and says so in the ledger. If the ledger is full, the tick gets no events and
    /// they stay staged.
    fn hand_over(&mut self) {
        let mut staged = self.staged;
        if self.ledger_head.wrapping_sub(self.control.ledger_taken) >= LEDGER_CAPACITY {
            staged = 0;
        }
        if lane() == 0 {
            store(S_COMMAND_STAGED, staged);
            store(S_COMMAND_FROM, self.staging());
            store(S_COMMAND_TAKEN, self.control.out_taken);
            store64(S_COMMAND_NUMBER, self.tick);
            if staged != 0 {
                let (a, b) = (self.tick as u32, (self.tick >> 32) as u32);
                let took = event::Event { kind: event::TOOK, key: staged, a, b, ..Default::default() };
                crate::frame::send(LEDGER, LEDGER_CAPACITY, self.ledger_head, &took);
            }
        }
        if staged != 0 {
            self.ledger_head = self.ledger_head.wrapping_add(1);
            self.staged = 0;
            self.side ^= 1;
        }
    }

    /// Returns the address where the events of the next tick are staged.
    fn staging(&self) -> u32 {
        X_STAGED + self.side * STAGED_MAX * RING_LINE
    }

    /// Gives the workers a command.
    fn command(&mut self, what: u32) {
        self.go = self.go.wrapping_add(1);
        // The events that all lanes have staged must be visible before lane 0 gives the command.
        fence();
        if ballot(1) != 0 && lane() == 0 {
            store(S_COMMAND, what);
            fence();
            release(S_GO, self.go);
        }
    }

    /// Every millisecond: notes whether the workers make progress, and publishes a heartbeat. A machine that has reached its limit
    /// publishes one at once: the host waits for that.
    fn watch(&mut self, now: u64, idle: bool) {
        let reached = idle && self.tick >= self.control.limit && self.tick != self.told;
        if now - self.beat < BEAT_NS && !reached {
            return;
        }
        let progress = shuffle(acquire(S_PROGRESS), 0);
        if idle || progress != self.progress {
            self.progress = progress;
            self.moved = now;
        }
        #[cfg(feature = "faults")]
        if self.control.mute != 0 {
            return;
        }
        if reached {
            self.told = self.tick;
        }
        self.publish(now);
    }

    /// Publishes a heartbeat: each lane writes two status words to the bus.
    #[inline(never)]
    fn publish(&mut self, now: u64) {
        if lane() == 0 {
            let gap = now - self.beat;
            if gap > load64(status(STATUS_GAP)) {
                store64(status(STATUS_GAP), gap);
            }
            let stuck = now - self.moved > STUCK_NS;
            store64(status(STATUS_STUCK), if stuck { 1 + acquire(S_PHASE) as u64 } else { 0 });
            store64(status(STATUS_CLOCK), now);
            store64(status(STATUS_ITERATIONS), self.iterations as u64);
            store64(status(STATUS_HELD), self.held as u64);
            self.collect();
            fence_system();
        }
        self.beat = now;
        if ballot(1) != 0 {
            bus_put(STATUS + lane() * 8, load64(status(lane())));
            bus_put(STATUS + (WARP + lane()) * 8, load64(status(WARP + lane())));
        }
    }

    /// Copies the workers' counters to the status words.
    fn collect(&self) {
        let put = |which: u32, value: u64| store64(status(which), value);
        put(STATUS_TICK, load64(H_TICK));
        put(STATUS_HEAP, load(H_HEAP) as u64);
        put(STATUS_OBJECTS, load(H_OBJECTS) as u64);
        put(STATUS_TIMERS, load(H_TIMERS) as u64);
        put(STATUS_WORK, load(H_WORK_TAIL).wrapping_sub(load(H_WORK_HEAD)) as u64);
        put(STATUS_EVENTS, load64(H_EVENTS));
        put(STATUS_LOST, load(S_LOST) as u64);
        put(STATUS_REFUSED, load(H_REFUSED) as u64);
    }
}

/// Returns lane 0's value in all lanes: clocks differ from lane to lane, but decisions must not.
#[inline(always)]
fn same64(value: u64) -> u64 {
    shuffle(value as u32, 0) as u64 | (shuffle((value >> 32) as u32, 0) as u64) << 32
}

/// Returns the address of a status word.
#[inline(always)]
fn status(which: u32) -> u32 {
    S_STATUS + which * 8
}
