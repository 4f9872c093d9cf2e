//! Starts programs by the paths of their files: this one itself, and one that is no program.

use std::process::Command;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("again") {
        println!("again, as {:?}", std::env::args().skip(1).collect::<Vec<_>>());
        std::process::exit(4);
    }
    let own = std::env::current_exe().expect("a path");
    let output = Command::new(&own).args(["again", "by its path"]).output().expect("a process");
    print!("{}", String::from_utf8_lossy(&output.stdout));
    println!("{:?}", output.status.code());
    std::fs::write("no-program.wasm", "this is none").expect("a file");
    let refused = Command::new("./no-program.wasm").spawn().map(drop);
    println!("refused: {}", refused.is_err());
    std::fs::remove_file("no-program.wasm").expect("it is there");
}
