//! `litmus THREADS [ROUNDS [DISTANCE | far]] [counts] [strict]`: short programs for two to four threads that share two words, each
//! of them run ROUNDS times. No round may have an outcome that the memory model forbids.
//!
//! Many groups of threads run a test at once. The threads of a group are DISTANCE apart by the order in which they are started: where
//! 32 threads share a warp, 1 makes them lanes of one warp, 32 puts them in warps next to each other, and `far` as far apart as there
//! are threads. Without DISTANCE, all three are run.
//!
//! `counts` prints how often each outcome was seen. Outcomes that Rust allows, though no interleaving of the threads has them, are
//! only counted where a processor has them, and are failures on WebAssembly: there every atomic access is sequentially consistent,
//! and `compiler_fence` keeps the compiler from changing the order. `strict` makes them failures everywhere; on x86-64, store
//! buffering then fails, which shows that a test can.

mod group;
mod tests;

use group::{Group, Member, Report};
use std::collections::BTreeMap;
use std::process::exit;
use std::sync::{Arc, Barrier};
use std::thread;

/// The most threads in a group.
const SIDES: usize = 4;

#[derive(Clone, Copy, Default)]
struct Options {
    threads: usize,
    rounds: usize,
    /// `None`: as far as there are threads.
    distance: Option<usize>,
    counts: bool,
    strict: bool,
}

fn main() {
    let mut options = Options { threads: std_programs::threads(), rounds: 1000, ..Options::default() };
    // With few threads, they are as far apart as they can be anyway.
    let most = options.threads / SIDES;
    let mut distances: Vec<_> =
        [1, 32].into_iter().filter(|distance| *distance <= most).map(Some).chain([None]).collect();
    let mut numbers: Vec<usize> = Vec::new();
    for argument in std::env::args().skip(2) {
        match argument.as_str() {
            "counts" => options.counts = true,
            "strict" => options.strict = true,
            "far" => distances = vec![None],
            number => numbers.push(number.parse().unwrap_or_else(|_| usage(&argument))),
        }
    }
    match numbers[..] {
        [] => {}
        [rounds] => options.rounds = rounds,
        [rounds, distance] => (options.rounds, distances) = (rounds, vec![Some(distance)]),
        _ => usage("too many numbers"),
    }
    if options.threads < SIDES || options.rounds == 0 || distances.iter().flatten().any(|&d| d == 0 || d > most) {
        usage("numbers that do not fit");
    }
    let mut forbidden = 0;
    for distance in distances {
        forbidden += run(Options { distance, ..options });
    }
    println!("forbidden outcomes: {forbidden}");
    exit(i32::from(forbidden != 0));
}

fn usage(what: &str) -> ! {
    eprintln!(
        "{what}: litmus THREADS [ROUNDS [DISTANCE | far]] [counts] [strict]; THREADS is at least {SIDES} times DISTANCE"
    );
    exit(2);
}

/// Runs all tests. Returns how many rounds had a forbidden outcome.
fn run(options: Options) -> u64 {
    // Groups of two and of four: the same threads are in one of each.
    let teams = [2, SIDES].map(|sides| {
        let groups = options.threads / sides;
        Arc::new((0..groups).map(|_| Group::new(sides)).collect::<Vec<_>>())
    });
    let start = Arc::new(Barrier::new(options.threads));
    let threads: Vec<_> = (0..options.threads)
        .map(|thread| {
            let (teams, start) = (teams.clone(), start.clone());
            thread::spawn(move || {
                start.wait();
                let mut member = Member::new(thread, &teams, options);
                tests::all(&mut member);
                member.reports
            })
        })
        .collect();
    // By test, in the order in which they were run.
    let mut reports: BTreeMap<usize, Report> = BTreeMap::new();
    for thread in threads {
        for (number, report) in thread.join().expect("no thread panics").into_iter().enumerate() {
            reports.entry(number).or_default().add(report);
        }
    }
    reports.values().map(|report| show(report, options)).sum()
}

/// Prints what there is to say about a test. Returns how many rounds had a forbidden outcome.
fn show(report: &Report, options: Options) -> u64 {
    let (test, orders) = report.name;
    if options.counts {
        let distance = options.distance.map_or("far".into(), |distance| distance.to_string());
        println!("{test} {orders}, {distance} apart: {} rounds, {} forbidden", report.rounds, report.forbidden);
        for (outcome, count) in &report.outcomes {
            println!("  {count:>9} × {outcome}");
        }
    } else if report.forbidden != 0 {
        println!("{test} {orders}: {} of {} rounds", report.forbidden, report.rounds);
    }
    report.forbidden
}
