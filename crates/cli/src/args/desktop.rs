//! The options of `gpu-run desktop`.

use super::apps::AppArgs;
use super::common::CacheArgs;
use super::machine::grid;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use gpu_run_desktop::Overlay;
use gpu_run_desktop::live::Effects;
use gpu_run_device::DeviceList;
use gpu_run_machine::GridSize;
use std::net::SocketAddr;
use std::path::PathBuf;

const DESKTOP_EXPLAINED: &str = "\
The desktop is a windowing system that lives in the device's memory: widgets, layout, input and pixels, one frame a tick of the resident machine. Open the address that this \
command prints in a browser: mouse, keyboard, touch and clipboard work, and the desktop takes the size of the browser's window. Several browsers can watch the same desktop.
With --window, it is in a window of this computer instead; closing that window ends the desktop. With --window and --listen it is in both.

--script says what happens first, one command or event a line (docs/desktop.md). With --png, there is neither: the picture shows what the script left when nothing moves any \
more, and the same script gives the same picture on every device.

Examples:
  gpu-run desktop --script docs/desktop/settings.txt
  gpu-run desktop --window --dir .
  gpu-run desktop --listen 127.0.0.1:0 --device cuda
  gpu-run desktop --script docs/desktop/settings.txt --size 960x600 --png settings.png
  gpu-run desktop --script docs/desktop/settings.txt --size 960x600 --png layout.png --show layout

Only your own programs on this computer can connect to a loopback address. Elsewhere (--listen 0.0.0.0:8080), the address that is printed has a token, without which \
nobody can connect. The connection is not encrypted: `ssh -L 8080:127.0.0.1:8080 MACHINE` brings the desktop of another computer here safely.

Exit codes:
  0    the picture is written, or the window was closed
  1    the machine failed, or the script asked for something that the desktop refused
  2    a usage error, also in the script; no display for --window
  130  ended by Ctrl+C; 143: by SIGTERM";

#[derive(Debug, Args)]
#[command(after_help = DESKTOP_EXPLAINED)]
pub(crate) struct DesktopArgs {
    /// The device to run on: `cpu`, `cuda` (the first GPU), `cuda:N`, or `auto`: the first usable GPU, else `cpu`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceList,

    /// Shows the desktop in a window of this computer (Wayland or X11)
    #[arg(long, conflicts_with = "png")]
    pub(crate) window: bool,

    /// Shows the desktop in browsers, at this address; port 0 is a free one [default without --window: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "png")]
    pub(crate) listen: Option<SocketAddr>,

    /// Frames per second while something moves
    #[arg(long, value_name = "N", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rate: u32,

    /// Shadows and transitions: `auto` leaves out first the ones, then the others, while frames take too long
    #[arg(long, value_name = "WHICH", value_parser = named(&Effects::NAMES), default_value = "auto", conflicts_with = "png")]
    pub(crate) effects: Effects,

    /// Instead, writes what the desktop shows after the script, and ends
    #[arg(long, value_name = "FILE", requires = "script")]
    pub(crate) png: Option<PathBuf>,

    /// Draws over the picture what this phase of the last frame found
    #[arg(long, value_name = "PHASE", requires = "png", value_parser = named(&Overlay::ALL))]
    pub(crate) show: Option<Overlay>,

    /// The size of the picture, or of the window at first, in units of length; for a browser, the size until one is there
    #[arg(long, value_name = "WxH", default_value = "1280x800", value_parser = size)]
    pub(crate) size: (u32, u32),

    /// Pixels for one unit of length, from 0.25 to 4 [default: 1; in a window, as many as the display says]
    #[arg(long, value_name = "N", value_parser = scale)]
    pub(crate) scale: Option<f64>,

    /// What happens on the desktop at first
    #[arg(long, value_name = "EVENTS")]
    pub(crate) script: Option<PathBuf>,

    /// The number of workgroups that work, or `auto`: one per multiprocessor but one, on cpu one per core [default: 1 on a GPU, which leaves
    /// the rest to programs, and auto on cpu]
    #[arg(long, value_name = "GROUPS", value_parser = grid)]
    pub(crate) grid: Option<GridSize>,

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

/// One of these names, which stand for values.
fn named<T: Copy + Send + Sync>(table: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let named = |name: &str| table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    PossibleValuesParser::new(table.iter().map(|(name, _)| *name))
        .try_map(move |name| named(&name).ok_or("there is no such name"))
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    parsed.filter(|(width, height)| *width > 0 && *height > 0).ok_or_else(|| "not a size such as 1280x800".to_owned())
}

fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok().filter(|scale| (0.25..=4.0).contains(scale));
    scale.ok_or_else(|| "not a number from 0.25 to 4".to_owned())
}
