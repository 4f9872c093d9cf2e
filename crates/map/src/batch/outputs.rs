//! The instances of a launch as the host sees them: what they print, and their contexts if they make host calls.
//!
//! The output of instances is kept in memory until their launch is over, and memory is limited. Each instance may keep
//! [`SHARE`] bytes of stdout whatever the others print; what goes beyond that comes out of one pool for the launch. An
//! instance that finds the pool empty is stopped, and rerun with a larger annex to its outbox, or beside fewer others.
//! An instance that had the whole pool to itself gets an error from its write, and its record says so: `cut`. Of
//! stderr, the last [`MAX_STDERR_KEPT`] bytes are kept.
//!
//! Most instances never make a host call. The host makes nothing for them here, and reads their output from the outbox
//! at the end.

use super::kept::{Kept, MAX_STDERR_KEPT, Stderr};
use super::results::{Piece, Recycled};
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::launch::Ending;
use gpu_run_abi::{Status, TrapCode};
use gpu_run_compiler::{Compiled, Error};
use gpu_run_run::Job;
use gpu_run_run::allowance::{Denied, Lack, SHARE};
use gpu_run_run::bus::BatchHost;
use gpu_run_run::outbox::{Outboxes, Reader, Record};
use gpu_run_run::outcome::{End, ending as ending_of};
use gpu_run_run::slots::Endings;
use gpu_run_run::transcript::{Answered, Random};
use gpu_run_wasi::stdio::Output;
use gpu_run_wasi::{Context, Errno, MAX_RANDOM_BYTES, Out, Reply};
use parking_lot::Mutex;
use rayon::prelude::*;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Returns how many results of `count` instances one core reads at a time. If there are enough instances, each core
/// gets several such chunks.
pub(crate) fn chunk_of(count: usize) -> usize {
    (count / 64).clamp(16, 256)
}

/// Bytes that a write of several packets takes out of the pool before it is sent, if a larger annex is possible:
/// annexes are faster.
const LONG_WRITE_DEPOSIT: usize = 64 << 10;

/// What the host knows of an instance's earlier run.
pub(crate) struct EarlierRun {
    kept: Arc<Kept>,
    context: Option<Context>,
    random: Random,
}

/// The conditions under which a launch's instances run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchTerms {
    /// The key of random bytes, and the number of the instance in slot 0.
    pub(crate) key: [u64; 2],
    pub(crate) first: u64,
    /// No plan comes after this one: an instance that lacks something is refused it.
    pub(crate) is_last: bool,
    /// Whether another plan has a deeper stack.
    pub(crate) has_more_stack: bool,
    /// Whether another plan has a larger annex.
    pub(crate) has_more_output: bool,
    /// Bytes that an instance with the whole pool may print beyond its share.
    pub(crate) output_bytes: usize,
    /// Bytes that an instance's memories and tables may have together.
    pub(crate) max_memory: Option<u64>,
}

/// The instances of one launch.
pub(crate) struct MappedBatch {
    /// The jobs of the whole batch, and the range of those in this launch.
    jobs: Arc<Vec<Job>>,
    range: Range<usize>,
    outboxes: Arc<Outboxes>,
    /// By slot, like all fields that follow.
    kept: Vec<OnceLock<Arc<Kept>>>,
    /// Whether the instance has made a host call.
    called: Vec<AtomicBool>,
    pool: Arc<AtomicUsize>,
    terms: BatchTerms,
    /// Bytes that transcripts may still take.
    transcript_bytes: Arc<AtomicUsize>,
    /// Contexts of instances that do not run: from their last run, in this launch or an earlier one.
    contexts: Mutex<HashMap<u32, Context>>,
    /// The random bytes of instances that are rerun.
    randoms: HashMap<u32, Mutex<Random>>,
    recycled: Arc<Recycled>,
}

/// How the instances of a launch ended, by slot.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// [`chunk_of`] instances each, but for the last one. Instances that are rerun have a place, too.
    pub(crate) pieces: Vec<Piece>,
    /// Bytes of memory that each instance had.
    pub(crate) memory: Vec<u64>,
    /// Bytes of stdout that each instance printed.
    pub(crate) printed: Vec<u64>,
    /// Instances that are rerun with an exact build: they trapped, or a speculative build was not sure, or they were
    /// stopped.
    pub(crate) exact: Vec<usize>,
    /// Instances that are rerun with a larger allowance, and what they lacked.
    pub(crate) outgrown: Vec<(usize, Lack)>,
}

impl MappedBatch {
    pub(crate) fn new(
        jobs: Arc<Vec<Job>>,
        range: Range<usize>,
        outboxes: Arc<Outboxes>,
        [pool, transcript_bytes]: [Arc<AtomicUsize>; 2],
        terms: BatchTerms,
        earlier_runs: HashMap<u32, EarlierRun>,
        recycled: Arc<Recycled>,
    ) -> Self {
        let kept: Vec<_> = range.clone().map(|_| OnceLock::new()).collect();
        let called: Vec<_> = range.clone().map(|_| AtomicBool::new(false)).collect();
        let (mut contexts, mut randoms) = (HashMap::new(), HashMap::new());
        for (slot, earlier_run) in earlier_runs {
            earlier_run.kept.begin_again(pool_of(&terms, &pool));
            called[slot as usize].store(true, Ordering::Relaxed);
            let _ = kept[slot as usize].set(earlier_run.kept);
            contexts.extend(earlier_run.context.map(|context| (slot, context)));
            randoms.insert(slot, Mutex::new(Random { drawn: 0, ..earlier_run.random }));
        }
        let contexts = Mutex::new(contexts);
        Self { jobs, range, outboxes, kept, called, pool, terms, transcript_bytes, contexts, randoms, recycled }
    }

    /// Returns what an instance that is to be rerun leaves behind, if the host knows of it.
    pub(crate) fn earlier_run(&self, slot: usize) -> Option<EarlierRun> {
        if !self.called[slot].load(Ordering::Relaxed) {
            return None;
        }
        let slot = slot as u32;
        let random = match self.randoms.get(&slot) {
            Some(random) => *random.lock(),
            None => Random { key: self.terms.key, number: self.terms.first + u64::from(slot), drawn: 0 },
        };
        let context = self.contexts.lock().remove(&slot);
        Some(EarlierRun { kept: self.kept[slot as usize].get()?.clone(), context, random })
    }

    /// Returns whether an instance can be rerun: either it made no host call, or all answers are in its transcript.
    fn can_run_again(&self, slot: usize) -> bool {
        !self.terms.is_last || !self.called[slot].load(Ordering::Relaxed)
    }

    /// Returns what an instance that did not finish lacked, if another plan can give it that.
    fn lack(&self, slot: usize, ending: &Ending, end: &End) -> Option<Lack> {
        let none = Lack::default();
        if self.terms.is_last {
            return None;
        }
        if ending.status == Status::Outgrown as u64 {
            return Some(Lack { memory: Some(ending.exit_code), ..none });
        }
        match end {
            _ if self.is_denied(slot as u32) => Some(match self.kept(slot).printed_when_cut() {
                Some(printed) => Lack { output: Some(printed), ..none },
                None => Lack { shared: true, ..none },
            }),
            End::Trapped(trap) if trap.code == TrapCode::StackOverflow => {
                self.terms.has_more_stack.then_some(Lack { stack: true, ..none })
            }
            _ => None,
        }
    }

    /// Returns the bytes that an instance can print without a host call.
    pub(crate) fn outbox_bytes(&self) -> u64 {
        self.outboxes.room()
    }

    pub(crate) fn jobs(&self) -> &[Job] {
        &self.jobs[self.range.clone()]
    }

    /// Returns how all instances ended, and which of them must be rerun. An instance that made no host call has left no
    /// effects and can be rerun; so can one whose answers were all kept. `stopped`: instances that still ran at the
    /// timeout were stopped.
    pub(crate) fn results(
        &self,
        compiled: &Compiled,
        endings: &Endings<'_>,
        stopped: bool,
    ) -> Result<Collected, Error> {
        let count = self.range.len();
        let size = chunk_of(count);
        let chunks = (0..count.div_ceil(size)).into_par_iter();
        let parts: Vec<_> = chunks
            .map(|chunk| self.part(compiled, endings, stopped, chunk * size..count.min((chunk + 1) * size)))
            .collect::<Result<_, _>>()?;
        let mut all = Collected::default();
        for part in parts {
            all.pieces.extend(part.pieces);
            all.memory.extend(part.memory);
            all.printed.extend(part.printed);
            all.exact.extend(part.exact);
            all.outgrown.extend(part.outgrown);
        }
        Ok(all)
    }

    fn part(
        &self,
        compiled: &Compiled,
        endings: &Endings<'_>,
        stopped: bool,
        slots: Range<usize>,
    ) -> Result<Collected, Error> {
        let mut piece = Piece::new(slots.len(), self.recycled.clone());
        let mut outboxes = self.outboxes.reader(slots.end as u64);
        let [memory, printed] = [(); 2].map(|()| Vec::with_capacity(slots.len()));
        let mut all = Collected { memory, printed, ..Collected::default() };
        for slot in slots {
            let ending = endings.get(slot);
            all.memory.push(ending.memory_bytes);
            let mut end = ending_of(compiled, slot, endings)?;
            let lack = self.lack(slot, &ending, &end);
            let is_inexact = matches!(&end, End::Trapped(trap) if trap.code == TrapCode::Inexact);
            if lack.is_some() || is_inexact && self.can_run_again(slot) {
                match lack {
                    Some(lack) => all.outgrown.push((slot, lack)),
                    None => all.exact.push(slot),
                }
                // How it ends is not known yet.
                piece.push(end, [], [], None);
                all.printed.push(0);
                continue;
            }
            if is_inexact && stopped {
                // It was stopped because of the timeout.
                end = End::trapped(TrapCode::Interrupted);
            } else if self.randoms.contains_key(&(slot as u32)) && !(stopped && is_interruption(&end)) {
                let deviated = self.kept[slot].get().is_some_and(|kept| kept.transcript.lock().deviated());
                end = if deviated { End::trapped(TrapCode::Deviated) } else { end };
            }
            let denied = Denied::growth(compiled, self.terms.max_memory, &ending);
            if self.terms.is_last && self.kept[slot].get().is_some() {
                // The output comes out of the pool, which enforces the limit.
                self.hear(&mut outboxes, slot as u32);
            }
            let records = outboxes.read(slot as u64)?;
            let parts = |is_stderr| {
                records.clone().filter(move |record| record.is_stderr == is_stderr).map(|record| record.bytes)
            };
            let [stdout_bytes, stderr_bytes] = [false, true].map(|of| parts(of).map(<[u8]>::len).sum::<usize>());
            let max_stdout = SHARE + self.terms.output_bytes;
            let kept = self.kept[slot].get();
            let before = kept.map_or(0, |kept| kept.written()[0]);
            if before + stdout_bytes > max_stdout && !self.terms.is_last {
                // It printed more than it may. A rerun with the last plan refuses the write that is too much.
                all.outgrown.push((slot, Lack { output: Some((before + stdout_bytes) as u64), ..Lack::default() }));
                piece.push(end, [], [], None);
                all.printed.push(0);
                continue;
            }
            all.printed.push((before + stdout_bytes) as u64);
            let extra = stderr_bytes.saturating_sub(MAX_STDERR_KEPT);
            if kept.is_none() && stdout_bytes <= SHARE {
                piece.push(end, parts(false), without_first(parts(true), extra), denied);
                continue;
            }
            let (mut stdout, cut) = match kept {
                Some(kept) => kept.stdout.take(),
                None => (self.recycled.take(stdout_bytes), false),
            };
            stdout.reserve_exact(stdout_bytes);
            parts(false).for_each(|bytes| stdout.extend_from_slice(bytes));
            let mut stderr = kept.map_or_else(Stderr::default, |kept| kept.stderr.clone());
            parts(true).for_each(|bytes| stderr.keep(bytes));
            let denied = if cut { Some(Denied::Output(max_stdout as u64)) } else { denied };
            piece.push_apart(end, stdout, stderr.take(), denied);
        }
        all.pieces.push(piece);
        Ok(all)
    }

    /// Takes what is in a slot's outbox.
    fn hear(&self, outboxes: &mut Reader<'_>, slot: u32) {
        // If it cannot be read, the device is lost, and the launch reports that.
        let Ok(records) = outboxes.read(slot.into()) else { return };
        let is_empty = records.is_empty();
        for Record { is_stderr, bytes } in records {
            let kept = self.kept(slot as usize);
            // `cut` says if something did not fit: the guest has continued long ago.
            let _ = if is_stderr { kept.stderr.clone().write(bytes) } else { kept.stdout.clone().write(bytes) };
        }
        if !is_empty {
            self.outboxes.clear(slot.into());
        }
        if let Some(kept) = self.kept[slot as usize].get() {
            let length = self.jobs()[slot as usize].stdin.len();
            let left = (self.outboxes.stdin_left(slot.into()) as usize).min(length);
            // The host may have read more for the instance than the device knows of.
            kept.taken.fetch_max(length - left, Ordering::Relaxed);
        }
    }

    fn kept(&self, slot: usize) -> &Kept {
        self.kept[slot].get_or_init(|| Arc::new(Kept::out_of(pool_of(&self.terms, &self.pool))))
    }
}

/// Returns the pool that an instance's output comes out of. With the last plan, each instance has one to itself.
fn pool_of(terms: &BatchTerms, shared: &Arc<AtomicUsize>) -> Arc<AtomicUsize> {
    match terms.is_last {
        true => Arc::new(AtomicUsize::new(terms.output_bytes)),
        false => shared.clone(),
    }
}

fn is_interruption(end: &End) -> bool {
    matches!(end, End::Trapped(trap) if trap.code == TrapCode::Interrupted)
}

/// Returns the parts of a text without its first `count` bytes.
fn without_first<'a>(parts: impl Iterator<Item = &'a [u8]>, mut count: usize) -> impl Iterator<Item = &'a [u8]> {
    parts.map(move |part| {
        let skipped = part.len().min(count);
        count -= skipped;
        &part[skipped..]
    })
}

impl BatchHost for MappedBatch {
    fn heard(&self, slot: u32) {
        self.hear(&mut self.outboxes.reader(u64::from(slot) + 1), slot);
    }

    fn context(&self, slot: u32) -> Option<Context> {
        let (job, kept) = (&self.jobs()[slot as usize], self.kept(slot as usize));
        self.called[slot as usize].store(true, Ordering::Relaxed);
        self.heard(slot);
        if let Some(context) = self.contexts.lock().remove(&slot) {
            return Some(context);
        }
        Some(kept.context(job))
    }

    fn may_print(&self, slot: u32) -> bool {
        let take = |left: usize| left.checked_sub(LONG_WRITE_DEPOSIT);
        let may =
            !self.terms.has_more_output || self.pool.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if !may {
            self.kept(slot as usize).stdout.0.lock().cut = true;
        }
        may
    }

    fn print(&self, slot: u32, is_stderr: bool, bytes: &[u8]) -> io::Result<usize> {
        let kept = self.kept(slot as usize);
        if is_stderr { kept.stderr.clone().write(bytes) } else { kept.stdout.clone().write(bytes) }
    }

    fn answered(&self, slot: u32, call: Call, words: &[u64], input: &[u8], out: &mut Out) -> Answered {
        if self.is_denied(slot) {
            return Answered::NoRoom;
        }
        if call == Call::fd_write {
            let kept = self.kept(slot as usize);
            *kept.before.lock() = kept.written();
        }
        let Some(random) = self.randoms.get(&slot) else { return Answered::Never };
        if call == Call::random_get
            && let Some(length) = words.first().filter(|length| **length <= MAX_RANDOM_BYTES)
        {
            (out.bytes, out.split) = (vec![0; *length as usize], 0);
            random.lock().fill(&mut out.bytes);
            return Answered::Was(Reply::Done(Errno::Success));
        }
        let kept = self.kept(slot as usize);
        let (answered, [stdout, stderr]) = kept.transcript.lock().recall(call, words, input, out);
        // The earlier run has written this. If it does not fit now, `cut` says so.
        let _ = kept.stdout.clone().write(&input[..stdout.min(input.len())]);
        let _ = kept.stderr.clone().write(&input[..stderr.min(input.len())]);
        answered
    }

    fn is_denied(&self, slot: u32) -> bool {
        let is_short = |kept: &Arc<Kept>| kept.stdout.0.lock().cut || kept.transcript.lock().is_full();
        !self.terms.is_last && self.kept[slot as usize].get().is_some_and(is_short)
    }

    fn answer(&self, slot: u32, call: Call, words: &[u64], input: &[u8], reply: &Reply, out: &Out) {
        if self.terms.is_last {
            return;
        }
        let kept = self.kept(slot as usize);
        // Only `fd_write` adds to stdout or stderr, and what it has written is the beginning of its input.
        let written = match (call, reply) {
            (Call::fd_write, Reply::Done(Errno::Success)) => kept.grown(),
            _ => [0; 2],
        };
        kept.transcript.lock().keep(&self.transcript_bytes, (call, words, input), reply, out, written);
    }

    fn left(&self, slot: u32, context: Context) {
        if !self.terms.is_last {
            self.contexts.lock().insert(slot, context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lose_their_first_bytes_together() {
        let parts = [&b"ab"[..], b"cd", b"ef"];
        let left = |count| without_first(parts.into_iter(), count).collect::<Vec<_>>().concat();
        assert_eq!([left(0), left(1), left(3), left(9)], [&b"abcdef"[..], b"bcdef", b"def", b""]);
    }
}
