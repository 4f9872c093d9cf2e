//! Windows and widgets on gpu-run's desktop, for ordinary Rust programs.
//!
//! A program that uses this crate is built for `wasm32-wasip1` as any other, and started by `gpu-run desktop`. It runs on the device
//! beside the desktop, and says what its windows have in them; layout, input and pixels are the desktop's.
//!
//! ```no_run
//! use gpu_run_ui::{Event, Ui};
//!
//! fn main() -> std::io::Result<()> {
//!     let ui = Ui::connect()?;
//!     let window = ui.window("Counter").width(260.0);
//!     let count = window.label("0").title();
//!     let more = window.button("One more").strong();
//!     let mut n = 0;
//!     while let Some(event) = ui.next()? {
//!         match event {
//!             Event::Clicked(widget) if widget == more => {
//!                 n += 1;
//!                 count.set_text(&n.to_string());
//!             }
//!             Event::Closed(_) => break,
//!             _ => {}
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! ```text
//! cargo build --release --target wasm32-wasip1
//! gpu-run desktop target/wasm32-wasip1/release/counter.wasm
//! ```
//!
//! # How it works
//!
//! Widgets are kept by the desktop, in the device's memory: making one, or changing it, sends a few words, which
//! take effect together when the program waits in [`Ui::next`]. A program that has no window left should end. One that hangs or traps
//! is closed with its windows; the desktop stays.
//!
//! Lengths are in units: at a scale of 1 a unit is a pixel. Layout is flexbox as CSS has it: [`Widget::row`] and [`Widget::column`] are
//! containers, [`Widget::grow`], [`Widget::gap`] and the others what CSS calls so.

#![warn(missing_docs)]

mod canvas;
mod connection;
#[allow(missing_docs)] // The comments are the desktop's.
#[path = "../../desktop/kernel/src/event.rs"]
pub mod event;
mod happens;
mod icon;
mod style;
mod ui;
mod widget;
pub mod wire;

pub use canvas::Canvas;
pub use happens::{Event, Key, Pointer};
pub use icon::Icon;
pub use style::{Align, Justify};
pub use ui::Ui;
pub use widget::Widget;
