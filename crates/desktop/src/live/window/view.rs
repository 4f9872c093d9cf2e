//! The open window.

use super::ToWindow;
use super::clipboard::Clipboard;
use super::display;
use super::input::Input;
use super::keys::{self, Meaning};
use super::shown::Shown;
use super::surface::Surface;
use crate::desktop::Result;
use crate::event::{self as e, touch};
use crate::live::Handle;
use crate::live::frames::FromViewer;
use crate::live::message::{self, Said, Size};
use crate::live::screen::Place;
use crate::live::viewers::{Frame, Id};
use crate::{Error, map};
use gpu_run_machine::Event;
use std::rc::Rc;
use std::time::Instant;
use winit::dpi::{LogicalSize, PhysicalPosition, PhysicalSize};
use winit::event::{ElementState, Ime, MouseButton, MouseScrollDelta, TouchPhase, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow};
use winit::keyboard::ModifiersState;
use winit::platform::wayland::WindowAttributesExtWayland;
use winit::window::Window;
use x11rb::rust_connection::RustConnection;

/// Pages count from 1.
const ID: Id = 0;
/// What a line of the wheel is, in units: three of a page's lines.
const LINE: f64 = 120.0;
/// Nothing is under a pointer that has left.
const NOWHERE: (i32, i32) = (-256, -256);
/// How high a line of text is, in units: an input method's list does not cover it.
const TEXT_HEIGHT: f64 = 24.0;

/// What is needed to open the window.
pub(super) struct Opening<'a> {
    pub(super) handle: &'a Handle,
    /// In units.
    pub(super) size: (u32, u32),
    /// Pixels for one unit; none: as the display says.
    pub(super) scale: Option<f64>,
    pub(super) out: ToWindow,
    pub(super) x: Option<RustConnection>,
}

impl<'a> Opening<'a> {
    pub(super) fn open(self, events: &ActiveEventLoop) -> Result<View<'a>> {
        let Self { handle, size: (width, height), scale, out, x } = self;
        let (width, height) = (f64::from(width), f64::from(height));
        let attributes = Window::default_attributes().with_title("gpu-run desktop");
        // The name by which the system knows the program; on X11, too.
        let attributes = WindowAttributesExtWayland::with_name(attributes, "gpu-run", "gpu-run");
        let attributes = match scale {
            Some(scale) => attributes.with_inner_size(PhysicalSize::new(width * scale, height * scale)),
            None => attributes.with_inner_size(LogicalSize::new(width, height)),
        };
        let window = events.create_window(attributes).map_err(|error| Error::Window(display::said(&error)))?;
        window.set_ime_allowed(true);
        let window = Rc::new(window);
        let surface = Surface::new(window.clone(), x).map_err(Error::Window)?;
        let mut view = View {
            handle,
            scale,
            surface,
            shown: Shown::default(),
            damage: Vec::new(),
            undrawn: None,
            pixels: window.inner_size(),
            told: None,
            window,
            input: Input::default(),
            cursor: PhysicalPosition::new(-1.0, -1.0),
            buttons: 0,
            held: ModifiersState::empty(),
            clipboard: Clipboard::default(),
        };
        view.say(FromViewer::Joined(Box::new(out)));
        view.resize();
        Ok(view)
    }
}

pub(super) struct View<'a> {
    handle: &'a Handle,
    scale: Option<f64>,
    window: Rc<Window>,
    /// The window's size.
    pixels: PhysicalSize<u32>,
    surface: Surface,
    shown: Shown,
    /// What has changed in the frame since it was drawn.
    damage: Vec<Place>,
    /// The last frame that came, until it is drawn.
    undrawn: Option<u32>,
    /// The size that the desktop was told last.
    told: Option<Size>,
    input: Input,
    /// Where the pointer is in the window, and a bit for each button that is down.
    cursor: PhysicalPosition<f64>,
    buttons: u32,
    held: ModifiersState,
    clipboard: Clipboard,
}

impl View<'_> {
    /// Posts to the desktop. While it has too many posts, the window waits: the desktop never waits for the window. A desktop that has
    /// ended says so itself.
    fn say(&self, what: FromViewer) {
        self.handle.view(ID, what);
    }

    /// Posts what the user did, if it is time. Returns until when to wait for more.
    pub(super) fn post(&mut self) -> ControlFlow {
        match self.input.due() {
            None => ControlFlow::Wait,
            Some(due) if due.is_zero() => {
                let events = self.input.take();
                self.say(FromViewer::Said(Said::Input { number: 0, events }));
                ControlFlow::Wait
            }
            Some(due) => ControlFlow::WaitUntil(Instant::now() + due),
        }
    }

    /// Takes a frame.
    pub(super) fn show(&mut self, frame: &Frame) -> Result<()> {
        if self.shown.apply(&frame.patch) {
            self.damage.clear();
        }
        self.damage.extend(&frame.patch.places);
        self.undrawn = Some(frame.number);
        if self.surface.waits() {
            self.window.request_redraw();
            return Ok(());
        }
        self.draw()
    }

    /// Draws what has changed; everything, if nothing has: then the window was covered, or is new.
    fn draw(&mut self) -> Result<()> {
        let PhysicalSize { width, height } = self.pixels;
        // A minimised window may have no pixels.
        if width > 0 && height > 0 {
            let mut damage = std::mem::take(&mut self.damage);
            if damage.is_empty() || !self.shown.is_exact((width, height)) {
                damage = vec![[0, 0, width, height]];
            }
            self.window.pre_present_notify();
            self.surface.draw(&self.shown, (width, height), &damage).map_err(Error::Window)?;
        }
        if let Some(frame) = self.undrawn.take() {
            self.say(FromViewer::Said(Said::Drawn { frame }));
        }
        Ok(())
    }

    /// Tells the desktop the window's size, if it is another one.
    fn resize(&mut self) {
        let PhysicalSize { width, height } = self.pixels;
        if width == 0 || height == 0 {
            return;
        }
        let size = size((width, height), self.scale.unwrap_or(self.window.scale_factor()));
        if self.told != Some(size) {
            self.told = Some(size);
            self.say(FromViewer::Said(Said::Size(size)));
        }
    }

    /// Text for the clipboard.
    pub(super) fn copied(&mut self, text: String) {
        self.clipboard.set(text);
    }

    pub(super) fn take(&mut self, event: WindowEvent) -> Result<()> {
        match event {
            WindowEvent::RedrawRequested => return self.draw(),
            WindowEvent::Resized(pixels) => {
                self.pixels = pixels;
                self.resize();
                self.window.request_redraw();
            }
            WindowEvent::ScaleFactorChanged { .. } => self.resize(),
            WindowEvent::CursorMoved { position, .. } => {
                self.cursor = position;
                self.push(e::MOVE, 0, 0, self.at(position));
            }
            WindowEvent::CursorLeft { .. } if self.buttons == 0 => self.push(e::MOVE, 0, 0, NOWHERE),
            WindowEvent::MouseInput { state, button, .. } => self.click(state, button),
            WindowEvent::MouseWheel { delta, .. } => self.turn(delta),
            WindowEvent::Touch(it) => {
                let flags = match it.phase {
                    TouchPhase::Started => touch::DOWN,
                    TouchPhase::Moved => touch::MOVED,
                    TouchPhase::Ended => touch::UP,
                    TouchPhase::Cancelled => touch::CANCELLED,
                };
                let at = self.at(it.location);
                self.push(e::TOUCH, flags, it.id as u32, at);
            }
            WindowEvent::ModifiersChanged(modifiers) => self.held = modifiers.state(),
            // Keys that were down when the window got the focus were pressed elsewhere.
            WindowEvent::KeyboardInput { event, is_synthetic: false, .. } if event.state == ElementState::Pressed => {
                match keys::meaning(&event.logical_key, event.physical_key, event.text.as_deref(), self.held) {
                    None => {}
                    Some(Meaning::Events(events)) => events.into_iter().for_each(|event| self.input.push(event)),
                    Some(Meaning::Paste) => {
                        let pasted = message::pasted(&self.clipboard.text());
                        pasted.into_iter().for_each(|event| self.input.push(event));
                    }
                }
            }
            // What is being composed shows when it is complete.
            WindowEvent::Ime(Ime::Commit(text)) => {
                keys::typed(&text).into_iter().for_each(|event| self.input.push(event));
            }
            _ => {}
        }
        Ok(())
    }

    /// Where a place in the window is on the desktop.
    fn at(&self, position: PhysicalPosition<f64>) -> (i32, i32) {
        self.shown.on_desktop(self.pixels.into(), position.x, position.y)
    }

    fn push(&mut self, kind: u16, flags: u16, key: u32, (x, y): (i32, i32)) {
        self.input.push(Event { kind, flags, key, a: x as u32, b: y as u32, ..Event::default() });
    }

    fn click(&mut self, state: ElementState, button: MouseButton) {
        let button = match button {
            MouseButton::Left => 0,
            MouseButton::Middle => 1,
            MouseButton::Right => 2,
            _ => return,
        };
        let (kind, buttons) = match state {
            ElementState::Pressed => (e::PRESS, self.buttons | 1 << button),
            ElementState::Released => (e::RELEASE, self.buttons & !(1 << button)),
        };
        self.buttons = buttons;
        self.push(kind, 0, button, self.at(self.cursor));
        // Where the user clicked is where typing goes; what an input method shows belongs there.
        if kind == e::PRESS {
            self.window.set_ime_cursor_area(self.cursor, LogicalSize::new(1.0, TEXT_HEIGHT));
        }
    }

    /// The wheel turned, or two fingers moved on a touchpad. What goes right and down for winit goes left and up for the desktop.
    fn turn(&mut self, delta: MouseScrollDelta) {
        let (x, y) = match delta {
            MouseScrollDelta::LineDelta(x, y) => {
                let line = LINE * self.told.map_or(1.0, |size| f64::from(size.scale) / 256.0);
                (f64::from(x) * line, f64::from(y) * line)
            }
            MouseScrollDelta::PixelDelta(delta) => (delta.x, delta.y),
        };
        self.push(e::WHEEL, 0, 0, ((-x * 256.0).round() as i32, (-y * 256.0).round() as i32));
    }
}

/// What a desktop of a window's size has: no more pixels than there can be.
fn size((width, height): (u32, u32), scale: f64) -> Size {
    let most = |most: u32, pixels: u32| f64::from(most) / f64::from(pixels);
    let less = most(map::MAX_WIDTH, width).min(most(map::MAX_HEIGHT, height)).min(1.0);
    let pixels = |pixels: u32| ((f64::from(pixels) * less).floor() as u32).max(1);
    let scale = ((scale * less).clamp(0.25, 4.0) * 256.0).round() as u32;
    Size { width: pixels(width), height: pixels(height), scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_too_large_has_a_smaller_desktop() {
        assert_eq!(size((1280, 800), 1.0), Size { width: 1280, height: 800, scale: 256 });
        assert_eq!(size((1280, 800), 1.5), Size { width: 1280, height: 800, scale: 384 });
        assert_eq!(size((7680, 4320), 2.0), Size { width: 3840, height: 2160, scale: 256 });
        assert_eq!(size((1, 9000), 1.0), Size { width: 1, height: 2160, scale: 64 });
    }
}
