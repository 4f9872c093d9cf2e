//! Which worker runs which workgroup.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// After this time, workgroups that run together are no longer left to helpers that have not come.
const PATIENCE: Duration = Duration::from_millis(100);

/// The workgroups of a launch, dealt out to its workers.
#[derive(Debug)]
pub(super) struct Deal {
    workgroups: u32,
    /// How many workers there are if all helpers come, and helpers that have not come yet.
    workers: u32,
    awaited: AtomicU32,
    next: AtomicU32,
    began: Instant,
}

impl Deal {
    pub(super) fn new(workgroups: u32, helpers: u32) -> Self {
        let (awaited, next) = (AtomicU32::new(helpers), AtomicU32::new(0));
        Self { workgroups, workers: helpers + 1, awaited, next, began: Instant::now() }
    }

    pub(super) fn helper_came(&self) {
        self.awaited.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the next workgroup. Unless `any`, leaves one to each helper that has not come yet.
    pub(super) fn take(&self, any: bool) -> Option<u32> {
        let kept = if any { 0 } else { self.awaited.load(Ordering::Relaxed) };
        self.next_below(self.workgroups.saturating_sub(kept), 0)
    }

    /// Returns the next of workgroups that run together for as long as the launch lasts, for a worker that has `own` already: none of
    /// them gets two more than another.
    pub(super) fn take_together(&self, own: u32) -> Option<u32> {
        let is_fair = self.began.elapsed() < PATIENCE;
        self.next_below(self.workgroups, if is_fair { own * self.workers } else { 0 })
    }

    /// Returns the next workgroup, if its number is in this range.
    fn next_below(&self, end: u32, least: u32) -> Option<u32> {
        let take = |n: u32| (least..end).contains(&n).then_some(n + 1);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workgroup_is_kept_for_each_helper_that_has_not_come() {
        let deal = Deal::new(3, 1);
        assert_eq!([deal.take(false), deal.take(false), deal.take(false)], [Some(0), Some(1), None]);
        deal.helper_came();
        assert_eq!([deal.take(false), deal.take(false)], [Some(2), None]);
        assert_eq!(Deal::new(1, 1).take(true), Some(0));
    }

    #[test]
    fn workgroups_that_run_together_are_dealt_out() {
        let deal = Deal::new(3, 1);
        assert_eq!([deal.take_together(0), deal.take_together(1)], [Some(0), None], "the second is the helper's");
        assert_eq!([deal.take_together(0), deal.take_together(1)], [Some(1), Some(2)]);
        assert_eq!([deal.take_together(1), deal.take_together(2)], [None, None]);
    }

    #[test]
    fn a_helper_that_never_comes_is_not_waited_for() {
        let deal = Deal { began: Instant::now() - PATIENCE, ..Deal::new(3, 1) };
        assert_eq!([0, 1, 2, 3].map(|own| deal.take_together(own)), [Some(0), Some(1), Some(2), None]);
    }
}
