//! The window's pixels.

use super::shown::Shown;
use crate::live::screen::Place;
use softbuffer::{Context, Rect};
use std::fmt::Display;
use std::num::NonZeroU32;
use std::rc::Rc;
use winit::raw_window_handle::{HasWindowHandle, RawWindowHandle};
use winit::window::Window;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::xproto::{ConnectionExt, CreateGCAux, ImageFormat, ImageOrder, Setup, Visualid};
use x11rb::rust_connection::RustConnection;

pub(super) enum Surface {
    X(Box<X>),
    Wayland(Wayland),
}

impl Surface {
    /// `x` is a connection to the window's X server, if it has one.
    pub(super) fn new(window: Rc<Window>, x: Option<RustConnection>) -> Result<Self, String> {
        match x {
            Some(connection) => X::new(&window, connection).map(Box::new).map(Self::X),
            None => Wayland::new(window).map(Self::Wayland),
        }
    }

    /// Whether it is drawn when the display asks for it, rather than at once.
    pub(super) fn waits(&self) -> bool {
        matches!(self, Self::Wayland(_))
    }

    /// Draws a window of this size, of which these places have changed.
    pub(super) fn draw(&mut self, shown: &Shown, size: (u32, u32), damage: &[Place]) -> Result<(), String> {
        match self {
            Self::X(surface) => surface.draw(shown, size, damage),
            Self::Wayland(surface) => surface.draw(shown, size, damage),
        }
    }
}

/// A connection of its own, on which the changed pixels are sent: the server takes them from any.
pub(super) struct X {
    connection: RustConnection,
    window: u32,
    context: u32,
    depth: u8,
    order: ImageOrder,
}

impl X {
    fn new(window: &Window, connection: RustConnection) -> Result<Self, String> {
        let RawWindowHandle::Xlib(handle) = window.window_handle().map_err(said)?.as_raw() else {
            return Err("the window is not the X server's".to_owned());
        };
        let window = handle.window as u32;
        let depth = connection.get_geometry(window).map_err(said)?.reply().map_err(said)?.depth;
        let attributes = connection.get_window_attributes(window).map_err(said)?.reply().map_err(said)?;
        if !has_bytes(connection.setup(), depth, attributes.visual) {
            return Err(format!("the X server has pixels of {depth} bits, and not a byte for each colour"));
        }
        let context = connection.generate_id().map_err(said)?;
        let quiet = CreateGCAux::new().graphics_exposures(0);
        connection.create_gc(context, window, &quiet).map_err(said)?.check().map_err(said)?;
        let order = connection.setup().image_byte_order;
        Ok(Self { connection, window, context, depth, order })
    }

    fn draw(&mut self, shown: &Shown, size: (u32, u32), damage: &[Place]) -> Result<(), String> {
        let place = shown.place(size);
        let is_little = self.order == ImageOrder::LSB_FIRST;
        let bytes = |pixel: u32| if is_little { pixel.to_le_bytes() } else { pixel.to_be_bytes() };
        // A request has 24 bytes before its pixels, and 4 more if it is long.
        let most = self.connection.maximum_request_bytes() - 28;
        let mut pixels = Vec::new();
        for &[left, top, width, height] in damage {
            let mut row = vec![0; width as usize];
            let rows = (most / (row.len() * 4)).max(1);
            let lines: Vec<u32> = (top..top + height).collect();
            for lines in lines.chunks(rows) {
                pixels.resize(lines.len() * row.len() * 4, 0);
                for (y, line) in lines.iter().zip(pixels.chunks_mut(row.len() * 4)) {
                    shown.read(place, left, *y, &mut row);
                    line.as_chunks_mut().0.iter_mut().zip(&row).for_each(|(it, pixel)| *it = bytes(*pixel));
                }
                let (width, height, left, top) = (width as u16, lines.len() as u16, left as i16, lines[0] as i16);
                let format = ImageFormat::Z_PIXMAP;
                let (window, context, depth) = (self.window, self.context, self.depth);
                self.connection
                    .put_image(format, window, context, width, height, left, top, 0, depth, &pixels)
                    .map_err(said)?;
            }
        }
        self.connection.flush().map_err(said)
    }
}

/// Whether a window's pixels have 32 bits with a byte for each colour, blue the lowest.
fn has_bytes(setup: &Setup, depth: u8, visual: Visualid) -> bool {
    let mut visuals = setup.roots.iter().flat_map(|screen| &screen.allowed_depths).flat_map(|depth| &depth.visuals);
    let masks = visuals.find(|it| it.visual_id == visual).map(|it| (it.red_mask, it.green_mask, it.blue_mask));
    let is_word = setup.pixmap_formats.iter().any(|format| format.depth == depth && format.bits_per_pixel == 32);
    is_word && masks == Some((0xFF_0000, 0xFF00, 0xFF))
}

/// Two buffers that the compositor shares.
pub(super) struct Wayland {
    surface: softbuffer::Surface<Rc<Window>, Rc<Window>>,
    /// What the last drawing changed: the other buffer lacks it.
    last: Vec<Place>,
}

impl Wayland {
    fn new(window: Rc<Window>) -> Result<Self, String> {
        let context = Context::new(window.clone()).map_err(said)?;
        let surface = softbuffer::Surface::new(&context, window).map_err(said)?;
        Ok(Self { surface, last: Vec::new() })
    }

    fn draw(&mut self, shown: &Shown, size: (u32, u32), damage: &[Place]) -> Result<(), String> {
        let (Some(width), Some(height)) = (NonZeroU32::new(size.0), NonZeroU32::new(size.1)) else { return Ok(()) };
        self.surface.resize(width, height).map_err(said)?;
        let mut buffer = self.surface.buffer_mut().map_err(said)?;
        let whole = [[0, 0, size.0, size.1]];
        let (damage, missing) = match buffer.age() {
            1 => (damage, &[][..]),
            2 => (damage, &self.last[..]),
            _ => (&whole[..], &[][..]),
        };
        let place = shown.place(size);
        for &[left, top, width, height] in damage.iter().chain(missing) {
            for y in top..top + height {
                let from = (y * size.0 + left) as usize;
                shown.read(place, left, y, &mut buffer[from..][..width as usize]);
            }
        }
        let changed: Vec<Rect> = damage.iter().filter_map(rectangle).collect();
        buffer.present_with_damage(&changed).map_err(said)?;
        self.last = damage.to_vec();
        Ok(())
    }
}

fn rectangle(&[x, y, width, height]: &Place) -> Option<Rect> {
    Some(Rect { x, y, width: NonZeroU32::new(width)?, height: NonZeroU32::new(height)? })
}

fn said(error: impl Display) -> String {
    error.to_string()
}
