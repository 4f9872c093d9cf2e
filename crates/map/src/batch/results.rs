//! How the jobs of a batch ended.
//!
//! A batch has tens of thousands of jobs, and most print a few bytes: their outputs lie one after the other in a few
//! long vectors, not in a vector each. [`Results`] knows where, and returns [`Done`], which borrows.

use gpu_run_run::Denied;
use gpu_run_run::End;
use parking_lot::Mutex;
use std::sync::Arc;

/// How jobs ended, in order.
#[derive(Debug, Default)]
pub struct Results {
    pieces: Vec<Piece>,
}

/// How one job ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done<'a> {
    pub end: &'a End,
    pub stdout: &'a [u8],
    /// The end of stderr, if it is long.
    pub stderr: &'a [u8],
    /// What the instance was refused.
    pub denied: Option<Denied>,
}

/// Results that one thread has collected.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    entries: Vec<Entry>,
    /// For each entry: stdout, then stderr.
    bytes: Vec<u8>,
    /// Outputs that have vectors of their own: stdout and stderr.
    apart: Vec<(Vec<u8>, Vec<u8>)>,
    recycled: Arc<Recycled>,
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.recycled.give(self.apart.drain(..).map(|(stdout, _)| stdout));
    }
}

/// Long vectors that are free again, for the output of later batches: fresh memory costs as much as copying twice.
#[derive(Debug, Default)]
pub(crate) struct Recycled(Mutex<Vec<Vec<u8>>>);

/// Vectors with less capacity than this are not worth keeping.
const MIN_RECYCLED_BYTES: usize = 64 << 10;

impl Recycled {
    /// Returns an empty vector with capacity for `bytes` bytes.
    pub(crate) fn take(&self, bytes: usize) -> Vec<u8> {
        if bytes < MIN_RECYCLED_BYTES {
            return Vec::with_capacity(bytes);
        }
        // Outputs of one program have about the same length, so any vector usually fits. Enlarging one would copy its
        // old content.
        let used = self.0.lock().pop().filter(|vector| vector.capacity() >= bytes);
        used.unwrap_or_else(|| Vec::with_capacity(bytes.next_multiple_of(MIN_RECYCLED_BYTES)))
    }

    fn give(&self, vectors: impl Iterator<Item = Vec<u8>>) {
        let mut long = vectors.filter(|vector| vector.capacity() >= MIN_RECYCLED_BYTES).peekable();
        if long.peek().is_some() {
            self.0.lock().extend(long.map(|mut vector| {
                vector.clear();
                vector
            }));
        }
    }
}

#[derive(Debug)]
struct Entry {
    end: End,
    text: Text,
    denied: Option<Denied>,
}

#[derive(Clone, Copy, Debug)]
enum Text {
    /// In `bytes`, from `at` on.
    Here { at: usize, stdout: u32, stderr: u32 },
    /// In `apart`, at this index.
    Apart(u32),
}

impl Results {
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.entries.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = Done<'_>> {
        self.pieces.iter().flat_map(|piece| piece.entries.iter().map(|entry| piece.done(entry)))
    }

    /// Returns the result at this index. To visit all results, [`Results::iter`] is faster.
    pub fn get(&self, index: usize) -> Option<Done<'_>> {
        let (piece, at) = self.find(index)?;
        Some(self.pieces[piece].done(&self.pieces[piece].entries[at]))
    }

    /// Appends a result.
    pub fn push(&mut self, end: End, stdout: &[u8], stderr: &[u8], denied: Option<Denied>) {
        if self.pieces.is_empty() {
            self.pieces.push(Piece::default());
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.push(end, [stdout], [stderr], denied);
        }
    }

    /// Appends the results of another.
    pub(crate) fn append(&mut self, other: Results) {
        self.pieces.extend(other.pieces);
    }

    fn find(&self, index: usize) -> Option<(usize, usize)> {
        let mut left = index;
        for (at, piece) in self.pieces.iter().enumerate() {
            match left.checked_sub(piece.entries.len()) {
                None => return Some((at, left)),
                Some(rest) => left = rest,
            }
        }
        None
    }
}

impl From<Piece> for Results {
    fn from(piece: Piece) -> Self {
        Self { pieces: vec![piece] }
    }
}

impl From<Vec<Piece>> for Results {
    fn from(pieces: Vec<Piece>) -> Self {
        Self { pieces }
    }
}

impl Piece {
    /// Makes a piece for `count` results. Dropping it gives its long vectors to `recycled`.
    pub(crate) fn new(count: usize, recycled: Arc<Recycled>) -> Self {
        Self { entries: Vec::with_capacity(count), bytes: Vec::new(), apart: Vec::new(), recycled }
    }

    /// Appends a result whose output comes in parts.
    pub(crate) fn push<'a>(
        &mut self,
        end: End,
        stdout: impl IntoIterator<Item = &'a [u8]>,
        stderr: impl IntoIterator<Item = &'a [u8]>,
        denied: Option<Denied>,
    ) {
        let text = self.keep(stdout, stderr);
        self.entries.push(Entry { end, text, denied });
    }

    /// Appends a result whose output has vectors already.
    pub(crate) fn push_apart(&mut self, end: End, stdout: Vec<u8>, stderr: Vec<u8>, denied: Option<Denied>) {
        let text = Text::Apart(self.apart.len() as u32);
        self.apart.push((stdout, stderr));
        self.entries.push(Entry { end, text, denied });
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Takes the result at this index out, and leaves an empty one there.
    pub(crate) fn take(&mut self, at: usize) -> (End, Vec<u8>, Vec<u8>, Option<Denied>) {
        let text = match self.entries[at].text {
            Text::Apart(index) => std::mem::take(&mut self.apart[index as usize]),
            Text::Here { .. } => {
                let Done { stdout, stderr, .. } = self.done(&self.entries[at]);
                (stdout.to_vec(), stderr.to_vec())
            }
        };
        let Entry { end, denied, .. } = &mut self.entries[at];
        (std::mem::replace(end, End::Returned), text.0, text.1, *denied)
    }

    /// Replaces the result at this index.
    pub(crate) fn put(&mut self, at: usize, (end, stdout, stderr, denied): (End, Vec<u8>, Vec<u8>, Option<Denied>)) {
        let text = Text::Apart(self.apart.len() as u32);
        self.apart.push((stdout, stderr));
        self.entries[at] = Entry { end, text, denied };
    }

    fn keep<'a>(
        &mut self,
        stdout: impl IntoIterator<Item = &'a [u8]>,
        stderr: impl IntoIterator<Item = &'a [u8]>,
    ) -> Text {
        let at = self.bytes.len();
        stdout.into_iter().for_each(|part| self.bytes.extend_from_slice(part));
        let middle = self.bytes.len();
        stderr.into_iter().for_each(|part| self.bytes.extend_from_slice(part));
        // Neither is longer than the output of a whole batch may be.
        Text::Here { at, stdout: (middle - at) as u32, stderr: (self.bytes.len() - middle) as u32 }
    }

    fn done<'a>(&'a self, entry: &'a Entry) -> Done<'a> {
        let (stdout, stderr) = match entry.text {
            Text::Here { at, stdout, stderr } => {
                let (stdout, stderr) = (stdout as usize, stderr as usize);
                self.bytes[at..at + stdout + stderr].split_at(stdout)
            }
            Text::Apart(index) => {
                let (stdout, stderr) = &self.apart[index as usize];
                (&stdout[..], &stderr[..])
            }
        };
        Done { end: &entry.end, stdout, stderr, denied: entry.denied }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_vectors_are_used_again() {
        let recycled = Arc::new(Recycled::default());
        let mut piece = Piece::new(2, recycled.clone());
        let mut long = recycled.take(MIN_RECYCLED_BYTES);
        long.extend([7; MIN_RECYCLED_BYTES]);
        let place = long.as_ptr();
        piece.push_apart(End::Returned, long, Vec::new(), None);
        piece.push_apart(End::Returned, b"short".to_vec(), Vec::new(), None);
        drop(Results::from(piece));
        let again = recycled.take(MIN_RECYCLED_BYTES);
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
        assert_eq!(recycled.take(MIN_RECYCLED_BYTES).len(), 0);
        assert!(recycled.0.lock().is_empty());
    }

    #[test]
    fn what_is_put_in_the_place_of_another_leaves_the_rest() {
        let mut first = Piece::default();
        first.push(End::Returned, [&b"a"[..], b"b"], [&b"e"[..]], None);
        first.push_apart(End::Exited(1), b"long".to_vec(), Vec::new(), Some(Denied::Output(1)));
        let mut other = Piece::default();
        other.push(End::Returned, [&b"new"[..]], [&b"err"[..]], None);
        other.push_apart(End::Returned, b"x".to_vec(), Vec::new(), None);
        assert_eq!(other.take(1), (End::Returned, b"x".to_vec(), Vec::new(), None));
        first.put(1, other.take(0));
        let mut results = Results::from(vec![first]);
        results.append(Piece::default().into());
        results.push(End::Returned, b"last", b"", None);
        let seen: Vec<_> = results.iter().map(|done| (done.stdout, done.stderr, done.denied)).collect();
        assert_eq!(seen, [(&b"ab"[..], &b"e"[..], None), (b"new", b"err", None), (b"last", b"", None)]);
        assert_eq!(results.get(2), results.iter().nth(2));
        assert_eq!((results.len(), results.get(3)), (3, None));
    }
}
