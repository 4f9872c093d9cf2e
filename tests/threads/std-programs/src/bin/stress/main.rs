//! `stress THREADS [SECONDS [SEED]] [counts]`: for some seconds, rounds of threads that lock, wait, notify, allocate, start other
//! threads and end, all drawn from a seed. After each round the sums must be right, and all memory must have been given back.
//!
//! `counts` prints what was done.

mod memory;
mod world;

use memory::Counting;
use std::process::exit;
use std::thread;
use std::time::{Duration, Instant};
use std_programs::Random;
use world::{Part, World};

#[global_allocator]
static MEMORY: Counting = Counting::new();

/// Rounds until everything that std makes once is made.
const FIRST_ROUNDS: u64 = 3;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(2).collect();
    let counts = arguments.pop_if(|last| last == "counts").is_some();
    let number = |at: usize, usual| arguments.get(at).map_or(usual, |text| text.parse().expect("a number"));
    let (threads, seconds, seed) = (std_programs::threads(), number(0, 1), number(1, 1));

    let (began, world) = (Instant::now(), World::default());
    let (mut round, mut started, mut kept, mut pages) = (0, 0, 0, 0);
    while round < FIRST_ROUNDS || began.elapsed() < Duration::from_secs(seconds) {
        let live = MEMORY.live();
        if round < FIRST_ROUNDS {
            (kept, pages) = (live, memory::pages());
        } else if live != kept {
            fail(&format!("round {round}: {live} bytes are in use, {kept} were before"));
        }
        started += run(&world, threads, Random::new(seed << 32 | round));
        if let Err(what) = world.check() {
            fail(&format!("round {round}: {what}"));
        }
        round += 1;
    }
    let (most, steps, inner) = (MEMORY.most(), world.steps(), world.inner());
    if counts {
        println!("{round} rounds, {started} threads, {inner} threads that threads started, {steps} steps");
        println!(
            "at most {most} bytes in use, {kept} between rounds; {pages} pages of memory at first, {} at last",
            memory::pages()
        );
    }
    println!("sums are right, and all memory was given back");
}

fn fail(what: &str) -> ! {
    println!("{what}");
    exit(1);
}

/// Runs one round with up to so many threads. Returns how many there were.
fn run(world: &World, threads: usize, mut random: Random) -> usize {
    let pairs = 1 + (random.draw() >> 20) % (threads as u64 / 2).max(1);
    thread::scope(|scope| {
        let mut handles = Vec::with_capacity(2 * pairs as usize);
        for _ in 0..pairs {
            let (items, seed) = ((random.draw() >> 20) % 4, random.draw());
            for part in [Part::Puts(items), Part::Takes(items)] {
                let body = move || world.thread(part, Random::new(seed ^ part.salt()));
                // Threads of threads may have all places for the moment.
                let handle = loop {
                    match thread::Builder::new().spawn_scoped(scope, body) {
                        Ok(handle) => break handle,
                        Err(_) => thread::sleep(Duration::from_millis(1)),
                    }
                };
                handles.push(handle);
            }
        }
        // Joined one by one: the scope itself does not wait until a thread has freed all it had.
        handles.into_iter().for_each(|handle| handle.join().expect("no thread panics"));
    });
    2 * pairs as usize
}
