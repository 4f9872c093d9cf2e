//! A device that is lost on purpose, so that what is built on it can be tested.
//!
//! With `GPU_RUN_TEST_FAULT=launch:N` in the environment the N-th launch of the process, counted from 1 over all its
//! devices, faults; `launch:N,M` is two of them. On `cuda` a kernel stores where it must not, and the context is lost for good. On `cpu`
//! the launch says [`Error::Fault`] and the device refuses everything from then on, as a lost context does. A device that is
//! opened anew works, until its turn comes.
//!
//! This is the only place that knows the variable. It is read once.

use crate::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const VARIABLE: &str = "GPU_RUN_TEST_FAULT";

/// Counts a launch, and says whether it is one that has to fault.
pub(crate) fn due() -> bool {
    static PLAN: OnceLock<Vec<u64>> = OnceLock::new();
    static LAUNCHES: AtomicU64 = AtomicU64::new(0);
    let plan = PLAN.get_or_init(|| {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        parse(&text).unwrap_or_else(|| {
            tracing::warn!("{VARIABLE}={text} is not understood: `launch:3` makes the third launch fault");
            Vec::new()
        })
    });
    !plan.is_empty() && plan.contains(&(LAUNCHES.fetch_add(1, Ordering::Relaxed) + 1))
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
    use super::parse;

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
