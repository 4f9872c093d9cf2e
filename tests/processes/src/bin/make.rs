//! A build with 32 children: what is ready is started, at most eight at once, and a target waits for what it depends on.

use std::process::{Child, Command, Stdio};

struct Target {
    after: Vec<usize>,
    state: State,
}

enum State {
    Waits,
    Runs(Child),
    Done(String),
}

fn main() {
    let mut targets: Vec<Target> = (0..32)
        .map(|number| Target {
            after: (0..number).filter(|other| number % (other + 2) == 0 || number == other + 3).collect(),
            state: State::Waits,
        })
        .collect();
    let mut order = Vec::new();
    loop {
        let running = targets.iter().filter(|target| matches!(target.state, State::Runs(_))).count();
        let is_done = |target: &Target| matches!(target.state, State::Done(_));
        let ready = (0..targets.len()).find(|number| {
            let target = &targets[*number];
            matches!(target.state, State::Waits) && target.after.iter().all(|other| is_done(&targets[*other]))
        });
        if let (Some(number), true) = (ready, running < 8) {
            let parts: Vec<String> = targets[number].after.iter().map(|other| format!("part{other}")).collect();
            let mut command = Command::new("tool");
            command.arg("echo").arg(format!("target{number}:")).args(parts).stdin(Stdio::null()).stdout(Stdio::piped());
            targets[number].state = State::Runs(command.spawn().expect("a process"));
            continue;
        }
        let Some(target) = targets.iter_mut().enumerate().find(|(_, target)| matches!(target.state, State::Runs(_)))
        else {
            break;
        };
        let (number, target) = target;
        let State::Runs(child) = std::mem::replace(&mut target.state, State::Waits) else { unreachable!() };
        let output = child.wait_with_output().expect("its output");
        assert!(output.status.success(), "{number}: {}", output.status);
        for other in &target.after {
            assert!(order.contains(other), "{number} ran before {other}");
        }
        order.push(number);
        target.state = State::Done(String::from_utf8(output.stdout).expect("text"));
    }
    for target in &targets {
        let State::Done(text) = &target.state else { panic!("a target was not built") };
        print!("{text}");
    }
    println!("{} targets", order.len());
}
