//! The journal of a map, the output it speaks of, and what a damaged one does: it is refused, or the output is right.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use std::fs;
use support::{Place, Ran, wat};

const INPUT: &str = "one\nsix\ntrap\nfour\n";

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path().join(name)).unwrap_or_else(|error| format!("{name}: {error}"))
}

fn write(place: &Place, name: &str, content: impl AsRef<[u8]>) {
    fs::write(place.path().join(name), content).unwrap();
}

/// With an output of two lines that is not finished.
fn unfinished() -> Place {
    let place = Place::new().with("echo.wat", wat!("echo")).with("in", INPUT);
    map(&place, "-i in --fail-fast").gives(1, "").says(&["--resume continues at record 2"]);
    assert_eq!(read(&place, "out"), "one\nsix\n");
    place
}

fn map(place: &Place, line: &str) -> Ran {
    place.run(&format!("map echo.wat --device cpu --batch 1 -o out {line}"))
}

#[test]
fn a_damaged_journal_gives_no_wrong_output() {
    let place = unfinished();
    let (journal, output) = (fs::read(place.path().join("out.gpu-run-map")).unwrap(), read(&place, "out"));
    // Each byte is flipped where the journal is read; here, with the whole program, some of them.
    for at in (0..journal.len()).step_by(journal.len() / 12) {
        let mut flipped = journal.clone();
        flipped[at] ^= 1;
        for damaged in [&flipped[..], &journal[..at]] {
            write(&place, "out.gpu-run-map", damaged);
            map(&place, "-i in --resume").gives(2, "").says(&["out.gpu-run-map is damaged", "--force"]);
            assert_eq!(read(&place, "out"), output);
        }
    }
    write(&place, "out.gpu-run-map", &journal);
    map(&place, "-i in --resume").gives(1, "").says(&["4 records (2 by earlier runs), 1 failed"]);
    assert_eq!(read(&place, "out"), "one\nsix\n\nfour\n");
}

#[test]
fn a_journal_that_was_forged_is_believed_no_further_than_the_files_go() {
    let place = unfinished();
    let journal = read(&place, "out.gpu-run-map");
    let (text, _) = journal.split_once('\n').unwrap();
    for (from, to) in [
        ("\"offset\":8", "\"offset\":18446744073709551615"),
        ("\"offset\":8", "\"offset\":10000"),
        ("\"line\":2", "\"line\":18446744073709551615"),
        ("\"failed\":0", "\"failed\":18446744073709551615"),
        ("\"records\":2", "\"records\":18446744073709551615"),
        ("\"output\":8", "\"output\":18446744073709551615"),
        ("\"output\":8", "\"output\":4"),
        ("\"output\":8", "\"output\":-1"),
    ] {
        assert!(text.contains(from), "{text}");
        let text = text.replace(from, to);
        write(&place, "out.gpu-run-map", format!("{text}\n{}\n", blake3::hash(text.as_bytes()).to_hex()));
        map(&place, "-i in --resume").gives(2, "").says(&["--force"]);
        assert_eq!(read(&place, "out"), "one\nsix\n");
    }
}

#[test]
fn an_output_that_was_changed_since_is_not_gone_on_with() {
    let place = unfinished();
    let resume = || map(&place, "-i in --resume");
    for (changed, what) in [("one\nSix\n", "its end is different"), ("one\n", "it is shorter"), ("", "shorter")] {
        write(&place, "out", changed);
        resume().gives(2, "").says(&["--resume: out", what, "--force"]);
        assert_eq!(read(&place, "out"), changed);
    }
    write(&place, "out", "one\nsix\nand part of a record");
    resume().gives(1, "");
    assert_eq!(read(&place, "out"), "one\nsix\n\nfour\n");
}

#[test]
fn a_folder_whose_last_file_was_changed_since_is_not_gone_on_with() {
    let place = Place::new().with("echo.wat", wat!("echo"));
    let place = place.with("in/1", "one").with("in/2", "six").with("in/3", "trap").with("in/4", "four");
    map(&place, "-i in --fail-fast").gives(1, "").says(&["continues at record 2"]);
    write(&place, "out/2", "SIX");
    map(&place, "-i in --resume")
        .gives(2, "")
        .says(&["--resume: out was changed since the unfinished run: 2 is different or missing", "--force"]);
    fs::remove_file(place.path().join("out/2")).unwrap();
    map(&place, "-i in --resume").gives(2, "").says(&["2 is different or missing"]);
    write(&place, "out/2", "six");
    map(&place, "-i in --resume").gives(1, "").says(&["4 records (2 by earlier runs), 1 failed"]);
    assert_eq!(read(&place, "out/4"), "four");
}

#[test]
fn what_a_killed_run_left_goes_with_the_journal() {
    let place = unfinished();
    write(&place, "out.gpu-run-map.0123456789abcdef", "half a journal");
    write(&place, "out.gpu-run-map.notes", "the user's");
    map(&place, "-i in --resume").gives(1, "");
    let mut names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["echo.wat", "in", "out", "out.gpu-run-map.notes"]);
}
