//! Maps in shards, on the `cpu` device: put together, they are what a map of the whole input writes.
#![allow(clippy::unwrap_used)] // in a test, that is an assertion

mod support;

use gpu_run_map::{
    Ended, Error, FailedRecord, Input, Map, Merge, Merged, Observer, Options, Shard, Split, Summary, TaskChange,
    Unfinished,
};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use support::{Guest, file, options};

/// Writes each record's number before the record.
static NUMBERING: LazyLock<Guest> = LazyLock::new(|| Guest::new(include_str!("wat/numbering.wat")));
static MARKING: LazyLock<Guest> = LazyLock::new(|| Guest::new(include_str!("wat/marking.wat")));

/// How many shards are tried: fewer than records, as many, and more.
const COUNTS: [u32; 5] = [1, 2, 3, 7, 64];

/// A folder with an input `in`.
struct Place(tempfile::TempDir);

impl Place {
    /// In memory where that is possible: each shard waits for its disk several times.
    fn empty() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn new(input: &[u8]) -> Self {
        let place = Self::empty();
        fs::write(place.path("in"), input).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn input(&self) -> Input {
        Input::Path(self.path("in"))
    }

    fn open(&self, output: &str, options: Options) -> Result<Map, Error> {
        NUMBERING.open(self.input(), file(&self.path(output)), options)
    }

    fn merge(&self, output: &str) -> Result<Merged, Error> {
        Merge { output: self.path(output), force: false, remove_shards: false }.run()
    }

    /// Maps all shards into `out`.
    fn map_all(&self, split: Split, count: u32) {
        for index in 0..count {
            NUMBERING.finish(self.open("out", shard(split, index, count)).unwrap());
        }
    }
}

fn shard(split: Split, index: u32, count: u32) -> Options {
    Options { shard: Some(Shard::new(index, count).unwrap()), ..options(split) }
}

/// What a file is, or the files of a folder but for our own.
fn tree(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    if path.is_file() {
        return BTreeMap::from([(PathBuf::new(), fs::read(path).unwrap())]);
    }
    let mut files = BTreeMap::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                files.insert(entry.strip_prefix(path).unwrap().to_owned(), fs::read(&entry).unwrap());
            }
        }
    }
    files
}

/// The numbers of the records that failed.
#[derive(Clone, Default)]
struct Failed(Arc<Mutex<Vec<u64>>>);

impl Observer for Failed {
    fn record_failed(&mut self, record: &FailedRecord<'_>) {
        self.0.lock().unwrap().push(record.number);
    }
}

/// Maps the input whole and in shards, in some order, and compares.
#[track_caller]
fn is_the_same_in_shards(place: &Place, split: Split, what: &str) {
    let failed = Failed::default();
    let whole = NUMBERING.run(place.open("whole", options(split)).unwrap(), Box::new(failed.clone()));
    let Ended::Finished(whole) = whole else { panic!("{whole:?}") };
    for count in COUNTS {
        let output = format!("out-{count}");
        let in_shards = Failed::default();
        let (mut instances, mut indices) = (0, (0..count).collect::<Vec<_>>());
        fastrand::Rng::with_seed(u64::from(count)).shuffle(&mut indices);
        for index in indices {
            let map = place.open(&output, shard(split, index, count)).unwrap();
            let Ended::Finished(finished) = NUMBERING.run(map, Box::new(in_shards.clone())) else { panic!("{what}") };
            instances += finished.counts.instances;
        }
        let merged = place.merge(&output).unwrap_or_else(|error| panic!("{what}, {count} shards: {error}"));
        assert_eq!(tree(&place.path(&output)), tree(&place.path("whole")), "{what}, {count} shards");
        assert_eq!((instances, merged.failed, merged.shards), (whole.counts.instances, whole.failed, count), "{what}");
        in_shards.0.lock().unwrap().sort();
        assert_eq!(*in_shards.0.lock().unwrap(), *failed.0.lock().unwrap(), "{what}, {count} shards");
    }
}

#[test]
fn lines_are_the_same() {
    let long = [&b"a\n"[..], &[b'x'; 5000], b"\nb\nc"].concat();
    let many: String = (0..300).map(|i| format!("{i}{}\n", "-".repeat(i * 7919 % 40))).collect();
    for (what, input) in [
        ("nothing", &b""[..]),
        ("one newline", b"\n"),
        ("no newline", b"a"),
        ("no final newline", b"a\nb\nc\nd"),
        ("a final newline", b"a\nb\nc\nd\n"),
        ("other newlines", b"a\r\nb\r\n\r\nc\r\n"),
        ("empty lines", b"\n\n\na\n\n\n\nb\n\n\n"),
        ("failures", b"a\n!\nb\n!\n!\nc\n!"),
        ("one huge line", &long),
        ("many lines", many.as_bytes()),
    ] {
        is_the_same_in_shards(&Place::new(input), Split::Lines, what);
    }
}

#[test]
fn json_is_the_same_and_bad_lines_keep_their_numbers() {
    let place = Place::new(b"{\"a\":1}\n\n[1,\n2\nnull\n{}\n\"x\"\n{\n3");
    is_the_same_in_shards(&place, Split::Jsonl, "json");
}

#[test]
fn csv_is_the_same() {
    let quoted: String =
        (0..60).map(|i| format!("{i},\"{}\"\n", "two\nlines, \"\"said\"\" he\n".repeat(i % 4))).collect();
    for (what, input) in [
        ("nothing", String::new()),
        ("a header", "a,b\n".into()),
        ("quotes", format!("a,b\n{quoted}")),
        ("a header with newlines", format!("\"a\nlong\nheader\",b\n{}", &quoted[..40])),
        ("empty lines", "a,b\n\n\n1,2\n\n\n\r\n3,4\n\n\n\n".into()),
        ("no final newline", "a;b\n1;\"x\ny\"\n2;z".into()),
        ("a quote that is never closed", format!("a,b\n1,2\n3,\"x\n{}", "y\n".repeat(30))),
        ("quotes within fields", "a\tb\n1\t5\" disk\n2\t\"6\"\" disk\n\"\n3\tx\n".into()),
    ] {
        is_the_same_in_shards(&Place::new(input.as_bytes()), Split::Csv, what);
    }
}

#[test]
fn folders_are_the_same() {
    let place = Place::empty();
    fs::create_dir_all(place.path("in/sub/deep")).unwrap();
    for i in 0..40 {
        let name = format!("in/{}{i}", ["", "sub/", "sub/deep/"][i % 3]);
        // A third of them is empty, and some fail.
        let content = match i % 9 {
            0 | 3 | 6 => String::new(),
            1 => "!".into(),
            _ => "x".repeat(i * 37),
        };
        fs::write(place.path(&name), content).unwrap();
    }
    symlink("nowhere", place.path("in/link")).unwrap();
    is_the_same_in_shards(&place, Split::Files, "a folder");
    assert!(!place.path("out-64/.gpu-run-map.shards").exists(), "nothing but the output is left");
    let error = place.merge("out-64").unwrap_err();
    assert!(matches!(&error, Error::NoShards { .. }), "{error}");

    let place = Place::empty();
    fs::create_dir(place.path("in")).unwrap();
    is_the_same_in_shards(&place, Split::Files, "an empty folder");
    for i in 0..10 {
        fs::write(place.path(&format!("in/{i}")), "").unwrap();
    }
    is_the_same_in_shards(&place, Split::Files, "empty files");
}

/// Notes how far a map is when it begins and ends.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn begun(&mut self, input_bytes: Option<u64>, summary: &Summary) {
        self.0.lock().unwrap().push(format!("begun at {} of {input_bytes:?}", summary.records));
    }
    fn finished(&mut self, summary: &Summary) {
        let Summary { records, before, failed, input_offset, .. } = summary;
        self.0.lock().unwrap().push(format!("{records} ({before} before), {failed} failed, {input_offset} bytes"));
    }
}

#[test]
fn a_stopped_shard_is_resumed_where_it_was_and_a_finished_one_is_done() {
    let lines: String = (0..20).map(|i| if i == 15 { "!\n".into() } else { format!("{i:09}\n") }).collect();
    let place = Place::new(lines.as_bytes());
    NUMBERING.finish(place.open("whole", options(Split::Lines)).unwrap());
    let second = || shard(Split::Lines, 1, 2);
    let stopped = place.open("out", Options { fail_fast: true, ..second() }).unwrap();
    assert!(matches!(NUMBERING.run(stopped, Box::new(())), Ended::Stopped));
    let refused = place.open("out", second()).unwrap_err();
    assert!(matches!(&refused, Error::OutputUnfinished(path) if path.ends_with("out.shards/1-of-2")), "{refused}");
    let resumed = || Options { unfinished: Unfinished::Resume, ..second() };
    let (map, heard) = (place.open("out", resumed()).unwrap(), Heard::default());
    assert!(map.finished().is_none());
    NUMBERING.run(map, Box::new(heard.clone()));
    assert_eq!(*heard.0.lock().unwrap(), ["begun at 3 of Some(92)", "10 (3 before), 1 failed, 92 bytes"]);

    let done = place.open("out", resumed()).unwrap().finished().unwrap();
    assert_eq!((done.records, done.failed), (10, 1));
    let other = Options { max_memory: Some(1 << 20), ..resumed() };
    assert!(matches!(place.open("out", other).unwrap_err(), Error::TaskChanged(TaskChange::MaxMemory)));

    let first = Options { unfinished: Unfinished::Resume, ..shard(Split::Lines, 0, 2) };
    NUMBERING.finish(place.open("out", first).unwrap());
    assert_eq!(place.merge("out").unwrap(), Merged { shards: 2, records: 20, failed: 1 });
    assert_eq!(tree(&place.path("out")), tree(&place.path("whole")));
    // A finished shard is overwritten like any other finished output.
    NUMBERING.finish(place.open("out", second()).unwrap());
}

/// Merges `out`, which must be refused, and leave nothing behind.
#[track_caller]
fn refused(place: &Place) -> Error {
    let names = || fs::read_dir(place.0.path()).unwrap().count();
    let before = names();
    let error = place.merge("out").unwrap_err();
    assert!(!place.path("out").exists() && names() == before, "{error}");
    error
}

#[test]
fn shards_that_are_missing_or_unfinished_are_named() {
    let place = Place::new(&b"a\n!\n".repeat(20));
    assert!(matches!(refused(&place), Error::NoShards { .. }));
    place.map_all(Split::Lines, 4);
    for index in [0, 2] {
        fs::remove_file(place.path(&format!("out.shards/{index}-of-4.gpu-run-map"))).unwrap();
    }
    let stopped = Options { fail_fast: true, unfinished: Unfinished::Overwrite, ..shard(Split::Lines, 3, 4) };
    assert!(matches!(NUMBERING.run(place.open("out", stopped).unwrap(), Box::new(())), Ended::Stopped));
    let error = refused(&place).to_string();
    assert!(
        error.contains("of the 4 shards in") && error.ends_with("2 are missing (0, 2) and 1 is unfinished (3)"),
        "{error}"
    );
    for index in [0, 2, 3] {
        let again = Options { unfinished: Unfinished::Overwrite, ..shard(Split::Lines, index, 4) };
        NUMBERING.finish(place.open("out", again).unwrap());
    }
    assert_eq!(place.merge("out").unwrap().records, 40);
}

#[test]
fn shards_of_different_maps_are_not_put_together() {
    let place = Place::new(&b"1\n".repeat(20));
    let again = || Options { unfinished: Unfinished::Overwrite, ..shard(Split::Lines, 1, 3) };
    let changes: [(TaskChange, Options); 4] = [
        (TaskChange::Args, Options { args: vec!["x".into()], ..again() }),
        (TaskChange::Env, Options { env: vec![("A".into(), "1".into())], ..again() }),
        (TaskChange::Split, Options { split: Split::Jsonl, ..again() }),
        (TaskChange::MaxMemory, Options { max_memory: Some(1 << 20), ..again() }),
    ];
    place.map_all(Split::Lines, 3);
    let differs = |expected: TaskChange| match refused(&place) {
        Error::ShardOfAnotherMap { shard, change, .. } => {
            assert!(change == expected && shard.ends_with("out.shards/1-of-3"), "{change}")
        }
        error => panic!("{error}"),
    };
    for (change, options) in changes {
        NUMBERING.finish(place.open("out", options).unwrap());
        differs(change);
    }
    MARKING.finish(MARKING.open(place.input(), file(&place.path("out")), again()).unwrap());
    differs(TaskChange::Program);
    fs::write(place.path("in"), b"1\n".repeat(21)).unwrap();
    NUMBERING.finish(place.open("out", again()).unwrap());
    differs(TaskChange::Input);

    place.map_all(Split::Lines, 3);
    let (first, second) = (place.path("out.shards/0-of-3"), place.path("out.shards/1-of-3"));
    let journal = |shard: &Path| shard.with_file_name(format!("{}.gpu-run-map", shard.file_name().unwrap().display()));
    let kept = (fs::read(&second).unwrap(), fs::read(journal(&second)).unwrap());
    fs::copy(&first, &second).unwrap();
    fs::copy(journal(&first), journal(&second)).unwrap();
    differs(TaskChange::Shard);
    fs::write(&second, &kept.0).unwrap();
    fs::write(journal(&second), &kept.1).unwrap();

    NUMBERING.finish(place.open("out", shard(Split::Lines, 0, 4)).unwrap());
    let error = refused(&place);
    assert!(error.to_string().ends_with("has shards of several maps: 0-of-3, and 0-of-4"), "{error}");
    fs::remove_file(place.path("out.shards/0-of-4.gpu-run-map")).unwrap();
    assert_eq!(place.merge("out").unwrap().records, 21);
}

#[test]
fn a_folder_that_changed_between_its_shards_is_not_put_together() {
    let place = Place::empty();
    fs::create_dir(place.path("in")).unwrap();
    for name in ["b", "c", "d"] {
        fs::write(place.path(&format!("in/{name}")), name.repeat(10)).unwrap();
    }
    NUMBERING.finish(place.open("out", shard(Split::Files, 0, 2)).unwrap());
    fs::write(place.path("in/a"), "new").unwrap();
    NUMBERING.finish(place.open("out", shard(Split::Files, 1, 2)).unwrap());
    let error = place.merge("out").unwrap_err();
    assert!(matches!(&error, Error::ShardOutOfPlace(path) if path.ends_with("1-of-2")), "{error}");
    let again = Options { unfinished: Unfinished::Overwrite, ..shard(Split::Files, 0, 2) };
    NUMBERING.finish(place.open("out", again).unwrap());
    assert_eq!(place.merge("out").unwrap().records, 4);
}

#[test]
fn a_shard_that_was_changed_or_damaged_is_refused() {
    let place = Place::new(&b"1\n".repeat(20));
    place.map_all(Split::Lines, 3);
    let (shard, journal) = (place.path("out.shards/1-of-3"), place.path("out.shards/1-of-3.gpu-run-map"));
    let (content, said) = (fs::read(&shard).unwrap(), fs::read(&journal).unwrap());
    let mut flipped = content.clone();
    flipped[3] ^= 1;
    for changed in [&content[1..], &[], &[&content[..], b"x"].concat(), &flipped] {
        fs::write(&shard, changed).unwrap();
        let error = refused(&place);
        assert!(matches!(&error, Error::ShardChanged(path) if *path == shard), "{error}");
    }
    fs::write(&shard, &content).unwrap();
    fs::write(&journal, &said[..said.len() / 2]).unwrap();
    let error = refused(&place);
    assert!(matches!(&error, Error::Journal { path, .. } if *path == journal), "{error}");
    fs::write(&journal, &said).unwrap();
    place.merge("out").unwrap();
}

#[test]
fn an_output_is_replaced_only_with_force_and_shards_stay_unless_that_is_asked_for() {
    let place = Place::new(b"1\n2\n3\n");
    place.map_all(Split::Lines, 2);
    fs::write(place.path("out"), "precious").unwrap();
    let error = place.merge("out").unwrap_err();
    assert!(matches!(error, Error::OutputExists(_)), "{error}");
    assert_eq!(fs::read_to_string(place.path("out")).unwrap(), "precious");
    let forced = Merge { output: place.path("out"), force: true, remove_shards: false };
    forced.run().unwrap();
    let whole = fs::read(place.path("out")).unwrap();
    // Shards can be put together again.
    let last = Merge { remove_shards: true, ..forced };
    last.run().unwrap();
    assert_eq!(fs::read(place.path("out")).unwrap(), whole);
    let mut names: Vec<_> = fs::read_dir(place.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["in", "out"]);
}

#[test]
fn links_that_a_guest_made_lead_nowhere() {
    let place = Place::new(b"1\n2\n");
    place.map_all(Split::Lines, 2);
    fs::create_dir(place.path("elsewhere")).unwrap();
    // In the output's place: no shards lie beside what it leads to.
    symlink("elsewhere/victim", place.path("out")).unwrap();
    let error = place.merge("out").unwrap_err();
    assert!(matches!(error, Error::NoShards { .. }), "{error}");
    fs::remove_file(place.path("out")).unwrap();
    // In the place of a shard, and of the folder with the shards.
    let shard = place.path("out.shards/0-of-2");
    fs::rename(&shard, place.path("elsewhere/0-of-2")).unwrap();
    symlink("../elsewhere/0-of-2", &shard).unwrap();
    let error = refused(&place);
    assert!(matches!(error, Error::Read { .. }), "{error}");
    fs::rename(place.path("elsewhere/0-of-2"), &shard).unwrap();
    fs::rename(place.path("out.shards"), place.path("elsewhere/shards")).unwrap();
    symlink("elsewhere/shards", place.path("out.shards")).unwrap();
    let error = refused(&place);
    assert!(matches!(error, Error::Read { .. }), "{error}");
    assert_eq!(fs::read_dir(place.path("elsewhere")).unwrap().count(), 1);
}

#[test]
fn what_cannot_have_shards_says_so() {
    let place = Place::new(b"1\n");
    let fifo = place.path("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    for input in
        [Input::Stdin, Input::Stream(Box::new(&b"1\n"[..])), Input::Path(fifo), Input::Path("/dev/stdin".into())]
    {
        let error = NUMBERING.open(input, file(&place.path("out")), shard(Split::Lines, 0, 2)).unwrap_err();
        assert!(matches!(error, Error::ShardOfStream), "{error}");
    }
    let error = place.open("missing/out", shard(Split::Lines, 0, 2)).unwrap_err();
    assert!(matches!(error, Error::Write { .. }), "{error}");
    fs::create_dir(place.path("folder")).unwrap();
    let error = place.open("folder", shard(Split::Lines, 0, 2)).unwrap_err();
    assert!(matches!(error, Error::OutputIsFolder(_)), "{error}");
    let error = NUMBERING.open(place.input(), file(Path::new("/dev/stdout")), shard(Split::Lines, 0, 2)).unwrap_err();
    assert!(matches!(error, Error::ShardToStream(_)), "{error}");
    assert!(!place.path("out.shards").exists());
}

/// Changes the input when the map begins.
struct Appending(PathBuf);

impl Observer for Appending {
    fn begun(&mut self, _: Option<u64>, _: &Summary) {
        fs::write(&self.0, b"1\n".repeat(11)).unwrap();
    }
}

#[test]
fn an_input_that_grows_while_it_is_mapped_gives_no_finished_shard() {
    let place = Place::new(&b"1\n".repeat(10));
    NUMBERING.finish(place.open("out", shard(Split::Lines, 0, 2)).unwrap());
    let map = place.open("out", shard(Split::Lines, 1, 2)).unwrap();
    let error = NUMBERING.try_run(map, Box::new(Appending(place.path("in")))).unwrap_err();
    assert!(matches!(&error, Error::InputChanging(path) if *path == place.path("in")), "{error}");
    assert!(refused(&place).to_string().ends_with("1 is unfinished (1)"));
}

#[test]
fn a_folder_is_written_either_whole_or_in_shards() {
    let place = Place::empty();
    fs::create_dir(place.path("in")).unwrap();
    for name in ["a", "b", "c", "d!"] {
        fs::write(place.path(&format!("in/{name}")), name.chars().rev().collect::<String>()).unwrap();
    }
    // Two shards at once, but not the whole beside them, and no shard twice.
    let first = place.open("out", shard(Split::Files, 0, 2)).unwrap();
    let second = place.open("out", shard(Split::Files, 1, 2)).unwrap();
    for options in [options(Split::Files), shard(Split::Files, 1, 2)] {
        let error = place.open("out", options).unwrap_err();
        assert!(matches!(error, Error::OutputInUse(_)), "{error}");
    }
    NUMBERING.finish(second);
    assert!(matches!(place.merge("out").unwrap_err(), Error::OutputInUse(_)));
    NUMBERING.finish(first);
    let error = place.open("out", options(Split::Files)).unwrap_err();
    assert!(matches!(error, Error::OutputHasShards(_)), "{error}");
    let stopped = Options { unfinished: Unfinished::Overwrite, fail_fast: true, ..options(Split::Files) };
    assert!(matches!(NUMBERING.run(place.open("out", stopped).unwrap(), Box::new(())), Ended::Stopped));
    assert!(!place.path("out/.gpu-run-map.shards").exists());
    let error = place.open("out", shard(Split::Files, 0, 2)).unwrap_err();
    assert!(matches!(error, Error::OutputUnfinished(_)), "{error}");
    // A shard that was refused is none.
    let resumed = Options { unfinished: Unfinished::Resume, ..options(Split::Files) };
    drop(place.open("out", resumed).unwrap());
    let forced = |index| Options { unfinished: Unfinished::Overwrite, ..shard(Split::Files, index, 2) };
    (0..2).for_each(|index| drop(NUMBERING.finish(place.open("out", forced(index)).unwrap())));
    assert_eq!(place.merge("out").unwrap(), Merged { shards: 2, records: 4, failed: 1 });
    assert_eq!(tree(&place.path("out")).len(), 3);
}
