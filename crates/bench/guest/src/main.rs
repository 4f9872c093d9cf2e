//! `measure TASK THREADS SIZE`: one measurement of `gpu-run bench threads`. Prints its figures, one on each line.

#[path = "../../src/threads/measures.rs"]
mod measures;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let figures = match arguments.as_slice() {
        [task, threads, size] => match (threads.parse(), size.parse()) {
            (Ok(threads), Ok(size)) => measures::measure(task, threads, size),
            _ => None,
        },
        _ => None,
    };
    let Some(figures) = figures else {
        eprintln!("usage: measure TASK THREADS SIZE, with a task of measures.rs");
        std::process::exit(2);
    };
    let lines: String = figures.iter().map(|figure| format!("{figure}\n")).collect();
    print!("{lines}");
}
