//! Passes over CLIF that Cranelift does not have. `translate::optimize` runs `nan` before Cranelift's optimiser, `wide`
//! and `unroll` after it.

pub(crate) mod nan;
pub(crate) mod unroll;
pub(crate) mod wide;
