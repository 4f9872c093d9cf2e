//! `std::process`: this program starts itself under the name `process`, to print its arguments, read stdin, end in some way.

use std::env;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{self, Child, Command, ExitCode, Stdio, Termination};
use uses_std::{done, kind, show};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        None => commands(),
        Some("say") => {
            println!("{} {:?}", args[1..].join(" "), env::var("GIVEN").or(env::var("OTHER")).ok());
            eprintln!("said");
        }
        Some("folder") => {
            println!("{:?}", env::current_dir().map(|it| it.file_name().map(|name| name.to_owned())).ok())
        }
        Some("upper") => println!("{}", io::read_to_string(io::stdin()).expect("a text").to_uppercase()),
        Some("exit") => process::exit(args[1].parse().expect("a code")),
        Some("abort") => process::abort(),
        Some("fail") => return ExitCode::FAILURE,
        Some("code") => return ExitCode::from(args[1].parse::<u8>().expect("a code")),
        Some("loop") => loop {
            std::hint::spin_loop();
        },
        Some(_) => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

fn this(args: &[&str]) -> Command {
    let mut command = Command::new("process");
    command.args(args);
    command
}

fn text(mut from: impl Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).expect("a text");
    text
}

fn commands() {
    show!(process::id() > 0);
    let output =
        Command::new("process").arg("say").args(["a", "b c"]).env("GIVEN", "this").output().expect("a process");
    show!(output.status.success(), output.status.code());
    show!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));

    let said =
        |command: &mut Command| command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    // Natively, the program is found in PATH.
    let path = env::var("PATH").unwrap_or_default();
    show!(kind(said(this(&["say", "envs"]).envs([("OTHER", "that")]).env_remove("GIVEN"))));
    show!(kind(said(this(&["say", "clear"]).env_clear().env("PATH", &path))));
    std::fs::create_dir_all("inner").expect("a folder");
    show!(kind(said(this(&["folder"]).current_dir("inner"))));

    let mut command = this(&["one", "two"]);
    command.env("SET", "value").env_remove("REMOVED").current_dir("inner");
    show!(command.get_program(), command.get_args().collect::<Vec<_>>(), command.get_args().len());
    show!(command.get_envs().collect::<Vec<_>>(), command.get_envs().len(), command.get_current_dir());
    show!(command.get_current_dir() == Some(Path::new("inner")), Command::new("x").get_current_dir());

    streams();
    ends();
    show!(done(Command::new("no-such-program").spawn()));
    show!(format!("{:?}", ExitCode::SUCCESS.report()) == format!("{:?}", ExitCode::from(0)));
    show!(format!("{:?}", Err::<(), u8>(1).report()) == format!("{:?}", ExitCode::FAILURE));
}

fn streams() {
    let mut command = this(&["upper"]);
    let mut child: Child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process");
    show!(child.id() > 0, child.id() != process::id());
    let mut stdin = child.stdin.take().expect("a pipe");
    show!(kind(stdin.write(b"some text")), kind(stdin.flush()));
    drop(stdin);
    show!(child.stdout.take().map(text), child.stderr.is_none(), kind(child.wait().map(|status| status.code())));

    let child = this(&["say", "all"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process");
    let output = child.wait_with_output().expect("its output");
    show!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr), output.status.success());
    let mut child = this(&["say"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a process");
    show!(child.stderr.take().map(text), kind(child.wait().map(|status| status.success())));

    io::stdout().flush().expect("an output");
    show!(kind(this(&["say", "inherited"]).stdout(Stdio::inherit()).status().map(|status| status.success())));
    std::fs::write("input", "from a file").expect("a file");
    let (input, output) = (std::fs::File::open("input"), std::fs::File::create("output"));
    let files = (input.expect("a file"), output.expect("a file"));
    show!(kind(this(&["upper"]).stdin(files.0).stdout(files.1).status().map(|status| status.success())));
    show!(kind(std::fs::read_to_string("output")));
}

fn ends() {
    let code =
        |args: &[&str]| this(args).stderr(Stdio::null()).status().map(|status| (status.code(), status.success()));
    show!(kind(code(&["exit", "7"])), kind(code(&["code", "9"])), kind(code(&["fail"])), kind(code(&["say"])));
    show!(kind(code(&["abort"])));
    let mut child = this(&["loop"]).spawn().expect("a process");
    show!(kind(child.try_wait()), kind(child.kill()), kind(child.wait().map(|status| status.code())));
    show!(kind(child.try_wait().map(|status| status.map(|status| status.success()))), kind(child.kill()));
    let mut child = this(&["exit", "3"]).spawn().expect("a process");
    let status = loop {
        match child.try_wait().expect("an answer") {
            Some(status) => break status,
            None => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    };
    show!(status.to_string(), status == child.wait().expect("the same"), format!("{:?}", status.code()));
}
