//! Finds the name of a thread in the guest's memory.
//!
//! The name of a Rust thread is nowhere else on this target. std keeps two thread-local variables: the thread's
//! identifier, and a pointer to what it knows about the thread: the identifier again, and the name, which ends with a NUL
//! byte. So a word of the thread-local variables is that pointer if both identifiers are the same. A name that is not
//! found this way is not known: other versions of std, and other languages, may lay out their memory otherwise.

/// The most bytes of thread-local variables that are searched.
const MAX_TLS: u32 = 64 << 10;
/// The most bytes of a name.
const MAX_NAME: u32 = 256;
/// No program starts more threads than this.
const MAX_ID: u64 = 1 << 32;
/// Parts of what std knows about a thread (`std::thread::Inner`, which lies in an `Arc`): where they are, from the place
/// that the pointer points at.
const ID: u32 = 0;
const NAME: u32 = 8;
const BYTES: u32 = 16;

/// Reads guest memory; returns whether all of it is there.
pub(crate) type Guest<'a> = &'a dyn Fn(u32, &mut [u8]) -> bool;

/// The thread-local variables of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tls {
    at: u32,
    bytes: u32,
}

/// Returns where a thread's variables are, given its globals: wasm-ld numbers `__stack_pointer`, `__tls_base`,
/// `__tls_size` and `__tls_align` from 0.
pub(crate) fn tls(global: impl Fn(usize) -> Option<u32>) -> Option<Tls> {
    let (at, bytes, align) = (global(1)?, global(2)?, global(3)?);
    let is_plausible = at > 0 && align.is_power_of_two() && at.is_multiple_of(align) && (1..=MAX_TLS).contains(&bytes);
    is_plausible.then_some(Tls { at, bytes })
}

/// Returns the name of the thread that these variables belong to.
pub(crate) fn find(tls: Tls, guest: &Guest<'_>) -> Option<String> {
    let mut bytes = vec![0; tls.bytes as usize];
    if !guest(tls.at, &mut bytes) {
        return None;
    }
    let words: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let ids: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    words.into_iter().find_map(|pointer| name_at(pointer, &ids, guest))
}

/// Returns the name, if the pointer leads to one of these identifiers and a name.
fn name_at(pointer: u32, ids: &[u64], guest: &Guest<'_>) -> Option<String> {
    if pointer == 0 || !pointer.is_multiple_of(8) {
        return None;
    }
    let mut inner = [0; BYTES as usize];
    if !guest(pointer, &mut inner) {
        return None;
    }
    let word = |at: u32| Some(u32::from_le_bytes(*inner.get(at as usize..)?.first_chunk()?));
    let id = u64::from(word(ID)?) | u64::from(word(ID + 4)?) << 32;
    if !(1..MAX_ID).contains(&id) || !ids.contains(&id) {
        return None;
    }
    let (at, length) = (word(NAME)?, word(NAME + 4)?);
    if at == 0 || !(2..=MAX_NAME + 1).contains(&length) {
        return None;
    }
    let mut name = vec![0; length as usize];
    if !guest(at, &mut name) || name.pop() != Some(0) || name.contains(&0) {
        return None;
    }
    String::from_utf8(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TLS: Tls = Tls { at: 64, bytes: 32 };

    /// A memory as a thread of std has it: its variables at 64, what std knows at 128, the name at 200.
    fn memory(name: &[u8]) -> Vec<u8> {
        let mut memory = vec![0; 512];
        let mut put = |at: usize, bytes: &[u8]| memory[at..at + bytes.len()].copy_from_slice(bytes);
        put(72, &7u64.to_le_bytes());
        put(84, &128u32.to_le_bytes());
        put(128, &7u64.to_le_bytes());
        put(136, &200u32.to_le_bytes());
        put(140, &(name.len() as u32).to_le_bytes());
        put(200, name);
        memory
    }

    fn found(memory: &[u8]) -> Option<String> {
        let read = |at: u32, bytes: &mut [u8]| match memory.get(at as usize..at as usize + bytes.len()) {
            Some(found) => {
                bytes.copy_from_slice(found);
                true
            }
            None => false,
        };
        find(TLS, &(&read as Guest<'_>))
    }

    #[test]
    fn the_name_is_found() {
        assert_eq!(found(&memory(b"worker\0")), Some("worker".into()));
    }

    #[test]
    fn what_is_no_name_is_not_taken_for_one() {
        for name in [&b"worker"[..], b"\0", b"a\0b\0", b"\xff\xfe\0", b""] {
            assert_eq!(found(&memory(name)), None, "{name:?}");
        }
        let mut other = memory(b"worker\0");
        other[128] = 8;
        assert_eq!(found(&other), None, "the identifiers differ");
    }

    /// Whatever is in the memory, nothing is read outside of it and nothing panics.
    #[test]
    fn any_memory_is_survived() {
        let mut random = 1u64;
        for _ in 0..2000 {
            let mut memory = memory(b"worker\0");
            for _ in 0..8 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                memory[64 + (random >> 33) as usize % 84] = (random >> 56) as u8;
            }
            found(&memory);
        }
    }

    #[test]
    fn globals_that_are_not_wasm_lds_lead_nowhere() {
        let tls = |globals: &[u32]| tls(|index| globals.get(index).copied());
        assert_eq!(tls(&[1 << 20, 1024, 192, 8]), Some(Tls { at: 1024, bytes: 192 }));
        for globals in
            [&[1 << 20][..], &[0, 0, 192, 8], &[0, 1024, u32::MAX, 8], &[0, 1024, 192, 3], &[0, 1025, 192, 8]]
        {
            assert_eq!(tls(globals), None, "{globals:?}");
        }
    }
}
