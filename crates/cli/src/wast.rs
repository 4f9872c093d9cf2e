//! `gpu-run wast FILE…`: runs scripts in the form of the official test suite on a device and prints what passed.
//!
//! Scripts run in parallel, each with its own modules, and modules are assembled on all cores: on a GPU, most of the
//! time goes there. If a script loses the device, the scripts that run beside it lose it, too. So all of these are
//! rerun afterwards, one at a time on a fresh device, and only the script that loses the device again is blamed.

use crate::args::{WastArgs, WastLayout};
use crate::devices;
use anyhow::{Context, Result};
use gpu_run_abi::Layout;
use gpu_run_compiler::printable;
use gpu_run_console::failure::{Failure, exit};
use gpu_run_console::terminal;
use gpu_run_console::units::show_duration;
use gpu_run_device::{Device, cpu};
use gpu_run_wast::{self as wast, Capacity, Options, Report};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How many failures per report are shown without `-v`.
const SHOWN: usize = 20;

pub(crate) fn wast(args: &WastArgs) -> Result<u8> {
    let scripts = scripts(&args.files)?;
    let jobs = jobs(args.jobs);
    // Modules are loaded on the threads of this pool.
    rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global().context("cannot start threads")?;
    let device = devices::open(&args.device)?;
    let layouts: &[Layout] = match args.layout {
        WastLayout::Linear => &[Layout::Linear],
        WastLayout::Interleaved => &[Layout::Interleaved],
        WastLayout::Both => &[Layout::Linear, Layout::Interleaved],
    };
    let mut table = Table::new(&scripts, args.verbose > 0);
    let lost = Bench::new(&device, layouts, jobs)?.run(&scripts, &mut table)?;
    for script in lost {
        let bench = Bench::new(&devices::reopen(&*device)?, layouts, jobs)?;
        table.add(script, bench.script(&scripts[script]))?;
    }
    table.finish()
}

fn jobs(wanted: Option<NonZeroU32>) -> usize {
    match wanted {
        Some(jobs) => jobs.get() as usize,
        None => std::thread::available_parallelism().map_or(1, |n| n.get()),
    }
}

/// A file to run.
#[derive(Debug)]
struct Script {
    path: PathBuf,
    text: String,
}

/// Reads the files in the given order; for a folder, all `.wast` files below it, sorted by name.
fn scripts(files: &[PathBuf]) -> Result<Vec<Script>> {
    let mut paths = Vec::new();
    for file in files {
        let unreadable = |error: io::Error| Failure::usage(format!("{}: {error}", printable::path(file)));
        if !std::fs::metadata(file).map_err(unreadable)?.is_dir() {
            paths.push(file.clone());
            continue;
        }
        let before = paths.len();
        collect(file, &mut paths).map_err(unreadable)?;
        if paths.len() == before {
            return Err(Failure::usage(format!("{} contains no .wast file", printable::path(file))).into());
        }
    }
    let read = |path: PathBuf| {
        let bytes =
            std::fs::read(&path).map_err(|error| Failure::usage(format!("{}: {error}", printable::path(&path))))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Failure::usage(format!("{} is not a script: it is not UTF-8 at offset {at:#x}", printable::path(&path)))
        })?;
        Ok(Script { path, text })
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let path = entry.path();
        // Links are not followed: they can lead back up.
        if entry.file_type()?.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "wast") {
            paths.push(path);
        }
    }
    Ok(())
}

/// The report for each layout, or why the file could not be parsed.
type Verdict = Result<Vec<(Layout, Report)>, String>;

/// The devices that scripts run on.
#[derive(Debug)]
struct Bench {
    places: Vec<Place>,
    /// How many scripts run at once.
    jobs: usize,
}

/// Where the scripts of one layout run.
#[derive(Debug)]
struct Place {
    layout: Layout,
    device: Arc<dyn Device>,
    max_memory: Option<u64>,
}

impl Bench {
    /// Uses the given device for each layout that a script fits in memory with, and `cpu` for the others.
    fn new(device: &Arc<dyn Device>, layouts: &[Layout], jobs: usize) -> Result<Self> {
        let mut bench = Self { places: Vec::new(), jobs };
        for layout in layouts.iter().copied() {
            let Capacity { max_memory, scripts } = Capacity::new(&**device, layout)?;
            bench.places.push(match scripts {
                0 => {
                    let (id, shown) = (&device.properties().id, layout);
                    terminal::say(&format!(
                        "gpu-run: {id} has too little free memory for scripts in the {shown} layout: they run on cpu\n"
                    ));
                    Place { layout, device: cpu::open(), max_memory: None }
                }
                _ => {
                    bench.jobs = bench.jobs.min(scripts);
                    Place { layout, device: device.clone(), max_memory }
                }
            });
        }
        Ok(bench)
    }

    /// Runs all scripts and adds those to the table that did not lose the device. Returns the others.
    fn run(&self, scripts: &[Script], table: &mut Table<'_>) -> Result<Vec<usize>> {
        let next = AtomicUsize::new(0);
        let (done, results) = mpsc::channel();
        let work = |done: mpsc::Sender<(usize, Timed)>| {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(script) = scripts.get(index) else { return };
                if done.send((index, self.script(script))).is_err() {
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(scripts.len()) {
                let (work, done) = (&work, done.clone());
                scope.spawn(move || work(done));
            }
            drop(done);
            let mut lost = Vec::new();
            for (script, timed) in results {
                match timed.lost() {
                    true => lost.push(script),
                    false => table.add(script, timed)?,
                }
            }
            lost.sort_unstable();
            Ok(lost)
        })
    }

    fn script(&self, script: &Script) -> Timed {
        let began = Instant::now();
        let run = |place: &Place| {
            let Place { layout, device, max_memory } = place;
            let features = wast::features(&script.text)?;
            let (device, max_memory) = (device.clone(), *max_memory);
            let options = Options { device, layout: *layout, features, max_memory, inspect: None };
            wast::run(&script.text, &options).map(|report| (*layout, report))
        };
        Timed { verdict: self.places.iter().map(run).collect(), time: began.elapsed() }
    }
}

/// A script's verdict, and how long it took.
#[derive(Debug)]
struct Timed {
    verdict: Verdict,
    time: Duration,
}

impl Timed {
    fn lost(&self) -> bool {
        self.verdict.iter().flatten().any(|(_, report)| report.lost.is_some())
    }
}

/// Prints a line for each file, in order, as soon as all files before it are done; then the totals.
#[derive(Debug)]
struct Table<'a> {
    scripts: &'a [Script],
    verbose: bool,
    width: usize,
    /// Results that wait for the files before them.
    waiting: BTreeMap<usize, Timed>,
    printed: usize,
    total: Count,
    unparsed: usize,
}

/// How many directives passed, failed and were not supported, the latter by feature.
#[derive(Debug, Default)]
struct Count {
    passed: usize,
    failed: usize,
    unsupported: BTreeMap<String, usize>,
}

impl Count {
    fn add(&mut self, report: &Report) {
        self.passed += report.passed;
        self.failed += report.failures.len();
        for (_, what) in &report.unsupported {
            *self.unsupported.entry(what.clone()).or_default() += 1;
        }
    }

    fn add_all(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        for (what, count) in other.unsupported {
            *self.unsupported.entry(what).or_default() += count;
        }
    }

    /// `12 passed, 1 failed, 3 not supported (garbage collection: 3)`
    fn show(&self) -> String {
        let mut text = format!("{} passed, {} failed", self.passed, self.failed);
        let reasons: Vec<_> = self.unsupported.iter().map(|(what, count)| format!("{what}: {count}")).collect();
        if !reasons.is_empty() {
            let count: usize = self.unsupported.values().sum();
            let _ = write!(text, ", {count} not supported ({})", reasons.join(", "));
        }
        text
    }
}

impl<'a> Table<'a> {
    fn new(scripts: &'a [Script], verbose: bool) -> Self {
        let width = scripts.iter().map(|script| printable::path(&script.path).chars().count()).max().unwrap_or(0);
        let (waiting, total) = (BTreeMap::new(), Count::default());
        Self { scripts, verbose, width, waiting, printed: 0, total, unparsed: 0 }
    }

    fn add(&mut self, script: usize, timed: Timed) -> Result<()> {
        self.waiting.insert(script, timed);
        while let Some(timed) = self.waiting.remove(&self.printed) {
            let script = &self.scripts[self.printed];
            self.printed += 1;
            self.print(script, timed)?;
        }
        Ok(())
    }

    fn print(&mut self, script: &Script, Timed { verdict, time }: Timed) -> Result<()> {
        let (name, width) = (printable::path(&script.path), self.width);
        let reports = match verdict {
            Ok(reports) => reports,
            Err(message) => {
                self.unparsed += 1;
                // The parser's message says at which line.
                terminal::say(&format!("error: {name} is not a script: {}\n", message.trim_end()));
                return line(&format!("{name:width$}  cannot be parsed"));
            }
        };
        let mut count = Count::default();
        let mut problems = String::new();
        for (layout, report) in &reports {
            count.add(report);
            problems += &self.problems(&name, *layout, report);
        }
        let time = if self.verbose { format!(" in {}", show_duration(time)) } else { String::new() };
        line(&format!("{name:width$}  {}{time}", count.show()))?;
        self.total.add_all(count);
        terminal::say(&problems);
        Ok(())
    }

    /// Lists failures as `FILE:LINE (layout): what went wrong`, and with `-v` also what is not supported.
    fn problems(&self, name: &str, layout: Layout, report: &Report) -> String {
        let shown = if self.verbose { usize::MAX } else { SHOWN };
        let mut text = String::new();
        for (at, message) in report.failures.iter().take(shown) {
            let _ = writeln!(text, "{name}:{at} ({layout}): {}", message.replace('\n', "\n  "));
        }
        if report.failures.len() > shown {
            let _ = writeln!(text, "{name} ({layout}): and {} more; -v shows them", report.failures.len() - shown);
        }
        if report.lost.is_some() {
            let _ = writeln!(text, "{name} ({layout}): the device was lost there; the rest of the file was not run");
        }
        for (at, what) in report.unsupported.iter().filter(|_| self.verbose) {
            let _ = writeln!(text, "{name}:{at} ({layout}): not supported: {what}");
        }
        text
    }

    /// Prints the totals and returns the exit code.
    fn finish(self) -> Result<u8> {
        let files = gpu_run_console::units::count(self.scripts.len() as u64, "file");
        line(&format!("{files}: {}", self.total.show()))?;
        Ok(match (self.unparsed, self.total.failed) {
            (0, 0) => 0,
            (0, _) => exit::FAILURE,
            _ => exit::USAGE,
        })
    }
}

fn line(text: &str) -> Result<()> {
    terminal::print(&format!("{text}\n"))
}
