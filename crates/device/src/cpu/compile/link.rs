//! Puts compiled functions side by side into executable memory.
//!
//! Everything is written and patched while the memory is writable; then it becomes executable and is never written again.

use super::Native;
use crate::cpu::mapping::Mapping;
use crate::{Error, Result};
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{ExternalName, LibCall};
use cranelift_codegen::{FinalizedMachReloc, FinalizedRelocTarget};

const ALIGN: usize = 32;

/// The code, and the address of every function in it.
pub(super) fn link(functions: &[Native]) -> Result<(Mapping, Vec<usize>)> {
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
    let mut mapping = Mapping::new(total as u64)?;
    let base = mapping.address() as usize;
    let addresses: Vec<usize> = offsets.iter().map(|at| base + at).collect();
    let bytes = mapping.bytes_mut();
    for (function, &at) in functions.iter().zip(&offsets) {
        let code = function.code.code_buffer();
        bytes[at..at + code.len()].copy_from_slice(code);
        for relocation in function.code.buffer.relocs() {
            let target = target(function, relocation, &addresses, base + at)?;
            patch(bytes, at + relocation.offset as usize, base, relocation, target)?;
        }
    }
    mapping.make_executable()?;
    Ok((mapping, addresses))
}

fn target(function: &Native, relocation: &FinalizedMachReloc, addresses: &[usize], own: usize) -> Result<usize> {
    let unknown = || Error::Codegen(format!("nothing to resolve {relocation:?} with"));
    match &relocation.target {
        FinalizedRelocTarget::Func(offset) => Ok(own + *offset as usize),
        FinalizedRelocTarget::ExternalName(ExternalName::User(name)) => {
            let index = function.callees.get(name.as_u32() as usize).ok_or_else(unknown)?;
            addresses.get(*index as usize).copied().ok_or_else(unknown)
        }
        FinalizedRelocTarget::ExternalName(ExternalName::LibCall(call)) => library(*call).ok_or_else(unknown),
        FinalizedRelocTarget::ExternalName(_) => Err(unknown()),
    }
}

fn patch(bytes: &mut [u8], at: usize, base: usize, relocation: &FinalizedMachReloc, target: usize) -> Result<()> {
    let value = target as i64 + relocation.addend;
    let relative = value - (base + at) as i64;
    let too_far = || Error::Codegen(format!("a target {relative} bytes away is out of reach"));
    match relocation.kind {
        Reloc::Abs8 => bytes[at..at + 8].copy_from_slice(&value.to_le_bytes()),
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
            let pages = (value >> 12) - ((base + at) as i64 >> 12);
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

/// What Cranelift calls where the machine has no instruction for it.
fn library(call: LibCall) -> Option<usize> {
    macro_rules! table {
        ($($call:ident($($arg:ident),*: $float:ty) => $value:expr,)*) => {
            match call {
                $(LibCall::$call => {
                    extern "C" fn function($($arg: $float),*) -> $float {
                        $value
                    }
                    Some(function as *const () as usize)
                })*
                _ => None,
            }
        };
    }
    table! {
        CeilF32(x: f32) => x.ceil(),
        CeilF64(x: f64) => x.ceil(),
        FloorF32(x: f32) => x.floor(),
        FloorF64(x: f64) => x.floor(),
        TruncF32(x: f32) => x.trunc(),
        TruncF64(x: f64) => x.trunc(),
        NearestF32(x: f32) => x.round_ties_even(),
        NearestF64(x: f64) => x.round_ties_even(),
        FmaF32(a, b, c: f32) => a.mul_add(b, c),
        FmaF64(a, b, c: f64) => a.mul_add(b, c),
    }
}
