//! Stopping launches, and restarting from the last checkpoint.

use crate::boot::write_state;
use crate::error::{Error, Result};
use crate::feed::Feed;
use crate::layout::*;
use crate::machine::{EventSender, ReplyReader};
use crate::service::{MAX_LEAVE_TIME, Service};
use crate::status::stuck;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Restarts in a row without a checkpoint in between. A machine that falls silent this often will not recover by
/// another restart.
const MAX_RESTARTS: u32 = 3;

impl Service {
    /// Asks the machine to leave at a tick boundary, and stops it if it does not.
    pub(crate) fn leave(&mut self) -> Result<()> {
        self.inner.control(C_SHUTDOWN, 1);
        if self.all_done(MAX_LEAVE_TIME) {
            return Ok(());
        }
        self.gang.stop();
        match self.all_done(MAX_LEAVE_TIME) {
            true => Ok(()),
            false => Err(Error::Slow { what: "leave", seconds: 2 * MAX_LEAVE_TIME.as_secs() }),
        }
    }

    fn all_done(&mut self, patience: Duration) -> bool {
        let since = Instant::now();
        while let Some(launch) = self.launches.front() {
            // A launch that failed is done, too.
            if launch.is_done().unwrap_or(true) {
                self.launches.pop_front();
            } else if since.elapsed() > patience {
                return false;
            } else {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        true
    }

    /// Restarts the machine from the last checkpoint. Events that ticks took since then go to the same ticks again;
    /// events that no tick had taken follow them.
    pub(crate) fn restart(&mut self, why: String) -> Result<()> {
        let phase = stuck(&self.inner.bus, self.inner.settings.phases);
        if self.in_a_row == MAX_RESTARTS {
            return Err(Error::Silent { seconds: self.beat.1.elapsed().as_secs_f64(), phase, what: why });
        }
        self.in_a_row += 1;
        // From here on callers cannot post: an event that comes into the ring after it is cleared would be taken for one that follows
        // those of the feed.
        self.inner.sender.lock().feeding = true;
        self.inner.restarts.fetch_add(1, Ordering::Relaxed);
        let place = phase.map_or(String::new(), |phase| format!(", in the phase `{phase}`"));
        let tick = self.last.tick();
        self.inner.notice(format!("{why}{place}: restarting from the checkpoint of tick {tick}"));
        self.read_ledger()?;
        self.let_go(Err(0));
        self.leave()?;
        if self.in_a_row > 1 {
            self.take_back()?;
        }

        // Memory as after boot, and the state from the checkpoint.
        let bus = &self.inner.bus;
        bus.write(0, &vec![0; bus.len() as usize]);
        self.gang.recover()?;
        let place = self.inner.settings.place;
        write_state(&self.gang, &place, &self.last)?;
        for part in place.scratch() {
            self.gang.write(part.start as u64, &vec![0; part.len()])?;
        }
        self.inner.lanes.lock().forget_seen();
        *self.inner.replies.lock() = ReplyReader::default();
        (self.ledger, self.ended) = (0, 0);
        self.unused.clear();

        let since = std::mem::take(&mut self.since);
        self.since_events = 0;
        let end = since.back().map_or(tick, |(taken, _)| taken + 1);
        let mut sender = self.inner.sender.lock();
        let untaken = std::mem::take(&mut sender.pending);
        *sender = EventSender { feeding: true, ..EventSender::default() };
        drop(sender);
        self.feed = Some(match self.feed.take() {
            // The events that this feed had put into the ring are still among its ticks.
            Some((under_way, answer)) => (under_way.again(since), answer),
            None => {
                let mut feed = Feed::new(since, tick, end);
                (feed.recorded, feed.then) = (true, untaken);
                self.limit_after_feed = Some(self.limit);
                (feed, None)
            }
        });
        self.limit = tick;
        self.launch()
    }
}
