//! Maps through the library's public face, on the `cpu` device.
#![allow(clippy::unwrap_used)] // in a test, that is an assertion

mod support;

use gpu_run_map::{
    Ended, Error, FailedRecord, Finished, Input, Location, Map, Observer, Options, Output, Sample, Split, Summary,
    Unfinished,
};
use std::io::{self, Cursor, Write};
use std::sync::{Arc, LazyLock, Mutex};
use std::{fs, iter};
use support::{Guest, file, options};

static MARKING: LazyLock<Guest> = LazyLock::new(|| Guest::new(include_str!("wat/marking.wat")));

fn open(input: Input, output: Output, options: Options) -> Result<Map, Error> {
    MARKING.open(input, output, options)
}

fn run(map: Map, observer: Box<dyn Observer>) -> Ended {
    MARKING.run(map, observer)
}

fn finish(map: Map) -> Finished {
    MARKING.finish(map)
}

fn memory(text: impl Into<Vec<u8>>) -> Input {
    Input::Stream(Box::new(Cursor::new(text.into())))
}

/// Whatever is written, for whoever keeps a clone.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_go_from_memory_to_memory_in_order() {
    let (written, count) = (Written::default(), 1000);
    let lines: Vec<_> = (0..count).map(|i| format!("line {i}\n")).collect();
    let map = open(memory(lines.concat()), Output::Stream(Box::new(written.clone())), options(Split::Lines)).unwrap();
    let finished = finish(map);
    assert_eq!((finished.failed, finished.counts.instances, finished.counts.exits[&0]), (0, count, count));
    let expected: String = lines.iter().map(|line| format!(">{line}")).collect();
    assert_eq!(String::from_utf8(written.0.lock().unwrap().clone()).unwrap(), expected);
}

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn begun(&mut self, input_bytes: Option<u64>, summary: &Summary) {
        self.0.lock().unwrap().push(format!("begun {input_bytes:?} at {}", summary.records));
    }
    fn record_failed(&mut self, record: &FailedRecord<'_>) {
        let Location::Line(line) = record.location else { panic!("no line") };
        self.0.lock().unwrap().push(format!("{}: line {line}, record {}", record.nth, record.number));
    }
    fn finished(&mut self, summary: &Summary) {
        self.0.lock().unwrap().push(format!("finished {}, {} failed", summary.records, summary.failed));
    }
}

#[test]
fn failed_records_are_told_in_order_and_leave_empty_ones() {
    let (written, heard) = (Written::default(), Heard::default());
    let input = memory("1\n!\n{}\nx\n!\n");
    let map = open(input, Output::Stream(Box::new(written.clone())), options(Split::Jsonl)).unwrap();
    run(map, Box::new(heard.clone()));
    assert_eq!(*written.0.lock().unwrap(), b">1\n\n>{}\n\n\n");
    let expected = [
        "begun None at 0",
        "1: line 2, record 1",
        "2: line 4, record 3",
        "3: line 5, record 4",
        "finished 5, 3 failed",
    ];
    assert_eq!(*heard.0.lock().unwrap(), expected);
}

#[test]
fn a_stopped_map_is_resumed_where_it_was() {
    let place = tempfile::tempdir().unwrap();
    let (input, out) = (place.path().join("in"), place.path().join("out"));
    fs::write(&input, "a\nb\nc\nd\n!\nf\n").unwrap();
    let input = || Input::Path(input.clone());
    let stopped = Options { fail_fast: true, ..options(Split::Lines) };
    assert!(matches!(run(open(input(), file(&out), stopped).unwrap(), Box::new(())), Ended::Stopped));
    assert_eq!(fs::read_to_string(&out).unwrap(), ">a\n>b\n>c\n>d\n");
    let refused = open(input(), file(&out), options(Split::Lines)).unwrap_err();
    assert!(matches!(&refused, Error::OutputUnfinished(path) if *path == out), "{refused}");
    let resumed = || Options { unfinished: Unfinished::Resume, ..options(Split::Lines) };
    let other = Options { max_memory: Some(1 << 20), ..resumed() };
    assert!(matches!(open(input(), file(&out), other).unwrap_err(), Error::TaskChanged(_)));
    let finished = finish(open(input(), file(&out), resumed()).unwrap());
    assert_eq!((finished.failed, finished.counts.instances), (1, 3), "only what was not safe runs again");
    assert_eq!(fs::read_to_string(&out).unwrap(), ">a\n>b\n>c\n>d\n\n>f\n");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2, "the journal is gone");
}

#[test]
fn a_folder_becomes_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    fs::create_dir_all(from.join("sub")).unwrap();
    for (name, content) in [("a", "1"), ("sub/b", "!"), ("sub/c", "3")] {
        fs::write(from.join(name), content).unwrap();
    }
    let finished = finish(open(Input::Path(from), file(&to), options(Split::Files)).unwrap());
    assert_eq!(finished.failed, 1);
    assert_eq!(fs::read_to_string(to.join("a")).unwrap(), ">1");
    assert_eq!(fs::read_to_string(to.join("sub/c")).unwrap(), ">3");
    assert!(!to.join("sub/b").exists(), "a record that traps has no file");
}

#[test]
fn an_output_never_destroys_the_input() {
    let place = tempfile::tempdir().unwrap();
    let input = place.path().join("in");
    fs::write(&input, "a\n").unwrap();
    let error = open(Input::Path(input.clone()), file(&input), options(Split::Lines)).unwrap_err();
    assert!(matches!(error, Error::OutputOverInput { .. }), "{error}");
    let error = open(Input::Path(input.clone()), file(place.path()), options(Split::Lines)).unwrap_err();
    assert!(matches!(error, Error::OutputIsFolder(_)), "{error}");
    assert_eq!(fs::read_to_string(&input).unwrap(), "a\n");
}

#[test]
fn a_batch_that_is_read_ahead_is_written_once() {
    let written = Written::default();
    let text: String = iter::repeat_n("x\n", 7).collect();
    let mut map = open(memory(text.clone()), Output::Stream(Box::new(written.clone())), options(Split::Lines)).unwrap();
    assert_eq!((map.read_first(2).unwrap(), map.first_jobs().len()), (2, 2));
    finish(map);
    assert_eq!(*written.0.lock().unwrap(), b">x\n".repeat(7));
    let jobs = Sample::open(memory(text), &options(Split::Lines)).unwrap().jobs(5).unwrap();
    assert_eq!(jobs.iter().map(|job| job.number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}
