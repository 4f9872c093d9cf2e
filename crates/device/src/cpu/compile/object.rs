//! A compiled module that is nowhere yet: code that calls within itself already, data, and what has to be filled in once both have addresses.
//!
//! This is what is kept of a module on disk. Code lies as it will lie in memory, from the beginning of a page on, so that calls within it
//! and addresses relative to it are final; what is left are whole addresses of data, functions and the host.

use super::host;
use super::{Kernel, Program};
use crate::Result;
use crate::code::{Reader, Writer, not_ours};
use crate::cpu::ast::Type;
use crate::cpu::mapping::{Mapping, PAGE};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

#[derive(Debug, Default, PartialEq)]
pub(in crate::cpu) struct Object<'a> {
    pub(super) code: Cow<'a, [u8]>,
    pub(super) code_fixups: Vec<Fixup>,
    /// The first bytes of the data; the rest is zero.
    pub(super) data: Cow<'a, [u8]>,
    pub(super) data_bytes: u64,
    pub(super) data_fixups: Vec<Fixup>,
    pub(super) kernels: Vec<KernelPlace>,
    pub(super) shared_bytes: u64,
}

/// Eight bytes that become an address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fixup {
    pub(super) at: u32,
    pub(super) target: Target,
    pub(super) addend: i64,
}

/// What an address is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// An offset in the code.
    Code(u32),
    /// An offset in the data.
    Data(u32),
    /// A function of `host`.
    Host(u32),
}

#[derive(Debug, PartialEq)]
pub(super) struct KernelPlace {
    pub(super) name: String,
    /// Offset in the code.
    pub(super) at: u32,
    pub(super) parameters: Vec<Type>,
}

/// The types a kernel's parameter can have, by number.
const TYPES: [Type; 13] = [
    Type::U8,
    Type::S8,
    Type::U16,
    Type::S16,
    Type::U32,
    Type::S32,
    Type::U64,
    Type::S64,
    Type::B32,
    Type::B64,
    Type::F32,
    Type::F64,
    Type::Pred,
];

impl<'a> Object<'a> {
    pub(in crate::cpu) fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.u64(self.shared_bytes);
        w.u64(self.data_bytes);
        w.list(&self.kernels, |w, kernel| {
            w.bytes(kernel.name.as_bytes());
            w.u32(kernel.at);
            w.list(&kernel.parameters, |w, ty| w.u8(TYPES.iter().position(|t| t == ty).unwrap_or_default() as u8));
        });
        for fixups in [&self.code_fixups, &self.data_fixups] {
            w.list(fixups, |w, fixup| {
                let (kind, number) = match fixup.target {
                    Target::Code(at) => (0, at),
                    Target::Data(at) => (1, at),
                    Target::Host(number) => (2, number),
                };
                w.u32(fixup.at);
                w.u8(kind);
                w.u32(number);
                w.u64(fixup.addend as u64);
            });
        }
        w.bytes(&self.data);
        // From the beginning of a page on: it can then run where it is read to.
        w.aligned_bytes(&self.code, PAGE);
        w.done()
    }

    /// Nothing is copied: code goes straight to where it runs.
    pub(in crate::cpu) fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        let (shared_bytes, data_bytes) = (r.u64()?, r.u64()?);
        let kernels = r.list(|r| {
            let (name, at) = (r.string()?, r.u32()?);
            let ty =
                |r: &mut Reader<'_>| TYPES.get(r.u8()? as usize).copied().ok_or_else(|| not_ours("a type is unknown"));
            Ok(KernelPlace { name, at, parameters: r.list(ty)? })
        })?;
        let fixup = |r: &mut Reader<'_>| {
            let (at, kind, number, addend) = (r.u32()?, r.u8()?, r.u32()?, r.u64()? as i64);
            let target = match kind {
                0 => Target::Code(number),
                1 => Target::Data(number),
                2 => Target::Host(number),
                _ => return Err(not_ours("an address is of nothing that is known")),
            };
            Ok(Fixup { at, target, addend })
        };
        let (code_fixups, data_fixups) = (r.list(fixup)?, r.list(fixup)?);
        let (data, code) = (r.bytes()?.into(), r.aligned_bytes()?.into());
        r.end()?;
        Ok(Self { code, code_fixups, data, data_bytes, data_fixups, kernels, shared_bytes })
    }

    /// Gives it addresses, in memory of its own.
    pub(in crate::cpu) fn place(&self) -> Result<Program> {
        let mut code = Mapping::new(self.code.len() as u64)?;
        code.prefer_large_pages();
        code.bytes_mut()[..self.code.len()].copy_from_slice(&self.code);
        self.finish(code, 0, self.code.len())
    }

    /// The same for an object that lies in pages, from `at` on: its code runs where it is.
    pub(in crate::cpu) fn place_in(mut pages: Mapping, at: Range<usize>) -> Result<Program> {
        let start = pages.address() as usize;
        let object = Object::from_bytes(pages.bytes_mut().get(at).ok_or_else(|| not_ours("it is not there"))?)?;
        let (code_at, length) = (object.code.as_ptr() as usize - start, object.code.len());
        if !code_at.is_multiple_of(PAGE) {
            return object.place();
        }
        let data = Cow::Owned(object.data.into_owned());
        let object = Object { code: Cow::Borrowed(&[]), data, ..object };
        object.finish(pages, code_at, length)
    }

    /// Fills addresses in, in code that lies at `at`. It is written while its memory is writable; then it becomes executable and is never written again.
    fn finish(&self, mut code: Mapping, at: usize, length: usize) -> Result<Program> {
        let mut data = Mapping::new(self.data_bytes)?;
        let (code_at, data_at) = (code.address() + at as u64, data.address());
        let address = |target: Target| match target {
            Target::Code(at) if (at as usize) < length => Ok(code_at + u64::from(at)),
            Target::Data(at) if u64::from(at) <= self.data_bytes => Ok(data_at + u64::from(at)),
            Target::Host(number) => {
                host::address(number).map(|a| a as u64).ok_or_else(|| not_ours("a host function is unknown"))
            }
            _ => Err(not_ours("an address is outside")),
        };
        fill(&mut code.bytes_mut()[at..], &self.code_fixups, address)?;
        let room = data.bytes_mut().get_mut(..self.data.len()).ok_or_else(|| not_ours("something is outside"))?;
        room.copy_from_slice(&self.data);
        fill(data.bytes_mut(), &self.data_fixups, address)?;
        code.make_executable_from(at)?;
        let mut kernels = HashMap::new();
        for kernel in &self.kernels {
            let address = address(Target::Code(kernel.at))? as usize;
            kernels.insert(kernel.name.clone(), Kernel { address, parameters: kernel.parameters.clone() });
        }
        let shared_bytes = usize::try_from(self.shared_bytes).ok().filter(|bytes| *bytes <= i32::MAX as usize);
        let shared_bytes = shared_bytes.ok_or_else(|| not_ours("it has too much shared memory"))?;
        Ok(Program { kernels, shared_bytes, _code: code, _data: data })
    }
}

fn fill(room: &mut [u8], fixups: &[Fixup], address: impl Fn(Target) -> Result<u64>) -> Result<()> {
    for fixup in fixups {
        let value = address(fixup.target)?.wrapping_add_signed(fixup.addend);
        let at = fixup.at as usize;
        let place = room.get_mut(at..at + 8).ok_or_else(|| not_ours("something is outside"))?;
        place.copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
