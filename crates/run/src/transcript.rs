//! The host's answers to an instance, kept so that a rerun gets the same answers.
//!
//! An instance that its build cannot finish (see `ptx::guest::speculative`) is rerun from its beginning. If it has made
//! host calls, files were read and written: that must happen only once. So the host keeps its answers. In the rerun,
//! the instance gets the same answers to the same calls, in the same order, and nothing is performed; after the last
//! kept answer, it continues with the descriptors it had open.
//!
//! The rerun makes the same calls, because everything the instance sees is the same: arguments, environment, stdin,
//! answers, random bytes ([`Random`]). Only the time that it can observe on the device differs. An instance that makes
//! another call because of that is stopped, and its record says so.
//!
//! Memory is limited: the transcripts of all instances of a launch share a fixed number of bytes. An instance that
//! finds none left is stopped before its next call and rerun beside fewer others; its transcript goes with it.

use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::{Errno, Out, Reply};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that a transcript reserves at once: all transcripts of a batch share one counter.
const PORTION: usize = 1 << 10;

/// The answers that an instance got, in order. There can be very many, so each is as small as possible.
#[derive(Debug, Default)]
pub struct Transcript {
    answers: Vec<Answer>,
    /// The bytes of all answers, one after the other: [`More`] where an answer has it, then the output.
    bytes: Vec<u8>,
    /// How many answers the instance has got in this run, and how many of `bytes` these take.
    given: usize,
    given_bytes: usize,
    /// Bytes that are reserved but not used yet.
    allowed: usize,
    /// Whether there was no memory left for the last answer.
    full: bool,
    deviated: bool,
    /// Whether random bytes are kept, too: for instances whose random bytes cannot be computed again.
    keeps_random: bool,
}

#[derive(Debug)]
struct Answer {
    /// Hash of the call's arguments and input.
    asked: u64,
    call: Call,
    errno: Errno,
    /// Bytes of output, and the flag [`HAS_MORE`].
    length: u32,
}

const HAS_MORE: u32 = 1 << 31;
const _: () = assert!(size_of::<Answer>() == 16);

/// What only few answers have.
#[derive(Clone, Copy, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct More {
    split: u32,
    /// How many bytes of the call's input, from its beginning, went to stdout and to stderr.
    written: [u32; 2],
}

/// What a transcript has for a call.
#[derive(Debug)]
pub enum Answered {
    /// Nothing: the call was not made in an earlier run.
    Never,
    /// This answer; the output is in `Out`.
    Was(Reply),
    /// In the earlier run, the instance made another call here.
    Deviates,
    /// There is no memory left to keep an answer.
    NoRoom,
}

impl Transcript {
    /// A transcript that keeps random bytes, too.
    pub fn with_random() -> Self {
        Self { keeps_random: true, ..Self::default() }
    }

    /// Returns whether answers to `call` are kept: the call has an effect, or its answer could differ next time. A call
    /// whose answers are not kept may be answered by the host in one run and by the device in another.
    fn is_kept(&self, call: Call) -> bool {
        match call {
            Call::args_get | Call::args_sizes_get | Call::environ_get | Call::environ_sizes_get | Call::sched_yield => {
                false
            }
            Call::random_get => self.keeps_random,
            _ => true,
        }
    }

    /// Returns the kept answer to a call in a rerun, with its output in `out`; and how many bytes of the call's input
    /// went to stdout and to stderr.
    pub fn recall(&mut self, call: Call, words: &[u64], input: &[u8], out: &mut Out) -> (Answered, [usize; 2]) {
        let Some(answer) = self.answers.get(self.given) else { return (Answered::Never, [0; 2]) };
        if answer.call != call || answer.asked != hash(call, words, input) {
            if !self.is_kept(call) {
                return (Answered::Never, [0; 2]);
            }
            self.deviated = true;
            return (Answered::Deviates, [0; 2]);
        }
        let (mut bytes, mut more) = (&self.bytes[self.given_bytes..], More::default());
        let length = (answer.length & !HAS_MORE) as usize;
        if answer.length & HAS_MORE != 0 {
            let (head, rest) = bytes.split_at(size_of::<More>());
            (bytes, more) = (rest, bytemuck::pod_read_unaligned(head));
        }
        out.bytes.clear();
        out.bytes.extend_from_slice(&bytes[..length]);
        out.split = more.split;
        self.given += 1;
        self.given_bytes = self.bytes.len() - bytes.len() + length;
        (Answered::Was(Reply::Done(answer.errno)), more.written.map(|bytes| bytes as usize))
    }

    /// Keeps an answer. If the memory for transcripts is used up, this is the last one: see [`Transcript::is_full`].
    pub fn keep(
        &mut self,
        room: &AtomicUsize,
        (call, words, input): (Call, &[u64], &[u8]),
        reply: &Reply,
        out: &Out,
        written: [usize; 2],
    ) {
        // An instance that exits is never rerun; a call that waits has no answer yet.
        let Reply::Done(errno) = *reply else { return };
        if self.given < self.answers.len() || !self.is_kept(call) {
            return;
        }
        let more = More { split: out.split, written: written.map(|bytes| bytes as u32) };
        let has_more = more != More::default();
        let bytes = size_of::<Answer>() + if has_more { size_of::<More>() } else { 0 } + out.bytes.len();
        if self.allowed < bytes {
            let portion = bytes.max(PORTION);
            let take = |left: usize| left.checked_sub(portion);
            match room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
                Ok(_) => self.allowed += portion,
                Err(_) => self.full = true,
            }
        }
        self.allowed = self.allowed.saturating_sub(bytes);
        let (asked, length) = (hash(call, words, input), out.bytes.len() as u32 | if has_more { HAS_MORE } else { 0 });
        self.answers.push(Answer { asked, call, errno, length });
        if has_more {
            self.bytes.extend_from_slice(bytemuck::bytes_of(&more));
        }
        self.bytes.extend_from_slice(&out.bytes);
        (self.given, self.given_bytes) = (self.answers.len(), self.bytes.len());
    }

    /// Returns whether there was no memory left for the last answer.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Prepares the transcript for the next run.
    pub fn rewind(&mut self) {
        (self.given, self.given_bytes, self.full, self.allowed) = (0, 0, false, 0);
    }

    /// Returns whether this run made other calls than the earlier one, or fewer.
    pub fn deviated(&self) -> bool {
        self.deviated || self.given < self.answers.len()
    }
}

/// Hashes a call, to compare it with that of an earlier run. It runs for every call: it must be fast, and need not be
/// secret.
fn hash(call: Call, words: &[u64], input: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let sum = words.iter().fold(mix(call as u64, input.len() as u64), |sum, word| mix(sum, *word));
    input.chunks(8).fold(sum, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(sum, u64::from_le_bytes(word))
    })
}

/// Computes once more the random bytes that the device gave an instance: see `wasm::runtime::answers`.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    pub key: [u64; 2],
    /// The instance's number in its first run: `Launch::first` plus its slot.
    pub number: u64,
    /// Words that were drawn in this run.
    pub drawn: u64,
}

impl Random {
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
    }

    fn word(&mut self) -> u64 {
        let drawn = self.drawn;
        self.drawn += 1;
        sip_hash(self.key, &[self.number, drawn])
    }
}

/// SipHash-2-4 of whole words.
fn sip_hash([k0, k1]: [u64; 2], words: &[u64]) -> u64 {
    let start = [0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573u64];
    let mut v = [start[0] ^ k0, start[1] ^ k1, start[2] ^ k0, start[3] ^ k1];
    let last = (words.len() as u64 * 8) << 56;
    for word in words.iter().copied().chain([last]) {
        v[3] ^= word;
        (0..2).for_each(|_| sip_round(&mut v));
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    (0..4).for_each(|_| sip_round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn sip_round(v: &mut [u64; 4]) {
    let mut mix = |a: usize, b: usize, by: u32, half: bool| {
        v[a] = v[a].wrapping_add(v[b]);
        v[b] = v[b].rotate_left(by) ^ v[a];
        if half {
            v[a] = v[a].rotate_left(32);
        }
    };
    mix(0, 1, 13, true);
    mix(2, 3, 16, false);
    mix(0, 3, 21, false);
    mix(2, 1, 17, true);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hasher;

    fn asked(transcript: &mut Transcript, room: &AtomicUsize, call: Call, word: u64) -> Answered {
        let mut out = Out::default();
        let (answered, _) = transcript.recall(call, &[word], b"", &mut out);
        if let Answered::Never = answered {
            out.bytes = vec![word as u8];
            transcript.keep(room, (call, &[word], b""), &Reply::Done(Errno::Success), &out, [0; 2]);
        }
        answered
    }

    #[test]
    fn the_second_run_gets_the_answers_of_the_first_and_then_goes_on() {
        let (mut transcript, room) = (Transcript::default(), AtomicUsize::new(1 << 20));
        for word in [1, 2] {
            assert!(matches!(asked(&mut transcript, &room, Call::fd_close, word), Answered::Never));
        }
        transcript.rewind();
        assert!(transcript.deviated(), "it has asked for nothing yet");
        assert!(matches!(asked(&mut transcript, &room, Call::args_sizes_get, 9), Answered::Never));
        for word in [1, 2] {
            let answered = asked(&mut transcript, &room, Call::fd_close, word);
            assert!(matches!(answered, Answered::Was(Reply::Done(Errno::Success))));
        }
        assert!(matches!(asked(&mut transcript, &room, Call::fd_close, 3), Answered::Never));
        assert!(!transcript.is_full() && !transcript.deviated());
    }

    #[test]
    fn another_question_is_told() {
        let (mut transcript, room) = (Transcript::default(), AtomicUsize::new(1 << 20));
        asked(&mut transcript, &room, Call::fd_close, 1);
        for (call, word) in [(Call::fd_close, 2), (Call::fd_sync, 1)] {
            transcript.rewind();
            assert!(matches!(asked(&mut transcript, &room, call, word), Answered::Deviates));
            assert!(transcript.deviated());
        }
    }

    #[test]
    fn a_journal_without_room_says_so_and_what_was_answered_is_kept() {
        let (mut transcript, room) = (Transcript::default(), AtomicUsize::new(PORTION));
        let mut answers = 0;
        while !transcript.is_full() {
            asked(&mut transcript, &room, Call::fd_close, answers);
            answers += 1;
        }
        assert!(transcript.answers.len() as u64 == answers && answers > 10);
        transcript.rewind();
        let more = AtomicUsize::new(1 << 20);
        for word in 0..answers {
            assert!(matches!(asked(&mut transcript, &more, Call::fd_close, word), Answered::Was(_)));
        }
        assert!(matches!(asked(&mut transcript, &more, Call::fd_close, 99), Answered::Never));
        assert!(!transcript.deviated());
    }

    #[test]
    #[allow(deprecated)] // the standard library's own, with a key
    fn random_words_are_siphash() {
        use std::hash::SipHasher;
        for (key, words) in [([1, 2], [3, 4]), ([u64::MAX, 7], [0, 0]), ([0x0706_0504_0302_0100, 9], [u64::MAX, 1])] {
            let mut theirs = SipHasher::new_with_keys(key[0], key[1]);
            words.iter().for_each(|word: &u64| theirs.write(&word.to_le_bytes()));
            assert_eq!(sip_hash(key, &words), theirs.finish());
        }
    }
}
