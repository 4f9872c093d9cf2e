//! `gpu-run merge OUT`: puts the shards of a map's output together.

use super::{address, code, failure, of_store};
use crate::args::MergeArgs;
use anyhow::Result;
use gpu_run_compiler::printable;
use gpu_run_console::failure::{Failure, retried};
use gpu_run_console::progress::Progress;
use gpu_run_console::terminal;
use gpu_run_console::units::count;
use gpu_run_map::{Error, Merge, MergeObjects, MergeTo, Merged, Shards};
use gpu_run_objects::{Object, ObjectFolder};
use std::path::Path;

/// The exit code is that of a map of the whole input.
pub(crate) fn merge(args: &MergeArgs) -> Result<u8> {
    let output = printable::path(args.to.as_deref().unwrap_or(&args.output));
    let (force, remove_shards) = (args.force, args.remove_shards);
    let merged = match address(&args.output) {
        Some(shards) => {
            let merge = MergeObjects { shards: of_objects(shards, args.to.as_deref())?, force, remove_shards };
            let _progress = Progress::start(format!("putting {output} together"));
            merge.run()
        }
        None if args.to.is_some() => {
            return Err(
                Failure::usage("--output is for shards that are objects: those of a file become the file OUT").into()
            );
        }
        None => {
            let _progress = Progress::start(format!("putting {output} together"));
            Merge { output: args.output.clone(), force, remove_shards }.run()
        }
    };
    let merged = merged.map_err(|error: Error| retried(failure::told("merge", error)))?;
    terminal::say(&summed_up(&output, merged));
    Ok(code(merged.failed))
}

/// Returns the shards of the output at this address, and where they are put together.
fn of_objects(output: &str, to: Option<&Path>) -> Result<Shards> {
    if output.ends_with('/') {
        return match to {
            None => Ok(Shards::OfFolder(of_store(ObjectFolder::open(output))?)),
            Some(_) => {
                Err(Failure::usage("--output is for shards of one object: those of a folder have written it").into())
            }
        };
    }
    let object = of_store(Object::open(output))?;
    let to = match to {
        None => MergeTo::Object(object.clone()),
        Some(path) => match address(path) {
            Some(address) => MergeTo::Object(of_store(Object::open(address))?),
            None => MergeTo::File(path.to_owned()),
        },
    };
    Ok(Shards::OfObject(object, to))
}

fn summed_up(output: &str, merged: Merged) -> String {
    let Merged { shards, records, failed } = merged;
    let (shards, records) = (count(u64::from(shards), "shard"), count(records, "record"));
    format!("gpu-run: {output} has {records} of {shards}, {failed} failed\n")
}
