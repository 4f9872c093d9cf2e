use wasi_programs::*;

/// Its argument is the code.
fn main() {
    let status = std::env::args().nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    unsafe {
        make("left", "before the end");
        report("leaving with", Ok(status));
        proc_exit(status);
    }
    println!("still here");
}
