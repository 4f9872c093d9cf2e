//! The options of `gpu-run boot` and `gpu-run top`.

use super::common::{CacheArgs, StatsFormat};
use clap::Args;
use gpu_run_console::units;
use gpu_run_device::DeviceList;
use gpu_run_machine::{GridSize, Strategy};
use std::path::PathBuf;
use std::time::Duration;

const BOOT_EXPLAINED: &str = "\
The machine is a kernel that is launched once, owns its state in device memory and ticks by itself; --load gives it something to do. It stops after --for, with \
Ctrl-C, or at the end of --replay's log.

Strategies: `resident` is one launch that never returns; `mega[:TICKS]` returns after this many ticks, `redispatch` after each tick; `buffered[:LAUNCHES]` queues launches \
ahead; `checkpointed[:MILLISECONDS]` returns before a time limit and continues. The machine does the same under all of them.

After a crash, run the same command with --resume: the machine begins with the checkpoint, does what --record's log says since then, and continues.

--kernel runs another build of crates/kernel. SIGHUP (kill -HUP) reads the file again: the machine leaves at a tick boundary, keeps its state in place, and continues with the \
new code before the next tick at 120 Hz. A file that cannot be loaded is refused, and the machine continues as before. --record's log contains the code: a replay runs each tick \
with the code that ran it.

--stats=json prints one object on stdout: ticks, launches and waits since the start, heartbeat_gap_ms, lanes_active, host_cpu (of a core), heap_bytes, loads and \
load_gap_ms (how often new code was loaded, and how long the machine was away the last time), image_hash.

Exit codes:
  0    the machine stopped as asked
  1    it failed, or a replay came to another state than its log says
  2    a usage error
  130  after a second Ctrl-C";

#[derive(Debug, Args)]
#[command(after_help = BOOT_EXPLAINED)]
pub(crate) struct BootArgs {
    /// The device to run on: `cpu`, `cuda` (the first GPU), `cuda:N`, or `auto`: the first usable GPU, else `cpu`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceList,

    /// How ticks are launched; see below
    #[arg(long, value_name = "STRATEGY", default_value = "resident")]
    pub(crate) strategy: Strategy,

    /// The number of workgroups that work, or `auto`: one per multiprocessor but one, on cpu one per core
    #[arg(long, value_name = "GROUPS", default_value = "1", value_parser = grid)]
    pub(crate) grid: GridSize,

    /// The number of threads in a workgroup, a multiple of 32 [default: 1024 on a GPU, 64 on cpu]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<u32>,

    /// Ticks per second; 0 is as fast as possible
    #[arg(long, value_name = "HZ", default_value = "120", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) rate: u32,

    /// Stops the machine after this long [default: with Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = units::duration, allow_hyphen_values = true)]
    pub(crate) time: Option<Duration>,

    /// Writes every event that the machine takes, with its tick, to a log; with --resume, continues the log
    #[arg(long, value_name = "LOG")]
    pub(crate) record: Option<PathBuf>,

    /// Does what a log says, tick for tick, and stops at its end
    #[arg(long, value_name = "LOG", conflicts_with_all = ["time", "load"])]
    pub(crate) replay: Option<PathBuf>,

    /// Begins with a checkpoint, of this or of another device
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,

    /// Writes a checkpoint this often, and at the end
    #[arg(long, value_name = "DURATION", value_parser = units::duration, allow_hyphen_values = true)]
    pub(crate) checkpoint_every: Option<Duration>,

    /// The file of the checkpoint [default: --resume's file, or machine.ckpt here]
    #[arg(long, value_name = "FILE", requires = "checkpoint_every")]
    pub(crate) checkpoint: Option<PathBuf>,

    /// The code to run: a .wasm built from crates/kernel; SIGHUP reads it again [default: the kernel built into gpu-run]
    #[arg(long, value_name = "FILE")]
    pub(crate) kernel: Option<PathBuf>,

    /// Reads --kernel's file again at these ticks, as SIGHUP does
    #[arg(long, value_name = "TICKS", value_delimiter = ',', conflicts_with = "replay")]
    pub(crate) reload_at: Vec<u64>,

    /// Posts this many events per second, which make, write, work on and destroy objects
    #[arg(long, value_name = "EVENTS", default_value = "0")]
    pub(crate) load: u32,

    /// The seed of --load's events
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    pub(crate) seed: u64,

    /// Destroys at the end what --load made, and waits until nothing is left of it
    #[arg(long, requires = "load")]
    pub(crate) drain: bool,

    /// How many nanoseconds the supervisor sleeps when there is nothing to do [default: none on a GPU, 1000 on cpu]
    #[arg(long, value_name = "NS")]
    pub(crate) idle_sleep: Option<u32>,

    /// Prints counts at the end, on stderr; `json` prints one object on stdout
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub(crate) stats: Option<StatsFormat>,

    #[command(flatten)]
    pub(crate) cache: CacheArgs,

    /// Prints progress on stderr; -vv prints more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

pub(super) fn grid(text: &str) -> Result<GridSize, String> {
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
    /// The process to show [default: the one heard from last]
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Shows it once, and exits
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
