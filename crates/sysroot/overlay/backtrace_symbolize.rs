//! The functions at the places of calls, as gpu-run finds them in the module.

use super::{BytesOrWideString, ResolveWhat, SymbolName};
use crate::ffi::c_void;
use crate::marker;
use crate::sys::gpu_run::{self, PlacedFunction};

pub unsafe fn resolve(what: ResolveWhat<'_>, cb: &mut dyn FnMut(&super::Symbol)) {
    let place = match what {
        ResolveWhat::Address(place) => place.addr() as u32,
        ResolveWhat::Frame(frame) => frame.inner.place,
    };
    for function in gpu_run::functions_at(place) {
        cb(&super::Symbol { inner: Symbol { function, _marker: marker::PhantomData } });
    }
}

pub struct Symbol<'a> {
    function: PlacedFunction,
    _marker: marker::PhantomData<&'a i32>,
}

impl Symbol<'_> {
    pub fn name(&self) -> Option<SymbolName<'_>> {
        let name = &self.function.name;
        (!name.is_empty()).then(|| SymbolName::new(name))
    }

    pub fn addr(&self) -> Option<*mut c_void> {
        None
    }

    pub fn filename_raw(&self) -> Option<BytesOrWideString<'_>> {
        let file = &self.function.file;
        (!file.is_empty()).then(|| BytesOrWideString::Bytes(file))
    }

    #[cfg(feature = "std")]
    pub fn filename(&self) -> Option<&::std::path::Path> {
        None
    }

    pub fn lineno(&self) -> Option<u32> {
        Some(self.function.line).filter(|line| *line > 0)
    }

    pub fn colno(&self) -> Option<u32> {
        Some(self.function.column).filter(|column| *column > 0)
    }
}

pub unsafe fn clear_symbol_cache() {}
