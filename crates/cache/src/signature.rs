//! Signatures of entries that lie where others may write.
//!
//! An entry is code, and its checksums say only that it is whole. What comes from a store that machines share is
//! therefore signed with a key that only these machines have:
//!
//! ```text
//!   0   8  magic
//!   8  32  BLAKE3, keyed, of the length of the name (8 bytes), the name, and the entry's file
//!  40      the entry's file
//! ```
//!
//! The name is the one the entry has in the store. It contains the entry's key, so no signed entry passes for another.

use std::fmt;

const MAGIC: [u8; 8] = *b"GPURUNS\n";
const SIGNATURE: usize = 32;
/// Bytes before the entry's file.
pub(crate) const SEAL_BYTES: usize = MAGIC.len() + SIGNATURE;
/// Bytes that a secret must have: one that can be guessed protects nothing.
const MIN_SECRET: usize = 32;
/// The context string for BLAKE3's key derivation. It changes with the format above.
const CONTEXT: &str = "gpu-run remote cache, signature of an entry, format 1";

/// The key that entries are signed with. It cannot be printed.
#[derive(Clone)]
pub struct SigningKey([u8; 32]);

/// A secret is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {found} characters, but needs at least {MIN_SECRET}: `openssl rand -hex 32` prints a good one")]
pub struct ShortSecret {
    found: usize,
}

impl SigningKey {
    /// Makes a key of a secret text. White space around the text does not count: a file that the text came from may
    /// end with a new line.
    pub fn new(secret: &str) -> Result<Self, ShortSecret> {
        let secret = secret.trim();
        match secret.len() {
            found if found < MIN_SECRET => Err(ShortSecret { found }),
            _ => Ok(Self(blake3::derive_key(CONTEXT, secret.as_bytes()))),
        }
    }

    fn sign(&self, name: &str, file: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes()).update(file);
        hasher.finalize()
    }

    /// Returns the signed form of an entry's file.
    pub(crate) fn seal(&self, name: &str, file: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(SEAL_BYTES + file.len());
        sealed.extend(MAGIC);
        sealed.extend(self.sign(name, file).as_bytes());
        sealed.extend(file);
        sealed
    }

    /// Returns the entry's file in a signed form; `None` if the signature is not right.
    pub(crate) fn open<'a>(&self, name: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (signature, file) = sealed.strip_prefix(&MAGIC)?.split_first_chunk::<SIGNATURE>()?;
        // Compared in a time that does not depend on where they differ.
        (self.sign(name, file) == *signature).then_some(file)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn no_bit_of_a_signed_entry_can_change_and_no_name() {
        let key = SigningKey::new(SECRET).unwrap();
        let sealed = key.seal("cpu/ab", b"code");
        assert_eq!(key.open("cpu/ab", &sealed), Some(&b"code"[..]));
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open("cpu/ab", &changed), None, "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(key.open("cpu/ab", &sealed[..length]), None, "{length} bytes");
        }
        assert_eq!(key.open("cpu/ab", &[&sealed[..], b"x"].concat()), None);
        assert_eq!(key.open("cpu/ac", &sealed), None, "another entry's name");
        // A part of the name cannot pass for a part of the file.
        assert_eq!(key.open("cpu/a", &key.seal("cpu/ab", b"")), None);
        let other = SigningKey::new(&SECRET.replace('0', "1")).unwrap();
        assert_eq!(other.open("cpu/ab", &sealed), None);
    }

    #[test]
    fn a_secret_that_can_be_guessed_is_refused_and_none_is_printed() {
        for short in ["", "secret", "                                  ", &SECRET[1..]] {
            let refused = SigningKey::new(short).unwrap_err().to_string();
            assert!(refused.contains("at least 32") && (short.is_empty() || !refused.contains(short)), "{refused}");
        }
        let key = SigningKey::new(SECRET).unwrap();
        let with_line_end = SigningKey::new(&format!("{SECRET}\n")).unwrap();
        assert_eq!(key.seal("a", b"b"), with_line_end.seal("a", b"b"));
        assert_eq!(format!("{key:?}"), "SigningKey(..)");
    }
}
