//! `gpu-run desktop`: shows a desktop in browsers or a window, or runs a script on one and writes what it shows.

use crate::args::DesktopArgs;
use crate::{apps, devices, program_cache};
use anyhow::{Context, Result};
use gpu_run_compiler::{Compiler, printable};
use gpu_run_console::failure::Failure;
use gpu_run_console::output::Standard;
use gpu_run_console::terminal;
use gpu_run_desktop::live::{Handle, Live, NoDisplay, Owners, Pace, Window};
use gpu_run_desktop::{Desktop, Error, Options, Script, map};
use gpu_run_machine::{GridSize, Start, Status};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Where browsers find the desktop, unless the user says otherwise.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

pub(crate) fn desktop(args: &DesktopArgs) -> Result<u8> {
    let scale = args.scale.unwrap_or(1.0);
    let pixels = |units: u32| (f64::from(units) * scale).round() as u32;
    let (width, height) = (pixels(args.size.0), pixels(args.size.1));
    if width > map::MAX_WIDTH || height > map::MAX_HEIGHT {
        let message = format!("--size and --scale ask for {width} by {height} pixels");
        let hint = format!("a desktop has at most {} by {}", map::MAX_WIDTH, map::MAX_HEIGHT);
        return Err(Failure::usage(message).hint(hint).into());
    }
    let script = args.script.as_deref().map(read_script).transpose()?;
    // Before anything takes long: the port may be in use, and there may be no display.
    let live = if args.png.is_none() { Some(connect(args)?) } else { None };

    let device = devices::open(&args.device)?;
    let compiler = Compiler::new(program_cache::open(&args.cache)?);
    let starts = !args.apps.files.is_empty() || script.as_ref().is_some_and(Script::starts_apps);
    let with_apps = !args.apps.no_apps && (live.is_some() || starts);
    let prepared = if with_apps { Some(apps::prepare(&args.apps, &args.cache, &device)?) } else { None };
    let grid = args.grid.unwrap_or(if device.is_gpu() { GridSize::One } else { GridSize::Auto });
    let options = Options { width, height, scale, grid, threads: args.threads };
    let mut desktop = Desktop::boot(&compiler, &device, Start::Empty, &options).map_err(failure)?;
    let handle = live.as_ref().map(|(live, _)| live.handle());
    let wake = move || handle.as_ref().is_none_or(Handle::wake);
    let mut apps = prepared.as_ref().map(|prepared| prepared.begin(Box::new(wake)));
    let happens = || {
        if let Some(script) = &script {
            match &mut apps {
                Some(apps) => desktop.run_with(script, apps),
                None => desktop.run(script),
            }
            .map_err(failure)?;
        }
        if let Some(png) = &args.png {
            let picture = args.show.map_or_else(|| desktop.picture(), |phase| desktop.explained(phase));
            picture.and_then(|picture| picture.write(png)).map_err(failure)?;
        }
        match (live, &mut apps) {
            (Some(live), Some(apps)) => show(live, &mut desktop, apps, args),
            (Some(live), None) => show(live, &mut desktop, &mut (), args),
            (None, _) => Ok(0),
        }
    };
    let happened = happens();
    if let (Some(apps), Some(prepared)) = (&apps, &prepared) {
        apps.end();
        prepared.finish();
    }
    let code = happened?;
    let frames = desktop.frames();
    let ended = desktop.shutdown().map_err(failure)?;
    if args.stats {
        report(&ended.state, frames)?;
    }
    Ok(code)
}

fn read_script(path: &Path) -> Result<Script> {
    let name = printable::path(path);
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Failure::usage(format!("--script {name}: {error}")))?;
    Ok(Script::parse(&text).map_err(|error| Failure::usage(format!("{name}, {error}")))?)
}

/// Connects to what will show the desktop: browsers, a window, or both.
fn connect(args: &DesktopArgs) -> Result<(Live, Option<Window>)> {
    let window = args.window.then(Window::connect).transpose().map_err(|error| {
        let hint = match error {
            NoDisplay::Library(_) => "install it, or show the desktop in a browser: --listen 127.0.0.1:8080",
            _ => "--listen 127.0.0.1:8080 shows the desktop in a browser",
        };
        Failure::usage(format!("--window: no display: {error}")).hint(hint)
    })?;
    let mut live = Live::default();
    let address = args.listen.or_else(|| window.is_none().then_some(LISTEN));
    if let Some(address) = address {
        live.listen(address).map_err(|error| {
            let failure = Failure::usage(format!("--listen {address}: {error}"));
            failure.hint("port 0 is a free one: --listen 127.0.0.1:0")
        })?;
    }
    Ok((live, window))
}

/// Shows the desktop until a signal arrives or its window is closed. Returns the exit code.
fn show(
    (live, window): (Live, Option<Window>),
    desktop: &mut Desktop,
    owners: &mut (dyn Owners + Send),
    args: &DesktopArgs,
) -> Result<u8> {
    let (handle, ended_by) = (live.handle(), Arc::new(AtomicU8::new(0)));
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
    let signal_code = ended_by.clone();
    let watch = move || {
        for (count, signal) in signals.forever().enumerate() {
            let code = 128 + signal;
            // The first signal lets the viewers know; the second exits at once.
            if count > 0 {
                std::process::exit(code);
            }
            signal_code.store(code as u8, Ordering::Relaxed);
            let handle = handle.clone();
            std::thread::spawn(move || handle.stop());
        }
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(watch).context("cannot start the thread that waits for signals")?;
    if let Some(url) = live.url() {
        terminal::say(&format!("The desktop is at {url} (Ctrl+C ends it)\n"));
    }
    let handle = live.handle();
    let pace = Pace { rate: args.rate, effects: args.effects };
    let frames = || live.run(desktop, owners, pace);
    match window {
        Some(window) => window.run(&handle, args.size, args.scale, frames),
        None => frames(),
    }
    .map_err(failure)?;
    Ok(ended_by.load(Ordering::Relaxed))
}

/// Prints the mean time of each phase on stderr.
fn report(status: &Status, frames: u64) -> Result<()> {
    let mut text = format!("{frames} frames, in the mean:\n");
    for phase in &status.phases {
        let mean = phase.time.as_secs_f64() * 1e6 / frames as f64;
        let lanes = phase.lanes_active().map_or(String::new(), |share| format!(", {:.0} % of lanes", share * 100.0));
        writeln!(text, "  {:<22} {mean:9.1} µs{lanes}", phase.name)?;
    }
    Ok(Standard::stderr()?.write_all(text.as_bytes())?)
}

fn failure(error: Error) -> anyhow::Error {
    match error {
        Error::Machine(error) => crate::machine::failure(error),
        error => error.into(),
    }
}
