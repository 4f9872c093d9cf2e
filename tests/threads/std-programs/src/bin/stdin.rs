//! `stdin THREADS`: threads share standard input line by line, through its own lock and through a Mutex.

use std::io::{self, BufRead};
use std::sync::Mutex;
use std::thread;
use std_programs::threads;

fn words(line: &str) -> (usize, usize, usize) {
    (1, line.split_whitespace().count(), line.chars().count())
}

fn main() {
    let lines = Mutex::new(0);
    let totals = thread::scope(|scope| {
        let work = |thread: usize| {
            let lines = &lines;
            scope.spawn(move || {
                let mut total = (0, 0, 0);
                let mut line = String::new();
                loop {
                    line.clear();
                    let read = if thread.is_multiple_of(2) {
                        let mut lines = lines.lock().expect("nobody panics");
                        *lines += 1;
                        io::stdin().read_line(&mut line).expect("stdin is text")
                    } else {
                        io::stdin().lock().read_line(&mut line).expect("stdin is text")
                    };
                    if read == 0 {
                        return total;
                    }
                    let line = words(&line);
                    total = (total.0 + line.0, total.1 + line.1, total.2 + line.2);
                }
            })
        };
        let running: Vec<_> = (0..threads()).map(work).collect();
        let results = running.into_iter().map(|thread| thread.join().expect("the thread returns"));
        results.fold((0, 0, 0), |sum, total| (sum.0 + total.0, sum.1 + total.1, sum.2 + total.2))
    });
    println!("{} lines, {} words, {} characters", totals.0, totals.1, totals.2);
}
