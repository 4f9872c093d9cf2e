//! `gpu-run build` and `gpu-run test`, and gpu-run's own std, which they make.

pub(crate) mod front;
mod own_std;
