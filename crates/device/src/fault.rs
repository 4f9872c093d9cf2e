//! A device that is lost on purpose, so that what is built on it can be tested.
//!
//! With `GPU_RUN_TEST_FAULT=launch:N` in the environment the N-th launch of the process, counted from 1 over all its
//! devices, faults; `launch:N,M` is two of them. On `cuda` a kernel stores where it must not, and the context is lost for good. On `cpu`
//! the launch says [`Error::Fault`] and the device refuses everything from then on, as a lost context does. A device that is
//! opened anew works, until its turn comes; on a real GPU, only in another process.
//!
//! This is the only place that knows the variable. It is read once; a process that another takes the place of hands on what is left
//! of the plan.

use crate::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const VARIABLE: &str = "GPU_RUN_TEST_FAULT";

static LAUNCHES: AtomicU64 = AtomicU64::new(0);

fn plan() -> &'static [u64] {
    static PLAN: OnceLock<Vec<u64>> = OnceLock::new();
    PLAN.get_or_init(|| {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        parse(&text).unwrap_or_else(|| {
            tracing::warn!("{VARIABLE}={text} is not understood: `launch:3` makes the third launch fault");
            Vec::new()
        })
    })
}

/// Counts a launch, and says whether it is one that has to fault.
pub(crate) fn due() -> bool {
    !plan().is_empty() && plan().contains(&(LAUNCHES.fetch_add(1, Ordering::Relaxed) + 1))
}

/// What is left of the plan, for a process that takes this one's place and counts anew: a variable and its value.
pub fn planned_faults() -> Option<(&'static str, String)> {
    let rest = left(plan(), LAUNCHES.load(Ordering::Relaxed));
    (!plan().is_empty()).then_some((VARIABLE, rest))
}

fn left(plan: &[u64], launches: u64) -> String {
    let rest: Vec<_> = plan.iter().filter_map(|n| n.checked_sub(launches).filter(|n| *n > 0)).collect();
    let rest: Vec<_> = rest.iter().map(u64::to_string).collect();
    if rest.is_empty() { String::new() } else { format!("launch:{}", rest.join(",")) }
}

/// `launch:3,5`. Nothing is a plan, too: none faults.
fn parse(text: &str) -> Option<Vec<u64>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let number = |text: &str| text.parse().ok().filter(|n| *n > 0);
    text.strip_prefix("launch:")?.split(',').map(number).collect()
}

/// Whether a device without contexts of its own has been lost.
#[derive(Debug, Default)]
pub(crate) struct Lost(AtomicBool);

impl Lost {
    /// Says that the device is lost, if it is.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Error::Fault(format!("the device was lost before ({VARIABLE})"))),
            false => Ok(()),
        }
    }

    /// Loses it.
    pub(crate) fn lose(&self) -> Error {
        self.0.store(true, Ordering::Relaxed);
        Error::Fault(format!("the device is lost, as {VARIABLE} asks"))
    }
}

#[cfg(test)]
mod tests {
    use super::{left, parse};

    #[test]
    fn who_takes_over_has_the_rest_of_the_plan() {
        assert_eq!(left(&[2, 5, 6], 2), "launch:3,4");
        assert_eq!(left(&[2, 5], 5), "");
        assert_eq!(left(&[3], 0), "launch:3");
    }

    #[test]
    fn a_plan_is_one_launch_or_several() {
        assert_eq!(parse("launch:3"), Some(vec![3]));
        assert_eq!(parse("launch:3,12"), Some(vec![3, 12]));
        assert_eq!(parse(""), Some(vec![]));
        for wrong in ["3", "launch:", "launch:0", "launch:x", "launch:1,", "launch:-1"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
