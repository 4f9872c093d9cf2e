//! A directory that can only be read: whatever a guest tries, it stays as it is.

use crate::guest::*;
use crate::hostile::Random;
use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::stdio::Null;
use gpu_run_wasi::{Access, Errno};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The descriptor of the directory that can only be read; the guest has [`ROOT`] besides, where it may do anything.
const GIVEN: u64 = 4;
const CREAT: u64 = 1;
const DIRECTORY: u64 = 2;
const EXCL: u64 = 4;
const TRUNC: u64 = 8;

/// A directory with a file, a link, and a directory with a file; and a guest that may read it.
fn given() -> (TempDir, Guest) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "hello").unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join("d/e"), "inner").unwrap();
    symlink("a", folder.path().join("link")).unwrap();
    let guest = Guest::with(Null, |builder| {
        builder.preopen_with(folder.path(), "/given", Access::ReadOnly).unwrap();
    });
    (folder, guest)
}

/// All there is to see of a directory from outside: kinds, sizes, links, times of modification, contents.
/// Of a file: mode, owner and the like, times, content.
type Seen = (u32, u64, u64, (i64, i64), Vec<u8>);

fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut seen = BTreeMap::new();
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if metadata.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let times = (metadata.mtime(), metadata.mtime_nsec());
        seen.insert(path, (metadata.mode(), metadata.size(), metadata.nlink(), times, content));
    }
    seen
}

#[test]
fn what_is_there_can_be_read() {
    let (_folder, mut guest) = given();
    let file = guest.open_at(GIVEN, "a", FOLLOW, 0, READ, 0).unwrap();
    assert_eq!(guest.read(file, 100).unwrap(), b"hello");
    assert_eq!(guest.pread(file, 2, 1).unwrap(), b"el");
    assert_eq!(guest.seek(file, 0, 0).unwrap(), 0);
    for call in [Call::fd_sync, Call::fd_datasync, Call::fd_filestat_get] {
        guest.call(call, &[file], b"").unwrap();
    }
    let inner = guest.open_at(GIVEN, "d", FOLLOW, DIRECTORY, READ, 0).unwrap();
    let file = guest.open_at(inner, "e", FOLLOW, 0, READ, 0).unwrap();
    assert_eq!(guest.read(file, 100).unwrap(), b"inner");
    assert!(guest.call(Call::fd_readdir, &[GIVEN, 4096, 0], b"").unwrap().len() > 100);
    guest.call(Call::path_readlink, &[GIVEN, 4, 100], b"link").unwrap();
    guest.call(Call::path_filestat_get, &[GIVEN, 1, 4], b"link").unwrap();
}

#[test]
fn every_way_to_open_a_file_for_writing_is_refused() {
    let (folder, mut guest) = given();
    let before = snapshot(folder.path());
    let inner = guest.open_at(GIVEN, "d", FOLLOW, DIRECTORY, READ, 0).unwrap();
    for (fd, old) in [(GIVEN, "a"), (GIVEN, "link"), (GIVEN, "d/e"), (inner, "e")] {
        for (oflags, rights) in [
            (0, WRITE),
            (0, READ | WRITE),
            (TRUNC, READ),
            (TRUNC, WRITE),
            (CREAT, READ),
            (CREAT, WRITE),
            (CREAT | TRUNC, READ | WRITE),
            (CREAT | EXCL, WRITE),
        ] {
            for path in [old, "new"] {
                let opened = guest.open_at(fd, path, FOLLOW, oflags, rights, 0);
                assert_eq!(opened, Err(Errno::Rofs), "{path} with {oflags:#x} and {rights:#x}");
            }
        }
    }
    assert_eq!(guest.open_at(GIVEN, "d", FOLLOW, DIRECTORY, WRITE, 0), Err(Errno::Rofs));
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn every_call_that_changes_something_is_refused() {
    let (folder, mut guest) = given();
    let before = snapshot(folder.path());
    let file = guest.open_at(GIVEN, "a", FOLLOW, 0, READ, 1).unwrap();
    let inner = guest.open_at(GIVEN, "d", FOLLOW, DIRECTORY, READ, 0).unwrap();
    guest.file("ours", "ours");
    let rofs = Err(Errno::Rofs);
    for renumbered in [false, true] {
        assert_eq!(guest.write(file, b"x"), Err(Errno::Rofs));
        assert_eq!(guest.pwrite(file, b"x", 0), Err(Errno::Rofs));
        for (call, words) in [
            (Call::fd_filestat_set_size, vec![file, 1]),
            (Call::fd_allocate, vec![file, 0, 100]),
            (Call::fd_filestat_set_times, vec![file, 0, 0, 10]),
            (Call::fd_filestat_set_times, vec![inner, 0, 0, 5]),
            (Call::fd_filestat_set_times, vec![GIVEN, 7, 7, 5]),
        ] {
            assert_eq!(guest.call(call, &words, b"").map(|_| ()), rofs, "{call:?}");
        }
        for (fd, there) in [(GIVEN, "d/e"), (inner, "e")] {
            assert_eq!(guest.path(Call::path_create_directory, fd, "new").map(|_| ()), rofs);
            assert_eq!(guest.path(Call::path_remove_directory, fd, there).map(|_| ()), rofs);
            assert_eq!(guest.path(Call::path_unlink_file, fd, there).map(|_| ()), rofs);
            for follow in [0, 1] {
                let words = [fd, follow, there.len() as u64, 0, 0, 5];
                assert_eq!(guest.call(Call::path_filestat_set_times, &words, there.as_bytes()).map(|_| ()), rofs);
            }
            assert_eq!(guest.two_paths(Call::path_symlink, (0, "a"), (fd, "new")), rofs);
            for call in [Call::path_rename, Call::path_link] {
                for (from, to) in
                    [((fd, there), (fd, "new")), ((ROOT, "ours"), (fd, "new")), ((fd, there), (ROOT, "new"))]
                {
                    assert_eq!(guest.two_paths(call, from, to), rofs, "{call:?} from {from:?} to {to:?}");
                }
            }
        }
        if !renumbered {
            // Under another number it is the same.
            let other = guest.open("ours", 0, READ | WRITE).unwrap();
            guest.call(Call::fd_renumber, &[file, other], b"").unwrap();
            guest.call(Call::fd_renumber, &[other, file], b"").unwrap_err();
            let again = guest.open_at(GIVEN, "a", FOLLOW, 0, READ, 0).unwrap();
            assert_eq!(again, file, "the lowest that is free");
            assert_eq!(guest.write(other, b"x"), Err(Errno::Rofs));
        }
    }
    assert_eq!(snapshot(folder.path()), before);
    assert_eq!(fs::read(guest.host("ours")).unwrap(), b"ours");
    assert_eq!(fs::read_dir(guest.host("")).unwrap().count(), 1);
}

#[test]
fn no_calls_with_any_words_change_anything() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "hello").unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join("d/e"), "inner").unwrap();
    symlink("a", folder.path().join("link")).unwrap();
    let before = snapshot(folder.path());
    for seed in 1..=20 {
        let mut random = Random::new(seed);
        let stdio = gpu_run_wasi::Stdio::null();
        let mut builder = gpu_run_wasi::Builder::new();
        // Whichever number it picks, it is this one.
        for name in ["/", "/b", "/c", "/d", "/e", "/f"] {
            builder.preopen_with(folder.path(), name, Access::ReadOnly).unwrap();
        }
        let (mut context, mut out) = (builder.build(stdio), gpu_run_wasi::Out::default());
        for _ in 0..2000 {
            let call = random.pick(Call::ALL);
            let (words, input) = random.arguments(call);
            context.call(call, &words, &input, &mut out);
        }
        assert_eq!(snapshot(folder.path()), before, "seed {seed}");
    }
}

#[test]
fn a_folder_given_both_ways_can_be_changed_by_the_one_it_may_be_changed_by() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("inner")).unwrap();
    let mut guest = Guest::with(Null, |builder| {
        builder.preopen_with(folder.path(), "/ro", Access::ReadOnly).unwrap();
        builder.preopen(folder.path(), "/rw").unwrap();
        builder.preopen(&folder.path().join("inner"), "/ro/inner").unwrap();
        builder.preopen_with(&folder.path().join("inner"), "/rw/inner", Access::ReadOnly).unwrap();
    });
    let [read_only, read_write, inner_read_write, inner_read_only] = [4, 5, 6, 7];
    for (fd, works) in [(read_only, false), (read_write, true), (inner_read_write, true), (inner_read_only, false)] {
        let opened = guest.open_at(fd, "new", FOLLOW, CREAT, WRITE, 0);
        assert_eq!(opened.is_ok(), works, "{fd}: {opened:?}");
    }
    assert_eq!(guest.open_at(read_only, "inner/new", FOLLOW, 0, WRITE, 0), Err(Errno::Rofs));
    guest.open_at(read_write, "inner/new", FOLLOW, 0, WRITE, 0).unwrap();
    // Hard links would make a way around.
    assert_eq!(guest.two_paths(Call::path_link, (read_only, "new"), (read_write, "b")), Err(Errno::Rofs));
}

#[test]
fn its_rights_say_so() {
    const FD_WRITE: u64 = 1 << 6;
    const CHANGES: u64 = FD_WRITE | 1 << 8 | 0b11 << 9 | 0b11 << 11 | 0b11 << 16 | 0b11 << 19 | 0b11111 << 22;
    let (_folder, mut guest) = given();
    let file = guest.open_at(GIVEN, "a", FOLLOW, 0, READ, 0).unwrap();
    let inner = guest.open_at(GIVEN, "d", FOLLOW, DIRECTORY, READ, 0).unwrap();
    let usual = guest.fdstat(ROOT).unwrap();
    for fd in [GIVEN, file, inner] {
        let stat = guest.fdstat(fd).unwrap();
        assert_eq!(stat.base & CHANGES, 0, "{fd}: {:#x}", stat.base);
        assert_eq!(stat.inheriting & CHANGES & !FD_WRITE, 0, "{fd}");
        assert!(stat.base != 0);
    }
    // wasi-libc asks for what is inherited: so it asks to write, and hears that it cannot.
    assert_eq!(guest.fdstat(GIVEN).unwrap().inheriting & FD_WRITE, FD_WRITE);
    assert_eq!(guest.fdstat(GIVEN).unwrap().base, usual.base & !CHANGES);
}
