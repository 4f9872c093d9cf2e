//! What can be known of a function before it is printed.

pub(crate) mod branch_table;
pub(crate) mod moves;
pub(crate) mod range;
pub(crate) mod schedule;
