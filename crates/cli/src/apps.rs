//! The apps of `gpu-run desktop`: which there are, and how they are started.

use crate::args::{AppArgs, CacheArgs};
use crate::guest::Guest;
use crate::processes;
use crate::source;
use anyhow::Result;
use gpu_run_compiler::printable;
use gpu_run_console::failure::Failure;
use gpu_run_console::terminal;
use gpu_run_desktop::apps::{Apps, Listed, Running, Starter, Wake};
use gpu_run_desktop::{APP_NAMES, APPS};
use gpu_run_device::Device;
use gpu_run_run::{INSTANCE, Processes, RunOptions, Source};
use gpu_run_ui::wire::VARIABLE;
use gpu_run_wasi::stdio::{Null, inherit};
use gpu_run_wasi::{Builder, Child, Stdio};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

/// The first number of a widget that is an app's. Those before are a script's.
const FIRST_WIDGET: u32 = 4096;

/// On a GPU, so many apps of one program have their place before the desktop runs.
const SEATS: usize = 12;

/// Programs with windows, ready to be started.
pub(crate) struct Prepared {
    processes: Arc<Processes>,
    builder: Builder,
    /// The descriptor behind those of the folders.
    descriptor: usize,
    listed: Vec<Listed>,
    /// Those that are started with the desktop.
    own: Vec<String>,
}

/// Compiles the apps that come with the desktop, and the user's. On a GPU, this must come before the desktop runs.
pub(crate) fn prepare(args: &AppArgs, cache: &CacheArgs, device: &Arc<dyn Device>) -> Result<Prepared> {
    let shipped = Arc::new(APPS.to_vec());
    let source =
        |name: &str| Source { argv0: name.to_owned(), name: "the desktop's apps".into(), wasm: shipped.clone() };
    let mut apps: Vec<(String, Source)> = APP_NAMES.iter().map(|name| ((*name).to_owned(), source(name))).collect();
    let mut own = Vec::new();
    for file in &args.files {
        let source = source::load(file, None, cache)?;
        let stem = file.canonicalize().ok().and_then(|file| Some(file.file_stem()?.to_string_lossy().into_owned()));
        let name = stem.unwrap_or_else(|| printable::path(file));
        if apps.iter().any(|(other, _)| *other == name) {
            let message = format!("there already is an app `{}`", printable::name(&name));
            return Err(Failure::usage(message).hint("give the file another name").into());
        }
        own.push(name.clone());
        apps.push((name, source));
    }
    let processes = Arc::new(processes::of_desktop(args, &apps, cache, device)?);
    let guest = Guest::new(&[], &args.given.env, args.given.preopens())?.with_net(&args.given.net);
    let mut builder = guest.with_programs(processes.programs()).into_builder();
    builder.env(INSTANCE, "0")?;
    processes.prepare(SEATS)?;
    let is_trusted = |name: &String| !own.contains(name);
    let listed = apps.into_iter().map(|(name, _)| Listed { is_trusted: is_trusted(&name), name }).collect();
    Ok(Prepared { processes, builder, descriptor: 3 + args.given.preopens().count(), listed, own })
}

impl Prepared {
    /// Returns the apps of a desktop that this call wakes, with the user's own under way.
    pub(crate) fn begin(&self, wake: Wake) -> Apps {
        let (processes, builder, descriptor) = (self.processes.clone(), self.builder.clone(), self.descriptor);
        let starter = Box::new(Beside { processes, builder, descriptor });
        let apps = Apps::new(wake, starter, self.listed.clone(), FIRST_WIDGET);
        self.own.iter().for_each(|name| apps.start(name, &[]));
        apps
    }

    /// Ends what still runs.
    pub(crate) fn finish(&self) {
        self.processes.finish(&RunOptions { deadline: Some(Instant::now()), ..RunOptions::default() });
    }
}

/// Starts apps beside the desktop.
struct Beside {
    processes: Arc<Processes>,
    builder: Builder,
    descriptor: usize,
}

impl Starter for Beside {
    fn start(&self, name: &str, args: &[String], stream: UnixStream) -> Result<Box<dyn Running>, String> {
        let said = |error: gpu_run_wasi::Error| error.to_string();
        let mut builder = self.builder.clone();
        builder.arg(name).and_then(|builder| builder.args(args)).map_err(said)?;
        builder.env(VARIABLE, self.descriptor.to_string()).map_err(said)?.preopen_socket(stream).map_err(said)?;
        let stdio =
            Stdio { stdin: Box::new(Null), stdout: Box::new(inherit::stdout()), stderr: Box::new(inherit::stderr()) };
        match self.processes.start(name, builder.build(stdio)) {
            Ok(child) => Ok(Box::new(Started(child))),
            Err(errno) => Err(format!("{errno:?}")),
        }
    }

    fn say(&self, message: &str) {
        terminal::say(&format!("gpu-run: {}\n", printable::name(message)));
    }
}

struct Started(Arc<dyn Child>);

impl Running for Started {
    fn kill(&self) {
        self.0.kill();
    }
}
