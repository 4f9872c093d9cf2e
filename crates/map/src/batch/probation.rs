//! Finds out, while a program runs, whether another build is faster.
//!
//! If the lanes of a warp diverge and stay apart, the usual build waits for memory more than it computes; a build whose
//! slots are linear ([`Variant::apart`]) is several times as fast. The program alone does not show it. So if a launch
//! takes long, a part of a later batch runs with the other build, and all batches after it with the faster one.

use crate::batch::tune::{Trial, Variant};
use parking_lot::Mutex;
use std::time::Duration;

/// A launch that is slow enough to try another build: it took at least this long, with at least this many instances. If
/// fewer run at once, their number matters more than the build.
#[derive(Clone, Copy, Debug)]
pub struct Slow {
    pub took: Duration,
    pub instances: usize,
}

/// The usual threshold. Trying the other build takes about as long as that launch, once.
pub const SLOW: Slow = Slow { took: Duration::from_secs(1), instances: 16 << 10 };
/// 1/4 of a batch tries the other build.
const TRIED_PART: usize = 4;
/// The other build must be faster by this factor; less may be chance.
const MIN_GAIN: f64 = 1.1;
/// The other build may take this many times as long: a timeout must leave that much time.
const MAX_SLOWDOWN: u32 = 8;

#[derive(Debug)]
pub(crate) struct Probation {
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// No launch was slow enough yet.
    Idle(Slow),
    /// The next batch is to try the other build. The number is this build's instances per second.
    Due(f64),
    /// A batch tries the other build now.
    UnderWay(f64),
    /// The trial is over: instances per second of this build and of the other one, if it could be tried.
    Over(Option<[f64; 2]>),
}

impl Probation {
    /// Without `slow`, no other build is ever tried.
    pub(crate) fn new(slow: Option<Slow>) -> Self {
        Self { state: Mutex::new(slow.map_or(State::Over(None), State::Idle)) }
    }

    /// Notes that a launch of `instances` instances took `took`; `timeout` is the time they had.
    pub(crate) fn note(&self, instances: usize, took: Duration, timeout: Option<Duration>) {
        let mut state = self.state.lock();
        if let State::Idle(slow) = *state
            && took >= slow.took
            && instances >= slow.instances
            && timeout.is_none_or(|timeout| took * MAX_SLOWDOWN <= timeout)
        {
            *state = State::Due(per_second(instances, took));
        }
    }

    /// Returns whether the next batch is to try the other build.
    pub(crate) fn is_due(&self) -> bool {
        matches!(*self.state.lock(), State::Due(_))
    }

    /// Returns how many jobs of a batch of `jobs` are to try the other build: almost always 0.
    pub(crate) fn part_of(&self, jobs: usize) -> usize {
        let mut state = self.state.lock();
        match *state {
            State::Due(usual) if jobs >= TRIED_PART => {
                *state = State::UnderWay(usual);
                jobs / TRIED_PART
            }
            _ => 0,
        }
    }

    /// Ends the trial: `tried` says how many instances the other build ran and how long that took; `None` if it could
    /// not be tried. Returns whether the other build is faster.
    pub(crate) fn judge(&self, tried: Option<(usize, Duration)>) -> bool {
        let mut state = self.state.lock();
        let State::UnderWay(usual) = *state else { return false };
        let other = tried.map(|(instances, took)| per_second(instances, took));
        *state = State::Over(other.map(|other| [usual, other]));
        tracing::info!(usual, other, "tried a build for lanes that diverge");
        other.is_some_and(|other| other > usual * MIN_GAIN)
    }

    /// Returns the result of the trial, to be remembered; `usual` describes this build.
    pub(crate) fn trials(&self, usual: Variant) -> Option<Vec<Trial>> {
        let State::Over(Some([per_second, other])) = *self.state.lock() else { return None };
        // A build that is hardly faster counts as slower.
        let other = Trial { variant: Variant::apart(usual.batch), per_second: other / MIN_GAIN };
        Some(vec![Trial { variant: usual, per_second }, other])
    }
}

fn per_second(instances: usize, took: Duration) -> f64 {
    instances as f64 / took.as_secs_f64().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tune::{MemoryKind, Tuning};

    const SECOND: Duration = Duration::from_secs(1);
    const REASON: Slow = Slow { took: SECOND, instances: 100 };

    #[test]
    fn only_a_slow_launch_of_many_with_time_to_spare_is_reason_to_try() {
        let probation = Probation::new(Some(REASON));
        probation.note(99, SECOND, None);
        probation.note(100, SECOND / 2, None);
        probation.note(100, SECOND, Some(SECOND * 7));
        assert_eq!(probation.part_of(100), 0);
        probation.note(100, SECOND, Some(SECOND * 8));
        assert_eq!([probation.part_of(3), probation.part_of(100), probation.part_of(100)], [0, 25, 0]);
        let never = Probation::new(None);
        never.note(100, SECOND * 100, None);
        assert_eq!(never.part_of(100), 0);
    }

    #[test]
    fn the_other_build_has_to_be_clearly_faster() {
        let usual = Variant { lanes: None, memory: MemoryKind::Interleaved, ..Variant::apart(100) };
        for (took, is_faster) in [(SECOND, false), (SECOND * 19 / 20, false), (SECOND / 2, true)] {
            let probation = Probation::new(Some(REASON));
            probation.note(100, SECOND, None);
            assert_eq!(probation.part_of(400), 100);
            assert_eq!(probation.trials(usual), None);
            assert_eq!(probation.judge(Some((100, took))), is_faster, "{took:?}");
            let trials = probation.trials(usual).unwrap_or_default();
            let best = Tuning { trials, learned: None }.best();
            assert_eq!(best, Some(if is_faster { Variant::apart(100) } else { usual }), "{took:?}");
        }
    }
}
