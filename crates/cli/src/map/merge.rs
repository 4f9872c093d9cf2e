//! `gpu-run merge OUT`: puts the shards of a map's output together.

use super::{code, failure};
use crate::args::MergeArgs;
use anyhow::Result;
use gpu_run_compiler::printable;
use gpu_run_console::failure::retried;
use gpu_run_console::progress::Progress;
use gpu_run_console::terminal;
use gpu_run_console::units::count;
use gpu_run_map::{Merge, Merged};

/// The exit code is that of a map of the whole input.
pub(crate) fn merge(args: &MergeArgs) -> Result<u8> {
    let output = printable::path(&args.output);
    let merge = Merge { output: args.output.clone(), force: args.force, remove_shards: args.remove_shards };
    let merged = {
        let _progress = Progress::start(format!("putting {output} together"));
        merge.run().map_err(|error| retried(failure::told("merge", error)))?
    };
    terminal::say(&summed_up(&output, merged));
    Ok(code(merged.failed))
}

fn summed_up(output: &str, merged: Merged) -> String {
    let Merged { shards, records, failed } = merged;
    let (shards, records) = (count(u64::from(shards), "shard"), count(records, "record"));
    format!("gpu-run: {output} has {records} of {shards}, {failed} failed\n")
}
