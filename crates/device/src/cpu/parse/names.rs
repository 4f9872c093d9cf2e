//! Maps names to numbers, within one function.
//!
//! Nearly every register is one of a family, `%r<1000>`: it is found by its prefix and the number behind it, without
//! hashing.

use crate::cpu::ast::{Register, Type};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The most registers a function may declare: far more than any program has, and fewer than would exhaust memory.
const LIMIT: usize = 1 << 22;

pub(in crate::cpu) type Map<'a, T> = HashMap<&'a str, T, BuildHasherDefault<ShortHasher>>;

/// Names are short and come from our own emitter: multiplying and rotating is enough.
#[derive(Clone, Debug, Default)]
pub(in crate::cpu) struct ShortHasher(u64);

impl Hasher for ShortHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0.rotate_left(5) ^ u64::from_ne_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }
    fn write_u8(&mut self, _end: u8) {}
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

#[derive(Debug, Default)]
pub(super) struct Registers<'a> {
    families: Vec<Family<'a>>,
    named: Map<'a, Register>,
}

#[derive(Debug)]
struct Family<'a> {
    prefix: &'a str,
    first: u32,
    count: u32,
}

impl<'a> Registers<'a> {
    /// Declares one register; `None` if the name is taken or there are too many registers.
    pub(super) fn declare(&mut self, types: &mut Vec<Type>, name: &'a str, ty: Type) -> Option<()> {
        if types.len() >= LIMIT || self.find(name).is_some() {
            return None;
        }
        self.named.insert(name, Register(types.len() as u32));
        types.push(ty);
        Some(())
    }

    /// Declares `prefix0` to `prefix(count-1)`; `None` if the prefix is taken or there are too many registers.
    pub(super) fn declare_family(
        &mut self,
        types: &mut Vec<Type>,
        prefix: &'a str,
        count: u32,
        ty: Type,
    ) -> Option<()> {
        let first = types.len();
        if first + count as usize > LIMIT || self.families.iter().any(|f| f.prefix == prefix) {
            return None;
        }
        types.resize(first + count as usize, ty);
        self.families.push(Family { prefix, first: first as u32, count });
        Some(())
    }

    #[inline]
    pub(super) fn find(&self, name: &str) -> Option<Register> {
        let (prefix, number) = split_number(name);
        if let Some(number) = number
            && let Some(family) = self.families.iter().find(|f| f.prefix == prefix)
            && number < family.count
        {
            return Some(Register(family.first + number));
        }
        self.named.get(name).copied()
    }
}

/// Splits `%r12` into `%r` and 12. A number with a leading zero is part of the name.
#[inline]
fn split_number(name: &str) -> (&str, Option<u32>) {
    let bytes = name.as_bytes();
    let digits = bytes.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let (prefix, number) = name.split_at(name.len() - digits);
    if digits == 0 || digits > 9 || (digits > 1 && number.as_bytes()[0] == b'0') {
        return (name, None);
    }
    (prefix, Some(number.bytes().fold(0, |n, d| n * 10 + (d - b'0') as u32)))
}
