//! Machine code as bytes on a disk: a header of any type, then the code.
//!
//! ```text
//! length of the header (u64) │ length of the code (u64) │ header, in postcard's format │ zeros │ code, at a multiple of its alignment
//! ```
//!
//! Reading never goes beyond the end and never trusts a length: bytes that [`pack`] did not write are an error.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

const LENGTHS: usize = 2 * size_of::<u64>();

/// Returns the header followed by the code, which begins at a multiple of `align`.
pub fn pack(header: &impl Serialize, code: &[u8], align: usize) -> Result<Vec<u8>> {
    let mut bytes = postcard::to_extend(header, vec![0; LENGTHS])
        .map_err(|error| Error::Codegen(format!("cannot encode machine code: {error}")))?;
    let header = bytes.len() - LENGTHS;
    bytes[..LENGTHS / 2].copy_from_slice(&(header as u64).to_le_bytes());
    bytes[LENGTHS / 2..LENGTHS].copy_from_slice(&(code.len() as u64).to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(align), 0);
    bytes.extend_from_slice(code);
    Ok(bytes)
}

/// Reads what [`pack`] wrote with the same alignment.
pub fn unpack<'a, H: Deserialize<'a>>(bytes: &'a [u8], align: usize) -> Result<(H, &'a [u8])> {
    let short = || not_ours("it is cut short");
    let (lengths, rest) = bytes.split_at_checked(LENGTHS).ok_or_else(short)?;
    let length = |at: usize| {
        let word = lengths[at..].first_chunk().map_or(u64::MAX, |word| u64::from_le_bytes(*word));
        usize::try_from(word).map_err(|_| short())
    };
    let (header_bytes, code_bytes) = (length(0)?, length(LENGTHS / 2)?);
    let (header, _) = rest.split_at_checked(header_bytes).ok_or_else(short)?;
    let code = bytes.get((LENGTHS + header_bytes).next_multiple_of(align)..).ok_or_else(short)?;
    if code.len() != code_bytes {
        return Err(not_ours("its code has the wrong length"));
    }
    let (header, rest) = postcard::take_from_bytes(header).map_err(|error| not_ours(&error.to_string()))?;
    match rest.is_empty() {
        true => Ok((header, code)),
        false => Err(not_ours("its header is too long")),
    }
}

/// The error for bytes that this device did not write; `why` gives the reason.
pub fn not_ours(why: &str) -> Error {
    Error::Codegen(format!("this is not machine code that was compiled here: {why}"))
}
