use super::*;
use std::os::unix::fs::symlink;

fn task() -> Task {
    let (input, args) = (Identity::Stream, vec!["a".into()]);
    let (program, split, env) = ("p".into(), "lines".into(), "e".into());
    Task {
        program,
        input,
        split,
        args,
        dirs: Vec::new(),
        env,
        max_memory: None,
        links: None,
        function: None,
        shard: None,
    }
}

fn progress() -> Progress {
    let mark = Mark { records: 7, offset: 99, line: 8, seen: Some("h".into()), anchor: None };
    Progress { mark, output: 1234, failed: 1, ..Progress::default() }
}

fn journal(place: &tempfile::TempDir, task: Task) -> Journal {
    Journal::beside(Arc::new(Folder::open(place.path())), "out".as_ref(), &place.path().join("out"), task)
}

#[test]
fn what_was_written_is_read_and_then_gone() {
    let place = tempfile::tempdir().unwrap();
    let journal = journal(&place, task());
    assert_eq!(journal.path, place.path().join("out.gpu-run-map"));
    assert_eq!(journal.read().unwrap(), None);
    journal.write(&Progress::default()).unwrap();
    journal.write(&progress()).unwrap();
    assert_eq!(journal.read().unwrap(), Some(progress()));
    drop(Folder::open(place.path()).temporary("out.gpu-run-map".as_ref()).unwrap());
    assert_eq!(journal.read().unwrap(), Some(progress()), "a version that was not finished does not count");
    journal.remove_temporary();
    journal.remove().unwrap();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn another_task_is_refused_with_what_differs() {
    let place = tempfile::tempdir().unwrap();
    journal(&place, task()).write(&progress()).unwrap();
    let others = [
        (TaskChange::Program, Task { program: "q".into(), ..task() }),
        (TaskChange::Input, Task { input: Identity::Folder { path: "x".into() }, ..task() }),
        (TaskChange::Function, Task { function: Some("f".into()), ..task() }),
        (TaskChange::Args, Task { args: Vec::new(), ..task() }),
        (TaskChange::Env, Task { env: String::new(), ..task() }),
        (TaskChange::MaxMemory, Task { max_memory: Some(1), ..task() }),
        (TaskChange::Links, Task { links: Some("l".into()), ..task() }),
        (TaskChange::Shard, Task { shard: Some("1/2".parse().unwrap()), ..task() }),
    ];
    for (change, other) in others {
        let error = journal(&place, other).read().unwrap_err();
        assert!(matches!(error, Error::TaskChanged(seen) if seen == change), "{error}");
    }
}

#[test]
fn a_journal_with_any_byte_changed_or_cut_off_anywhere_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let journal = journal(&place, task());
    journal.write(&progress()).unwrap();
    let whole = fs::read(&journal.path).unwrap();
    let refused = |bytes: &[u8], what: String| {
        fs::write(&journal.path, bytes).unwrap();
        let error = journal.read().expect_err(&what);
        let is_refused = |flaw| matches!(flaw, JournalFlaw::Damaged | JournalFlaw::Unknown);
        assert!(matches!(error, Error::Journal { flaw, .. } if is_refused(flaw)), "{what}: {error}");
    };
    for at in 0..whole.len() {
        let (mut damaged, change) = (whole.clone(), [1, 0x20, 0x80][at % 3]);
        damaged[at] ^= change;
        refused(&damaged, format!("byte {at} with {change:#x}"));
        refused(&whole[..at], format!("{at} bytes"));
    }
    refused(&[&whole[..], b"\n"].concat(), "a byte more".into());
    refused(&[&whole[..], &whole[..]].concat(), "twice".into());
    for text in ["{}", "{\"version\": 1}"] {
        refused(format!("{text}\n{}\n", blake3::hash(text.as_bytes()).to_hex()).as_bytes(), text.into());
    }
    fs::write(&journal.path, &whole).unwrap();
    assert_eq!(journal.read().unwrap(), Some(progress()));
}

#[test]
fn a_link_in_the_journals_place_is_not_followed_but_replaced() {
    let place = tempfile::tempdir().unwrap();
    let (journal, victim) = (journal(&place, task()), place.path().join("victim"));
    journal.write(&progress()).unwrap();
    fs::rename(&journal.path, &victim).unwrap();
    let before = fs::read(&victim).unwrap();
    symlink("victim", &journal.path).unwrap();
    assert!(journal.has_leftovers());
    let error = journal.read().unwrap_err().to_string();
    assert!(error.contains("is not a regular file"), "{error}");
    journal.write(&Progress::default()).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), before);
    assert_eq!(journal.read().unwrap(), Some(Progress::default()));
}

#[test]
fn a_finished_shard_keeps_a_journal_that_is_not_unfinished() {
    let place = tempfile::tempdir().unwrap();
    let journal = journal(&place, Task { shard: Some("1/2".parse().unwrap()), ..task() });
    assert!(!journal.is_unfinished().unwrap());
    journal.write(&progress()).unwrap();
    assert!(journal.is_unfinished().unwrap());
    let finished = Progress { finished: true, ..progress() };
    journal.write(&finished).unwrap();
    assert!(!journal.is_unfinished().unwrap() && journal.has_leftovers());
    assert_eq!(journal.read().unwrap(), Some(finished));
    fs::write(&journal.path, "{").unwrap();
    assert!(journal.is_unfinished().unwrap(), "what cannot be read may be anything");
}

#[test]
fn journals_of_earlier_versions_are_read() {
    let place = tempfile::tempdir().unwrap();
    let journal = journal(&place, task());
    let text = r#"{"version":3,"task":{"program":"p","input":"Stream","split":"lines","args":["a"],"dirs":[],"env":"e","max_memory":null,"links":null},"progress":{"mark":{"records":7,"offset":99,"line":8,"seen":"h"},"output":1234,"failed":1,"tail":{"path":null,"hash":null}}}"#;
    fs::write(&journal.path, format!("{text}\n{}\n", blake3::hash(text.as_bytes()).to_hex())).unwrap();
    assert_eq!(journal.read().unwrap(), Some(progress()));
}
