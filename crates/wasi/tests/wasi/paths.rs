use crate::guest::*;
use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::Errno;

#[test]
fn open_creates_only_when_asked() {
    let mut guest = Guest::new();
    assert_eq!(guest.open("a", 0, READ), Err(Errno::Noent));
    let fd = guest.open("a", CREAT, READ | WRITE).unwrap();
    guest.write(fd, b"text").unwrap();
    let again = guest.open("a", CREAT, READ).unwrap();
    assert_eq!(guest.read(again, 9).unwrap(), b"text", "creating keeps what is there");
    assert_eq!(guest.open("a", CREAT | EXCL, WRITE), Err(Errno::Exist));
    guest.open("b", CREAT | EXCL, WRITE).unwrap();
    guest.open("a", TRUNC, WRITE).unwrap();
    assert_eq!(std::fs::read(guest.host("a")).unwrap(), b"");
    assert_eq!(guest.open("none/a", CREAT, WRITE), Err(Errno::Noent));
    assert_eq!(guest.open("a/b", CREAT, WRITE), Err(Errno::Notdir));
    assert_eq!(guest.open("", CREAT, WRITE), Err(Errno::Noent));
}

#[test]
fn open_of_directories() {
    let mut guest = Guest::new();
    guest.path(Call::path_create_directory, ROOT, "d").unwrap();
    guest.file("f", "");
    let d = guest.open("d", DIRECTORY, READ).unwrap();
    assert_eq!(guest.fdstat(d).unwrap().kind, 3);
    guest.open("d/", 0, READ).unwrap();
    assert_eq!(guest.open("f", DIRECTORY, READ), Err(Errno::Notdir));
    assert_eq!(guest.open("f/", 0, READ), Err(Errno::Notdir));
    assert_eq!(guest.open("d", 0, WRITE), Err(Errno::Isdir));
    for oflags in [DIRECTORY | CREAT, DIRECTORY | EXCL, DIRECTORY | TRUNC] {
        assert_eq!(guest.open("d", oflags, READ), Err(Errno::Inval));
    }
    let inner = guest.open_at(d, "x", FOLLOW, CREAT, WRITE, 0).unwrap();
    guest.write(inner, b"inner").unwrap();
    assert_eq!(std::fs::read(guest.host("d/x")).unwrap(), b"inner");
}

#[test]
fn open_checks_its_arguments() {
    let mut guest = Guest::new();
    let file = guest.file("a", "");
    assert_eq!(guest.open_at(file, "a", FOLLOW, 0, READ, 0), Err(Errno::Notdir));
    assert_eq!(guest.open_at(1, "a", FOLLOW, 0, READ, 0), Err(Errno::Badf));
    assert_eq!(guest.open_at(99, "a", FOLLOW, 0, READ, 0), Err(Errno::Badf));
    assert_eq!(guest.open_at(ROOT, "a", 2, 0, READ, 0), Err(Errno::Inval));
    assert_eq!(guest.open_at(ROOT, "a", FOLLOW, 16, READ, 0), Err(Errno::Inval));
    assert_eq!(guest.open_at(ROOT, "a", FOLLOW, 0, 1 << 30, 0), Err(Errno::Inval));
    assert_eq!(guest.open_at(ROOT, "a", FOLLOW, 0, READ, 32), Err(Errno::Inval));
    for sync in [2, 8, 16] {
        assert_eq!(guest.open_at(ROOT, "a", FOLLOW, 0, READ, sync), Err(Errno::Notsup));
    }
    assert_eq!(guest.open("a\0b", CREAT, WRITE), Err(Errno::Inval));
    let words = [ROOT, 0, 2, CREAT, READ, 0, 0];
    assert_eq!(guest.call(Call::path_open, &words, b"\xff\xfe"), Err(Errno::Ilseq));
    assert_eq!(guest.open(&"x".repeat(300), CREAT, WRITE), Err(Errno::Nametoolong));
}

#[test]
fn symbolic_links_are_followed_only_when_asked() {
    let mut guest = Guest::new();
    guest.file("a", "text");
    guest.symlink("a", "link").unwrap();
    let fd = guest.open("link", 0, READ).unwrap();
    assert_eq!(guest.read(fd, 9).unwrap(), b"text");
    assert_eq!(guest.open_at(ROOT, "link", 0, 0, READ, 0), Err(Errno::Loop));
    assert_eq!(guest.path_filestat("link", FOLLOW).unwrap().kind, 4);
    let link = guest.path_filestat("link", 0).unwrap();
    assert_eq!((link.kind, link.size), (7, 1));
    guest.symlink("loop", "loop").unwrap();
    assert_eq!(guest.open("loop", 0, READ), Err(Errno::Loop));
    guest.symlink("nowhere", "dangling").unwrap();
    assert_eq!(guest.open("dangling", 0, READ), Err(Errno::Noent));
}

#[test]
fn readlink_gives_what_fits() {
    let mut guest = Guest::new();
    guest.file("file", "");
    guest.symlink("some/target", "link").unwrap();
    assert_eq!(guest.readlink("link", 100).unwrap(), b"some/target");
    assert_eq!(guest.readlink("link", u32::MAX.into()).unwrap(), b"some/target");
    assert_eq!(guest.readlink("link", 4).unwrap(), b"some");
    assert_eq!(guest.readlink("link", 0).unwrap(), b"");
    assert_eq!(guest.readlink("file", 9), Err(Errno::Inval));
    assert_eq!(guest.readlink("none", 9), Err(Errno::Noent));
}

#[test]
fn symlink_refuses_absolute_targets() {
    let mut guest = Guest::new();
    assert_eq!(guest.symlink("/etc/passwd", "link"), Err(Errno::Perm));
    guest.symlink("a", "link").unwrap();
    assert_eq!(guest.symlink("b", "link"), Err(Errno::Exist));
    assert_eq!(guest.two_paths(Call::path_symlink, (0, "b"), (1, "c")), Err(Errno::Badf));
}

#[test]
fn directories_are_made_and_removed() {
    let mut guest = Guest::new();
    guest.path(Call::path_create_directory, ROOT, "d").unwrap();
    guest.path(Call::path_create_directory, ROOT, "d/e/").unwrap();
    assert_eq!(guest.path(Call::path_create_directory, ROOT, "d"), Err(Errno::Exist));
    assert_eq!(guest.path(Call::path_create_directory, ROOT, "no/d"), Err(Errno::Noent));
    assert_eq!(guest.path(Call::path_create_directory, 1, "d"), Err(Errno::Badf));
    assert_eq!(guest.path(Call::path_remove_directory, ROOT, "d"), Err(Errno::Notempty));
    guest.path(Call::path_remove_directory, ROOT, "d/e").unwrap();
    assert_eq!(guest.path(Call::path_remove_directory, ROOT, "d/"), Err(Errno::Inval), "as in Wasmtime");
    guest.path(Call::path_remove_directory, ROOT, "d").unwrap();
    assert!(!guest.host("d").exists());
    guest.file("f", "");
    assert_eq!(guest.path(Call::path_remove_directory, ROOT, "f"), Err(Errno::Notdir));
    assert_eq!(guest.path(Call::path_remove_directory, ROOT, "none"), Err(Errno::Noent));
}

#[test]
fn unlink_removes_files_and_links_but_no_directories() {
    let mut guest = Guest::new();
    guest.file("f", "");
    guest.symlink("f", "link").unwrap();
    guest.path(Call::path_create_directory, ROOT, "d").unwrap();
    guest.path(Call::path_unlink_file, ROOT, "link").unwrap();
    assert!(guest.host("f").exists());
    assert_eq!(guest.path(Call::path_unlink_file, ROOT, "f/"), Err(Errno::Notdir));
    guest.path(Call::path_unlink_file, ROOT, "f").unwrap();
    assert_eq!(guest.path(Call::path_unlink_file, ROOT, "f"), Err(Errno::Noent));
    assert_eq!(guest.path(Call::path_unlink_file, ROOT, "d"), Err(Errno::Isdir));
}

#[test]
fn an_unlinked_file_stays_open() {
    let mut guest = Guest::new();
    let fd = guest.file("f", "still here");
    guest.path(Call::path_unlink_file, ROOT, "f").unwrap();
    assert_eq!(guest.read(fd, 100).unwrap(), b"still here");
    assert_eq!(guest.filestat(fd).unwrap().links, 0);
}

#[test]
fn rename_replaces_and_moves() {
    let mut guest = Guest::new();
    guest.file("a", "a");
    guest.file("b", "b");
    guest.path(Call::path_create_directory, ROOT, "d").unwrap();
    guest.path(Call::path_create_directory, ROOT, "full").unwrap();
    guest.file("full/x", "");
    guest.rename("a", "b").unwrap();
    assert_eq!(std::fs::read(guest.host("b")).unwrap(), b"a");
    guest.rename("b", "d/c").unwrap();
    assert_eq!(guest.rename("none", "x"), Err(Errno::Noent));
    assert_eq!(guest.rename("", "x/"), Err(Errno::Noent));
    assert_eq!(guest.rename("d", "full"), Err(Errno::Notempty));
    assert_eq!(guest.rename("full/x", "d"), Err(Errno::Isdir));
    assert_eq!(guest.rename("d", "full/x"), Err(Errno::Notdir));
    assert_eq!(guest.rename("full/x", "y/"), Err(Errno::Notdir), "a file is no directory");
    guest.rename("d", "e/").unwrap();
    assert_eq!(std::fs::read(guest.host("e/c")).unwrap(), b"a");
    assert_eq!(guest.two_paths(Call::path_rename, (ROOT, "e"), (9, "f")), Err(Errno::Badf));
}

#[test]
fn links_are_the_same_file() {
    let mut guest = Guest::new();
    guest.file("a", "a");
    guest.link("a", "b").unwrap();
    let (a, b) = (guest.path_filestat("a", 0).unwrap(), guest.path_filestat("b", 0).unwrap());
    assert_eq!((a.ino, a.links), (b.ino, 2));
    assert_eq!(guest.link("a", "b"), Err(Errno::Exist));
    assert_eq!(guest.link("none", "c"), Err(Errno::Noent));
    guest.path(Call::path_create_directory, ROOT, "d").unwrap();
    assert_eq!(guest.link("d", "e"), Err(Errno::Perm));
    assert_eq!(guest.call(Call::path_link, &[ROOT, FOLLOW, 1, ROOT, 1], b"ac"), Err(Errno::Inval));
    assert_eq!(guest.call(Call::path_link, &[ROOT, 2, 1, ROOT, 1], b"ac"), Err(Errno::Inval));
}

#[test]
fn times_of_a_link_or_of_what_it_leads_to() {
    let mut guest = Guest::new();
    guest.file("a", "");
    guest.symlink("a", "link").unwrap();
    let mut set = |path: &str, follow, flags, time| {
        let words = [ROOT, follow, path.len() as u64, 0, time, flags];
        guest.call(Call::path_filestat_set_times, &words, path.as_bytes()).map(|_| ())
    };
    set("link", FOLLOW, 4, 11).unwrap();
    set("link", 0, 4, 22).unwrap();
    set(".", FOLLOW, 4, 33).unwrap();
    assert_eq!(set("a", 0, 12, 0), Err(Errno::Inval));
    assert_eq!(set("none", FOLLOW, 4, 0), Err(Errno::Noent));
    assert_eq!(set("none", 0, 4, 0), Err(Errno::Noent));
    assert_eq!(guest.path_filestat("a", 0).unwrap().modified, 11);
    assert_eq!(guest.path_filestat("link", 0).unwrap().modified, 22);
    assert_eq!(guest.path_filestat(".", 0).unwrap().modified, 33);
}

#[test]
fn filestat_of_paths() {
    let mut guest = Guest::new();
    assert_eq!(guest.path_filestat("none", 0), Err(Errno::Noent));
    assert_eq!(guest.path_filestat(".", 0).unwrap().kind, 3);
    assert_eq!(guest.path_filestat("", 0), Err(Errno::Noent));
    assert_eq!(guest.path_filestat(".", 4), Err(Errno::Inval));
    assert_eq!(guest.call(Call::path_filestat_get, &[1, 0, 1], b"."), Err(Errno::Badf));
}
