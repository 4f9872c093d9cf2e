//! Rust sources become programs: the installed toolchain, gpu-run's own std, and `gpu-run build`.

pub(crate) mod front;
mod own_std;
mod settings;
pub(crate) mod toolchain;
