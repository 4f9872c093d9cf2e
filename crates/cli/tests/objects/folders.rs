//! Folders of objects: what a map of files does with them.

use super::proxy::{Faults, Proxy};
use super::server::Server;
use super::support::{Place, Ran};
use super::{SECRET, killed_until_done, map, resume, run};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

/// Writes each record's number before the record, and traps where a record begins with `!`.
pub(super) const NUMBERING: &str = include_str!("../../../map/tests/wat/numbering.wat");

/// Names and contents. In a server's list, `-` and `.` come before `/`; among files, they do not.
const FILES: [(&str, &str); 9] = [
    ("a-b", "1"),
    ("a.txt", "two\nlines"),
    ("a/z", "3"),
    ("a/y/x", "4"),
    ("a0", ""),
    ("bad", "! this one fails"),
    ("c d/e f", "5"),
    ("sub/deep/é", "6"),
    ("{x}", "7"),
];

/// The files below a folder.
pub(super) fn tree(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let name = entry.strip_prefix(path).unwrap().to_str().unwrap().to_owned();
                files.insert(name, std::fs::read(entry).unwrap());
            }
        }
    }
    files
}

/// A place with the same files in a folder, and in a bucket.
fn both(server: &Server) -> (Place, String) {
    let (mut place, bucket) = (Place::new().with("cat.wat", NUMBERING), server.bucket());
    for (name, content) in FILES {
        place = place.with(&format!("in/{name}"), content);
        server.put(&bucket, &format!("in/{name}"), content);
    }
    (place, bucket)
}

pub(super) fn they_give_what_folders_give(server: &Server) {
    let (place, bucket) = both(server);
    let at = server.address();
    std::fs::create_dir(place.path().join("in/nothing")).unwrap();
    // What stands for folders, with something in them and without, and what an earlier map left.
    for name in ["in/", "in/sub/", "in/nothing/", "in/.gpu-run-map.shards/0-of-1", "in/sub/.gpu-run-map.0"] {
        server.put(&bucket, name, "");
    }
    let expected = run(&place, at, "-i in -- {}");
    assert_eq!(expected.code, Some(1), "{expected:?}");
    for line in [format!("-i s3://{bucket}/in/ -- {{}}"), format!("-i s3://{bucket}/in --split files -- {{}}")] {
        let ran = run(&place, at, &line);
        assert_eq!((ran.code, &ran.stdout), (Some(1), &expected.stdout), "{}", ran.stderr);
        ran.says(&["bad", "1 failed"]);
    }
    // One that fails has no object.
    server.put(&bucket, "out/bad", "of an earlier map");
    run(&place, at, "-i in -o out").says(&["1 failed"]);
    for (number, (from, to)) in [("s3", "s3"), ("s3", "file"), ("file", "s3")].into_iter().enumerate() {
        let place_of = |kind, name: &str| if kind == "s3" { format!("s3://{bucket}/{name}") } else { name.to_owned() };
        let (input, name) = (place_of(from, if from == "s3" { "in/" } else { "in" }), format!("out-{number}"));
        assert_eq!(run(&place, at, &format!("-i {input} -o {}", place_of(to, &name))).code, Some(1));
        let found = if to == "s3" { server.tree(&bucket, &format!("{name}/")) } else { tree(&place.path().join(name)) };
        assert_eq!(found, tree(&place.path().join("out")), "from {from} to {to}");
    }
    run(&place, at, &format!("-i s3://{bucket}/in/ -o s3://{bucket}/out")).says(&["1 failed"]);
    assert_eq!(server.get(&bucket, "out/bad"), None);
}

/// More than one answer has room for.
pub(super) fn long_lists_are_read_to_their_end(server: &Server) {
    let (place, bucket) = (super::place(), server.bucket());
    let names: Vec<_> = (0..1050).map(|i| format!("{}/{i}", i % 7)).collect();
    thread::scope(|scope| {
        for some in names.chunks(names.len() / 4) {
            let bucket = &bucket;
            scope.spawn(move || some.iter().for_each(|name| server.put(bucket, &format!("in/{name}"), name)));
        }
    });
    let proxy = Proxy::start(server.address(), Faults::Broken);
    run(&place, proxy.address(), &format!("-i s3://{bucket}/in/ -o out")).gives(0, "");
    let expected: BTreeMap<_, _> = names.into_iter().map(|name| (name.clone(), name.into_bytes())).collect();
    assert!(tree(&place.path().join("out")) == expected && proxy.faults() > 0);
}

/// Objects of some sizes, one of them long. Returns what is in the folder.
fn many(server: &Server, bucket: &str, count: usize) -> BTreeMap<String, Vec<u8>> {
    let name = |i: usize| format!("{}{i}", ["", "b/", "b/c/"][i % 3]);
    let content = |i: usize| if i == 5 { "long ".repeat(1 << 20) } else { format!("{i} ").repeat(i % 40 * 10) };
    let all: BTreeMap<_, _> = (0..count).map(|i| (name(i), content(i).into_bytes())).collect();
    all.iter().for_each(|(name, content)| server.put(bucket, &format!("in/{name}"), content));
    all
}

pub(super) fn faults_lose_nothing(server: &Server) {
    let (place, bucket) = (super::place(), server.bucket());
    let all = many(server, &bucket, 60);
    for faults in [Faults::Broken, Faults::Busy, Faults::Slow] {
        let proxy = Proxy::start(server.address(), faults);
        let line = format!("-i s3://{bucket}/in/ -o s3://{bucket}/{faults:?}/");
        run(&place, proxy.address(), &line).gives(0, "");
        assert!(server.tree(&bucket, &format!("{faults:?}/")) == all && proxy.faults() > 0, "{faults:?}");
    }
}

pub(super) fn killed_it_goes_on(server: &Server) {
    let (place, bucket) = (super::place(), server.bucket());
    let all = many(server, &bucket, 200);
    let proxy = Proxy::start(server.address(), Faults::Slow);
    let line = format!("-i s3://{bucket}/in/ -o s3://{bucket}/out/ --batch 10");
    let command = |kills| map(&place, proxy.address(), &format!("{line} {}", resume(kills)));
    killed_until_done(3, command, || server.count(&bucket, "out/"), 20, || ());
    // The journal is gone, too.
    assert!(server.tree(&bucket, "out/") == all);
}

pub(super) fn what_changes_is_not_mapped(server: &Server) {
    let (place, bucket) = (super::place(), server.bucket());
    many(server, &bucket, 300);
    let proxy = Proxy::start(server.address(), Faults::Slow);
    let mut child = map(&place, proxy.address(), &format!("-i s3://{bucket}/in/ -o out"));
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The list, and something of what is in it.
    while proxy.requests() < 5 {
        thread::sleep(Duration::from_millis(1));
    }
    // The last one.
    server.put(&bucket, "in/b/c/98", "other");
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.says(&["changed while it was read"]);
    // What comes now is a list of its own.
    run(&place, server.address(), &format!("-i s3://{bucket}/in/ -o out --resume")).gives(0, "");
    assert_eq!(std::fs::read(place.path().join("out/b/c/98")).unwrap(), b"other");
}

pub(super) fn what_cannot_be_is_said(server: &Server) {
    let (place, bucket) = (Place::new().with("cat.wat", NUMBERING).with("in", "1\n"), server.bucket());
    let at = server.address();
    server.put(&bucket, "in/a", "1\n");
    server.put(&bucket, "odd//name", "1\n");
    let cases = [
        (format!("-i s3://{bucket}/missing/"), 1, "there is no s3://"),
        ("-i s3://no-such-bucket/in/".into(), 1, "there is no s3://no-such-bucket/in/"),
        (format!("-i s3://{bucket}/in/ --split lines"), 2, "--split lines needs a file"),
        (format!("-i s3://{bucket}/in/ -o s3://{bucket}/in/out"), 2, "the input would be overwritten"),
        (format!("-i s3://{bucket}/in/ -o s3://{bucket}/"), 2, "the input would be overwritten"),
        (format!("-i s3://{bucket}/in/%61 -o s3://{bucket}/in/a"), 2, "the input would be overwritten"),
        (format!("-i in -o s3://{bucket}/out/"), 2, "is a folder; only --split files writes one"),
        (format!("-i in --split files -o s3://{bucket}/out/"), 2, "--split files needs a folder"),
        (format!("-i http://{at}/{bucket}/in/"), 2, "cannot be listed"),
        (format!("-i http://{at}/{bucket}/in --split files"), 2, "cannot be listed"),
        (format!("-i s3://{bucket}/in/ -o http://{at}/{bucket}/out"), 2, "cannot be listed"),
        (format!("-i s3://{bucket}/odd/"), 75, "odd//name"),
        (format!("-i s3://{bucket}/in/ -o in"), 2, "is a file"),
    ];
    for (line, code, text) in cases {
        run(&place, at, &line).gives(code, "").says(&[text]);
    }
    // A folder that was begun is not begun anew unasked, and neither whole nor in shards in place of the other.
    server.put(&bucket, "in/b", "!");
    let line = format!("-i s3://{bucket}/in/ -o s3://{bucket}/out/");
    run(&place, at, &format!("{line} --fail-fast")).says(&["--resume continues"]);
    let journal = String::from_utf8(server.get(&bucket, "out/.gpu-run-map").unwrap()).unwrap();
    assert!(journal.contains("s3://") && !journal.contains(SECRET) && !journal.contains("somebody"), "{journal}");
    run(&place, at, &line).gives(2, "").says(&["is unfinished", "--resume", "--force"]);
    run(&place, at, &format!("{line} --shard 0/1")).gives(2, "").says(&["is unfinished"]);
    run(&place, at, &format!("{line} --shard 0/1 --force")).says(&["1 failed"]);
    assert_eq!(server.get(&bucket, "out/.gpu-run-map"), None);
    run(&place, at, &line).gives(2, "").says(&["has shards that were not put together"]);
    run(&place, at, &format!("{line} --force")).says(&["1 failed"]);
    assert_eq!(server.tree(&bucket, "out/").into_keys().collect::<Vec<_>>(), ["a"]);
}
