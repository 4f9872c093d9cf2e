//! `RUST_BACKTRACE`: whether a trap shows which calls led to it.

use crate::args::Variable;
use crate::guest;
use gpu_run_compiler::{Calls, Detail, Trap};
use std::ffi::OsStr;

/// The variable, as Rust's standard library has it.
const VARIABLE: &str = "RUST_BACKTRACE";

/// What the user wants to see of the calls that led to a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted(Option<Detail>);

impl Wanted {
    #[cfg(test)]
    pub(crate) const NOTHING: Self = Self(None);

    /// The guest's variable counts, else our own.
    pub(crate) fn new(env: &[Variable]) -> Self {
        let given = guest::environment(env).into_iter().find(|(name, _)| *name == VARIABLE).map(|(_, value)| value);
        Self::of_value(given.or_else(|| std::env::var_os(VARIABLE)).as_deref())
    }

    fn of_value(value: Option<&OsStr>) -> Self {
        Self(match value {
            None => None,
            Some(value) if value == "0" => None,
            Some(value) if value == "full" => Some(Detail::Full),
            Some(_) => Some(Detail::Short),
        })
    }

    /// Whether programs have to note their calls.
    pub(crate) fn is_any(self) -> bool {
        self.0.is_some()
    }

    /// Returns the lines that follow a trap's message: the backtrace, or how to get one.
    pub(crate) fn lines(self, trap: &Trap) -> String {
        match (&trap.calls, self.0) {
            (Calls::Noted(chain), Some(detail)) => {
                let folder = std::env::current_dir().ok();
                format!("\n{}", chain.backtrace(detail, folder.as_deref()))
            }
            (Calls::NotNoted, None) => {
                format!("\n  note: run with {VARIABLE}=1 to see the functions that led here")
            }
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_read_as_the_standard_library_reads_it() {
        let wanted = |value: &str| Wanted::of_value(Some(value.as_ref())).0;
        assert_eq!(Wanted::of_value(None).0, None);
        assert_eq!(
            [wanted("0"), wanted("1"), wanted("full"), wanted("")],
            [None, Some(Detail::Short), Some(Detail::Full), Some(Detail::Short)]
        );
    }

    #[test]
    fn the_guests_variable_counts_first() {
        let variable = |value: &str| [Variable { name: VARIABLE.into(), value: Some(value.into()) }];
        assert_eq!(Wanted::new(&variable("full")).0, Some(Detail::Full));
        assert_eq!(Wanted::new(&variable("0")).0, None);
    }
}
