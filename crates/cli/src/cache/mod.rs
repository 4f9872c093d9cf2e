//! `gpu-run cache`: shows and maintains the cache of compiled programs.

mod preload;
mod show;

use crate::args::{CacheArgs, CacheCommand, Task};
use crate::program_cache::{open, place};
use anyhow::Result;
use gpu_run_cache::{Cache, Pruned};
use gpu_run_console::failure::Failure;
use gpu_run_console::terminal::print;
use gpu_run_console::units::{count, show_size};
use gpu_run_sysroot::Kept;

/// `gpu-run cache`
pub(crate) fn cache(args: &CacheCommand) -> Result<u8> {
    let here = CacheArgs { cache_dir: args.cache_dir.clone(), no_cache: false };
    if let Task::Path = args.task {
        let place = place(&here)?.map_err(|why| Failure::environment(format!("there is no cache: {why}")))?;
        return print(&format!("{}\n", place.display())).map(|()| 0);
    }
    let cache = open(&here)?;
    match &args.task {
        Task::Stats { json: true } => print(&show::stats_json(&cache.stats()?, stds(&cache), cache.remote())?)?,
        Task::Stats { json: false } => {
            print(&show::stats(&cache.stats()?, stds(&cache), cache.path(), cache.remote()))?;
        }
        Task::List { json: true } => print(&show::list_json(&cache.list()?))?,
        Task::List { json: false } => print(&show::list(&cache.list()?))?,
        Task::Preload(args) => return preload::preload(cache, &here, args),
        Task::Prune { max_age, max_size } => print(&removed(&swept(&cache, cache.prune(*max_age, *max_size)?)))?,
        Task::Clear => print(&removed(&swept(&cache, cache.clear()?)))?,
        Task::Verify { repair } => {
            let check = cache.verify(*repair)?;
            print(&show::check(&check))?;
            return Ok(u8::from(check.damaged.len() as u64 > check.repaired));
        }
        Task::Path => {}
    }
    Ok(0)
}

/// Returns what there is of gpu-run's own stds.
fn stds(cache: &Cache) -> Kept {
    cache.path().map(gpu_run_sysroot::kept).unwrap_or_default()
}

/// Removes what makers of stds that died left behind, too.
fn swept(cache: &Cache, pruned: Pruned) -> Pruned {
    let folders = cache.path().map_or(Ok(0), gpu_run_sysroot::sweep).unwrap_or_else(|error| {
        tracing::warn!("{error}");
        0
    });
    Pruned { leftovers: pruned.leftovers + folders, ..pruned }
}

fn removed(pruned: &Pruned) -> String {
    let entries = match pruned.entries {
        1 => "1 entry".into(),
        entries => format!("{entries} entries"),
    };
    let mut text = format!("removed {entries}, {}", show_size(pruned.bytes));
    if pruned.leftovers > 0 {
        text += &format!(", and {} left behind by dead processes", count(pruned.leftovers, "file"));
    }
    if pruned.in_use > 0 {
        text +=
            &format!("; {} in use", if pruned.in_use == 1 { "1 is".into() } else { format!("{} are", pruned.in_use) });
    }
    text + "\n"
}
