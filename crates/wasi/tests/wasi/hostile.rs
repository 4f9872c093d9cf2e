//! What no compiler would emit, but a guest can send.

use crate::guest::*;
use gpu_run_abi::hostcall::{Call, Move};
use gpu_run_wasi::stdio::Null;
use gpu_run_wasi::{Errno, Reply};

fn word_count(call: Call) -> usize {
    call.function().moves.iter().filter(|kind| kind.has_word()).count()
}

#[test]
fn a_wrong_number_of_words_is_refused() {
    let mut guest = Guest::new();
    for &call in Call::ALL.iter().filter(|call| word_count(**call) > 0 && call.function().module != "spectest") {
        for count in (0..10).filter(|count| *count != word_count(call)) {
            let reply = guest.try_call(call, &vec![0; count], b"");
            let refused = matches!(reply, Reply::Done(errno) if errno != Errno::Success);
            assert!(refused, "{call:?} with {count} words: {reply:?}");
        }
    }
}

#[test]
fn input_of_another_length_than_said_is_refused() {
    let mut guest = Guest::new();
    let inval = Reply::Done(Errno::Inval);
    for length in [0, 4, 6, u64::MAX] {
        assert_eq!(guest.try_call(Call::fd_write, &[1, length], b"hello"), inval);
        assert_eq!(guest.try_call(Call::path_create_directory, &[ROOT, length], b"hello"), inval);
    }
    assert_eq!(guest.try_call(Call::path_rename, &[ROOT, u64::MAX, ROOT, 6], b"hello"), inval);
    assert_eq!(guest.try_call(Call::path_rename, &[ROOT, 6, ROOT, u64::MAX], b"hello"), inval);
    assert_eq!(guest.stdout.take(), b"");
}

#[test]
fn rooms_of_any_size_take_no_memory() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "hello");
    for room in [u64::from(u32::MAX), u64::MAX, i64::MAX as u64] {
        assert_eq!(guest.read(0, room).unwrap(), b"");
        assert_eq!(guest.pread(fd, room, 0).unwrap(), b"hello");
        guest.call(Call::fd_readdir, &[ROOT, room, 0], b"").unwrap();
        guest.call(Call::fd_prestat_dir_name, &[ROOT, room], b"").unwrap();
        assert_eq!(guest.call(Call::random_get, &[room], b""), Err(Errno::Nomem));
    }
    assert_eq!(guest.call(Call::random_get, &[64 << 20], b""), Err(Errno::Nomem), "the device asks piece by piece");
    assert!(guest.out.bytes.capacity() < 4 << 20);
}

#[test]
fn a_paths_first_part_may_not_cut_a_letter() {
    let mut guest = Guest::new();
    assert_eq!(guest.call(Call::path_rename, &[ROOT, 1, ROOT, 1], "é".as_bytes()), Err(Errno::Ilseq));
}

/// Calls that nobody would make; the same ones on every run.
pub(crate) struct Random(fastrand::Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.usize(..from.len())]
    }

    /// Small numbers, flags, descriptors, and what lies at the edges.
    fn word(&mut self) -> u64 {
        match self.0.u8(..8) {
            0..4 => self.0.u64(..9),
            4 => 1 << self.0.u32(..64),
            5 => self.pick(&[u64::MAX, u64::from(u32::MAX), i64::MAX as u64, i64::MIN as u64, 1 << 20]),
            6 => self.0.u64(..65536),
            _ => self.0.u64(..),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        const PATHS: [&str; 12] = ["a", "b", "d", "d/e", "../x", "/", ".", "..", "", "a/", "d/../a", "link"];
        if self.0.u8(..4) != 0 {
            return self.pick(&PATHS).into();
        }
        let length = self.pick(&[0, 1, 7, 48, 96, 200]);
        (0..length).map(|_| if self.0.bool() { self.0.u8(..4) } else { self.0.u8(..) }).collect()
    }

    /// Words and input for a call, mostly of the right shape.
    pub(crate) fn arguments(&mut self, call: Call) -> (Vec<u64>, Vec<u8>) {
        let mut words = Vec::new();
        let mut input = Vec::new();
        for kind in call.function().moves.iter().filter(|kind| kind.has_word()) {
            words.push(match kind {
                Move::Input { .. } | Move::Gather { .. } => {
                    let bytes = self.bytes();
                    input.extend_from_slice(&bytes);
                    bytes.len() as u64
                }
                _ => self.word(),
            });
        }
        if self.0.u8(..50) == 0 {
            words.resize(self.0.usize(..9), 3);
        }
        if self.0.u8(..50) == 0 {
            input.truncate(self.0.usize(..4));
        }
        (words, input)
    }
}

#[test]
fn any_calls_with_any_words_never_panic() {
    for seed in 1..=20 {
        let mut random = Random::new(seed);
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut guest = Guest::with(stdin(&[1; 5000]), |builder| {
            builder.preopen_socket(theirs).unwrap();
        });
        std::fs::write(guest.outside().join("x"), "outside").unwrap();
        for _ in 0..3000 {
            let call = random.pick(Call::ALL);
            let (words, input) = random.arguments(call);
            let reply = guest.try_call(call, &words, &input);
            if reply == Reply::Done(Errno::Success) {
                check_shape(call, &words, &guest.out);
            } else {
                assert!(guest.out.bytes.is_empty(), "{call:?} failed and left output");
            }
        }
        assert_eq!(std::fs::read(guest.outside().join("x")).unwrap(), b"outside");
        drop(ours);
    }
}

/// That the output is as long as the row allows.
fn check_shape(call: Call, words: &[u64], out: &gpu_run_wasi::Out) {
    let mut words = words.iter();
    let (mut results, mut room, mut open) = (0, 0u64, false);
    for kind in call.function().moves {
        let word = if kind.has_word() { words.next().copied().unwrap_or(0) } else { 0 };
        match kind {
            Move::Result { bytes, .. } => results += *bytes as usize,
            Move::Output { .. } | Move::Scatter { .. } => room = word,
            Move::Answer { .. } => open = true,
            _ => {}
        }
    }
    let length = out.bytes.len();
    assert!(open || length >= results && (length - results) as u64 <= room, "{call:?}: {length} bytes");
}

#[test]
fn what_is_not_a_socket_cannot_be_given_as_one() {
    let file = tempfile::tempfile().unwrap();
    let mut error = None;
    Guest::with(Null, |builder| error = builder.preopen_socket(file).err());
    assert!(error.unwrap().to_string().contains("socket"));
}
