//! The live desktop: it does a frame when something happens, and shows it in browsers.
//!
//! One thread owns the [`Desktop`] ([`Live::run`]). Everything else (viewers, guests, signals) posts to it through a [`Handle`], a
//! channel: while nothing is posted and nothing moves, that thread sleeps.

#![allow(dead_code)] // until the loop that reads the posts

use crate::Desktop;
use gpu_run_machine::Event;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// How many posts may wait for the desktop. [`Handle::post`] waits when there are as many.
const MAX_POSTS: usize = 1024;

/// Who is told what happens on the desktop, and owns widgets.
pub trait Owners {
    /// Called on the desktop's thread before each frame: returns what the frame takes after everything that was posted.
    fn events(&mut self) -> Vec<Event>;
    /// Called on the desktop's thread after each frame, with what it told owners (`CLICKED`, `CHANGED`, …).
    fn told(&mut self, told: &[Event], desktop: &Desktop);
}

/// Nobody.
impl Owners for () {
    fn events(&mut self) -> Vec<Event> {
        Vec::new()
    }

    fn told(&mut self, _: &[Event], _: &Desktop) {}
}

/// Something that the desktop's thread does.
#[derive(Debug)]
pub(crate) enum Post {
    Events(Vec<Event>),
    Stop,
}

/// Posts events to a live desktop, from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    posts: SyncSender<Post>,
}

impl Handle {
    pub(crate) fn new() -> (Self, Receiver<Post>) {
        let (posts, receiver) = sync_channel(MAX_POSTS);
        (Self { posts }, receiver)
    }

    /// Posts events, which the next frame takes in this order. Waits while the desktop has too many. Returns false if the desktop has
    /// ended. A command that the desktop refuses is counted, and does no harm.
    pub fn post(&self, events: Vec<Event>) -> bool {
        self.posts.send(Post::Events(events)).is_ok()
    }

    /// Asks the desktop to end, after the frame that is under way.
    pub fn stop(&self) -> bool {
        self.posts.send(Post::Stop).is_ok()
    }

    /// Posts without waiting; gives back what does not fit.
    pub(crate) fn try_post(&self, post: Post) -> Result<(), TrySendError<Post>> {
        self.posts.try_send(post)
    }
}
