//! Hands seeds out to workers, and adds up what they say.

use crate::case::Generator;
use crate::differential::Compared;
use crate::options::Options;
use crate::worker;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// What a module may take before it counts as one that hangs.
const HANGS: Duration = Duration::from_secs(90);
const REPORT: Duration = Duration::from_secs(10);

/// How far it is.
struct Progress {
    next: u64,
    /// What the seed's next module comes from.
    generator: usize,
    by_generator: Vec<Compared>,
    differences: Vec<u64>,
    /// Workers' processes, and since when they are at what they do.
    children: Vec<Option<(Child, Instant)>>,
    workers: usize,
}

impl Progress {
    fn differences(&self) -> u64 {
        self.differences.iter().sum()
    }
}

struct Run<'a> {
    options: &'a Options,
    progress: Mutex<Progress>,
    ended: Condvar,
    began: Instant,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    println!("seeds {}..{}, {} processes", options.seeds.start, options.seeds.end, options.jobs);
    let progress = Progress {
        next: options.seeds.start,
        generator: 0,
        by_generator: vec![Compared::default(); options.generators.len()],
        differences: vec![0; options.generators.len()],
        children: (0..options.jobs).map(|_| None).collect(),
        workers: options.jobs,
    };
    let run = Run { options, progress: Mutex::new(progress), ended: Condvar::new(), began: Instant::now() };
    thread::scope(|scope| {
        for number in 0..options.jobs {
            let run = &run;
            scope.spawn(move || {
                run.work(number);
                run.lock().workers -= 1;
                run.ended.notify_all();
            });
        }
        run.watch();
    });
    let progress = run.lock();
    run.summary(&progress);
    if progress.differences() == 0 && total(&progress).calls > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Run<'_> {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Waits for the workers, ends those that hang, and says now and then how far they are.
    fn watch(&self) {
        let mut progress = self.lock();
        while progress.workers != 0 {
            let (guard, waited) = self.ended.wait_timeout(progress, REPORT).unwrap_or_else(|e| e.into_inner());
            progress = guard;
            if waited.timed_out() {
                self.line("so far", &total(&progress), progress.differences());
            }
            for (child, since) in progress.children.iter_mut().flatten() {
                if since.elapsed() > HANGS {
                    // Its thread finds it crashed. One that has ended meanwhile cannot be killed, and need not.
                    let _ = child.kill();
                }
            }
        }
    }

    fn line(&self, what: &str, c: &Compared, differences: u64) {
        let seconds = self.began.elapsed().as_secs_f64();
        println!(
            "{what}: {} modules compared, {differences} differences; {} calls, {} of them trapped; {} modules nothing could be called of; \
             {} skipped ({} not made, {} Wasmtime has a limit for, {} gpu-run has); {seconds:.0} s, {:.1} modules/s",
            c.modules,
            c.calls,
            c.traps,
            c.silent,
            c.skipped(),
            c.unmade,
            c.refused,
            c.limited,
            c.modules as f64 / seconds
        );
    }

    fn summary(&self, progress: &Progress) {
        let all = self.options.generators.iter().zip(&progress.by_generator).zip(&progress.differences);
        for ((generator, compared), differences) in all {
            self.line(generator.name(), compared, *differences);
        }
        let seeds = format!("all, seeds {}..{}", self.options.seeds.start, progress.next);
        self.line(&seeds, &total(progress), progress.differences());
    }

    /// The next module to compare, unless it is time to end.
    fn next(&self) -> Option<(usize, Generator, u64)> {
        let mut progress = self.lock();
        let over = self.options.limit.is_some_and(|limit| self.began.elapsed() > limit);
        if over || progress.next >= self.options.seeds.end {
            return None;
        }
        let (index, seed) = (progress.generator, progress.next);
        progress.generator += 1;
        if progress.generator == self.options.generators.len() {
            progress.generator = 0;
            progress.next += 1;
        }
        Some((index, self.options.generators[index], seed))
    }

    /// A worker's life: the process is started again if it crashed.
    fn work(&self, number: usize) {
        let mut pipes = None;
        while let Some((index, generator, seed)) = self.next() {
            let verdict = self.compare(number, &mut pipes, generator, seed);
            let mut progress = self.lock();
            match verdict {
                Ok(compared) => progress.by_generator[index] += compared,
                Err(difference) => {
                    progress.differences[index] += 1;
                    println!("DIFFERENCE: --generator {} --seeds {seed}: {difference}", generator.name());
                }
            }
        }
        // Nothing more to read ends the process.
        drop(pipes);
        if let Some((mut child, _)) = self.lock().children[number].take() {
            let _ = child.wait();
        }
    }

    fn compare(
        &self,
        number: usize,
        pipes: &mut Option<Pipes>,
        generator: Generator,
        seed: u64,
    ) -> Result<Compared, String> {
        if pipes.is_none() {
            let (child, new) = start(self.options).map_err(|e| format!("no process can be started: {e}"))?;
            self.lock().children[number] = Some((child, Instant::now()));
            *pipes = Some(new);
        }
        if let Some((_, since)) = &mut self.lock().children[number] {
            *since = Instant::now();
        }
        let line = pipes.as_mut().and_then(|pipes| pipes.ask(generator, seed));
        if let Some(line) = line {
            return worker::read(&line);
        }
        *pipes = None;
        let child = self.lock().children[number].take();
        match child.map(|(mut child, since)| (child.wait(), since.elapsed())) {
            Some((_, time)) if time > HANGS => Err(format!("no end in {HANGS:?}")),
            Some((Ok(status), _)) => Err(format!("the process crashed: {status}")),
            _ => Err("the process crashed".to_owned()),
        }
    }
}

fn total(progress: &Progress) -> Compared {
    progress.by_generator.iter().fold(Compared::default(), |mut sum, c| {
        sum += *c;
        sum
    })
}

/// To and from a worker.
struct Pipes {
    tasks: ChildStdin,
    verdicts: BufReader<ChildStdout>,
}

impl Pipes {
    /// What the worker says; `None` if it ended without a word.
    fn ask(&mut self, generator: Generator, seed: u64) -> Option<String> {
        let mut line = String::new();
        writeln!(self.tasks, "{} {seed}", generator.name()).and_then(|()| self.tasks.flush()).ok()?;
        self.verdicts.read_line(&mut line).ok()?;
        line.strip_suffix('\n').map(str::to_owned)
    }
}

fn start(options: &Options) -> std::io::Result<(Child, Pipes)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(worker::FLAG)
        .arg(&options.artifacts)
        // One process for each core: none needs several.
        .env("RAYON_NUM_THREADS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let missing = || std::io::Error::other("a pipe is missing");
    let tasks = child.stdin.take().ok_or_else(missing)?;
    let verdicts = BufReader::new(child.stdout.take().ok_or_else(missing)?);
    Ok((child, Pipes { tasks, verdicts }))
}
