//! `RUST_BACKTRACE`: whether a trap shows which calls led to it.

use crate::args::Variable;
use crate::guest;
use gpu_run_compiler::{Calls, Detail, Trap};
use std::ffi::OsStr;

/// The variable, as Rust's standard library has it.
const VARIABLE: &str = "RUST_BACKTRACE";
/// The variable that counts instead for the backtraces that a guest captures itself.
const OF_LIBRARIES: &str = "RUST_LIB_BACKTRACE";

/// What the user wants to see of the calls that led to a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    detail: Option<Detail>,
    /// Whether the guest may capture backtraces.
    captures: bool,
}

impl Wanted {
    #[cfg(test)]
    pub(crate) const NOTHING: Self = Self { detail: None, captures: false };

    /// The guest's variable counts, else our own.
    pub(crate) fn new(env: &[Variable]) -> Self {
        let environment = guest::environment(env);
        let given = |wanted: &str| environment.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone());
        Self {
            detail: Self::of_value(given(VARIABLE).or_else(|| std::env::var_os(VARIABLE)).as_deref()),
            captures: given(OF_LIBRARIES).is_some_and(|value| value != "0"),
        }
    }

    fn of_value(value: Option<&OsStr>) -> Option<Detail> {
        match value {
            None => None,
            Some(value) if value == "0" => None,
            Some(value) if value == "full" => Some(Detail::Full),
            Some(_) => Some(Detail::Short),
        }
    }

    /// Whether programs have to note their calls.
    pub(crate) fn is_any(self) -> bool {
        self.detail.is_some() || self.captures
    }

    /// Returns the lines that follow a trap's message: the backtrace, or how to get one.
    pub(crate) fn lines(self, trap: &Trap) -> String {
        match (&trap.calls, self.detail) {
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
        let wanted = |value: &str| Wanted::of_value(Some(value.as_ref()));
        assert_eq!(Wanted::of_value(None), None);
        assert_eq!(
            [wanted("0"), wanted("1"), wanted("full"), wanted("")],
            [None, Some(Detail::Short), Some(Detail::Full), Some(Detail::Short)]
        );
    }

    #[test]
    fn the_guests_variable_counts_first() {
        let variable = |name: &str, value: &str| [Variable { name: name.into(), value: Some(value.into()) }];
        assert_eq!(Wanted::new(&variable(VARIABLE, "full")).detail, Some(Detail::Full));
        assert_eq!(Wanted::new(&variable(VARIABLE, "0")).detail, None);
    }

    #[test]
    fn a_guest_that_captures_backtraces_notes_its_calls() {
        let captures = |value: &str| {
            let of_libraries = Variable { name: OF_LIBRARIES.into(), value: Some(value.into()) };
            Wanted::new(&[of_libraries, Variable { name: VARIABLE.into(), value: Some("0".into()) }])
        };
        assert!(captures("1").is_any() && captures("1").detail.is_none());
        assert!(!captures("0").is_any());
    }
}
