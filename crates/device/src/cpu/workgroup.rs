//! A workgroup: which of its threads run, and which wait for which.

use super::ast::{Shuffle, Vote};
use super::context::{WarpOperation, WarpRequest};
use super::fiber::Fiber;

/// Lanes of a warp.
const LANES: u32 = 32;
/// Alignment of a workgroup's shared memory, in bytes.
const SHARED_ALIGN: usize = 128;

pub(super) struct Workgroup {
    pub(super) number: u32,
    /// The shared memory, with space to align it.
    shared: Box<[u64]>,
    /// Threads that have started and not finished.
    pub(super) fibers: Vec<Option<Fiber>>,
    /// The next thread to start.
    pub(super) next: u32,
    /// Number of threads that have not finished, started or not.
    live: u32,
    /// Threads at `bar.sync`.
    at_barrier: Vec<u32>,
    warps: Box<[Warp]>,
    /// Number of threads that wait in a warp operation.
    in_warps: u32,
}

struct Warp {
    live: u32,
    waiting: u32,
    /// The requests of the lanes that wait. Kept here because a look at each thread's own page costs more than
    /// everything else.
    requests: [WarpRequest; LANES as usize],
}

impl Workgroup {
    pub(super) fn new(number: u32, threads: u32, shared_bytes: usize) -> Self {
        let lanes = |warp: u32| match threads - warp * LANES {
            n if n < LANES => (1 << n) - 1,
            _ => u32::MAX,
        };
        let none = WarpRequest { mask: 0, operation: WarpOperation::Barrier, a: 0, b: 0, c: 0 };
        let warp = |w| Warp { live: lanes(w), waiting: 0, requests: [none; LANES as usize] };
        let warps = (0..threads.div_ceil(LANES)).map(warp).collect();
        let mut fibers = Vec::new();
        fibers.resize_with(threads as usize, || None);
        let words = if shared_bytes == 0 { 0 } else { (shared_bytes + SHARED_ALIGN).div_ceil(8) };
        let shared = vec![0; words].into_boxed_slice();
        Self { number, shared, fibers, next: 0, live: threads, at_barrier: Vec::new(), warps, in_warps: 0 }
    }

    /// The address through which threads access the shared memory.
    pub(super) fn shared_address(&mut self) -> u64 {
        (self.shared.as_mut_ptr() as u64).next_multiple_of(SHARED_ALIGN as u64)
    }

    pub(super) fn is_over(&self) -> bool {
        self.live == 0
    }

    pub(super) fn has_more(&self) -> bool {
        (self.next as usize) < self.fibers.len()
    }

    /// `thread` has finished. Threads that no longer have to wait for it are put into `ready`.
    pub(super) fn ended(&mut self, thread: u32, ready: &mut Vec<u32>) {
        self.live -= 1;
        let warp = thread / LANES;
        self.warps[warp as usize].live &= !bit(thread);
        let mut waiting = self.warps[warp as usize].waiting;
        while waiting != 0 {
            let lane = waiting.trailing_zeros();
            waiting &= waiting - 1;
            if self.warps[warp as usize].waiting & (1 << lane) != 0 {
                self.complete(warp * LANES + lane, ready);
            }
        }
        self.open_barrier(ready);
    }

    /// `thread` has arrived at `bar.sync`.
    pub(super) fn arrived(&mut self, thread: u32, ready: &mut Vec<u32>) {
        self.at_barrier.push(thread);
        self.open_barrier(ready);
    }

    fn open_barrier(&mut self, ready: &mut Vec<u32>) {
        if self.live as usize == self.at_barrier.len() {
            ready.append(&mut self.at_barrier);
        }
    }

    /// `thread` has entered an operation of its warp. Fails if the operation's mask does not contain the thread's own
    /// lane.
    pub(super) fn joined(&mut self, thread: u32, ready: &mut Vec<u32>) -> Result<(), String> {
        let Some(fiber) = &self.fibers[thread as usize] else { return Ok(()) };
        let request = fiber.warp_request();
        if request.mask & bit(thread) == 0 {
            let lane = thread % LANES;
            return Err(format!("lane {lane} is in a warp operation whose mask {:#x} does not name it", request.mask));
        }
        let warp = &mut self.warps[(thread / LANES) as usize];
        warp.waiting |= bit(thread);
        warp.requests[(thread % LANES) as usize] = request;
        self.in_warps += 1;
        self.complete(thread, ready);
        Ok(())
    }

    /// Completes the operation that `thread` waits in, if all lanes that take part are there.
    fn complete(&mut self, thread: u32, ready: &mut Vec<u32>) {
        let first = thread / LANES * LANES;
        let warp = &mut self.warps[(thread / LANES) as usize];
        let request = warp.requests[(thread % LANES) as usize];
        let members = request.mask & warp.live;
        if members & !warp.waiting != 0 {
            return;
        }
        let same = |lane: u32| {
            let other = warp.requests[lane as usize];
            other.operation == request.operation && other.mask == request.mask
        };
        if !lanes_of(members).all(same) {
            return;
        }
        let ballot = lanes_of(members).filter(|l| warp.requests[*l as usize].a != 0).fold(0, |b, l| b | 1u32 << l);
        for lane in lanes_of(members) {
            let answer = answer(&warp.requests, members, ballot, lane);
            if let Some(fiber) = &mut self.fibers[(first + lane) as usize] {
                fiber.answer(answer);
            }
            ready.push(first + lane);
        }
        warp.waiting &= !members;
        self.in_warps -= members.count_ones();
    }

    /// If no thread of this workgroup can ever continue, returns why.
    pub(super) fn deadlock(&self) -> Option<String> {
        let waiting = self.at_barrier.len() as u32 + self.in_warps;
        if self.live == 0 || waiting < self.live {
            return None;
        }
        let line = |thread: u32| self.fibers[thread as usize].as_ref().map_or(0, Fiber::line);
        let in_warp = self.warps.iter().enumerate().find(|(_, w)| w.waiting != 0);
        let in_warp = in_warp.map(|(n, w)| line(n as u32 * LANES + w.waiting.trailing_zeros()));
        let at_barrier = self.at_barrier.first().map(|t| line(*t));
        Some(format!(
            "workgroup {} is deadlocked: {} of its threads wait at `bar.sync`{}, {} in a warp operation{} that can never complete",
            self.number,
            self.at_barrier.len(),
            at_barrier.map(|l| format!(" (PTX line {l})")).unwrap_or_default(),
            self.in_warps,
            in_warp.map(|l| format!(" (PTX line {l})")).unwrap_or_default(),
        ))
    }
}

fn bit(thread: u32) -> u32 {
    1 << (thread % LANES)
}

fn lanes_of(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then(|| mask.trailing_zeros())?;
        mask &= mask - 1;
        Some(lane)
    })
}

/// The answer to one lane: the value in the low half, the predicate in bit 32.
fn answer(requests: &[WarpRequest; LANES as usize], members: u32, ballot: u32, lane: u32) -> u64 {
    let own = requests[lane as usize];
    match own.operation {
        WarpOperation::Barrier => 0,
        WarpOperation::Shuffle(mode) => {
            let (source, inside) = source(mode, own.b, own.c, lane);
            let from = if members & (1 << source) != 0 { source } else { lane };
            (inside as u64) << 32 | requests[from as usize].a as u64
        }
        WarpOperation::Vote(vote) => {
            let predicate = match vote {
                Vote::Any => ballot != 0,
                Vote::All => ballot == members,
                Vote::Uniform => ballot == 0 || ballot == members,
                Vote::Ballot => false,
            };
            (predicate as u64) << 32 | ballot as u64
        }
    }
}

/// Returns the lane that a shuffle reads, and whether it is in range, by the pseudocode of the PTX manual.
fn source(mode: Shuffle, b: u32, c: u32, lane: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let most = (lane & segment) | (clamp & !segment);
    let least = lane & segment;
    let (source, inside) = match mode {
        Shuffle::Up => (lane.wrapping_sub(b), lane as i32 - b as i32 >= most as i32),
        Shuffle::Down => (lane + b, lane + b <= most),
        Shuffle::Butterfly => (lane ^ b, lane ^ b <= most),
        Shuffle::Index => {
            let source = least | (b & !segment & 31);
            (source, source <= most)
        }
    };
    if inside { (source, true) } else { (lane, false) }
}
