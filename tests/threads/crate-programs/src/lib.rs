//! What the programs have in common is what those of `std-programs` have.

pub use std_programs::{Random, share, threads};
