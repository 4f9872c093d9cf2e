//! A device that is lost, or hangs, on purpose, so that what is built on it can be tested.
//!
//! With `GPU_RUN_TEST_FAULT=launch:N` in the environment the N-th launch of the process, counted from 1 over all its
//! devices, faults; `launch:N,M` is two of them. On `cuda` a kernel stores where it must not, and the context is lost for good. On `cpu`
//! the launch says [`Error::Fault`] and the device refuses everything from then on, as a lost context does. A device that is
//! opened anew works, until its turn comes; on a real GPU, only in another process. With `hang:N` the N-th launch never ends, and answers nothing; `launch:1;hang:3` is both.
//!
//! This is the only place that knows the variable. It is read once; a process that another takes the place of hands on what is left
//! of the plan.

use crate::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const VARIABLE: &str = "GPU_RUN_TEST_FAULT";

static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// Which launches do what.
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
            tracing::warn!(
                "{VARIABLE}={text} is not understood: `launch:3` makes the third launch fault, `hang:3` hang"
            );
            Plan::default()
        })
    })
}

/// Counts a launch, and says whether it is one that has to fault. One that has to hang does, here.
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

/// What is left of the plan, for a process that takes this one's place and counts anew: a variable and its value.
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

/// `launch:3,5`, `hang:2` or both with `;` between. Nothing is a plan, too: all is well.
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
