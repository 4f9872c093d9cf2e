//! What there is to say of the processes that guests started: for people, and for programs.

use gpu_run_compiler::printable;
use gpu_run_console::units::{count, show_duration};
use gpu_run_run::{ProcessInfo, ProcessState, ProcessStats, Processes};
use gpu_run_wasi::Ended;
use serde_json::{Value, json};
use std::time::Duration;

/// Says how many processes there were, and what each of the last ones did.
pub(crate) fn show(processes: &Processes) -> String {
    let ProcessStats { started, refused, most_running, trapped, killed, calls } = processes.stats();
    if started + refused == 0 {
        return String::new();
    }
    let calls = count(calls, "host call");
    let mut text = format!(
        "gpu-run: processes {started} started, at most {most_running} at once, {trapped} trapped, {killed} killed, {calls}\n"
    );
    if refused > 0 {
        text += &format!("gpu-run:   {} could not be started\n", count(refused, "other program"));
    }
    let list = processes.list();
    if (list.len() as u64) < started + refused {
        text += &format!("gpu-run:   the last {} of them:\n", list.len());
    }
    for process in &list {
        text += &format!("gpu-run:   {}, {}\n", describe(process), count(process.calls, "host call"));
    }
    text
}

/// The same for `--stats=json`; times are in seconds.
pub(crate) fn json(processes: &Processes) -> Value {
    let ProcessStats { started, refused, most_running, trapped, killed, calls } = processes.stats();
    let list: Vec<_> = processes.list().iter().map(json_of).collect();
    json!({
        "started": started,
        "refused": refused,
        "most_at_once": most_running,
        "trapped": trapped,
        "killed": killed,
        "host_calls": calls,
        "last": list,
    })
}

fn json_of(process: &ProcessInfo) -> Value {
    let (state, code) = match process.state {
        ProcessState::Starts => ("starts", None),
        ProcessState::Runs => ("runs", None),
        ProcessState::Refused => ("refused", None),
        ProcessState::Ended(Ended::Exited(code)) => ("exited", Some(code)),
        ProcessState::Ended(Ended::Trapped(_)) => ("trapped", None),
        ProcessState::Ended(Ended::Killed) => ("killed", None),
    };
    json!({
        "id": process.id,
        "parent": process.parent,
        "name": process.name,
        "state": state,
        "exit_code": code,
        "seconds": process.time.as_secs_f64(),
        "host_calls": process.calls,
    })
}

/// Says that processes were stopped that ran longer than the program that the run began with.
pub(crate) fn outlived(processes: usize, timeout: Option<Duration>) -> String {
    match timeout {
        Some(timeout) if processes > 0 => {
            let (limit, were) = (show_duration(timeout), if processes == 1 { "was" } else { "were" });
            let which = count(processes as u64, "child process");
            format!("error: {which} did not finish within {limit} and {were} stopped\n")
        }
        _ => String::new(),
    }
}

/// `17 of 1: sort, exited 0 after 12 ms`
pub(crate) fn describe(process: &ProcessInfo) -> String {
    let ProcessInfo { id, parent, name, state, time, .. } = process;
    let state = match state {
        ProcessState::Starts => "starts".to_owned(),
        ProcessState::Runs => format!("runs for {}", show_duration(*time)),
        ProcessState::Refused => "could not be started".to_owned(),
        ProcessState::Ended(ended) => {
            let how = match ended {
                Ended::Exited(code) => format!("exited {code}"),
                Ended::Trapped(code) => format!("trapped: {}", code.message()),
                Ended::Killed => "killed".to_owned(),
            };
            format!("{how} after {}", show_duration(*time))
        }
    };
    format!("{id} of {parent}: {}, {state}", printable::name(name))
}
