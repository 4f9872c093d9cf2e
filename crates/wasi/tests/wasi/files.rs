use crate::guest::*;
use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::Errno;

#[test]
fn read_moves_the_position_and_ends_with_nothing() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "hello world");
    assert_eq!(guest.read(fd, 5).unwrap(), b"hello");
    assert_eq!(guest.tell(fd), Ok(5));
    assert_eq!(guest.read(fd, 100).unwrap(), b" world");
    assert_eq!(guest.read(fd, 100).unwrap(), b"");
    assert_eq!(guest.read(fd, 0).unwrap(), b"");
}

#[test]
fn read_of_a_huge_room_is_short_and_cheap() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "x");
    std::fs::write(guest.host("a"), vec![7; 3 << 20]).unwrap();
    assert_eq!(guest.read(fd, u32::MAX.into()).unwrap().len(), 1 << 20);
    assert_eq!(guest.pread(fd, u64::MAX, 1).unwrap().len(), 1 << 20);
    assert!(guest.out.bytes.capacity() < 4 << 20);
}

#[test]
fn pread_and_pwrite_leave_the_position() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "hello world");
    assert_eq!(guest.pread(fd, 5, 6).unwrap(), b"world");
    assert_eq!(guest.pwrite(fd, b"W", 6), Ok(1));
    assert_eq!(guest.tell(fd), Ok(0));
    assert_eq!(guest.pread(fd, 5, 100).unwrap(), b"");
    assert_eq!(guest.pread(fd, 5, u64::MAX), Err(Errno::Inval));
    assert_eq!(guest.pwrite(fd, b"x", u64::MAX), Err(Errno::Inval));
    assert_eq!(std::fs::read(guest.host("a")).unwrap(), b"hello World");
}

#[test]
fn write_overwrites_at_the_position() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "hello world");
    assert_eq!(guest.seek(fd, 6, 0), Ok(6));
    assert_eq!(guest.write(fd, b"there"), Ok(5));
    assert_eq!(guest.tell(fd), Ok(11));
    assert_eq!(std::fs::read(guest.host("a")).unwrap(), b"hello there");
}

#[test]
fn append_writes_at_the_end_whatever_the_position() {
    let mut guest = Guest::new();
    guest.file("a", "one");
    let fd = guest.open_at(ROOT, "a", FOLLOW, 0, READ | WRITE, APPEND).unwrap();
    assert_eq!(guest.tell(fd), Ok(0));
    guest.write(fd, b"two").unwrap();
    assert_eq!(guest.tell(fd), Ok(6));
    guest.seek(fd, 0, 0).unwrap();
    assert_eq!(guest.pwrite(fd, b"three", 1), Ok(5));
    assert_eq!(guest.tell(fd), Ok(0), "pwrite leaves the position");
    assert_eq!(guest.read(fd, 100).unwrap(), b"onetwothree");
    assert_eq!(guest.fdstat(fd).unwrap().flags, APPEND as u8);
    guest.call(Call::fd_fdstat_set_flags, &[fd, 0], b"").unwrap();
    guest.seek(fd, 0, 0).unwrap();
    guest.write(fd, b"ONE").unwrap();
    assert_eq!(std::fs::read(guest.host("a")).unwrap(), b"ONEtwothree");
}

#[test]
fn seek_from_everywhere() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "0123456789");
    assert_eq!(guest.seek(fd, 4, 0), Ok(4));
    assert_eq!(guest.seek(fd, -3, 1), Ok(1));
    assert_eq!(guest.seek(fd, -2, 2), Ok(8));
    assert_eq!(guest.read(fd, 9).unwrap(), b"89");
    assert_eq!(guest.seek(fd, 5, 2), Ok(15), "past the end is allowed");
    assert_eq!(guest.seek(fd, -1, 0), Err(Errno::Inval));
    assert_eq!(guest.seek(fd, -100, 1), Err(Errno::Inval));
    assert_eq!(guest.seek(fd, 0, 3), Err(Errno::Inval));
    assert_eq!(guest.tell(fd), Ok(15), "a failed seek changes nothing");
    guest.write(fd, b"x").unwrap();
    assert_eq!(std::fs::read(guest.host("a")).unwrap(), b"0123456789\0\0\0\0\0x");
}

#[test]
fn seek_and_tell_where_there_is_no_position() {
    let mut guest = Guest::new();
    for fd in 0..3 {
        assert_eq!(guest.seek(fd, 0, 0), Err(Errno::Spipe));
        assert_eq!(guest.tell(fd), Err(Errno::Spipe));
    }
    assert_eq!(guest.seek(ROOT, 0, 0), Err(Errno::Badf));
    assert_eq!(guest.tell(99), Err(Errno::Badf));
}

#[test]
fn files_opened_one_way_refuse_the_other() {
    let mut guest = Guest::new();
    guest.file("a", "text");
    let reader = guest.open("a", 0, READ).unwrap();
    let writer = guest.open("a", 0, WRITE).unwrap();
    assert_eq!(guest.write(reader, b"x"), Err(Errno::Badf));
    assert_eq!(guest.pwrite(reader, b"x", 0), Err(Errno::Badf));
    assert_eq!(guest.read(writer, 1), Err(Errno::Badf));
    assert_eq!(guest.pread(writer, 1, 0), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_filestat_set_size, &[reader, 0], b""), Err(Errno::Inval));
    assert_eq!(guest.fdstat(reader).unwrap().base & (READ | WRITE), READ);
    assert_eq!(guest.fdstat(writer).unwrap().base & (READ | WRITE), WRITE);
}

#[test]
fn standard_streams_refuse_what_files_do() {
    let mut guest = Guest::reading(stdin(b"x"));
    assert_eq!(guest.write(0, b"x"), Err(Errno::Badf));
    assert_eq!(guest.read(1, 1), Err(Errno::Badf));
    assert_eq!(guest.pread(0, 1, 0), Err(Errno::Spipe));
    assert_eq!(guest.pwrite(1, b"x", 0), Err(Errno::Spipe));
    assert_eq!(guest.pread(1, 1, 0), Err(Errno::Badf));
    for call in [Call::fd_sync, Call::fd_datasync] {
        assert_eq!(guest.call(call, &[1], b""), Err(Errno::Badf));
    }
    assert_eq!(guest.call(Call::fd_advise, &[1, 0, 0, 0], b""), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_allocate, &[1, 0, 0], b""), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_filestat_set_size, &[1, 0], b""), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_filestat_set_times, &[1, 0, 0, 0], b""), Err(Errno::Badf));
}

#[test]
fn directories_are_not_files() {
    let mut guest = Guest::new();
    assert_eq!(guest.read(ROOT, 1), Err(Errno::Badf));
    assert_eq!(guest.write(ROOT, b"x"), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_sync, &[ROOT], b""), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_advise, &[ROOT, 0, 0, 0], b""), Err(Errno::Badf));
}

#[test]
fn set_size_cuts_and_extends() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "hello");
    guest.call(Call::fd_filestat_set_size, &[fd, 2], b"").unwrap();
    assert_eq!(std::fs::read(guest.host("a")).unwrap(), b"he");
    guest.call(Call::fd_filestat_set_size, &[fd, 4], b"").unwrap();
    assert_eq!(std::fs::read(guest.host("a")).unwrap(), b"he\0\0");
    assert_eq!(guest.call(Call::fd_filestat_set_size, &[fd, u64::MAX], b""), Err(Errno::Inval));
}

#[test]
fn sync_advise_and_allocate() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "hello");
    guest.call(Call::fd_sync, &[fd], b"").unwrap();
    guest.call(Call::fd_datasync, &[fd], b"").unwrap();
    for advice in 0..6 {
        guest.call(Call::fd_advise, &[fd, 0, 100, advice], b"").unwrap();
    }
    assert_eq!(guest.call(Call::fd_advise, &[fd, 0, 100, 6], b""), Err(Errno::Inval));
    assert_eq!(guest.call(Call::fd_allocate, &[fd, 0, 100], b""), Err(Errno::Notsup));
}

#[test]
fn filestat_is_that_of_the_host() {
    use std::os::unix::fs::MetadataExt;
    let mut guest = Guest::new();
    let fd = guest.file("a", "hello");
    let stat = guest.filestat(fd).unwrap();
    let host = std::fs::metadata(guest.host("a")).unwrap();
    assert_eq!((stat.dev, stat.ino, stat.kind, stat.links, stat.size), (host.dev(), host.ino(), 4, 1, 5));
    assert_eq!(stat.modified, host.mtime() as u64 * 1_000_000_000 + host.mtime_nsec() as u64);
    assert_eq!(guest.path_filestat("a", FOLLOW).unwrap(), stat);
    assert_eq!(guest.filestat(ROOT).unwrap().kind, 3);
    assert_eq!(guest.filestat(1).unwrap().size, 0);
}

#[test]
fn set_times_takes_a_time_or_now_but_not_both() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "");
    guest.call(Call::fd_filestat_set_times, &[fd, 1_000_000_007, 5, 1 | 4], b"").unwrap();
    let stat = guest.filestat(fd).unwrap();
    assert_eq!((stat.accessed, stat.modified), (1_000_000_007, 5));
    guest.call(Call::fd_filestat_set_times, &[fd, 0, 77, 4], b"").unwrap();
    let stat = guest.filestat(fd).unwrap();
    assert_eq!((stat.accessed, stat.modified), (1_000_000_007, 77), "what was not named stays");
    guest.call(Call::fd_filestat_set_times, &[fd, 0, 0, 8], b"").unwrap();
    assert!(guest.filestat(fd).unwrap().modified > 1_000_000_000_000_000_000);
    for flags in [1 | 2, 4 | 8, 15, 16] {
        assert_eq!(guest.call(Call::fd_filestat_set_times, &[fd, 0, 0, flags], b""), Err(Errno::Inval), "{flags}");
    }
    guest.call(Call::fd_filestat_set_times, &[ROOT, 0, 99, 4], b"").unwrap();
    assert_eq!(guest.filestat(ROOT).unwrap().modified, 99);
    assert_eq!(guest.call(Call::fd_filestat_set_times, &[99, 0, 0, 0], b""), Err(Errno::Badf));
}

#[test]
fn flags_other_than_append_and_nonblock_cannot_be_set() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "");
    guest.call(Call::fd_fdstat_set_flags, &[fd, APPEND | NONBLOCK], b"").unwrap();
    assert_eq!(guest.fdstat(fd).unwrap().flags, (APPEND | NONBLOCK) as u8);
    for flags in [2, 8, 16, 32] {
        assert_eq!(guest.call(Call::fd_fdstat_set_flags, &[fd, flags], b""), Err(Errno::Inval));
    }
    assert_eq!(guest.call(Call::fd_fdstat_set_flags, &[1, 0], b""), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_fdstat_set_flags, &[ROOT, 0], b""), Err(Errno::Badf));
}
