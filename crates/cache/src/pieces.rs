//! BLAKE3 sums of large inputs on several cores, and the threads for them.
//!
//! BLAKE3 is a tree: subtrees can be summed independently and joined to the sum of the whole. Small inputs are summed
//! on the calling thread.

use blake3::hazmat::{ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root};
use parking_lot::Mutex;
use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a piece. For fewer than two pieces, starting a thread costs more than it saves.
const PIECE: usize = 1 << 20;
/// Maximum number of threads.
const THREADS: usize = 8;

/// Returns the BLAKE3 sum of `bytes`.
pub(crate) fn sum(bytes: &[u8]) -> [u8; 32] {
    if bytes.len() <= PIECE {
        return *blake3::hash(bytes).as_bytes();
    }
    let (left, right) = bytes.split_at(left_subtree_len(bytes.len() as u64) as usize);
    let pieces: Vec<(usize, &[u8])> = subtrees(left, 0).into_iter().chain(subtrees(right, left.len())).collect();
    let sums = Mutex::new(vec![ChainingValue::default(); pieces.len()]);
    share(pieces.len(), pieces.len() / 2, |index| {
        let (at, piece) = pieces[index];
        let value = blake3::Hasher::new().set_input_offset(at as u64).update(piece).finalize_non_root();
        sums.lock()[index] = value;
    });
    let sums = sums.into_inner();
    let mut next = sums.into_iter();
    let (left, right) = (join(left, &mut next), join(right, &mut next));
    *merge_subtrees_root(&left, &right, Mode::Hash).as_bytes()
}

/// Splits a subtree into subtrees of at most [`PIECE`] bytes. Returns them from left to right, each with its offset.
fn subtrees(bytes: &[u8], at: usize) -> Vec<(usize, &[u8])> {
    if bytes.len() <= PIECE {
        return vec![(at, bytes)];
    }
    let (left, right) = bytes.split_at(left_subtree_len(bytes.len() as u64) as usize);
    let mut parts = subtrees(left, at);
    parts.extend(subtrees(right, at + left.len()));
    parts
}

/// Returns the chaining value of a subtree, given the values of its pieces from left to right.
fn join(bytes: &[u8], values: &mut impl Iterator<Item = ChainingValue>) -> ChainingValue {
    if bytes.len() <= PIECE {
        return values.next().unwrap_or_default();
    }
    let (left, right) = bytes.split_at(left_subtree_len(bytes.len() as u64) as usize);
    let left = join(left, values);
    merge_subtrees_non_root(&left, &join(right, values), Mode::Hash)
}

/// Calls `work` for each number below `count`, on at most `most` threads.
pub(crate) fn share(count: usize, most: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let some = || {
        while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < count) {
            work(index);
        }
    };
    // Asking the system for the number of cores is slow, so it is asked once.
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get));
    let threads = cores.min(THREADS).min(most).min(count);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread cannot be started, the others do its work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, some);
        }
        some();
    });
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn noise(length: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(1);
        (0..length).map(|i| if i % 5 < 2 { random.u8(..) } else { 7 }).collect()
    }

    #[test]
    fn the_sum_of_pieces_is_the_sum_of_the_whole() {
        for length in [0, 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE - 1, 5 * PIECE + 1234, 8 * PIECE, 9 * PIECE + 1] {
            let bytes = noise(length);
            assert_eq!(sum(&bytes), *blake3::hash(&bytes).as_bytes(), "{length} bytes");
        }
    }
}
