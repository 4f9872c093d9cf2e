//! Runs many records through one program: bytes in, bytes out.
//!
//! A [`Map`] reads an input of any length, runs one instance for each record, and writes the outputs in order, in
//! bounded memory; `pipeline.rs` begins with the way of a record. [`Mapper`] is its engine and can be used alone: it
//! runs batches of [`Job`](gpu_run_run::Job)s, two of them at a time. [`measure`] and [`Tuning`] find the fastest
//! build. A [`Function`] is called for each record instead of running the program.

#![cfg_attr(test, allow(clippy::unwrap_used))] // in a test, that is an assertion

pub mod adapter;
mod batch;
mod dealer;
mod error;
mod folder;
mod function;
mod handover;
mod input;
mod map;
mod merge;
mod merge_objects;
mod observer;
mod options;
mod output;
mod pipeline;
mod runner;
mod shard;
mod successor;

pub use batch::{
    Done, Mapper, Mappers, MemoryKind, Pending, PendingOn, Results, SLOW, Slow, Trial, Tuning, Variant, measure,
    recall, remember, variants,
};
pub use dealer::Share;
pub use error::{Error, JournalFlaw, MissingShards, TaskChange};
pub use function::{ALONE, Function, FunctionError, MAX_GROUP};
pub use gpu_run_objects::{Error as ObjectError, Object};
pub use handover::{Handover, HandoverReason, Takeover};
pub use input::{Flaw, Location, SplitError};
pub use map::{BegunMap, Ended, Finished, Map, Sample};
pub use merge::{Merge, Merged};
pub use merge_objects::{MergeObjects, MergeTo, Shards};
pub use observer::{FailedRecord, LostDevice, Observer, RecordFailure, Stopped, Summary};
pub use options::{GPU_BATCH, Input, Options, Output, Split, Unfinished, usual_batch, usual_batch_of_calls};
pub use output::writer::StopReason;
pub use output::{Counts, StopHandle};
pub use runner::{Batches, DeviceLost, Gangs, differ};
pub use shard::{MAX_SHARDS, Shard, ShardError};
