use std::collections::BTreeMap;

use crate::guest::*;
use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::Errno;

struct Entry {
    next: u64,
    ino: u64,
    kind: u8,
    name: String,
}

/// The entries that are whole.
fn entries(mut bytes: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    while bytes.len() >= 24 {
        let length = u32_at(bytes, 16) as usize;
        let Some(name) = bytes.get(24..24 + length) else { break };
        let name = String::from_utf8(name.to_vec()).unwrap();
        entries.push(Entry { next: u64_at(bytes, 0), ino: u64_at(bytes, 8), kind: bytes[20], name });
        bytes = &bytes[24 + length..];
    }
    entries
}

fn readdir(guest: &mut Guest, fd: u64, room: u64, cookie: u64) -> Result<Vec<u8>, Errno> {
    guest.call(Call::fd_readdir, &[fd, room, cookie], b"").map(|out| {
        assert_eq!(u32_at(out, 0) as usize, out.len() - 4);
        out[4..].to_vec()
    })
}

#[test]
fn entries_have_names_types_and_numbers() {
    let mut guest = Guest::new();
    guest.file("file", "");
    guest.path(Call::path_create_directory, ROOT, "dir").unwrap();
    guest.symlink("file", "link").unwrap();
    let bytes = readdir(&mut guest, ROOT, u32::MAX.into(), 0).unwrap();
    let found = entries(&bytes);
    let kinds: BTreeMap<_, _> = found.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
    assert_eq!(kinds, BTreeMap::from([(".", 3), ("..", 3), ("dir", 3), ("file", 4), ("link", 7)]));
    assert_eq!(found[0].name, ".");
    assert_eq!(found[1].name, "..");
    assert_eq!(found[0].ino, guest.filestat(ROOT).unwrap().ino);
    let file = found.iter().find(|entry| entry.name == "file").unwrap();
    assert_eq!(file.ino, guest.path_filestat("file", 0).unwrap().ino);
    assert_eq!(found.iter().map(|entry| entry.next).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(readdir(&mut guest, ROOT, 100, 5).unwrap(), b"");
    assert_eq!(readdir(&mut guest, ROOT, 100, u64::MAX).unwrap(), b"");
}

#[test]
fn a_small_room_is_filled_to_its_end() {
    let mut guest = Guest::new();
    guest.file("a-name-of-some-length", "");
    for room in 0..100 {
        let whole = readdir(&mut guest, ROOT, 1000, 0).unwrap();
        let part = readdir(&mut guest, ROOT, room, 0).unwrap();
        assert_eq!(part, whole[..whole.len().min(room as usize)]);
    }
}

/// The loop of every C library: read, take the whole entries, go on after the last one.
#[test]
fn a_loop_that_removes_what_it_reads_misses_nothing() {
    let mut guest = Guest::new();
    for index in 0..200 {
        guest.file(&format!("file{index}"), "");
        guest.close(4).unwrap();
    }
    let fd = guest.open(".", DIRECTORY, READ).unwrap();
    let (mut cookie, mut removed) = (0, 0);
    loop {
        let bytes = readdir(&mut guest, fd, 256, cookie).unwrap();
        let found = entries(&bytes);
        for entry in &found {
            cookie = entry.next;
            if entry.name.starts_with("file") {
                guest.path(Call::path_unlink_file, fd, &entry.name).unwrap();
                removed += 1;
            }
        }
        if bytes.len() < 256 {
            break;
        }
    }
    assert_eq!(removed, 200);
    assert_eq!(entries(&readdir(&mut guest, fd, 1000, 0).unwrap()).len(), 2, "from the start again, it is seen empty");
}

#[test]
fn readdir_is_for_directories() {
    let mut guest = Guest::new();
    let file = guest.file("a", "");
    assert_eq!(readdir(&mut guest, file, 100, 0), Err(Errno::Badf));
    assert_eq!(readdir(&mut guest, 1, 100, 0), Err(Errno::Badf));
    assert_eq!(readdir(&mut guest, 99, 100, 0), Err(Errno::Badf));
}

#[test]
fn names_that_are_not_utf8_cannot_be_told() {
    use std::os::unix::ffi::OsStrExt;
    let mut guest = Guest::new();
    let name = std::ffi::OsStr::from_bytes(b"\xff");
    std::fs::write(guest.host("").join(name), "").unwrap();
    assert_eq!(readdir(&mut guest, ROOT, 100, 0), Err(Errno::Ilseq));
}
