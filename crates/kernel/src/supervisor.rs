//! The supervisor: one warp that watches the bus, the clock and the workers.
//!
//! Each of its rounds takes one look at the bus, which brings what the host says and the next eight events at once: lane *l* has word *l* mod 4 of event *l* / 4. Pings
//! are answered on the spot; other events are staged for the next tick. When the workers are idle and the time has come, it commands the
//! next tick; every millisecond it publishes a heartbeat and whatever there is to count.

use crate::event;
use crate::gpu::*;
use crate::layout::*;
use crate::tagged::{LOW, lap_tag};

/// What the host says, as all lanes know it.
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

/// What this warp knows; every lane the same, `word` aside.
struct Supervisor {
    control: Control,
    /// The control word this lane saw last.
    word: u64,
    /// Commands given.
    go: u32,
    tick: u64,
    in_head: u32,
    pong_head: u32,
    ledger_head: u32,
    staged: u32,
    side: u32,
    due: u64,
    began: u64,
    /// Ticks commanded in this launch.
    ticks: u32,
    launch: u32,
    iterations: u32,
    beat: u64,
    /// What the workers' progress was when it last changed, and when.
    progress: u32,
    moved: u64,
    held: u32,
    /// When the last launch left, or this one.
    left: u64,
    /// The tick that was next when this launch was asked to leave; all ones before.
    asked: u64,
    /// It is the first of new code, and has not ticked.
    arriving: bool,
}

pub fn supervise() {
    let mut it = Supervisor::begin();
    loop {
        let now = same64(clock());
        // Asked for before the bus, so that both are under way together.
        let done = acquire(S_DONE);
        // Lanes look one after the other: only a limit known before is one whose events they have all seen.
        let limit = it.control.limit;
        let found = it.look();
        let idle = shuffle(done, 0) == it.go;
        if idle && it.is_over(now) {
            it.left = now;
            it.command(COMMAND_LEAVE);
            break;
        }
        let began = idle && it.begin_tick(now, found, limit);
        it.watch(now, idle);
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
        };
        // All lanes have read what the first now writes.
        if ballot(1) != 0 && lane() == 0 {
            store64(status(STATUS_LAUNCHES), launch as u64);
        }
        it
    }

    /// For the next launch.
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

    /// One look at the bus; how many events it brought.
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

    /// All lanes learn the control words.
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

    /// The first launch of new code says how long there was none.
    fn tell_arrival(&self, first: u64) {
        if lane() == 0 {
            store64(status(STATUS_LEFT), self.left);
            store64(status(STATUS_BACK), self.began);
            store64(status(STATUS_FIRST), first);
        }
    }

    /// Takes events that are there, up to the first that has to wait. Four lanes have one.
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
        // A mark's tick is in its second word.
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

    /// Whether the launch shall end at this tick boundary.
    fn is_over(&self, now: u64) -> bool {
        let control = &self.control;
        let late = control.time != 0 && now - self.began > control.time as u64 * 1000;
        if late && lane() == 0 {
            bump64(status(STATUS_LIMITS), 1);
        }
        // Right behind a tick, there is the most time until the next; where none may begin, nothing is waited for.
        let stays = self.tick >= control.limit || control.hold != 0;
        control.stop
            || self.asked != u64::MAX && (self.tick != self.asked || stays)
            || late
            || control.ticks != 0 && self.ticks >= control.ticks
    }

    /// Commands the next tick, if it is time and nothing speaks against it.
    fn begin_tick(&mut self, now: u64, found: u32, limit: u64) -> bool {
        let control = self.control;
        if control.hold != self.held {
            self.held = control.hold;
            if control.hold != 0 {
                self.publish(now);
            }
        }
        // Where the limit is near, its events are in the ring already: all of them belong to the tick.
        let complete = limit == u64::MAX || found == 0 || self.staged == STAGED_MAX;
        if control.hold != 0 || self.tick >= limit.min(control.limit) || now < self.due || !complete {
            return false;
        }
        let behind = now - self.due;
        if control.period != 0 && behind > control.period as u64 / 2 && lane() == 0 {
            bump64(status(STATUS_LATE), 1);
        }
        // Who is far behind does not hurry after.
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

    /// The staged events become the tick's, and the ledger says so. Where it is full they wait.
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

    fn staging(&self) -> u32 {
        X_STAGED + self.side * STAGED_MAX * RING_LINE
    }

    fn command(&mut self, what: u32) {
        self.go = self.go.wrapping_add(1);
        // What lanes staged comes before what the first lane says.
        fence();
        if ballot(1) != 0 && lane() == 0 {
            store(S_COMMAND, what);
            fence();
            release(S_GO, self.go);
        }
    }

    /// Watches the workers, and publishes every millisecond.
    fn watch(&mut self, now: u64, idle: bool) {
        if now - self.beat < BEAT_NS {
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
        self.publish(now);
    }

    /// A heartbeat: all lanes write two words each.
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

    /// What the workers count in the state.
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

/// The first lane's value, for all: clocks differ from lane to lane, decisions must not.
#[inline(always)]
fn same64(value: u64) -> u64 {
    shuffle(value as u32, 0) as u64 | (shuffle((value >> 32) as u32, 0) as u64) << 32
}

#[inline(always)]
fn status(which: u32) -> u32 {
    S_STATUS + which * 8
}
