//! `gpu-run boot` and `gpu-run top`, as they are typed.

use super::common::{CacheArgs, DeviceChoice, StatsFormat};
use clap::Args;
use gpu_run_console::units;
use gpu_run_machine::{GridSize, Strategy};
use std::path::PathBuf;
use std::time::Duration;

const BOOT_EXPLAINED: &str = "\
The machine is a kernel that owns its state in the device's memory and ticks by itself; --load gives it something to do. It ends after --for, with Ctrl-C, or where --replay's log ends.

Strategies: `resident` is one launch that never returns; `mega[:TICKS]` leaves after so many ticks, `redispatch` after each; `buffered[:LAUNCHES]` has launches queued ahead; \
`checkpointed[:MILLISECONDS]` leaves before a time limit and goes on. What the machine does is the same under all.

After a crash, the same command with --resume does what the log of --record says since the checkpoint, and goes on.

With --kernel the machine runs another build of crates/kernel. SIGHUP (kill -HUP) has it read the file again and go on with what is there: it leaves at a tick boundary, keeps its state where it is, and \
is back before the next tick at 120 Hz; a file that cannot be loaded is refused, and the machine goes on as it was. --record's log has the code in it: a replay runs each tick with the code it ran with.

--stats=json ends with one object on stdout: ticks, launches and waits since it was up, heartbeat_gap_ms, lanes_active, host_cpu (of a core), heap_bytes, loads and load_gap_ms (how often new code was \
loaded, and how long the machine was away the last time), image_hash.";

#[derive(Debug, Args)]
#[command(after_help = BOOT_EXPLAINED)]
pub(crate) struct BootArgs {
    /// Where to run: `cpu`, `cuda`, `cuda:N`, or `auto`, the first GPU there is, else cpu
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,

    /// Who calls the next tick
    #[arg(long, value_name = "STRATEGY", default_value = "resident")]
    pub(crate) strategy: Strategy,

    /// Workgroups that work: a number, or `auto`, one for each multiprocessor
    #[arg(long, value_name = "GROUPS", default_value = "1", value_parser = grid)]
    pub(crate) grid: GridSize,

    /// Threads of a workgroup, a multiple of 32 [default: 1024 on a GPU, 64 on cpu]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<u32>,

    /// Ticks a second; 0 is as fast as it goes
    #[arg(long, value_name = "HZ", default_value = "120", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) rate: u32,

    /// Ends it after this long [default: with Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = units::duration, allow_hyphen_values = true)]
    pub(crate) time: Option<Duration>,

    /// Writes every event it takes, with its tick, to a log; with --resume it goes on with the log
    #[arg(long, value_name = "LOG")]
    pub(crate) record: Option<PathBuf>,

    /// Does what a log says, tick for tick, and ends where it ends
    #[arg(long, value_name = "LOG", conflicts_with_all = ["time", "load"])]
    pub(crate) replay: Option<PathBuf>,

    /// Begins with a checkpoint, of this or of another device
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,

    /// Keeps a checkpoint every so often, and at the end
    #[arg(long, value_name = "DURATION", value_parser = units::duration, allow_hyphen_values = true)]
    pub(crate) checkpoint_every: Option<Duration>,

    /// Where to keep it [default: --resume's file, or machine.ckpt here]
    #[arg(long, value_name = "FILE", requires = "checkpoint_every")]
    pub(crate) checkpoint: Option<PathBuf>,

    /// What it runs: a .wasm built from crates/kernel [default: what gpu-run is built with]. SIGHUP reads it again
    #[arg(long, value_name = "FILE")]
    pub(crate) kernel: Option<PathBuf>,

    /// Reads --kernel's file again when it comes to these ticks, as SIGHUP does
    #[arg(long, value_name = "TICKS", value_delimiter = ',', conflicts_with = "replay")]
    pub(crate) reload_at: Vec<u64>,

    /// Posts so many events a second: objects are made, written, worked on and destroyed
    #[arg(long, value_name = "EVENTS", default_value = "0")]
    pub(crate) load: u32,

    /// What --load's events are made from
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    pub(crate) seed: u64,

    /// Destroys at the end what --load made, and waits until nothing is left of it
    #[arg(long, requires = "load")]
    pub(crate) drain: bool,

    /// Nanoseconds the supervisor sleeps when there is nothing to do [default: none on a GPU, 1000 on cpu]
    #[arg(long, value_name = "NS")]
    pub(crate) idle_sleep: Option<u32>,

    /// Says at the end what was counted, on stderr; `json` prints one object on stdout
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub(crate) stats: Option<StatsFormat>,

    #[command(flatten)]
    pub(crate) cache: CacheArgs,

    /// Says on stderr what is done; -vv says more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

fn grid(text: &str) -> Result<GridSize, String> {
    match text {
        "auto" => Ok(GridSize::Auto),
        "1" => Ok(GridSize::One),
        _ => match text.parse() {
            Ok(groups @ 1..=1000) => Ok(GridSize::Groups(groups)),
            _ => Err("expected a number of workgroups from 1 to 1000, or `auto`".to_owned()),
        },
    }
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The process whose machine to look at [default: the one booted last]
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Shows it once, and ends
    #[arg(long)]
    pub(crate) once: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_numbers_or_auto() {
        assert_eq!(grid("1"), Ok(GridSize::One));
        assert_eq!(grid("auto"), Ok(GridSize::Auto));
        assert_eq!(grid("7"), Ok(GridSize::Groups(7)));
        for text in ["0", "-1", "all", "", "100000"] {
            assert!(grid(text).is_err(), "{text}");
        }
    }
}
