//! `gpu-run top`: shows the state of a machine that another process has booted, or the threads and processes of a program that it runs.

use super::status::MachineStatus;
use crate::args::TopArgs;
use crate::program_status::ProgramStatus;
use crate::published::{Published, ask, find};
use anyhow::Result;
use gpu_run_compiler::printable;
use gpu_run_console::failure::Failure;
use gpu_run_console::output::Standard;
use gpu_run_console::units::{show_count, show_duration, show_size};
use std::io::{IsTerminal, Write};
use std::time::Duration;

const SHOW_EVERY: Duration = Duration::from_millis(500);
/// Moves the cursor to the upper left and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// What is shown.
enum Seen {
    Machine(MachineStatus),
    Program(ProgramStatus),
}

pub(crate) fn top(args: &TopArgs) -> Result<u8> {
    let mut out = Standard::stdout()?;
    let mut before = newest(args.pid)?.ok_or_else(|| {
        Failure::environment("no machine is running, and no program with threads or processes")
            .hint("start one with `gpu-run boot` or `gpu-run FILE` in another terminal")
    })?;
    let redraws = std::io::stdout().is_terminal() && !args.once;
    loop {
        ask()?;
        std::thread::sleep(SHOW_EVERY);
        let (text, now) = match &before {
            Seen::Machine(earlier) => match find::<MachineStatus>(Some(earlier.pid))? {
                Some((_, now)) => (show(earlier, &now), Seen::Machine(now)),
                None => return ended(&mut out, "machine", earlier.pid),
            },
            Seen::Program(earlier) => match find::<ProgramStatus>(Some(earlier.pid()))? {
                // It publishes what it has once somebody looks.
                Some((_, now)) if now.is_empty() => continue,
                Some((_, now)) => (now.show(), Seen::Program(now)),
                None => return ended(&mut out, "program", earlier.pid()),
            },
        };
        let text = printable::message(&text);
        out.write_all(format!("{}{text}", if redraws { CLEAR } else { "" }).as_bytes())?;
        if args.once {
            return Ok(0);
        }
        before = now;
    }
}

/// Returns what the process shows, or what was started or heard from last.
fn newest(pid: Option<u32>) -> Result<Option<Seen>> {
    let machine = find(pid)?.map(|(at, machine)| (at, Seen::Machine(machine)));
    let program = find(pid)?.map(|(at, program)| (at, Seen::Program(program)));
    Ok(machine.into_iter().chain(program).max_by_key(|(at, _)| *at).map(|(_, seen)| seen))
}

fn ended(out: &mut Standard, what: &str, pid: u32) -> Result<u8> {
    writeln!(out, "the {what} of process {pid} has ended")?;
    Ok(0)
}

/// Accepts any number that the other process may have written.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// Formats a machine's state, with rates since the last look.
fn show(before: &MachineStatus, now: &MachineStatus) -> String {
    let seconds = (now.seconds - before.seconds).max(1e-9);
    let rate = |after: u64, before: u64| show_count(after.saturating_sub(before) as f64 / seconds);
    let mut text = format!(
        "machine  {} on {}, process {}, up {}\n",
        printable::name(&now.strategy),
        printable::name(&now.device),
        now.pid,
        show_duration(duration(now.seconds))
    );
    text += &format!(
        "ticks    {}   {}/s   {} late   heartbeat gap {:.2} ms at most\n",
        now.tick,
        rate(now.tick, before.tick),
        now.late,
        now.heartbeat_gap_ms
    );
    text += &format!(
        "events   {}   {}/s   {} waiting, {} refused, {} answers lost\n",
        now.events,
        rate(now.events, before.events),
        now.waiting,
        now.refused,
        now.lost
    );
    text += &format!(
        "heap     {} in {} objects   {} timers, {} work items\n",
        show_size(now.heap_bytes),
        now.objects,
        now.timers,
        now.work
    );
    text += &format!(
        "host     {:.1} % of a core   {} launches since the start, {} restarts\n",
        now.host_cpu * 100.0,
        now.launches,
        now.restarts
    );
    if now.loads != 0 {
        text += &format!("code     loaded {} times, {:.2} ms of pause the last time\n", now.loads, now.load_gap_ms);
    }
    if let Some(phase) = &now.stuck {
        let phase = printable::name(phase);
        text += &format!("stuck    in the phase `{phase}` for more than a second\n");
    }
    text += "\nPHASE        TIME/TICK   LANES\n";
    let ticks = now.tick.saturating_sub(before.tick).max(1) as f64;
    for (index, (name, time, lanes)) in now.phases.iter().enumerate() {
        let earlier = before.phases.get(index).map_or(0.0, |phase| phase.1);
        let each = duration((time - earlier) / ticks);
        let lanes = lanes.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
        let name = printable::name(name);
        text += &format!("{name:<12} {:>9}   {lanes:>5}\n", show_duration(each));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_are_since_the_last_look() {
        let phases = |time| vec![("work".to_owned(), time, Some(0.875))];
        let before = MachineStatus { tick: 100, seconds: 10.0, phases: phases(1.0), ..MachineStatus::default() };
        let now = MachineStatus { tick: 160, seconds: 10.5, phases: phases(1.06), ..before.clone() };
        let text = show(&before, &now);
        assert!(text.contains("160   120/s"), "{text}");
        assert!(text.contains("work           1.00 ms    88 %"), "{text}");
    }

    fn published() -> impl Strategy<Value = MachineStatus> {
        let number = || any::<u64>();
        let float = || proptest::num::f64::ANY;
        let phases = proptest::collection::vec((any::<String>(), float(), proptest::option::of(float())), 0..3);
        let counts = (number(), number(), number(), number(), number());
        (counts, (float(), float(), float(), float()), (any::<String>(), any::<u32>()), phases).prop_map(
            |(
                (tick, events, heap_bytes, late, launches),
                (seconds, heartbeat_gap_ms, load_gap_ms, host_cpu),
                (text, n),
                phases,
            )| {
                let (device, strategy, stuck) = (text.clone(), text.clone(), Some(text));
                let (pid, loads, waiting) = (n, n, n);
                MachineStatus {
                    pid,
                    device,
                    strategy,
                    seconds,
                    tick,
                    events,
                    waiting,
                    heap_bytes,
                    heartbeat_gap_ms,
                    late,
                    launches,
                    loads,
                    load_gap_ms,
                    host_cpu,
                    phases,
                    stuck,
                    ..MachineStatus::default()
                }
            },
        )
    }

    proptest! {
        #[test]
        fn whatever_is_read_can_be_shown(before in published(), now in published()) {
            let text = show(&before, &now);
            prop_assert_eq!(printable::message(&text), text.as_str());
        }
    }

    #[test]
    fn numbers_beyond_all_time_are_shown() {
        let before = MachineStatus::default();
        let phases = vec![("work".to_owned(), 1e300, Some(f64::NAN))];
        for seconds in [1e300, -1e300, f64::INFINITY, f64::NAN] {
            show(&before, &MachineStatus { seconds, phases: phases.clone(), ..MachineStatus::default() });
        }
    }
}
