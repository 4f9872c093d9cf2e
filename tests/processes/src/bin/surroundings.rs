//! What a child is given: arguments, environment, its folder.

use std::process::Command;

fn shown(command: &mut Command) {
    let output = command.output().expect("a process");
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
}

fn refused(what: &str, command: &mut Command) {
    println!("{what}: {:?}", command.output().map(|output| output.status).map_err(|error| error.kind()));
}

fn main() {
    shown(Command::new("tool").arg("echo").args(["a b", "", "\u{e9}\u{1f600}", "--x=\"y\"", "$HOME", "*"]));
    shown(Command::new("tool").args(["env", "FROM_PARENT", "SET"]).env("SET", "here").env("FROM_PARENT", "changed"));
    shown(Command::new("tool").args(["env", "GIVEN", "SET"]).env("SET", "one").env_remove("SET"));
    // Natively, env_clear also loses PATH, in which the tool is found.
    let path = std::env::var("PATH").unwrap_or_default();
    shown(Command::new("tool").args(["env", "GIVEN", "ONLY"]).env_clear().env("ONLY", "this").env("PATH", path));

    std::fs::create_dir_all("inner/deeper").expect("a folder");
    std::fs::write("inner/here.txt", "in inner").expect("a file");
    std::fs::write("inner/deeper/here.txt", "in deeper").expect("a file");
    shown(Command::new("tool").arg("folder").current_dir("inner"));
    shown(Command::new("tool").arg("folder").current_dir("inner/deeper"));
    std::fs::remove_dir_all("inner").expect("it is there");

    let nested = Command::new("tool").args(["nested", "5"]).output().expect("a process");
    print!("{}", String::from_utf8_lossy(&nested.stdout));
    println!("{:?}", nested.status.code());

    refused("a long argument", Command::new("tool").args(["echo", &"x".repeat(3 << 19)]));
    refused("no name", &mut Command::new(""));
    refused("no folder", Command::new("tool").args(["echo"]).current_dir(""));
    std::fs::create_dir_all("folders/tool").expect("a folder");
    refused("a folder", &mut Command::new("folders/tool"));
    let path = format!("folders:{}", std::env::var("PATH").unwrap_or_default());
    shown(Command::new("tool").args(["echo", "not the folder"]).env("PATH", path));
    std::fs::remove_dir_all("folders").expect("they are there");

    let command = format!("{:?}", Command::new("tool").args(["a", "b c"]));
    println!("{command}");
}
