//! What a run of a program did, and how two runs differ.

use crate::directory::Files;
use crate::manifest::{Aspect, Spec};
use std::fmt::{self, Write};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Exit(i32),
    /// The words of the WebAssembly specification.
    Trap(String),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exit(code) => write!(f, "exit code {code}"),
            Ending::Trap(words) => write!(f, "trap: {words}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    pub(crate) ending: Ending,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Everything in the directory afterwards, where there is one.
    pub(crate) files: Option<Files>,
}

/// What of `got` is not as in `expected`, in the aspects the program is to be compared in.
pub(crate) fn difference(spec: &Spec, expected: &Observed, got: &Observed) -> Result<(), String> {
    let mut report = String::new();
    for aspect in &spec.compare {
        match aspect {
            Aspect::Stdout => bytes(&mut report, "stdout", &expected.stdout, &got.stdout),
            Aspect::Stderr => bytes(&mut report, "stderr", &expected.stderr, &got.stderr),
            Aspect::Exit if expected.ending == got.ending => {}
            Aspect::Exit => _ = writeln!(report, "expected {}, got {}", expected.ending, got.ending),
            Aspect::Files => files(&mut report, expected.files.as_ref(), got.files.as_ref()),
        }
    }
    for run in [expected, got] {
        let stderr = String::from_utf8_lossy(&run.stderr);
        for wanted in spec.stderr_contains.iter().filter(|wanted| !stderr.contains(*wanted)) {
            _ = writeln!(report, "stderr does not contain {wanted:?}:\n{stderr}");
        }
    }
    if report.is_empty() {
        return Ok(());
    }
    if expected.ending != got.ending && got.stderr != expected.stderr {
        _ = writeln!(report, "stderr: {}", String::from_utf8_lossy(&got.stderr));
    }
    Err(report)
}

fn bytes(report: &mut String, what: &str, expected: &[u8], got: &[u8]) {
    if expected == got {
        return;
    }
    let at = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
    let from = expected[..at].iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
    let excerpt =
        |bytes: &[u8]| String::from_utf8_lossy(&bytes[from.min(bytes.len())..bytes.len().min(at + 160)]).into_owned();
    _ = writeln!(report, "{what} differs at byte {at} (of {} expected, {} got)", expected.len(), got.len());
    _ = writeln!(report, "  expected {:?}\n       got {:?}", excerpt(expected), excerpt(got));
}

fn files(report: &mut String, expected: Option<&Files>, got: Option<&Files>) {
    let (Some(expected), Some(got)) = (expected, got) else {
        report.push_str("files are to be compared, but the program has no directory\n");
        return;
    };
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    if names(expected) != names(got) {
        _ = writeln!(report, "expected files {:?}, got {:?}", names(expected), names(got));
    }
    for (name, contents) in expected {
        match (contents, got.get(name)) {
            (Some(expected), Some(Some(got))) => bytes(report, &name.display().to_string(), expected, got),
            (None, Some(None)) | (_, None) => {}
            _ => _ = writeln!(report, "{} is a directory on one side only", name.display()),
        }
    }
}
