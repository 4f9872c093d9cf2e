//! `files THREADS`: a file opened by one thread is used by another; all threads append to one file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::sync::Mutex;
use std::thread;
use std_programs::threads;

static OPENING: Mutex<()> = Mutex::new(());

fn main() -> io::Result<()> {
    let threads = threads();
    // Opened here, written by the threads.
    let log = Mutex::new(OpenOptions::new().create_new(true).append(true).read(true).open("log.txt")?);
    thread::scope(|scope| {
        for thread in 0..threads {
            let log = &log;
            scope.spawn(move || writeln!(log.lock().expect("nobody panics"), "thread {thread}").expect("it can write"));
        }
    });
    let mut log = log.into_inner().expect("nobody panicked");
    let mut text = String::new();
    log.rewind()?;
    log.read_to_string(&mut text)?;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    println!("{} lines, first {:?}, last {:?}", lines.len(), lines[0], lines[threads - 1]);
    drop(log);
    fs::remove_file("log.txt")?;

    // Opened by the threads, used and closed here; the open files of a process are limited, so eight do. One thread opens at a time:
    // wasi-libc before April 2026 puts every relative path together in the same buffer.
    let opened: Vec<_> = (0..8.min(threads))
        .map(|thread| {
            thread::spawn(move || -> io::Result<File> {
                let opening = OPENING.lock().expect("nobody panics");
                let mut file = File::create_new(format!("{thread}.txt"))?;
                drop(opening);
                write!(file, "thread {thread} wrote ")?;
                Ok(file)
            })
        })
        .collect();
    for (i, thread) in opened.into_iter().enumerate() {
        let mut file = thread.join().expect("the thread returns")?;
        write!(file, "and the main thread, too")?;
        drop(file);
        let opening = OPENING.lock().expect("nobody panics");
        let text = fs::read_to_string(format!("{i}.txt"))?;
        drop(opening);
        println!("{text}");
    }
    Ok(())
}
