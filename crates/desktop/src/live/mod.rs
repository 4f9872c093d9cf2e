//! The live desktop: it does a frame when something happens, and shows it in browsers and in a window.
//!
//! One thread owns the [`Desktop`] ([`Live::run`]). Everything else (viewers, guests, signals) posts to it through a [`Handle`], a
//! channel: while nothing is posted and nothing moves, that thread sleeps.
//!
//! ```text
//! page ⇄ server ─┐
//! window ────────┤                     ┌▶ window
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
mod window;

pub use effects::Effects;
pub use window::{NoDisplay, Window};

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

    /// Posts for a viewer. Waits while the desktop has too many posts.
    fn view(&self, id: viewers::Id, what: FromViewer) {
        // To a desktop that has ended, nothing is posted: it has told its viewers.
        let _ = self.posts.send(Post::Viewer(id, what));
    }

    /// Posts without waiting; gives back what does not fit.
    pub(crate) fn try_post(&self, post: Post) -> Result<(), TrySendError<Post>> {
        self.posts.try_send(post)
    }
}

/// A live desktop's channel and the address of its page, before it runs. Connections wait until it does.
#[derive(Debug)]
pub struct Live {
    server: Option<(TcpListener, Access)>,
    handle: Handle,
    posts: Receiver<Post>,
}

impl Default for Live {
    /// Without a page.
    fn default() -> Self {
        let (posts, receiver) = sync_channel(MAX_POSTS);
        Self { server: None, handle: Handle { posts }, posts: receiver }
    }
}

impl Live {
    /// Has a page at this address; on a free port if the port is 0.
    pub fn listen(&mut self, address: SocketAddr) -> std::io::Result<()> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let access = Access::new(listener.local_addr()?)?;
        self.server = Some((listener, access));
        Ok(())
    }

    /// The page's address, if there is a page. It has a token if other computers can connect.
    pub fn url(&self) -> Option<String> {
        self.server.as_ref().map(|(_, access)| access.url())
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Shows the desktop until [`Handle::stop`].
    pub fn run(self, desktop: &mut Desktop, owners: &mut dyn Owners, pace: Pace) -> Result<()> {
        let Self { server, handle, posts } = self;
        let mut frames = Frames::new(desktop, owners, posts, pace)?;
        let Some((listener, access)) = server else { return frames.run() };
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
