use wasi_programs::*;

fn main() {
    for _ in 0..3 {
        report("yielded", unsafe { sched_yield() });
    }
}
