//! The desktop in a window of this computer: a viewer like a page, but without a connection.
//!
//! The window's events come on the thread that runs [`Window::run`], which has to be the process's first; what the desktop sends the
//! viewer comes among them ([`ToWindow`]). The desktop's frames are done on another thread.

mod clipboard;
mod display;
mod input;
mod keys;
mod shown;
mod surface;
mod view;

pub use display::NoDisplay;

use super::Handle;
use super::viewers::{Out, Outgoing};
use crate::Error;
use crate::desktop::Result;
use std::panic;
use std::thread;
use view::{Opening, View};
use winit::application::ApplicationHandler;
use winit::error::EventLoopError;
use winit::event::WindowEvent;
use winit::event_loop::{ActiveEventLoop, EventLoop, EventLoopProxy};
use winit::window::WindowId;
use x11rb::rust_connection::RustConnection;

/// A display on which a window can open.
pub struct Window {
    events: EventLoop<Outgoing>,
    /// The display, if it is an X server.
    x: Option<RustConnection>,
}

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window").field("is_x", &self.x.is_some()).finish_non_exhaustive()
    }
}

impl Window {
    /// Connects to the display. Once in a process, and on its first thread.
    pub fn connect() -> Result<Self, NoDisplay> {
        let x = display::connect()?;
        let events = EventLoop::with_user_event().build().map_err(|error| NoDisplay::Other(said(&error)))?;
        Ok(Self { events, x })
    }

    /// Opens a window of this many units, and shows what `frames` does for the desktop of this handle, until it ends or the user closes
    /// the window, which stops the desktop. A unit has `scale` pixels, or as many as the display thinks right.
    pub fn run(
        self,
        handle: &Handle,
        size: (u32, u32),
        scale: Option<f64>,
        frames: impl FnOnce() -> Result<()> + Send,
    ) -> Result<()> {
        thread::scope(|scope| {
            let frames = thread::Builder::new().name("frames".to_owned()).spawn_scoped(scope, frames);
            let frames = frames.map_err(|error| Error::Window(error.to_string()))?;
            let out = ToWindow(self.events.create_proxy());
            let opening = Opening { handle, size, scale, out, x: self.x };
            let mut app = App { state: State::Opening(Box::new(opening)) };
            let shown = self.events.run_app(&mut app).map_err(|error| Error::Window(said(&error)));
            let shown = shown.and(app.ended());
            handle.stop();
            let ended = frames.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
            ended.and(shown)
        })
    }
}

fn said(error: &EventLoopError) -> String {
    match error {
        EventLoopError::Os(error) => display::said(error),
        error => error.to_string(),
    }
}

/// The desktop's end of the way to the window.
#[derive(Debug)]
struct ToWindow(EventLoopProxy<Outgoing>);

impl Out for ToWindow {
    fn send(&self, what: Outgoing) -> bool {
        self.0.send_event(what).is_ok()
    }
}

/// However the desktop ends, also by a panic: then there is nothing to show.
impl Drop for ToWindow {
    fn drop(&mut self) {
        let _ = self.0.send_event(Outgoing::Close(1001, "the desktop has ended"));
    }
}

struct App<'a> {
    state: State<'a>,
}

enum State<'a> {
    Opening(Box<Opening<'a>>),
    Open(Box<View<'a>>),
    Ended(Result<()>),
}

impl App<'_> {
    /// Closes the window, if it is still there.
    fn ended(self) -> Result<()> {
        if let State::Ended(ended) = self.state { ended } else { Ok(()) }
    }

    fn end(&mut self, events: &ActiveEventLoop, how: Result<()>) {
        // Of two reasons, the first: the desktop also says that it ends.
        if !matches!(self.state, State::Ended(Err(_))) {
            self.state = State::Ended(how);
        }
        events.exit();
    }

    /// Does something with the window, if it is open.
    fn with(&mut self, events: &ActiveEventLoop, what: impl FnOnce(&mut View<'_>) -> Result<()>) {
        if let State::Open(view) = &mut self.state
            && let Err(error) = what(view)
        {
            self.end(events, Err(error));
        }
    }
}

impl ApplicationHandler<Outgoing> for App<'_> {
    fn resumed(&mut self, events: &ActiveEventLoop) {
        self.state = match std::mem::replace(&mut self.state, State::Ended(Ok(()))) {
            State::Opening(opening) => match opening.open(events) {
                Ok(view) => State::Open(Box::new(view)),
                Err(error) => return self.end(events, Err(error)),
            },
            state => state,
        }
    }

    fn user_event(&mut self, events: &ActiveEventLoop, what: Outgoing) {
        match what {
            Outgoing::Frame(frame) => self.with(events, |view| view.show(&frame)),
            Outgoing::Copied(text) => self.with(events, |view| {
                view.copied(text);
                Ok(())
            }),
            Outgoing::Close(..) => self.end(events, Ok(())),
        }
    }

    fn window_event(&mut self, events: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        match event {
            WindowEvent::CloseRequested => self.end(events, Ok(())),
            event => self.with(events, |view| view.take(event)),
        }
    }

    fn about_to_wait(&mut self, events: &ActiveEventLoop) {
        if let State::Open(view) = &mut self.state {
            events.set_control_flow(view.post());
        }
    }
}
