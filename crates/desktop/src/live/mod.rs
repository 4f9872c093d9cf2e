//! The live desktop: it does a frame when something happens, and shows it in browsers.
//!
//! One thread owns the [`Desktop`] ([`Live::run`]). Everything else (viewers, guests, signals) posts to it through a [`Handle`], a
//! channel: while nothing is posted and nothing moves, that thread sleeps.
//!
//! ```text
//! page ⇄ server ─┐
//! guests ────────┼─ posts ─▶ frames ─▶ viewers ─▶ server ⇄ page
//! signals ───────┘             └─────▶ owners
//! ```

mod access;
mod effects;
mod frames;
mod message;
mod peer;
mod screen;
mod server;
mod tiles;
mod viewers;

use crate::Desktop;
use crate::desktop::Result;
use access::Access;
use effects::LeftOut;
use frames::{Frames, FromViewer};
use gpu_run_machine::Event;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use tokio::sync::oneshot;

/// How many posts may wait for the desktop. [`Handle::post`] waits when there are as many.
const MAX_POSTS: usize = 1024;

pub use effects::Effects;

/// How many frames are done, and what they may leave out.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Frames per second while something moves, from 1 to 1000.
    pub rate: u32,
    pub effects: Effects,
}

/// Who is told what happens on the desktop, and owns widgets.
pub trait Owners {
    /// Called on the desktop's thread before each frame: returns what the frame takes after everything that was posted, at most so many.
    fn events(&mut self, most: usize) -> Vec<Event>;
    /// Called on the desktop's thread after each frame, with what it told owners (`CLICKED`, `CHANGED`, …). It must not wait, and
    /// not call [`Handle::post`], which waits when there are many posts: another thread does.
    fn told(&mut self, told: &[Event], desktop: &Desktop);
}

/// Nobody.
impl Owners for () {
    fn events(&mut self, _: usize) -> Vec<Event> {
        Vec::new()
    }

    fn told(&mut self, _: &[Event], _: &Desktop) {}
}

/// Something that the desktop's thread does.
#[derive(Debug)]
pub(crate) enum Post {
    Events(Vec<Event>),
    /// Owners have something for the next frame.
    Wake,
    Viewer(viewers::Id, FromViewer),
    Stop,
}

/// Posts events to a live desktop, from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    posts: SyncSender<Post>,
}

impl Handle {
    /// Posts events, which the next frame takes in this order. Waits while the desktop has too many. Returns false if the desktop has
    /// ended. A command that the desktop refuses is counted, and does no harm.
    pub fn post(&self, events: Vec<Event>) -> bool {
        self.posts.send(Post::Events(events)).is_ok()
    }

    /// Has the desktop do a frame, in which it asks the owners. Returns false if the desktop has ended.
    pub fn wake(&self) -> bool {
        // When the channel is full, there are frames to come.
        !matches!(self.posts.try_send(Post::Wake), Err(TrySendError::Disconnected(_)))
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

/// A live desktop's address and channel, before it runs. Connections wait until it does.
#[derive(Debug)]
pub struct Live {
    listener: TcpListener,
    access: Access,
    handle: Handle,
    posts: Receiver<Post>,
}

impl Live {
    /// Listens on this address; on a free port if the port is 0.
    pub fn bind(address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let access = Access::new(listener.local_addr()?)?;
        let (posts, receiver) = sync_channel(MAX_POSTS);
        Ok(Self { listener, access, handle: Handle { posts }, posts: receiver })
    }

    /// The page's address. It has a token if other computers can connect.
    pub fn url(&self) -> String {
        self.access.url()
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Shows the desktop until [`Handle::stop`].
    pub fn run(self, desktop: &mut Desktop, owners: &mut dyn Owners, pace: Pace) -> Result<()> {
        let Self { listener, access, handle, posts } = self;
        let mut frames = Frames::new(desktop, owners, posts, pace)?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            let served = server::serve(listener, access, handle.clone(), stopped);
            // Without a server nobody could see the desktop, or end it in a browser.
            handle.stop();
            served
        };
        let thread = std::thread::Builder::new().name("gpu-run desktop".to_owned());
        let server = thread.spawn(serve).map_err(crate::Error::Server)?;
        let ended = frames.run();
        drop(frames);
        drop(stop);
        let served = server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.and(served.map_err(crate::Error::Server))
    }
}
