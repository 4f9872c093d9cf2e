//! The desktop's thread: takes what was posted, does frames, shows them.

use super::message::{Said, Size};
use super::screen::Screen;
use super::viewers::{Id, Out, Viewers};
use super::{LeftOut, Owners, Pace, Post};
use crate::desktop::{MAX_EVENTS, Result};
use crate::{Desktop, event as e};
use gpu_run_machine::Event;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The least time between two frames for events that guests posted: these come one by one.
const TOGETHER: Duration = Duration::from_millis(4);
/// Frames per second that the animation clock can assume.
const RATES: (f64, f64) = (10.0, 1000.0);

/// What is posted for a viewer.
#[derive(Debug)]
pub(crate) enum FromViewer {
    Joined(Box<dyn Out>),
    Said(Said),
    Left,
}

pub(crate) struct Frames<'a> {
    desktop: &'a mut Desktop,
    owners: &'a mut dyn Owners,
    posts: Receiver<Post>,
    viewers: Viewers,
    screen: Screen,
    /// The viewer that resized or used input last: the desktop has its size, and it gets what is copied.
    leader: Option<Id>,
    events: VecDeque<Event>,
    /// Whether a viewer waits for the next frame, and whether owners do.
    urgent: bool,
    asked: bool,
    left_out: LeftOut,
    /// When the last frame began, and the rate that the animation clock assumes.
    last: Instant,
    rate: u32,
    size: Option<Size>,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(
        desktop: &'a mut Desktop,
        owners: &'a mut dyn Owners,
        posts: Receiver<Post>,
        pace: Pace,
    ) -> Result<Self> {
        desktop.rate = pace.rate;
        let left_out = LeftOut::new(pace.effects);
        Ok(Self {
            screen: Screen::read(desktop)?,
            desktop,
            owners,
            posts,
            viewers: Viewers::default(),
            leader: None,
            events: VecDeque::from([left_out.event()]),
            left_out,
            urgent: false,
            asked: false,
            last: Instant::now(),
            rate: 0,
            size: None,
        })
    }

    fn period(&self) -> Duration {
        Duration::from_secs(1) / self.desktop.rate
    }

    /// Goes on until someone asks it to stop.
    pub(crate) fn run(&mut self) -> Result<()> {
        let ended = self.go_on();
        match &ended {
            Ok(()) => self.viewers.close(1001, "the desktop has ended"),
            Err(_) => self.viewers.close(1011, "the desktop failed"),
        }
        ended
    }

    fn go_on(&mut self) -> Result<()> {
        while self.wait() {
            if self.due().is_some_and(|due| due.is_zero()) {
                self.frame()?;
            }
            self.viewers.send(&self.screen);
        }
        Ok(())
    }

    /// How long until the next frame; none if there is nothing to do.
    fn due(&self) -> Option<Duration> {
        let after = match (self.urgent, self.events.is_empty() && !self.asked, self.screen.moves) {
            (true, ..) => Duration::ZERO,
            (_, false, _) => TOGETHER,
            (.., true) => self.period(),
            _ => return None,
        };
        Some(after.saturating_sub(self.last.elapsed()))
    }

    /// Takes what was posted, and waits for it if nothing is due. Returns false if the desktop is to end.
    fn wait(&mut self) -> bool {
        let first = match self.due() {
            None => self.posts.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => self.posts.recv_timeout(due),
        };
        let mut next = match first {
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => None,
            Ok(post) => Some(post),
        };
        while let Some(post) = next {
            match post {
                Post::Stop => return false,
                Post::Wake => self.asked = true,
                // Lower kinds are the machine's own.
                Post::Events(events) => self.events.extend(events.iter().filter(|event| event.kind >= e::CREATE)),
                Post::Viewer(id, from) => self.take(id, from),
            }
            // What does not fit into a frame waits in the channel, and whoever posts waits with it.
            next = if self.events.len() < MAX_EVENTS { self.posts.try_recv().ok() } else { None };
        }
        true
    }

    fn take(&mut self, id: Id, from: FromViewer) {
        match from {
            FromViewer::Joined(out) => self.viewers.join(id, out, &self.screen),
            FromViewer::Left => {
                self.events.extend(self.viewers.leave(id));
                self.leader.take_if(|leader| *leader == id);
            }
            FromViewer::Said(Said::Drawn { frame }) => self.viewers.drawn(id, frame),
            FromViewer::Said(Said::Input { number, events }) => {
                let Some(viewer) = self.viewers.get(id) else { return };
                viewer.take(number, &events);
                let size = viewer.size;
                self.urgent |= !events.is_empty();
                // Whoever only moves the pointer does not take the lead.
                let leads = events.iter().any(|event| event.kind != e::MOVE);
                self.events.extend(events);
                if leads {
                    self.lead(id, size);
                }
            }
            FromViewer::Said(Said::Size(size)) => {
                if let Some(viewer) = self.viewers.get(id) {
                    viewer.size = Some(size);
                    self.lead(id, Some(size));
                }
            }
        }
    }

    /// The desktop takes the size of this viewer.
    fn lead(&mut self, id: Id, size: Option<Size>) {
        self.leader = Some(id);
        if let Some(new) = size.filter(|size| Some(*size) != self.size) {
            self.size = Some(new);
            self.events.push_back(new.event());
            self.urgent = true;
        }
    }

    fn frame(&mut self) -> Result<()> {
        // Transitions take their time, whatever the time between two frames is.
        let since = if self.screen.moves { self.last.elapsed() } else { self.period() };
        self.last = Instant::now();
        let rate = (1.0 / since.as_secs_f64().max(1e-9)).clamp(RATES.0, RATES.1).round() as u32;
        if rate != self.rate {
            self.rate = rate;
            self.events.push_front(Event { kind: e::RATE, a: rate, ..Event::default() });
        }
        let mut now: Vec<Event> = self.events.drain(..fit(&self.events)).collect();
        self.urgent &= !self.events.is_empty();
        if self.events.is_empty() {
            self.asked = false;
            self.ask(&mut now);
        }
        self.desktop.tick(&now)?;
        let ticked = self.last.elapsed();
        let drawn = self.screen.update(self.desktop)?;
        tracing::debug!(
            "a frame with {} events took {ticked:?}, reading it {:?}",
            now.len(),
            self.last.elapsed() - ticked
        );
        if self.left_out.frame(self.last.elapsed()) {
            self.events.push_back(self.left_out.event());
        }
        self.viewers.show(&self.screen, drawn.as_ref());
        let told = self.desktop.told();
        for event in &told {
            if let (e::COPIED, Some(leader)) = (event.kind, self.leader) {
                self.viewers.copied(leader, self.desktop.copied()?);
            }
        }
        self.owners.told(&told, self.desktop);
        Ok(())
    }

    /// Adds what owners have for this frame. The rate is not the animation clock's, which follows the frames.
    fn ask(&mut self, now: &mut Vec<Event>) {
        let most = MAX_EVENTS - now.len();
        let owners = self.owners.events(most);
        self.asked = owners.len() == most;
        for event in owners {
            if event.kind != e::RATE {
                now.push(event);
            } else if RATES.0 as u32 <= event.a && event.a <= RATES.1 as u32 {
                self.desktop.rate = event.a;
            }
        }
    }
}

/// How many events the next frame takes. What is under the pointer follows from the frame before: a press that comes after something
/// that may have moved a widget waits for the next frame, or it would hit what was there.
fn fit(events: &VecDeque<Event>) -> usize {
    let mut acted = false;
    let is_next = |event: &Event| {
        let presses = event.kind == e::PRESS || event.kind == e::TOUCH && event.flags == e::touch::DOWN;
        let waits = presses && acted;
        acted |= !matches!(event.kind, e::MOVE | e::PRESS | e::RATE);
        waits
    };
    events.iter().take(MAX_EVENTS).position(is_next).unwrap_or(events.len().min(MAX_EVENTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_press_after_a_release_waits_for_the_next_frame() {
        let fits = |kinds: &[u16]| fit(&kinds.iter().map(|kind| Event { kind: *kind, ..Event::default() }).collect());
        assert_eq!(fits(&[]), 0);
        assert_eq!(fits(&[e::RATE, e::MOVE, e::PRESS, e::MOVE, e::RELEASE, e::MOVE, e::KEY]), 7);
        assert_eq!(fits(&[e::MOVE, e::PRESS, e::RELEASE, e::MOVE, e::PRESS, e::RELEASE]), 4);
        assert_eq!(fits(&[e::SET, e::PRESS]), 1);
        assert_eq!(fits(&vec![e::MOVE; MAX_EVENTS + 1]), MAX_EVENTS);
    }
}
