//! A compiled module without an address: code, data, and what has to be filled in once both have addresses.
//!
//! This is the form in which a module is kept on disk. The code lies as it will lie in memory, from the start of a page
//! on, so calls within it and addresses relative to it are final. Only full addresses of data, functions and the host
//! are left to fill in.

use super::host;
use super::late::Called;
use super::{Kernel, Options, Program};
use crate::Result;
use crate::code::{not_ours, pack, unpack};
use crate::cpu::ast::Type;
use crate::cpu::mapping::{Mapping, PAGE};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::cpu) struct Object<'a> {
    /// Stored behind everything else, from the start of a page on, so that it can run where it was read to.
    #[serde(skip)]
    pub(super) code: Cow<'a, [u8]>,
    pub(super) code_fixups: Vec<Fixup>,
    /// The first bytes of the data; the rest is zero.
    #[serde(borrow)]
    pub(super) data: Cow<'a, [u8]>,
    pub(super) data_bytes: u64,
    pub(super) data_fixups: Vec<Fixup>,
    pub(super) kernels: Vec<KernelPlace>,
    pub(super) shared_bytes: u64,
    /// Functions that are compiled when they are first called.
    pub(super) late: Option<LateObject<'a>>,
}

/// Eight bytes that become an address.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Fixup {
    pub(super) at: u32,
    pub(super) target: Target,
    pub(super) addend: i64,
}

/// What an address refers to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Target {
    /// An offset in the code.
    Code(u32),
    /// An offset in the data.
    Data(u32),
    /// A function of `host`, by number.
    Host(u32),
    /// A function that is compiled when it is first called, by number; until then, the address is its stub's.
    Late(u32),
}

/// The functions that are compiled when they are first called: their PTX, and those compiled so far.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::cpu) struct LateObject<'a> {
    #[serde(borrow)]
    pub(super) text: Cow<'a, str>,
    /// Offset in the code of each function, or of its stub.
    pub(super) offsets: Vec<u32>,
    pub(super) made: Vec<Made<'a>>,
}

/// A function that was compiled by itself. Its code can be anywhere, because it contains only full addresses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::cpu) struct Made<'a> {
    pub(super) function: u32,
    #[serde(borrow)]
    pub(super) code: Cow<'a, [u8]>,
    pub(super) fixups: Vec<Fixup>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl<'a> Object<'a> {
    pub(in crate::cpu) fn to_bytes(&self) -> Result<Vec<u8>> {
        pack(self, &self.code, PAGE)
    }

    /// Reads an object. Nothing is copied: the code is later copied straight to where it runs.
    pub(in crate::cpu) fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        let (object, code) = unpack::<Object<'a>>(bytes, PAGE)?;
        Ok(Self { code: code.into(), ..object })
    }

    /// Returns a copy that owns its bytes, without the functions that were compiled when they were called.
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

    /// Returns a copy that contains these functions compiled when they were called.
    pub(super) fn with_made<'m>(&self, made: impl Iterator<Item = &'m Made<'static>>) -> Object<'static> {
        let mut object = self.owned();
        if let Some(late) = &mut object.late {
            late.made.extend(made.cloned());
        }
        object
    }

    /// Places the object in memory of its own.
    pub(in crate::cpu) fn place(&self, options: Options) -> Result<Program> {
        let mut code = Mapping::new(self.code.len() as u64)?;
        code.prefer_large_pages();
        code.bytes_mut()[..self.code.len()].copy_from_slice(&self.code);
        self.finish(code, 0, self.code.len(), options)
    }

    /// Places the object that lies in this range of `pages`: its code runs where it is, if it begins with a page.
    pub(in crate::cpu) fn place_in(mut pages: Mapping, at: Range<usize>, options: Options) -> Result<Program> {
        let start = pages.address() as usize;
        let object = Object::from_bytes(pages.bytes_mut().get(at).ok_or_else(|| not_ours("it has no such range"))?)?;
        let (code_at, length) = (object.code.as_ptr() as usize - start, object.code.len());
        // Functions that are compiled later need the text, which makes up most of the pages: copy the code out instead.
        if !code_at.is_multiple_of(PAGE) || object.late.is_some() {
            return object.place(options);
        }
        let data = Cow::Owned(object.data.into_owned());
        let object = Object { code: Cow::Borrowed(&[]), data, late: None, ..object };
        object.finish(pages, code_at, length, options)
    }

    /// Fills in the addresses in code that lies at `at`. The code is written while its memory is writable; then it
    /// becomes executable and is never written again.
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

/// The addresses of a placed module.
#[derive(Debug)]
pub(super) struct Addresses {
    code: u64,
    code_bytes: usize,
    data: u64,
    data_bytes: u64,
    /// Offsets in the code of functions that are compiled later, or of their stubs.
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

/// Places a function that was compiled by itself in a mapping of its own.
pub(super) fn place(made: &Made<'_>, addresses: &Addresses) -> Result<Mapping> {
    let mut code = Mapping::new(made.code.len() as u64)?;
    code.bytes_mut()[..made.code.len()].copy_from_slice(&made.code);
    fill(code.bytes_mut(), &made.fixups, |target| addresses.of(target))?;
    code.make_executable_from(0)?;
    Ok(code)
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
