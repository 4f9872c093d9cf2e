//! Puts compiled functions side by side, and resolves the calls between them.

use super::host::library;
use super::object::{Fixup, Target};
use super::{DATA, FUNCTION, HOST, Native};
use crate::{Error, Result};
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{ExternalName, UserExternalName};
use cranelift_codegen::{FinalizedMachReloc, FinalizedRelocTarget};

const ALIGN: usize = 32;

/// Returns the code, the offset of each function in it, and the addresses that are left to fill in.
pub(super) fn link(functions: &[Native]) -> Result<(Vec<u8>, Vec<u32>, Vec<Fixup>)> {
    let mut total = 0usize;
    let offsets: Vec<usize> = functions
        .iter()
        .map(|f| {
            let at = total;
            total += f.code.code_buffer().len().next_multiple_of(ALIGN);
            at
        })
        .collect();
    if total > i32::MAX as usize {
        return Err(Error::Codegen(format!("{total} bytes of code are more than calls can span")));
    }
    let offsets: Vec<u32> = offsets.into_iter().map(|at| at as u32).collect();
    let (mut bytes, mut fixups) = (vec![0; total], Vec::new());
    for (function, &at) in functions.iter().zip(&offsets) {
        put(function, at, &offsets, &mut bytes, &mut fixups)?;
    }
    Ok((bytes, offsets, fixups))
}

/// Links one function that is placed apart from the others, which are at `offsets` of the module's code. Returns its
/// code, and the addresses that are left to fill in.
pub(super) fn link_one(function: &Native, offsets: &[u32]) -> Result<(Vec<u8>, Vec<Fixup>)> {
    let (mut bytes, mut fixups) = (vec![0; function.code.code_buffer().len()], Vec::new());
    put(function, 0, offsets, &mut bytes, &mut fixups)?;
    Ok((bytes, fixups))
}

fn put(function: &Native, at: u32, offsets: &[u32], bytes: &mut [u8], fixups: &mut Vec<Fixup>) -> Result<()> {
    let code = function.code.code_buffer();
    bytes[at as usize..][..code.len()].copy_from_slice(code);
    for relocation in function.code.buffer.relocs() {
        let target = target(function, relocation, offsets, at)?;
        let at = at + relocation.offset;
        match (relocation.kind, target) {
            (Reloc::Abs8, _) => fixups.push(Fixup { at, target, addend: relocation.addend }),
            (_, Target::Code(target)) => patch(bytes, at as usize, relocation, target)?,
            _ => return Err(unknown(relocation)),
        }
    }
    Ok(())
}

fn unknown(relocation: &FinalizedMachReloc) -> Error {
    Error::Codegen(format!("nothing to resolve {relocation:?} with"))
}

fn target(function: &Native, relocation: &FinalizedMachReloc, offsets: &[u32], own: u32) -> Result<Target> {
    let unknown = || unknown(relocation);
    match &relocation.target {
        FinalizedRelocTarget::Func(offset) => Ok(Target::Code(own + *offset)),
        FinalizedRelocTarget::ExternalName(ExternalName::User(name)) => {
            match function.names.get(name.as_u32() as usize).ok_or_else(unknown)? {
                UserExternalName { namespace: FUNCTION, index } => {
                    offsets.get(*index as usize).copied().map(Target::Code).ok_or_else(unknown)
                }
                UserExternalName { namespace: HOST, index } => Ok(Target::Host(*index)),
                UserExternalName { namespace: DATA, index } => Ok(Target::Data(*index)),
                _ => Err(unknown()),
            }
        }
        FinalizedRelocTarget::ExternalName(ExternalName::LibCall(call)) => {
            library(*call).map(Target::Host).ok_or_else(unknown)
        }
        FinalizedRelocTarget::ExternalName(_) => Err(unknown()),
    }
}

/// Fills in a value relative to the code, which will begin at a page.
fn patch(bytes: &mut [u8], at: usize, relocation: &FinalizedMachReloc, target: u32) -> Result<()> {
    let value = i64::from(target) + relocation.addend;
    let relative = value - at as i64;
    let too_far = || Error::Codegen(format!("a target {relative} bytes away is out of reach"));
    match relocation.kind {
        Reloc::X86PCRel4 | Reloc::X86CallPCRel4 => {
            let relative = i32::try_from(relative).map_err(|_| too_far())?;
            bytes[at..at + 4].copy_from_slice(&relative.to_le_bytes());
        }
        Reloc::Arm64Call => {
            let words = relative / 4;
            if !(-(1 << 25)..1 << 25).contains(&words) {
                return Err(too_far());
            }
            patch_word(bytes, at, 0x03ff_ffff, words as u32);
        }
        Reloc::Aarch64AdrPrelPgHi21 => {
            let pages = (value >> 12) - (at as i64 >> 12);
            patch_word(bytes, at, 0x60ff_ffe0, ((pages as u32 & 3) << 29) | ((pages as u32 >> 2 & 0x7ffff) << 5));
        }
        Reloc::Aarch64AddAbsLo12Nc => patch_word(bytes, at, 0x003f_fc00, (value as u32 & 0xfff) << 10),
        other => return Err(Error::Codegen(format!("a relocation of kind {other} is not known here"))),
    }
    Ok(())
}

/// Replaces the masked bits of an instruction.
fn patch_word(bytes: &mut [u8], at: usize, mask: u32, bits: u32) {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    let patched = (u32::from_le_bytes(word) & !mask) | (bits & mask);
    bytes[at..at + 4].copy_from_slice(&patched.to_le_bytes());
}
