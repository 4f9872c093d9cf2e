//! Batches of jobs on a device: [`Mapper`] runs them, two at a time under way; [`measure`] and [`Tuning`] find the fastest build.

mod mapper;
mod outputs;
mod probation;
mod results;
mod tune;

pub use mapper::{Mapper, Pending};
pub use probation::{SLOW, Slow};
pub use results::{Done, Results};
pub use tune::{Trial, Tuning, Variant, measure, recall, remember, variants};
