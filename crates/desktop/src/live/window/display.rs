//! Whether there is a display, and what it lacks. winit panics where some of this is missing.

use std::env;
use winit::error::OsError;
use x11_dl::xcursor::Xcursor;
use x11_dl::xinput2::XInput2;
use x11_dl::xlib::Xlib;
use x11_dl::xlib_xcb::Xlib_xcb;
use x11rb::connection::RequestConnection;
use x11rb::rust_connection::RustConnection;
use xkbcommon_dl::{x11, xkbcommon_option};

/// What winit asks an X server for.
const EXTENSIONS: [&str; 3] = ["XInputExtension", "XKEYBOARD", "RANDR"];

/// Why no window can open.
#[derive(Debug, thiserror::Error)]
pub enum NoDisplay {
    #[error("neither WAYLAND_DISPLAY nor DISPLAY is set")]
    Unset,
    #[error("{0} cannot be loaded")]
    Library(&'static str),
    #[error("cannot connect to the X server {name}: {error}")]
    Unreachable { name: String, error: String },
    #[error("the X server {name} lacks the extension {extension}")]
    Extension { name: String, extension: &'static str },
    #[error("{0}")]
    Other(String),
}

/// Connects to the display if it is an X server; otherwise it is Wayland's.
pub(super) fn connect() -> Result<Option<RustConnection>, NoDisplay> {
    let is_set = |name| env::var(name).is_ok_and(|value| !value.is_empty());
    let is_wayland = is_set("WAYLAND_DISPLAY") || is_set("WAYLAND_SOCKET");
    if !is_wayland && !is_set("DISPLAY") {
        return Err(NoDisplay::Unset);
    }
    xkbcommon_option().ok_or(NoDisplay::Library("libxkbcommon.so.0"))?;
    if is_wayland {
        return Ok(None);
    }
    x11::xkbcommon_x11_option().ok_or(NoDisplay::Library("libxkbcommon-x11.so.0"))?;
    Xlib::open().map_err(|_| NoDisplay::Library("libX11.so.6"))?;
    Xlib_xcb::open().map_err(|_| NoDisplay::Library("libX11-xcb.so.1"))?;
    Xcursor::open().map_err(|_| NoDisplay::Library("libXcursor.so.1"))?;
    XInput2::open().map_err(|_| NoDisplay::Library("libXi.so.6"))?;
    let name = env::var("DISPLAY").unwrap_or_default();
    let unreachable =
        |error: &dyn std::fmt::Display| NoDisplay::Unreachable { name: name.clone(), error: error.to_string() };
    let (connection, _) = x11rb::connect(None).map_err(|error| unreachable(&error))?;
    for extension in EXTENSIONS {
        let found = connection.extension_information(extension).map_err(|error| unreachable(&error))?;
        found.ok_or_else(|| NoDisplay::Extension { name: name.clone(), extension })?;
    }
    Ok(Some(connection))
}

/// What winit says about an error of the display, without the line of its source.
pub(super) fn said(error: &OsError) -> String {
    let said = error.to_string();
    let what = said.strip_prefix("os error at ").and_then(|rest| rest.split_once(": "));
    what.map_or(said.clone(), |(_, what)| what.to_owned())
}
