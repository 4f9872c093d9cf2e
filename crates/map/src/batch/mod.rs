//! Batches of jobs on a device: [`Mapper`] runs them, two at a time, [`Mappers`] on several devices; [`measure`] and [`Tuning`] find the fastest build.

mod kept;
mod launches;
mod mapper;
mod mappers;
mod outputs;
mod pending;
mod probation;
mod reruns;
mod results;
mod tune;

pub(crate) use kept::Kept;
pub use mapper::Mapper;
pub(crate) use mappers::MAX_LOSSES_OF_BATCH;
pub use mappers::{Mappers, PendingOn};
pub use pending::Pending;
pub use probation::{SLOW, Slow};
pub use results::{Done, Results};
pub use tune::{MemoryKind, Trial, Tuning, Variant, measure, recall, remember, variants};
