//! Threads that use relative paths at the same time: each finds its own files, and no others.

use std::{env, fs, thread};

const THREADS: usize = 8;
const FILES: usize = 40;

fn work(me: usize) {
    let folder = format!("thread-{me}");
    fs::create_dir(&folder).unwrap();
    for file in 0..FILES {
        let (name, other) = (format!("{folder}/{}.txt", "long".repeat(file)), format!("{folder}/{file}"));
        let text = format!("{me} {file}");
        fs::write(&name, &text).unwrap();
        assert_eq!(fs::read_to_string(&name).unwrap(), text);
        fs::rename(&name, &other).unwrap();
        assert_eq!(fs::metadata(&other).unwrap().len(), text.len() as u64);
        assert!(fs::metadata(&name).is_err() && fs::canonicalize(&other).unwrap().ends_with(&other));
        assert!(env::current_dir().unwrap().is_absolute());
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), FILES);
    fs::remove_dir_all(&folder).unwrap();
}

fn main() {
    thread::scope(|scope| {
        for me in 0..THREADS {
            scope.spawn(move || work(me));
        }
    });
    println!("{} folders are left", fs::read_dir(".").unwrap().count());
}
