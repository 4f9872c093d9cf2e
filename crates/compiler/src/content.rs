//! Hashes the part of a module that influences what is compiled from it.
//!
//! That is everything except the contents of the sections that hold debug information: DWARF is looked up in the module
//! itself when something traps. It is four fifths of what `cargo build --release` leaves, and hashing it would take a
//! third of the time to start a program that was compiled before. The positions and lengths of those sections are
//! hashed, because traps carry offsets in the whole file.

use gpu_run_cache::Key;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::{Arc, Weak};

/// How many modules' hashes are remembered: each build of a program asks for the hash.
const MAX_REMEMBERED: usize = 4;

/// Returns the hash of what influences compilation, computed once for as long as the module is in memory.
pub(crate) fn sum(wasm: &Arc<Vec<u8>>) -> String {
    // While a weak reference exists, nobody can change the bytes it refers to.
    static KNOWN: Mutex<Vec<(Weak<Vec<u8>>, String)>> = Mutex::new(Vec::new());
    let here = Arc::downgrade(wasm);
    if let Some((_, sum)) = KNOWN.lock().iter().find(|(module, _)| module.ptr_eq(&here)) {
        return sum.clone();
    }
    let sum = of_bytes(wasm);
    let mut known = KNOWN.lock();
    known.retain(|(module, _)| module.strong_count() > 0);
    if known.len() == MAX_REMEMBERED {
        known.remove(0);
    }
    known.push((here, sum.clone()));
    sum
}

fn of_bytes(wasm: &[u8]) -> String {
    // A module that cannot be parsed is hashed as a whole.
    let parts = with_influence(wasm).unwrap_or_else(|| std::iter::once(0..wasm.len()).collect());
    let part = |part: Range<usize>| format!("{part:?} {}", Key::content(&wasm[part.clone()]));
    format!("{} bytes: {}", wasm.len(), parts.into_iter().map(part).collect::<Vec<_>>().join(", "))
}

/// Returns the parts that influence compilation: all but the contents of sections whose name begins with `.debug_`.
fn with_influence(wasm: &[u8]) -> Option<Vec<Range<usize>>> {
    if !wasm.starts_with(b"\0asm\x01\0\0\0") {
        return None;
    }
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 8);
    while at < wasm.len() {
        let custom = wasm[at] == 0;
        at += 1;
        let length = number(wasm, &mut at)?;
        let end = at.checked_add(length).filter(|end| *end <= wasm.len())?;
        if custom {
            let length = number(&wasm[..end], &mut at)?;
            let contents = at.checked_add(length).filter(|contents| *contents <= end)?;
            if wasm[at..contents].starts_with(b".debug_") {
                parts.push(start..contents);
                start = end;
            }
        }
        at = end;
    }
    parts.push(start..wasm.len());
    Some(parts)
}

/// Reads a number in LEB128.
fn number(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0u64;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(value).ok().map(|value| value as usize);
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn module(sections: &[(u8, &str, &[u8])]) -> Vec<u8> {
        let mut bytes = b"\0asm\x01\0\0\0".to_vec();
        for (id, name, contents) in sections {
            let name: Vec<u8> = match id {
                0 => [&[name.len() as u8], name.as_bytes()].concat(),
                _ => Vec::new(),
            };
            bytes.extend([*id, 0x80 | (name.len() + contents.len()) as u8, 0]);
            bytes.extend(name);
            bytes.extend(*contents);
        }
        bytes
    }

    #[test]
    fn only_what_debug_sections_hold_makes_no_difference() {
        let code = (10, "", &b"code"[..]);
        let sum = |sections: &[(u8, &str, &[u8])]| of_bytes(&module(sections));
        let plain = sum(&[code, (0, ".debug_info", b"abc"), (0, "name", b"xyz")]);
        assert_eq!(plain, sum(&[code, (0, ".debug_info", b"cba"), (0, "name", b"xyz")]));
        for other in [
            sum(&[code, (0, ".debug_info", b"abc"), (0, "name", b"xyx")]),
            sum(&[code, (0, ".debug_info", b"abcd"), (0, "name", b"xyz")]),
            sum(&[code, (0, ".debug_line", b"abc"), (0, "name", b"xyz")]),
            sum(&[(0, ".debug_info", b"abc"), code, (0, "name", b"xyz")]),
            sum(&[code, (0, "debug_info_", b"abc"), (0, "name", b"xyz")]),
            sum(&[code, (1, "", b".debug_"), (0, "name", b"xyz")]),
            sum(&[code, (0, "name", b"xyz")]),
        ] {
            assert_ne!(plain, other);
        }
        assert_ne!(sum(&[(10, "", b"a.debug_x")]), sum(&[(10, "", b"a.debug_y")]));
    }

    #[test]
    fn what_is_no_module_is_hashed_as_it_is() {
        let whole = module(&[(10, "", b"code"), (0, ".debug_info", b"abc")]);
        assert!(with_influence(&whole).is_some());
        for length in 0..whole.len() {
            let mut changed = whole[..length].to_vec();
            let before = of_bytes(&changed);
            // Whatever is cut off, the rest counts unless it lies in what was a whole section of debug information.
            if let Some(last) = changed.last_mut() {
                *last ^= 0x55;
                assert_ne!(of_bytes(&changed), before, "{length} bytes");
            }
        }
        for odd in [&b""[..], b"\0asm", b"\0asm\x01\0\0\0\0\xff\xff\xff\xff\xff", b"\0asm\x01\0\0\0\0\x05\xff\xff"] {
            assert_eq!(with_influence(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn the_same_module_is_hashed_once_and_another_is_not_taken_for_it() {
        let (one, two) = (Arc::new(module(&[(10, "", b"one")])), Arc::new(module(&[(10, "", b"two")])));
        let first = sum(&one);
        assert_eq!((sum(&one), sum(&two)), (first.clone(), of_bytes(&two)));
        for n in 0..3 * MAX_REMEMBERED as u8 {
            let other = Arc::new(module(&[(10, "", &[n])]));
            assert_eq!(sum(&other), of_bytes(&other));
        }
        assert_eq!(sum(&one), first);
    }
}
