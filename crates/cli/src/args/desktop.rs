//! The options of `gpu-run desktop`.

use super::apps::AppArgs;
use super::common::{CacheArgs, DeviceChoice};
use super::machine::grid;
use clap::Args;
use gpu_run_machine::GridSize;
use std::path::PathBuf;

const DESKTOP_EXPLAINED: &str = "\
The desktop is a windowing system that lives in the device's memory: widgets, layout, input and pixels, one frame a tick of the resident machine. --script says what \
happens on it, one command or event a line (docs/desktop.md); --png writes what it shows when nothing moves any more. The same script gives the same pixels on every device.

Exit codes:
  0    the picture is written
  1    the machine failed, or the script asked for something that the desktop refused
  2    a usage error, also in the script";

#[derive(Debug, Args)]
#[command(after_help = DESKTOP_EXPLAINED)]
pub(crate) struct DesktopArgs {
    /// The device to run on: `cpu`, `cuda` (the first GPU), `cuda:N`, or `auto`: the first usable GPU, else `cpu`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,

    /// Writes what the desktop shows in the end
    #[arg(long, value_name = "FILE")]
    pub(crate) png: PathBuf,

    /// The picture's size in units of length
    #[arg(long, value_name = "WxH", default_value = "1280x800", value_parser = size)]
    pub(crate) size: (u32, u32),

    /// Pixels for one unit of length, from 0.25 to 4
    #[arg(long, value_name = "N", default_value = "1", value_parser = scale)]
    pub(crate) scale: f64,

    /// What happens on the desktop
    #[arg(long, value_name = "EVENTS")]
    pub(crate) script: PathBuf,

    /// The number of workgroups that work, or `auto`: one per multiprocessor but one, on cpu one per core
    #[arg(long, value_name = "GROUPS", default_value = "1", value_parser = grid)]
    pub(crate) grid: GridSize,

    /// The number of threads in a workgroup, a multiple of 32 [default: 1024 on a GPU, 64 on cpu]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<u32>,

    /// Prints how long each phase of a frame took
    #[arg(long)]
    pub(crate) stats: bool,

    #[command(flatten)]
    pub(crate) apps: AppArgs,

    #[command(flatten)]
    pub(crate) cache: CacheArgs,

    /// Prints what gpu-run does; -vv more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    parsed.filter(|(width, height)| *width > 0 && *height > 0).ok_or_else(|| "not a size such as 1280x800".to_owned())
}

fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok().filter(|scale| (0.25..=4.0).contains(scale));
    scale.ok_or_else(|| "not a number from 0.25 to 4".to_owned())
}
