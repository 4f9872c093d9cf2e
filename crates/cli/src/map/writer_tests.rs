use super::super::folder::{Spot, Trust};
use super::super::journal::{Identity, Journal, Task};
use super::super::reader::Mark;
use super::*;
use gpu_run_map::Results;
use std::fs;

fn task() -> Task {
    let text = String::new;
    let (args, dirs) = (Vec::new(), Vec::new());
    let (input, max_memory, links) = (Identity::Stream, None, None);
    Task { program: text(), input, split: text(), args, dirs, env: text(), max_memory, links }
}

fn spot(path: &Path) -> Spot {
    Spot::find(path, &Trust::new([].into_iter(), false), false).unwrap()
}

fn journal(path: &Path) -> Journal {
    let Spot { folder, name } = spot(path);
    Journal::beside(folder.into(), &name, path, task())
}

fn writer(path: &Path, fail_fast: bool) -> Writer {
    let mut target = Target::file(spot(path), path, task()).unwrap();
    target.begin(Progress::default()).unwrap();
    let bar = Bar::new(None, &Mark::default(), true);
    Writer::new(target, Rules { lines: true, fail_fast, timeout: None }, bar, Progress::default(), None)
}

/// What became of a record: how it ended, what it wrote, and whether that was cut; or why it could not run.
type Made = Result<(End, &'static str, bool), &'static str>;

fn done(stdout: &'static str, end: End) -> Made {
    Ok((end, stdout, false))
}

fn trap() -> End {
    End::Trapped(Box::new(Trap { code: TrapCode::Unreachable, function: None, name: None, offset: 0, source: None }))
}

fn ran(first: u64, outcomes: Vec<Made>) -> Ran {
    let mark = Mark { records: first + outcomes.len() as u64, ..Mark::default() };
    let (mut records, mut results) = (Vec::new(), Results::default());
    for (line, outcome) in (first + 1..).zip(outcomes) {
        records.push((Place::Line(line), outcome.as_ref().err().map(ToString::to_string)));
        if let Ok((end, stdout, cut)) = outcome {
            results.push(end, stdout.as_bytes(), b"", cut.then_some(Denied::Output(1)));
        }
    }
    Ran { first, records, results, mark: Some(mark) }
}

#[test]
fn what_is_kept_of_a_failure_depends_on_who_ended_it() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let mut writer = writer(&path, false);
    let outcomes = vec![
        done("a\nb\n", End::Returned),
        done("left", End::Exited(3)),
        done("half", trap()),
        Err("is not JSON"),
        Ok((End::Returned, "much", true)),
        done("", End::Exited(0)),
    ];
    assert_eq!(writer.write(ran(0, outcomes)).unwrap(), Flow::GoOn);
    writer.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\nleft\n\n\n\n\n");
    assert_eq!((writer.done.failed, writer.all_fine()), (4, false));
}

#[test]
fn after_a_stop_the_journal_speaks_of_whole_batches() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let mut writer = writer(&path, true);
    let fine = |text: &'static str| done(text, End::Returned);
    assert_eq!(writer.write(ran(0, vec![fine("a"), fine("b")])).unwrap(), Flow::GoOn);
    assert_eq!(writer.write(ran(2, vec![fine("c"), done("d", trap()), fine("e")])).unwrap(), Flow::Stop);
    assert!(writer.stop("stopped at the first failure"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\nc\n", "whole records, up to the failure");
    let progress = journal(&path).read().unwrap().unwrap();
    assert_eq!((progress.mark.records, progress.output, progress.failed), (2, 4, 0));
}

#[test]
fn stopped_after_the_end_it_says_nothing_and_writes_no_journal() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let mut writer = writer(&path, false);
    writer.write(ran(0, vec![done("a", End::Returned)])).unwrap();
    writer.finish().unwrap();
    assert!(!writer.stop("interrupted"));
    assert!(!journal(&path).exists());
}

#[test]
fn stderr_is_shown_indented_short_and_without_control_characters() {
    assert_eq!(shown(b"one\n\x1b[31mtwo\n"), "    one\n    [31mtwo\n");
    let long = shown("x".repeat(5000).as_bytes());
    assert_eq!(long.chars().filter(|c| *c == 'x').count(), STDERR_SHOWN);
    assert!(long.starts_with("    …x"));
    assert_eq!(shown(b""), "");
}
