//! What the programs share.

use std::io::{ErrorKind, Result};

/// Prints expressions with their values, a line each.
#[macro_export]
macro_rules! show {
    ($($expression:expr),+ $(,)?) => { $(println!("{} = {:?}", stringify!($expression), $expression);)+ };
}

/// A result without what each system words in its own way.
pub fn kind<T>(result: Result<T>) -> std::result::Result<T, ErrorKind> {
    result.map_err(|error| error.kind())
}

/// The same of a result that is not to be printed.
pub fn done<T>(result: Result<T>) -> std::result::Result<(), ErrorKind> {
    kind(result).map(drop)
}
