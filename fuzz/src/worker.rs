//! A process that compares what it is told to: a line `GENERATOR SEED` comes in, a line with the verdict goes out.

use crate::case::{self, Generator};
use crate::differential::Compared;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;

/// What a worker is started with, before its folder.
pub(crate) const FLAG: &str = "--worker";

pub(crate) fn run(folder: &Path) -> ExitCode {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let verdict = match task(&line) {
            Some((generator, seed)) => case::run(generator, seed, folder),
            None => Err(format!("`{line}` is no task")),
        };
        if writeln!(out, "{}", write(&verdict)).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn task(line: &str) -> Option<(Generator, u64)> {
    let (generator, seed) = line.split_once(' ')?;
    Some((named(generator)?, seed.parse().ok()?))
}

pub(crate) fn named(name: &str) -> Option<Generator> {
    Generator::ALL.into_iter().find(|generator| generator.name() == name)
}

/// A verdict in one line.
fn write(verdict: &Result<Compared, String>) -> String {
    match verdict {
        Ok(c) => {
            let numbers = [c.modules, c.silent, c.calls, c.traps, c.unmade, c.refused, c.limited];
            format!("same {}", numbers.map(|n| n.to_string()).join(" "))
        }
        Err(difference) => format!("differs {}", difference.replace('\n', "\u{1}")),
    }
}

/// The verdict of such a line.
pub(crate) fn read(line: &str) -> Result<Compared, String> {
    if let Some(difference) = line.strip_prefix("differs ") {
        return Err(difference.replace('\u{1}', "\n"));
    }
    let numbers = line.strip_prefix("same ").map(|rest| rest.split(' ').filter_map(|n| n.parse().ok()).collect());
    match numbers.as_ref().map(|numbers: &Vec<u64>| &numbers[..]) {
        Some(&[modules, silent, calls, traps, unmade, refused, limited]) => {
            Ok(Compared { modules, silent, calls, traps, unmade, refused, limited })
        }
        _ => Err(format!("a worker said `{line}`")),
    }
}
