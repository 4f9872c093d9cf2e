//! Machine code as bytes: how what was made is written down, and read again.
//!
//! Numbers are little-endian, lists begin with their length. Reading never goes beyond the end and never believes a length: bytes that are not
//! what was written are an error, whatever they are.

use crate::{Error, Result};

#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn words(&mut self, words: &[u64]) {
        self.u64(words.len() as u64);
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// Bytes that begin at a multiple of `align`, counted from the beginning of all that is written.
    pub fn aligned_bytes(&mut self, bytes: &[u8], align: usize) {
        let (gap, length) = (size_of::<u32>(), size_of::<u64>());
        let zeros = (self.0.len() + gap + length).wrapping_neg() % align;
        self.u32(zeros as u32);
        self.0.resize(self.0.len() + zeros, 0);
        self.bytes(bytes);
    }

    pub fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.u32(items.len() as u32);
        items.iter().for_each(|i| item(self, i));
    }

    pub fn done(self) -> Vec<u8> {
        self.0
    }
}

#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let cut = usize::try_from(count).ok().and_then(|count| self.0.split_at_checked(count));
        let (taken, rest) = cut.ok_or_else(|| not_ours("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub fn words(&mut self) -> Result<Vec<u64>> {
        let count = self.u64()?;
        let bytes = self.take(count.checked_mul(8).ok_or_else(|| not_ours("it ends too early"))?)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
    }

    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.u64()?;
        self.take(count)
    }

    pub fn aligned_bytes(&mut self) -> Result<&'a [u8]> {
        let zeros = self.u32()?;
        self.take(zeros.into())?;
        self.bytes()
    }

    pub fn string(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| not_ours("a name is not text"))
    }

    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        // Collected one by one: no room is made for a length that may be wrong.
        (0..self.u32()?).map(|_| item(self)).collect()
    }

    pub fn end(self) -> Result<()> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(not_ours("it goes on where it should end")),
        }
    }
}

/// Why bytes are not what this device wrote.
pub fn not_ours(why: &str) -> Error {
    Error::Codegen(format!("this is not machine code that was compiled here: {why}"))
}
