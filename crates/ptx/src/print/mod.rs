//! From CLIF instructions to lines of PTX.

pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod control;
pub(crate) mod division;
pub(crate) mod float;
pub(crate) mod gang;
pub(crate) mod integer;
pub(crate) mod memory;
pub(crate) mod operand;
pub(crate) mod register;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod trap;
pub(crate) mod vector;
