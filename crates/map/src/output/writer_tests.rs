use super::super::journal::{Identity, Journal, Task};
use super::*;
use crate::batch::Results;
use crate::folder::{FolderEntry, Trust};
use crate::input::Flaw;
use crate::input::reader::Mark;
use crate::options::Unfinished;
use gpu_run_compiler::Trap;
use std::fs;
use std::sync::mpsc::{self, Receiver, Sender};

fn task() -> Task {
    let text = String::new;
    let (args, dirs) = (Vec::new(), Vec::new());
    let (input, max_memory, links) = (Identity::Stream, None, None);
    Task {
        program: text(),
        input,
        split: text(),
        args,
        dirs,
        env: text(),
        max_memory,
        links,
        function: None,
        shard: None,
    }
}

fn entry(path: &Path) -> FolderEntry {
    FolderEntry::find(path, &Trust::default(), false).unwrap()
}

fn journal(path: &Path) -> Journal {
    let FolderEntry { folder, name } = entry(path);
    Journal::beside(folder.into(), &name, path, task())
}

/// Notes what it is told, in words.
struct Notes(Sender<String>);

impl Observer for Notes {
    fn record_failed(&mut self, record: &FailedRecord<'_>) {
        self.0.send(format!("failure {}: record {}, {:?}", record.nth, record.number, record.failure)).unwrap();
    }
    fn finished(&mut self, summary: &Summary) {
        self.0.send(format!("finished {}", summary.records)).unwrap();
    }
    fn stopped(&mut self, stopped: Stopped) {
        self.0
            .send(format!("{} at {}, resumes at {:?}", stopped.reason, stopped.summary.records, stopped.resumes_at))
            .unwrap();
    }
}

fn writer(path: &Path, fail_fast: bool) -> (Writer, Receiver<String>) {
    let mut target = Target::file(entry(path), path, task()).unwrap();
    target.begin(Progress::default(), Unfinished::Refuse).unwrap();
    let (send, notes) = mpsc::channel();
    let rules = Rules { lines: true, fail_fast, has_deadline: false };
    (Writer::new(target, rules, Box::new(Notes(send)), Progress::default(), None), notes)
}

/// What became of a record: how it ended, what it wrote, and whether that was cut; or why it could not run.
type Made = Result<(End, &'static str, bool), Flaw>;

fn done(stdout: &'static str, end: End) -> Made {
    Ok((end, stdout, false))
}

fn trap() -> End {
    End::Trapped(Box::new(Trap::nowhere(TrapCode::Unreachable)))
}

fn ran(first: u64, outcomes: Vec<Made>) -> RanPart {
    let mark = Mark { records: first + outcomes.len() as u64, ..Mark::default() };
    let (mut records, mut results) = (Vec::new(), Results::default());
    for (line, outcome) in (first + 1..).zip(outcomes) {
        let flaw = match outcome {
            Ok((end, stdout, cut)) => {
                results.push(end, stdout.as_bytes(), b"", cut.then_some(Denied::Output(1)));
                None
            }
            Err(flaw) => Some(flaw),
        };
        records.push((Location::Line(line), flaw));
    }
    RanPart { first, records, results, mark: Some(mark) }
}

#[test]
fn what_is_kept_of_a_failure_depends_on_who_ended_it() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let (mut writer, notes) = writer(&path, false);
    let outcomes = vec![
        done("a\nb\n", End::Returned),
        done("left", End::Exited(3)),
        done("half", trap()),
        Err(Flaw::UnclosedQuote),
        Ok((End::Returned, "much", true)),
        done("", End::Exited(0)),
    ];
    assert_eq!(writer.write(ran(0, outcomes)).unwrap(), Flow::GoOn);
    writer.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\nleft\n\n\n\n\n");
    assert_eq!(writer.failed(), 4);
    let notes: Vec<_> = notes.try_iter().collect();
    assert_eq!(notes[0], "failure 1: record 1, Exited(3)");
    assert!(notes[1].starts_with("failure 2: record 2, Trapped"), "{notes:?}");
    assert_eq!(
        notes[2..],
        ["failure 3: record 3, Flawed(UnclosedQuote)", "failure 4: record 4, PrintedTooMuch", "finished 6"]
    );
}

#[test]
fn after_a_stop_the_journal_speaks_of_whole_batches() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let (mut writer, notes) = writer(&path, true);
    let fine = |text: &'static str| done(text, End::Returned);
    assert_eq!(writer.write(ran(0, vec![fine("a"), fine("b")])).unwrap(), Flow::GoOn);
    assert_eq!(writer.write(ran(2, vec![fine("c"), done("d", trap()), fine("e")])).unwrap(), Flow::Stop);
    assert!(writer.stop(StopReason::RecordFailed));
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\nc\n", "whole records, up to the failure");
    assert_eq!(notes.try_iter().last().unwrap(), "stopped at the first failure at 3, resumes at Some(2)");
    let progress = journal(&path).read().unwrap().unwrap();
    assert_eq!((progress.mark.records, progress.output, progress.failed), (2, 4, 0));
}

#[test]
fn stopped_after_the_end_it_says_nothing_and_writes_no_journal() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let (mut writer, notes) = writer(&path, false);
    writer.write(ran(0, vec![done("a", End::Returned)])).unwrap();
    writer.finish().unwrap();
    assert!(!writer.stop(StopReason::Interrupted));
    assert!(!journal(&path).has_leftovers());
    assert_eq!(notes.try_iter().collect::<Vec<_>>(), ["finished 1"]);
}
