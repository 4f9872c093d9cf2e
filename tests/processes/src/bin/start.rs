//! Starts `tool` with the arguments it is given, and ends as the tool does; 99 for a trap. `--other` starts a file instead.

use std::process::{Command, Stdio, exit};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [option, task] if option == "--leave" => {
            #[expect(clippy::zombie_processes)] // it is left behind
            Command::new("tool").arg(task).spawn().expect("a process");
            println!("left");
        }
        [option, most] if option == "--many" => {
            let mut children = Vec::new();
            for _ in 0..most.parse().expect("a number") {
                match Command::new("tool").arg("cat").stdin(Stdio::piped()).spawn() {
                    Ok(child) => children.push(child),
                    Err(error) => {
                        println!("started {}, then {:?}", children.len(), error.kind());
                        break;
                    }
                }
            }
            for mut child in children {
                drop(child.stdin.take());
                child.wait().expect("an end");
            }
        }
        [option, program] if option == "--other" => {
            println!("{:?}", Command::new(format!("./{program}")).status().map_err(|error| error.kind()));
        }
        args => exit(Command::new("tool").args(args).status().expect("a process").code().unwrap_or(99)),
    }
}
