//! Shards that are objects, and what puts them together.

use super::folders::NUMBERING;
use super::proxy::{Faults, Proxy};
use super::server::Server;
use super::support::{Place, Ran};
use super::{SECRET, is_same, killed_until_done, lines, run, with_keys};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// How many shards are tried: all of these with `GPU_RUN_TEST_ALL` set, else the ones that are named.
fn counts(some: &[u32]) -> Vec<u32> {
    let all = std::env::var_os("GPU_RUN_TEST_ALL").is_some();
    if all { vec![1, 2, 3, 7, 64] } else { some.to_vec() }
}

fn merge(place: &Place, at: SocketAddr, line: &str) -> Ran {
    with_keys(place.command(&format!("merge {line}")), at).output().unwrap().into()
}

/// Maps all shards, two at a time.
fn map_all(place: &Place, at: SocketAddr, line: &str, count: u32) {
    let next = AtomicU32::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            let mut shard = super::map(place, at, &format!("{line} --shard {index}/{count} --resume"));
            // Compiled once.
            let ran = Ran::from(shard.env("GPU_RUN_CACHE", place.path().join("cache")).output().unwrap());
            assert!([Some(0), Some(1)].contains(&ran.code), "{ran:?}");
        }
    };
    thread::scope(|scope| (0..2).for_each(|_| _ = scope.spawn(work)));
}

pub(super) fn they_give_what_the_whole_gives(server: &Server) {
    let (place, bucket, at) = (Place::new().with("cat.wat", NUMBERING), server.bucket(), server.address());
    let (mut text, mut json, mut csv) = (String::new(), String::new(), "a,b\n".to_owned());
    for i in 0..120 {
        writeln!(text, "{}{}", ["", "!"][usize::from(i % 11 == 3)], "x".repeat(i * 37 % 50)).unwrap();
        writeln!(json, "{}", if i % 13 == 5 { "{" } else { "{\"a\": [1, 2]}" }).unwrap();
        writeln!(csv, "{i},\"{}\"", "two\nlines, \"\"said\"\" he\n".repeat(i % 4)).unwrap();
    }
    for (split, text, some) in [("lines", &text, &[1, 2, 3, 7, 64][..]), ("jsonl", &json, &[3]), ("csv", &csv, &[2, 7])]
    {
        server.put(&bucket, split, text);
        let input = format!("-i s3://{bucket}/{split} --split {split} -o s3://{bucket}");
        let whole = run(&place, at, &format!("{input}/whole"));
        let expected = String::from_utf8(server.get(&bucket, "whole").unwrap()).unwrap();
        for count in counts(some) {
            let out = format!("out-{split}-{count}");
            map_all(&place, at, &format!("{input}/{out}"), count);
            let ran = merge(&place, at, &format!("s3://{bucket}/{out} --remove-shards"));
            assert_eq!(ran.code, whole.code, "{ran:?}");
            is_same(&server.get(&bucket, &out).unwrap(), &expected);
            assert_eq!(server.tree(&bucket, &format!("{out}.")).len(), 0, "something is left");
        }
    }
    assert_eq!(server.uploads(&bucket), 0);
}

pub(super) fn those_of_folders_give_what_the_whole_gives(server: &Server) {
    let (place, bucket, at) = (Place::new().with("cat.wat", NUMBERING), server.bucket(), server.address());
    for i in 0..20 {
        let name = format!("in/{}{i}", ["", "sub/", "sub-/"][i % 3]);
        server.put(&bucket, &name, ["", "!", "x"][i % 3].repeat(i * 37));
    }
    let input = format!("-i s3://{bucket}/in/ -o s3://{bucket}");
    let whole = run(&place, at, &format!("{input}/whole"));
    for count in counts(&[1, 2, 7]) {
        map_all(&place, at, &format!("{input}/out-{count}/"), count);
        let out = format!("s3://{bucket}/out-{count}/");
        if count == 2 {
            run(&place, at, &format!("{input}/out-2/ --shard 0/2 --resume")).says(&["shard 0/2 is finished"]);
        }
        assert_eq!(merge(&place, at, &out).code, whole.code);
        let found = server.tree(&bucket, &format!("out-{count}/"));
        assert_eq!(found, server.tree(&bucket, "whole/"), "{count} shards");
        merge(&place, at, &out).gives(2, "").says(&["there are no shards of"]);
    }
}

pub(super) fn what_is_missing_is_named(server: &Server) {
    let (place, bucket, at) = (super::place(), server.bucket(), server.address());
    server.put(&bucket, "in", "1\n2\n3\n");
    let (input, out) = (format!("-i s3://{bucket}/in"), format!("s3://{bucket}/out"));
    let map = |rest: &str| run(&place, at, &format!("{input} -o {out} {rest}"));
    merge(&place, at, &out).gives(2, "").says(&["there are no shards of"]);
    map("--shard 0/2").gives(0, "");
    map("--shard 0/2 --resume").gives(0, "").says(&["shard 0/2 is finished: 2 records, 0 failed"]);
    merge(&place, at, &out).gives(2, "").says(&["1 is missing (1)", "--shard 1/2"]);
    map("--shard 0/3").gives(0, "");
    merge(&place, at, &out).gives(2, "").says(&["shards of several maps"]);
    for name in ["out.shards/0-of-3", "out.shards/0-of-3.gpu-run-map"] {
        server.remove(&bucket, name);
    }
    // One of another map.
    server.put(&bucket, "in", "1\n2\n4\n");
    map("--shard 1/2").gives(0, "");
    merge(&place, at, &out).gives(2, "").says(&["are not shards of one map", "the input has changed"]);
    map("--shard 0/2 --force").gives(0, "");
    // One that was changed after it was finished.
    server.put(&bucket, "out.shards/0-of-2", "1\n5\n");
    merge(&place, at, &out).gives(2, "").says(&["0-of-2 was changed after it was finished"]);
    map("--shard 0/2 --resume").gives(2, "").says(&["its end is different"]);
    map("--shard 0/2 --force").gives(0, "");
    let journal = String::from_utf8(server.get(&bucket, "out.shards/0-of-2.gpu-run-map").unwrap()).unwrap();
    assert!(journal.contains("s3://") && !journal.contains(SECRET) && !journal.contains("somebody"), "{journal}");
    // One that exists.
    server.put(&bucket, "out", "of an earlier map");
    merge(&place, at, &out).gives(2, "").says(&["exists", "--force"]);
    merge(&place, at, &format!("{out} --force")).gives(0, "").says(&["3 records of 2 shards, 0 failed"]);
    is_same(&server.get(&bucket, "out").unwrap(), "1\n2\n4\n");
    // Elsewhere.
    merge(&place, at, &format!("{out} -o file")).gives(0, "");
    merge(&place, at, &format!("{out} -o s3://{bucket}/other")).gives(0, "");
    is_same(&std::fs::read(place.path().join("file")).unwrap(), "1\n2\n4\n");
    is_same(&server.get(&bucket, "other").unwrap(), "1\n2\n4\n");
    merge(&place, at, &format!("{out} -o file")).gives(2, "").says(&["file exists"]);
    merge(&place, at, "out -o file").gives(2, "").says(&["--output is for shards that are objects"]);
    run(&place, at, &format!("-i s3://{bucket}/out.shards/0-of-2 -o {out} --shard 0/2"))
        .gives(2, "")
        .says(&["the input would be overwritten"]);
}

pub(super) fn killed_merges_go_on(server: &Server) {
    let (place, bucket, text) = (super::place(), server.bucket(), lines(48 << 20));
    server.put(&bucket, "in", &text);
    let out = format!("s3://{bucket}/out");
    map_all(&place, server.address(), &format!("-i s3://{bucket}/in -o {out}"), 2);
    let proxy = Proxy::start(server.address(), Faults::Broken);
    let command = |_| with_keys(place.command(&format!("merge {out}")), proxy.address());
    let look = || {
        assert_eq!(server.get(&bucket, "out"), None, "an unfinished object is seen");
        assert_eq!(server.uploads(&bucket), 1, "it was begun anew");
    };
    killed_until_done(3, command, || server.parts(&bucket, "out"), 2, look);
    assert!(proxy.faults() > 0, "the test shows nothing");
    is_same(&server.get(&bucket, "out").unwrap(), &text);
    assert_eq!((server.uploads(&bucket), server.get(&bucket, "out.gpu-run-merge")), (0, None));
}
