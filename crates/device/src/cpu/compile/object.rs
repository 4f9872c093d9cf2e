//! A compiled module that is nowhere yet: code that calls within itself already, data, and what has to be filled in once both have addresses.
//!
//! This is what is kept of a module on disk. Code lies as it will lie in memory, from the beginning of a page on, so that calls within it
//! and addresses relative to it are final; what is left are whole addresses of data, functions and the host.

use super::host;
use super::late::Called;
use super::{Kernel, Options, Program};
use crate::Result;
use crate::code::{Reader, Writer, not_ours};
use crate::cpu::ast::Type;
use crate::cpu::mapping::{Mapping, PAGE};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

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
    /// Functions that are compiled when they are first called.
    pub(super) late: Option<LateObject<'a>>,
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
    /// A function that is compiled when it is first called, by its number: until then, what lets it be compiled.
    Late(u32),
}

/// What functions are made of that are compiled when they are first called, and those that are.
#[derive(Debug, Default, PartialEq)]
pub(in crate::cpu) struct LateObject<'a> {
    pub(super) text: Cow<'a, str>,
    /// By function, where it is in the code, or what lets it be compiled.
    pub(super) offsets: Vec<u32>,
    pub(super) made: Vec<Made<'a>>,
}

/// A function that was compiled by itself. Its code can be anywhere: whole addresses are all it knows.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cpu) struct Made<'a> {
    pub(super) function: u32,
    pub(super) code: Cow<'a, [u8]>,
    pub(super) fixups: Vec<Fixup>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct KernelPlace {
    pub(super) name: String,
    /// Offset in the code.
    pub(super) at: u32,
    pub(super) parameters: Vec<Type>,
}

impl Made<'_> {
    pub(super) fn owned(&self) -> Made<'static> {
        Made { function: self.function, code: Cow::Owned(self.code.to_vec()), fixups: self.fixups.clone() }
    }
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
        let made: Vec<_> = self.late.iter().flat_map(|late| &late.made).collect();
        self.to_bytes_with(&made)
    }

    /// With these functions, of those that are compiled when they are first called.
    pub(super) fn to_bytes_with(&self, made: &[&Made<'_>]) -> Vec<u8> {
        let mut w = Writer::default();
        w.u64(self.shared_bytes);
        w.u64(self.data_bytes);
        w.list(&self.kernels, |w, kernel| {
            w.bytes(kernel.name.as_bytes());
            w.u32(kernel.at);
            w.list(&kernel.parameters, |w, ty| w.u8(TYPES.iter().position(|t| t == ty).unwrap_or_default() as u8));
        });
        for fixups in [&self.code_fixups, &self.data_fixups] {
            write_fixups(&mut w, fixups);
        }
        w.bytes(&self.data);
        w.u8(u8::from(self.late.is_some()));
        if let Some(LateObject { text, offsets, .. }) = &self.late {
            w.list(offsets, |w, at| w.u32(*at));
            w.list(made, |w, Made { function, code, fixups }| {
                w.u32(*function);
                write_fixups(w, fixups);
                w.bytes(code);
            });
            w.bytes(text.as_bytes());
        }
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
        let (code_fixups, data_fixups) = (r.list(read_fixup)?, r.list(read_fixup)?);
        let data = r.bytes()?.into();
        let late = match r.u8()? {
            0 => None,
            1 => {
                let offsets = r.list(|r| r.u32())?;
                let made = r.list(|r| {
                    let (function, fixups) = (r.u32()?, r.list(read_fixup)?);
                    Ok(Made { function, fixups, code: r.bytes()?.into() })
                })?;
                let text = std::str::from_utf8(r.bytes()?).map_err(|_| not_ours("the PTX is not text"))?;
                Some(LateObject { text: text.into(), offsets, made })
            }
            _ => return Err(not_ours("it is of a kind that is unknown")),
        };
        let code = r.aligned_bytes()?.into();
        r.end()?;
        Ok(Self { code, code_fixups, data, data_bytes, data_fixups, kernels, shared_bytes, late })
    }

    /// The same with bytes of its own, without the functions that were compiled when they were called.
    fn owned(&self) -> Object<'static> {
        let own = |bytes: &Cow<'_, [u8]>| Cow::Owned(bytes.to_vec());
        let late = self.late.as_ref().map(|LateObject { text, offsets, .. }| LateObject {
            text: Cow::Owned(text.to_string()),
            offsets: offsets.clone(),
            made: Vec::new(),
        });
        Object {
            code: own(&self.code),
            code_fixups: self.code_fixups.clone(),
            data: own(&self.data),
            data_bytes: self.data_bytes,
            data_fixups: self.data_fixups.clone(),
            kernels: self.kernels.clone(),
            shared_bytes: self.shared_bytes,
            late,
        }
    }

    /// Gives it addresses, in memory of its own.
    pub(in crate::cpu) fn place(&self, options: Options) -> Result<Program> {
        let mut code = Mapping::new(self.code.len() as u64)?;
        code.prefer_large_pages();
        code.bytes_mut()[..self.code.len()].copy_from_slice(&self.code);
        self.finish(code, 0, self.code.len(), options)
    }

    /// The same for an object that lies in pages, from `at` on: its code runs where it is.
    pub(in crate::cpu) fn place_in(mut pages: Mapping, at: Range<usize>, options: Options) -> Result<Program> {
        let start = pages.address() as usize;
        let object = Object::from_bytes(pages.bytes_mut().get(at).ok_or_else(|| not_ours("it is not there"))?)?;
        let (code_at, length) = (object.code.as_ptr() as usize - start, object.code.len());
        // What is compiled later needs the text as well, which the pages are most of.
        if !code_at.is_multiple_of(PAGE) || object.late.is_some() {
            return object.place(options);
        }
        let data = Cow::Owned(object.data.into_owned());
        let object = Object { code: Cow::Borrowed(&[]), data, late: None, ..object };
        object.finish(pages, code_at, length, options)
    }

    /// Fills addresses in, in code that lies at `at`. It is written while its memory is writable; then it becomes executable and is never written again.
    fn finish(&self, mut code: Mapping, at: usize, length: usize, options: Options) -> Result<Program> {
        let mut data = Mapping::new(self.data_bytes)?;
        let late = self.late.as_ref();
        let offsets = late.map_or_else(Vec::new, |late| late.offsets.clone());
        let addresses = Addresses {
            code: code.address() + at as u64,
            code_bytes: length,
            data: data.address(),
            data_bytes: self.data_bytes,
            offsets,
        };
        let made = late.map_or(&[][..], |late| &late.made).iter();
        let made = made.map(|made| Ok((made.function, place(made, &addresses)?))).collect::<Result<Vec<_>>>()?;
        let places: HashMap<u32, u64> = made.iter().map(|(function, code)| (*function, code.address())).collect();
        let address = |target: Target| match target {
            Target::Late(function) if places.contains_key(&function) => Ok(places[&function]),
            target => addresses.of(target),
        };
        fill(&mut code.bytes_mut()[at..], &self.code_fixups, address)?;
        let room = data.bytes_mut().get_mut(..self.data.len()).ok_or_else(|| not_ours("something is outside"))?;
        room.copy_from_slice(&self.data);
        fill(data.bytes_mut(), &self.data_fixups, address)?;
        code.make_executable_from(at)?;
        let mut kernels = HashMap::new();
        for kernel in &self.kernels {
            let address = addresses.of(Target::Code(kernel.at))? as usize;
            kernels.insert(kernel.name.clone(), Kernel { address, parameters: kernel.parameters.clone() });
        }
        let shared_bytes = usize::try_from(self.shared_bytes).ok().filter(|bytes| *bytes <= i32::MAX as usize);
        let shared_bytes = shared_bytes.ok_or_else(|| not_ours("it has too much shared memory"))?;
        let data = Arc::new(data);
        let late = late.map(|late| Called::new(self.owned(), late, made, addresses, data.clone(), options));
        Ok(Program { kernels, shared_bytes, late, _code: code, _data: data })
    }
}

/// Where everything is.
#[derive(Debug)]
pub(super) struct Addresses {
    code: u64,
    code_bytes: usize,
    data: u64,
    data_bytes: u64,
    /// Of functions that are compiled later, in the code.
    offsets: Vec<u32>,
}

impl Addresses {
    pub(super) fn of(&self, target: Target) -> Result<u64> {
        match target {
            Target::Code(at) if (at as usize) < self.code_bytes => Ok(self.code + u64::from(at)),
            Target::Data(at) if u64::from(at) <= self.data_bytes => Ok(self.data + u64::from(at)),
            Target::Late(function) => {
                let at = self.offsets.get(function as usize).ok_or_else(|| not_ours("there is no such function"))?;
                self.of(Target::Code(*at))
            }
            Target::Host(number) => {
                host::address(number).map(|a| a as u64).ok_or_else(|| not_ours("a host function is unknown"))
            }
            _ => Err(not_ours("an address is outside")),
        }
    }
}

/// Gives a function that was compiled by itself a place of its own.
pub(super) fn place(made: &Made<'_>, addresses: &Addresses) -> Result<Mapping> {
    let mut code = Mapping::new(made.code.len() as u64)?;
    code.bytes_mut()[..made.code.len()].copy_from_slice(&made.code);
    fill(code.bytes_mut(), &made.fixups, |target| addresses.of(target))?;
    code.make_executable_from(0)?;
    Ok(code)
}

fn write_fixups(w: &mut Writer, fixups: &[Fixup]) {
    w.list(fixups, |w, fixup| {
        let (kind, number) = match fixup.target {
            Target::Code(at) => (0, at),
            Target::Data(at) => (1, at),
            Target::Host(number) => (2, number),
            Target::Late(function) => (3, function),
        };
        w.u32(fixup.at);
        w.u8(kind);
        w.u32(number);
        w.u64(fixup.addend as u64);
    });
}

fn read_fixup(r: &mut Reader<'_>) -> Result<Fixup> {
    let (at, kind, number, addend) = (r.u32()?, r.u8()?, r.u32()?, r.u64()? as i64);
    let target = match kind {
        0 => Target::Code(number),
        1 => Target::Data(number),
        2 => Target::Host(number),
        3 => Target::Late(number),
        _ => return Err(not_ours("an address is of nothing that is known")),
    };
    Ok(Fixup { at, target, addend })
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
