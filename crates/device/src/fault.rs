//! Devices that are lost or hang on purpose, for tests of what must survive that.
//!
//! With `GPU_RUN_TEST_FAULT=launch:N` in the environment, the N-th launch of the process faults; `launch:N,M` makes two
//! of them fault. Launches are counted from 1 over all devices; on `cuda`, launches of a queue do not count. On `cuda`,
//! a kernel stores to an invalid address, and the context is lost for good. On `cpu`, the launch fails with
//! [`Error::Fault`], and the device refuses everything from then on, as a lost context does. A device that is opened
//! again works until its next fault is due; a real GPU, only in another process. With `hang:N`, the N-th launch never
//! returns and serves nothing. `launch:1;hang:3` plans both.
//!
//! Only this file knows the variable, and reads it once. A process that is replaced by another hands on the rest of the
//! plan.

use crate::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const VARIABLE: &str = "GPU_RUN_TEST_FAULT";

static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// Which launches fault and which hang.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    faults: Vec<u64>,
    hangs: Vec<u64>,
}

fn plan() -> &'static Plan {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    PLAN.get_or_init(|| {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        parse(&text).unwrap_or_else(|| {
            tracing::warn!("cannot parse {VARIABLE}={text}: `launch:3` makes the third launch fault, `hang:3` hang");
            Plan::default()
        })
    })
}

/// Counts a launch. Returns whether the launch has to fault; does not return if it has to hang.
pub(crate) fn due() -> bool {
    let Plan { faults, hangs } = plan();
    if faults.is_empty() && hangs.is_empty() {
        return false;
    }
    let number = LAUNCHES.fetch_add(1, Ordering::Relaxed) + 1;
    while hangs.contains(&number) {
        std::thread::park();
    }
    faults.contains(&number)
}

/// Returns the rest of the plan, for a process that replaces this one and counts from 1 again: a variable and its
/// value.
pub fn planned_faults() -> Option<(&'static str, String)> {
    let rest = left(plan(), LAUNCHES.load(Ordering::Relaxed));
    (*plan() != Plan::default()).then_some((VARIABLE, rest))
}

fn left(plan: &Plan, launches: u64) -> String {
    let rest = |what: &str, numbers: &[u64]| {
        let rest: Vec<_> = numbers.iter().filter_map(|n| n.checked_sub(launches).filter(|n| *n > 0)).collect();
        let rest: Vec<_> = rest.iter().map(u64::to_string).collect();
        (!rest.is_empty()).then(|| format!("{what}:{}", rest.join(",")))
    };
    let parts = [rest("launch", &plan.faults), rest("hang", &plan.hangs)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(";")
}

/// Parses `launch:3,5`, `hang:2`, or both with `;` in between. An empty text plans no fault.
fn parse(text: &str) -> Option<Plan> {
    let mut plan = Plan::default();
    for part in text.split(';').filter(|_| !text.is_empty()) {
        let (what, numbers) = part.split_once(':')?;
        let number = |text: &str| text.parse().ok().filter(|n| *n > 0);
        let numbers: Vec<u64> = numbers.split(',').map(number).collect::<Option<_>>()?;
        match what {
            "launch" => plan.faults = numbers,
            "hang" => plan.hangs = numbers,
            _ => return None,
        }
    }
    Some(plan)
}

/// Whether a device without contexts of its own has been lost.
#[derive(Debug, Default)]
pub(crate) struct Lost(AtomicBool);

impl Lost {
    /// Fails if the device is lost.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Error::Fault(format!("the device was lost before ({VARIABLE})"))),
            false => Ok(()),
        }
    }

    /// Marks the device as lost and returns the error that reports it.
    pub(crate) fn lose(&self) -> Error {
        self.0.store(true, Ordering::Relaxed);
        Error::Fault(format!("the device is lost, as {VARIABLE} asks"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Plan, left, parse};

    fn plan(faults: &[u64], hangs: &[u64]) -> Plan {
        Plan { faults: faults.to_vec(), hangs: hangs.to_vec() }
    }

    #[test]
    fn who_takes_over_has_the_rest_of_the_plan() {
        assert_eq!(left(&plan(&[2, 5, 6], &[]), 2), "launch:3,4");
        assert_eq!(left(&plan(&[2, 5], &[3]), 5), "");
        assert_eq!(left(&plan(&[3], &[1, 4]), 0), "launch:3;hang:1,4");
        assert_eq!(left(&plan(&[3], &[1, 4]), 3), "hang:1");
    }

    #[test]
    fn a_plan_is_one_launch_or_several() {
        assert_eq!(parse("launch:3"), Some(plan(&[3], &[])));
        assert_eq!(parse("launch:3,12;hang:2"), Some(plan(&[3, 12], &[2])));
        assert_eq!(parse("hang:7"), Some(plan(&[], &[7])));
        assert_eq!(parse(""), Some(plan(&[], &[])));
        for wrong in ["3", "launch:", "launch:0", "launch:x", "launch:1,", "launch:-1", "fall:1", "launch:1;"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
