//! Many records through one program: bytes in, bytes out.
//!
//! [`Mapper`] runs batches of [`Job`](gpu_run_run::Job)s, two at a time under way; [`measure`] and [`Tuning`] find the fastest build.

mod mapper;
mod outputs;
mod probation;
mod results;
mod tune;

pub use mapper::{Mapper, Pending};
pub use probation::{SLOW, Slow};
pub use results::{Done, Results};
pub use tune::{MemoryKind, Trial, Tuning, Variant, measure, recall, remember, variants};
