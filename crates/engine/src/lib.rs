//! From the bytes of a wasm module to its results, on any device.
//!
//! ```text
//! compile:  wasm::decode ▶ wasm::translate ▶ optimize ▶ ptx::emit          Compiled
//! load:     Device::load                                                   Program
//! run:      slots, bus, launch, service, outcomes                          Vec<Outcome>
//! ```

mod api;

pub use api::*;
