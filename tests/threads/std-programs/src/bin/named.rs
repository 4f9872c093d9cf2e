//! `named THREADS`: a Builder names threads; each knows its name and has an id of its own.

use std::collections::HashSet;
use std::thread;
use std_programs::threads;

fn main() {
    let running: Vec<_> = (0..threads())
        .map(|thread| {
            let builder = thread::Builder::new().name(format!("worker-{thread}"));
            builder.spawn(|| thread::current().name().map(str::to_owned)).expect("the thread starts")
        })
        .collect();
    println!("main: {:?}", thread::current().name());
    let ids: HashSet<_> = running.iter().map(|thread| thread.thread().id()).collect();
    println!("{} ids, the main thread's among them: {}", ids.len(), ids.contains(&thread::current().id()));
    for thread in running {
        let name = thread.thread().name().expect("it has a name").to_owned();
        assert_eq!(thread.join().expect("the thread returns").as_ref(), Some(&name));
        println!("{name}");
    }
    println!("unnamed: {:?}", thread::spawn(|| thread::current().name().is_none()).join().ok());
}
