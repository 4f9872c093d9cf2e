//! Who watches: for each viewer the tiles that it has not seen, and the frames that it has not drawn yet.
//!
//! A slow viewer has at most [`IN_FLIGHT`] frames under way. Meanwhile its tiles only accumulate, so it costs no memory, and the others
//! do not wait for it.

use super::message::Size;
use super::screen::{Patch, Screen};
use super::tiles::Tiles;
use crate::event as e;
use gpu_run_machine::Event;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Frames that a viewer may have under way. With one, it would wait for each answer; more only add delay.
const IN_FLIGHT: u32 = 2;
/// Messages that may wait for a viewer's connection: the frames, and texts for the clipboard.
pub(crate) const MAX_OUTGOING: usize = 8;
/// Buttons and fingers of one viewer that can be down.
const MAX_HELD: usize = 16;

/// Names a viewer.
pub(crate) type Id = u64;

/// What a viewer is sent.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Frame(Frame),
    /// Text for the clipboard.
    Copied(String),
    /// The connection closes, for this reason.
    Close(u16, &'static str),
}

/// What a viewer has not seen yet.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Counts the viewer's frames.
    pub(crate) number: u32,
    /// The last of the viewer's inputs that it shows, or 0.
    pub(crate) shows: u32,
    pub(crate) patch: Arc<Patch>,
}

/// The way to a viewer.
pub(crate) trait Out: Debug + Send {
    /// Sends without waiting. Returns false if there is no room, or nobody there.
    fn send(&self, what: Outgoing) -> bool;
}

/// A page's connection.
impl Out for Sender<Outgoing> {
    fn send(&self, what: Outgoing) -> bool {
        self.try_send(what).is_ok()
    }
}

#[derive(Debug)]
pub(crate) struct Viewer {
    out: Box<dyn Out>,
    unseen: Tiles,
    /// Frames sent and drawn so far.
    sent: u32,
    drawn: u32,
    /// The last input, and the last one that the next frame shows.
    input: u32,
    shows: u32,
    pub(crate) size: Option<Size>,
    /// What ends the presses that are under way, if the viewer leaves.
    held: Vec<Event>,
}

impl Viewer {
    /// Notes what the viewer's input leaves down.
    pub(crate) fn take(&mut self, number: u32, events: &[Event]) {
        if number != 0 {
            self.input = number;
        }
        for event in events {
            let end = match event.kind {
                e::PRESS | e::RELEASE => Event { kind: e::RELEASE, ..*event },
                e::TOUCH => Event { flags: e::touch::CANCELLED, ..*event },
                _ => continue,
            };
            self.held.retain(|held| (held.kind, held.key) != (end.kind, end.key));
            let goes_down = event.kind == e::PRESS || event.kind == e::TOUCH && event.flags < e::touch::UP;
            if goes_down && self.held.len() < MAX_HELD {
                self.held.push(end);
            }
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Viewers(BTreeMap<Id, Viewer>);

impl Viewers {
    pub(crate) fn join(&mut self, id: Id, out: Box<dyn Out>, screen: &Screen) {
        let unseen = Tiles::new(screen.width, screen.height, true);
        let viewer = Viewer { out, unseen, sent: 0, drawn: 0, input: 0, shows: 0, size: None, held: Vec::new() };
        self.0.insert(id, viewer);
    }

    /// Removes a viewer. Returns what it leaves to be done: what it held down goes up.
    pub(crate) fn leave(&mut self, id: Id) -> Vec<Event> {
        self.0.remove(&id).map_or(Vec::new(), |viewer| viewer.held)
    }

    pub(crate) fn get(&mut self, id: Id) -> Option<&mut Viewer> {
        self.0.get_mut(&id)
    }

    /// The viewer has drawn its frames up to this one.
    pub(crate) fn drawn(&mut self, id: Id, frame: u32) {
        if let Some(viewer) = self.get(id) {
            viewer.drawn = frame.clamp(viewer.drawn, viewer.sent);
        }
    }

    /// Notes what a frame drew; none: all of it.
    pub(crate) fn show(&mut self, screen: &Screen, drawn: Option<&Tiles>) {
        let is_new = drawn.is_none_or(|drawn| !drawn.is_empty());
        for viewer in self.0.values_mut() {
            match drawn {
                Some(drawn) => viewer.unseen.add(drawn),
                None => viewer.unseen = Tiles::new(screen.width, screen.height, true),
            }
            if is_new {
                viewer.shows = viewer.input;
            }
        }
    }

    /// Sends each viewer what it has not seen, unless it has enough under way.
    pub(crate) fn send(&mut self, screen: &Screen) {
        // Viewers that keep up have the same tiles to see: these are one patch.
        let mut last: Option<(Tiles, Arc<Patch>)> = None;
        for viewer in self.0.values_mut() {
            if viewer.unseen.is_empty() || viewer.sent - viewer.drawn >= IN_FLIGHT {
                continue;
            }
            let patch = match &last {
                Some((tiles, patch)) if *tiles == viewer.unseen => patch,
                _ => &last.insert((viewer.unseen.clone(), Arc::new(screen.patch(&viewer.unseen)))).1,
            };
            let shows = std::mem::take(&mut viewer.shows);
            let frame = Frame { number: viewer.sent + 1, shows, patch: patch.clone() };
            if viewer.out.send(Outgoing::Frame(frame)) {
                viewer.sent += 1;
                viewer.unseen.clear();
            }
        }
    }

    /// Sends text for the clipboard; a viewer that is too far behind does not get it.
    pub(crate) fn copied(&self, id: Id, text: String) {
        if let Some(viewer) = self.0.get(&id) {
            viewer.out.send(Outgoing::Copied(text));
        }
    }

    pub(crate) fn close(&self, code: u16, reason: &'static str) {
        for viewer in self.0.values() {
            viewer.out.send(Outgoing::Close(code, reason));
        }
    }
}
