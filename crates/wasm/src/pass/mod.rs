//! Passes over CLIF that Cranelift does not have, in the order they run (`translate::optimize`).

pub(crate) mod nan;
pub(crate) mod unroll;
pub(crate) mod wide;
