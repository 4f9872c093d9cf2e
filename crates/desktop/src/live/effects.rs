//! What is left out where frames take too long. The rate gives way first and by itself: a frame begins when the one before has ended. Then
//! go shadows, then transitions. Input is never left out, and what is there is where it was.

use crate::event::{self as e, effects};
use gpu_run_machine::Event;
use std::time::Duration;

/// Whether shadows and transitions may be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effects {
    /// While frames take too long.
    #[default]
    Auto,
    All,
    None,
}

impl Effects {
    /// All of them by their names.
    pub const NAMES: [(&'static str, Self); 3] = [("auto", Self::Auto), ("all", Self::All), ("none", Self::None)];
}

/// Of the last 16 frames, so many took longer than this: too long to follow a hand.
const SLOW: Duration = Duration::from_millis(42);
const MANY_SLOW: u32 = 12;
/// So many in a row took less than this: there is time for more.
const QUICK: Duration = Duration::from_millis(14);
const MANY_QUICK: u32 = 64;
/// What comes back and is left out again waits twice as long, up to this many frames.
const MOST_PATIENCE: u32 = MANY_QUICK << 6;

/// Decides after each frame.
#[derive(Debug)]
pub(crate) struct LeftOut {
    choice: Effects,
    /// One of `effects`.
    level: u32,
    /// A bit for each of the last frames: it was slow.
    slow: u16,
    /// Quick frames in a row, and how many it takes.
    quick: u32,
    patience: u32,
}

impl LeftOut {
    pub(crate) fn new(choice: Effects) -> Self {
        let level = if choice == Effects::None { effects::NONE } else { effects::ALL };
        Self { choice, level, slow: 0, quick: 0, patience: MANY_QUICK }
    }

    /// Tells the desktop.
    pub(crate) fn event(&self) -> Event {
        Event { kind: e::EFFECTS, a: self.level, ..Event::default() }
    }

    /// A frame took so long. Returns whether something else is left out now.
    pub(crate) fn frame(&mut self, took: Duration) -> bool {
        if self.choice != Effects::Auto {
            return false;
        }
        self.slow = self.slow << 1 | u16::from(took > SLOW);
        self.quick = if took < QUICK { self.quick + 1 } else { 0 };
        let level = if self.slow.count_ones() >= MANY_SLOW && self.level < effects::NONE {
            self.level + 1
        } else if self.quick >= self.patience && self.level > effects::ALL {
            self.patience = (self.patience * 2).min(MOST_PATIENCE);
            self.level - 1
        } else {
            return false;
        };
        (self.level, self.slow, self.quick) = (level, 0, 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: [u32; 0] = [];

    /// The levels after frames that take so many milliseconds.
    fn levels(it: &mut LeftOut, frames: impl IntoIterator<Item = u64>) -> Vec<u32> {
        let change = |took| it.frame(Duration::from_millis(took)).then_some(it.level);
        frames.into_iter().filter_map(change).collect()
    }

    #[test]
    fn shadows_go_before_transitions_and_come_back_after_them() {
        let mut it = LeftOut::new(Effects::Auto);
        assert_eq!(levels(&mut it, [60; 11]), NOTHING);
        assert_eq!(levels(&mut it, [60; 1]), [effects::NO_SHADOWS]);
        assert_eq!(levels(&mut it, [60; 100]), [effects::NONE]);
        assert_eq!(levels(&mut it, [8; 63]), NOTHING);
        assert_eq!(levels(&mut it, [8; 1]), [effects::NO_SHADOWS]);
        assert_eq!(levels(&mut it, [8; 127]), NOTHING, "the second step back takes longer");
        assert_eq!(levels(&mut it, [8; 1000]), [effects::ALL]);
    }

    #[test]
    fn a_slow_frame_now_and_then_changes_nothing() {
        let mut it = LeftOut::new(Effects::Auto);
        assert_eq!(levels(&mut it, (0..1000).map(|i| if i % 3 == 0 { 20 } else { 60 })), NOTHING);
        assert_eq!(levels(&mut it, [30; 1000]), NOTHING);
    }

    #[test]
    fn a_desktop_that_is_never_quick_for_long_stays_as_it_is() {
        let mut it = LeftOut::new(Effects::Auto);
        levels(&mut it, [60; 30]);
        assert_eq!(levels(&mut it, (0..1000).map(|i| if i % 60 == 0 { 20 } else { 5 })), NOTHING);
        levels(&mut it, [20]);
        // Each time it comes back and is too slow again, it waits twice as long, up to a limit.
        let waits: Vec<usize> = (0..10)
            .map(|_| {
                let quick = (1..).find(|_| it.frame(Duration::from_millis(5))).unwrap();
                levels(&mut it, [60; 12]);
                quick
            })
            .collect();
        assert_eq!(waits, [64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096, 4096]);
    }

    #[test]
    fn a_users_choice_stays() {
        for (choice, level) in [(Effects::All, effects::ALL), (Effects::None, effects::NONE)] {
            let mut it = LeftOut::new(choice);
            assert_eq!(it.event().a, level);
            assert_eq!(levels(&mut it, [100; 100].into_iter().chain([1; 1000])), NOTHING);
        }
    }
}
