//! The programs that std's tests of processes start, as far as they use them: `sh -c COMMAND`, `echo`, `env`, `mkdir`.

use std::io::BufRead;
use std::process::exit;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["sh", "-c", command] => command.split(';').for_each(|command| run(command.trim())),
        ["echo", ref words @ ..] => println!("{}", words.join(" ")),
        ["env"] => std::env::vars().for_each(|(name, value)| println!("{name}={value}")),
        ["mkdir", folder] => {
            if let Err(error) = std::fs::create_dir(folder) {
                eprintln!("mkdir: {folder}: {error}");
                exit(1);
            }
        }
        _ => {
            eprintln!("unknown: {words:?}");
            exit(127);
        }
    }
}

/// One command of a shell. Only one variable can be read, and only in the command before it is used.
fn run(command: &str) {
    match command.split(' ').collect::<Vec<_>>()[..] {
        ["true"] | [""] => {}
        ["exit"] => exit(0),
        ["false"] => exit(1),
        ["pwd"] => println!("{}", std::env::current_dir().expect("a folder").display()),
        ["read", "line"] => {
            let line = std::io::stdin().lock().lines().next();
            // SAFETY: there is one thread.
            unsafe { std::env::set_var("line", line.and_then(Result::ok).unwrap_or_default()) };
        }
        ["echo", "$line"] => println!("{}", std::env::var("line").unwrap_or_default()),
        ["echo", ref words @ ..] => println!("{}", words.join(" ")),
        _ => {
            eprintln!("sh: {command}: not found");
            exit(127);
        }
    }
}
