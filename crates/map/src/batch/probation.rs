//! Whether another build of a program is faster, found out while it runs.
//!
//! Where the lanes of a warp part and stay apart, the usual build waits for memory more than it computes, and one with each
//! instance's memory by itself ([`Variant::apart`]) is several times as fast. The program alone does not tell. So where a launch takes long, a
//! part of a batch after it runs in the other build, and all that follow in whichever is faster.

use crate::batch::tune::{Trial, Variant};
use parking_lot::Mutex;
use std::time::Duration;

/// A launch that is reason to try: one that took so long, of so many instances. Where fewer run at once, how many they are says more than the build.
#[derive(Clone, Copy, Debug)]
pub struct Slow {
    pub took: Duration,
    pub instances: usize,
}

/// What is tried takes about as long, once.
pub const SLOW: Slow = Slow { took: Duration::from_secs(1), instances: 16 << 10 };
/// What part of a batch is tried.
const TRIED_PART: usize = 4;
/// By how much the other build has to be faster, or it may be chance.
const MIN_GAIN: f64 = 1.1;
/// What is tried may take this many times as long: there must be time enough.
const MAX_SLOWDOWN: u32 = 8;

#[derive(Debug)]
pub(crate) struct Probation {
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// There was no such launch.
    Idle(Slow),
    /// The next batch is to try the other build. This one runs so many instances a second.
    Due(f64),
    /// A batch does.
    UnderWay(f64),
    /// What was found, this build's and the other's, if anything was.
    Over(Option<[f64; 2]>),
}

impl Probation {
    /// Without `slow`, nothing is reason to try.
    pub(crate) fn new(slow: Option<Slow>) -> Self {
        Self { state: Mutex::new(slow.map_or(State::Over(None), State::Idle)) }
    }

    /// A launch of so many instances took so long, of the time they may have.
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

    /// Whether the next batch is to try the other build.
    pub(crate) fn is_due(&self) -> bool {
        matches!(*self.state.lock(), State::Due(_))
    }

    /// How many jobs of a batch of so many are to try the other build: none, almost always.
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

    /// So many instances ran in the other build, in such a time; without any, it could not be tried. Says whether it is the faster one.
    pub(crate) fn judge(&self, tried: Option<(usize, Duration)>) -> bool {
        let mut state = self.state.lock();
        let State::UnderWay(usual) = *state else { return false };
        let other = tried.map(|(instances, took)| per_second(instances, took));
        *state = State::Over(other.map(|other| [usual, other]));
        tracing::info!(usual, other, "tried a build for lanes that part");
        other.is_some_and(|other| other > usual * MIN_GAIN)
    }

    /// What was found out, to be kept: `usual` is this build.
    pub(crate) fn trials(&self, usual: Variant) -> Option<Vec<Trial>> {
        let State::Over(Some([per_second, other])) = *self.state.lock() else { return None };
        // One that is hardly faster is as good as slower.
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
