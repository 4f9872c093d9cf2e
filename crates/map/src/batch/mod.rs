//! Batches of jobs on a device: [`Mapper`] runs them, two at a time; [`measure`] and [`Tuning`] find the fastest build.

mod kept;
mod launches;
mod mapper;
mod outputs;
mod pending;
mod probation;
mod reruns;
mod results;
mod tune;

pub(crate) use kept::Kept;
pub use mapper::Mapper;
pub use pending::Pending;
pub use probation::{SLOW, Slow};
pub use results::{Done, Results};
pub use tune::{MemoryKind, Trial, Tuning, Variant, measure, recall, remember, variants};
