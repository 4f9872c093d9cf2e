//! `lock-model THREADS [PROGRAMS [SEED]]`: runs random programs of locks, and checks what they logged.
//!
//! Teams of threads run the programs, one after the other. A program's threads log when they have a lock and when they give it back,
//! with numbers from one counter; the log must be a history that locks allow, no wake-up may be lost, readers must be able to share,
//! and what the locks protect must add up.

mod history;
mod program;

use program::Program;
use std::process::exit;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std_programs::threads;

/// The most threads of a program.
const TEAM: usize = 8;

fn number(at: usize, usual: u64) -> u64 {
    std::env::args().nth(at).map_or(usual, |text| text.parse().expect("a number"))
}

fn main() {
    let (threads, programs, seed) = (threads(), number(2, 2000), number(3, 1));
    println!("illegal histories that the checker finds: {}", history::illegal_found());
    let size = threads.clamp(2, TEAM);
    let teams = (threads / size).max(1);
    let running: Vec<_> = (0..teams)
        .flat_map(|team| {
            let shared = Arc::new((Mutex::new(None::<Arc<Program>>), Barrier::new(size)));
            (0..size).map(move |member| (team, member, shared.clone()))
        })
        .map(|(team, member, shared)| {
            thread::spawn(move || {
                let (current, meeting) = &*shared;
                let mut sections = 0;
                for number in (team as u64..programs).step_by(teams) {
                    if member == 0 {
                        *current.lock().unwrap() = Some(Arc::new(Program::draw(seed << 32 | number, size)));
                    }
                    meeting.wait();
                    let program = current.lock().unwrap().clone().expect("member 0 drew it");
                    program.run(member);
                    meeting.wait();
                    if member == 0 {
                        match program.check() {
                            Ok(count) => sections += count,
                            Err(what) => fail(&format!("program {number} of seed {seed}: {what}")),
                        }
                    }
                }
                sections
            })
        })
        .collect();
    let sections: u64 = running.into_iter().map(|thread| thread.join().unwrap()).sum();
    println!("{programs} programs, {sections} critical sections: all histories are legal");
}

fn fail(what: &str) -> ! {
    println!("{what}");
    exit(1);
}
