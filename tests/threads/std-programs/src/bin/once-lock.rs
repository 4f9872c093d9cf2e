//! `once-lock THREADS`: threads race to set a OnceLock and a Once; all see the one value.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Once, OnceLock};
use std::thread;
use std_programs::threads;

fn main() {
    let threads = threads();
    let (start, made, ran) = (Barrier::new(threads), AtomicUsize::new(0), AtomicUsize::new(0));
    let (table, winner, once) = (OnceLock::new(), OnceLock::new(), Once::new());
    let (won, same): (usize, usize) = thread::scope(|scope| {
        let work = |thread: usize| {
            let (start, made, ran, table, winner, once) = (&start, &made, &ran, &table, &winner, &once);
            scope.spawn(move || {
                start.wait();
                let table: &Vec<u64> = table.get_or_init(|| {
                    made.fetch_add(1, Ordering::Relaxed);
                    (0..1000).map(|i| i * i).collect()
                });
                once.call_once(|| _ = ran.fetch_add(1, Ordering::Relaxed));
                assert!(once.is_completed());
                let won = winner.set(thread).is_ok();
                assert_eq!(won, winner.get() == Some(&thread));
                (usize::from(won), usize::from(table[999] == 998_001))
            })
        };
        let running: Vec<_> = (0..threads).map(work).collect();
        let results = running.into_iter().map(|thread| thread.join().expect("the thread returns"));
        results.fold((0, 0), |sum, result| (sum.0 + result.0, sum.1 + result.1))
    });
    println!("made {}, ran {}, won {won}, saw the table {same}", made.into_inner(), ran.into_inner());
}
