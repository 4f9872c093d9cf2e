//! The calls that gpu-run has noted. Other hosts note none.

use crate::ffi::c_void;
use crate::ptr::{null_mut, without_provenance_mut};
use crate::sys::gpu_run;

pub unsafe fn trace(cb: &mut dyn FnMut(&super::Frame) -> bool) {
    for place in gpu_run::calls() {
        if !cb(&super::Frame { inner: Frame { place } }) {
            return;
        }
    }
}

#[derive(Clone)]
pub struct Frame {
    /// Where in the module's file the call is.
    pub place: u32,
}

impl Frame {
    pub fn ip(&self) -> *mut c_void {
        without_provenance_mut(self.place as usize)
    }

    pub fn sp(&self) -> *mut c_void {
        null_mut()
    }

    pub fn symbol_address(&self) -> *mut c_void {
        null_mut()
    }

    pub fn module_base_address(&self) -> Option<*mut c_void> {
        None
    }
}
