use crate::guest::*;
use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::{Builder, Context, Errno, Stdio};

#[test]
fn a_context_can_move_to_another_thread() {
    fn send<T: Send + 'static>() {}
    send::<Context>();
    send::<Builder>();
}

#[test]
fn numbers_are_the_lowest_that_are_free() {
    let mut guest = Guest::new();
    let fds: Vec<_> = (0..4).map(|_| guest.file("a", "")).collect();
    assert_eq!(fds, [4, 5, 6, 7]);
    guest.close(6).unwrap();
    guest.close(4).unwrap();
    assert_eq!(guest.file("a", ""), 4);
    assert_eq!(guest.file("a", ""), 6);
    assert_eq!(guest.file("a", ""), 8);
}

#[test]
fn closed_is_closed() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "");
    guest.close(fd).unwrap();
    assert_eq!(guest.close(fd), Err(Errno::Badf));
    assert_eq!(guest.read(fd, 1), Err(Errno::Badf));
    guest.close(ROOT).unwrap();
    assert_eq!(guest.open("a", 0, READ), Err(Errno::Badf));
    guest.close(1).unwrap();
    assert_eq!(guest.write(1, b"x"), Err(Errno::Badf));
}

#[test]
fn renumber_moves_and_closes() {
    let mut guest = Guest::new();
    let a = guest.file("a", "this is a");
    let b = guest.file("b", "this is b");
    guest.call(Call::fd_renumber, &[a, b], b"").unwrap();
    assert_eq!(guest.read(b, 100).unwrap(), b"this is a");
    assert_eq!(guest.read(a, 1), Err(Errno::Badf));
    assert_eq!(guest.file("c", ""), a, "the number is free again");
    assert_eq!(guest.call(Call::fd_renumber, &[b, 99], b""), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_renumber, &[99, b], b""), Err(Errno::Badf));
    guest.call(Call::fd_renumber, &[b, b], b"").unwrap();
    assert_eq!(guest.tell(b), Ok(9));
    guest.call(Call::fd_renumber, &[b, 1], b"").unwrap();
    assert_eq!(guest.write(1, b"!"), Ok(1));
    assert_eq!(std::fs::read(guest.host("a")).unwrap(), b"this is a!");
}

#[test]
fn prestat_tells_the_names_of_the_directories() {
    let root = tempfile::tempdir().unwrap();
    let mut guest = Guest::with(gpu_run_wasi::stdio::Null, |builder| {
        builder.preopen(root.path(), "/tmp/two").unwrap();
    });
    assert_eq!(guest.call(Call::fd_prestat_get, &[3], b"").unwrap(), [0, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(guest.call(Call::fd_prestat_get, &[4], b"").unwrap(), [0, 0, 0, 0, 8, 0, 0, 0]);
    assert_eq!(guest.call(Call::fd_prestat_dir_name, &[4, 8], b"").unwrap(), b"/tmp/two");
    assert_eq!(guest.call(Call::fd_prestat_dir_name, &[4, 100], b"").unwrap(), b"/tmp/two");
    assert_eq!(guest.call(Call::fd_prestat_dir_name, &[4, 7], b""), Err(Errno::Nametoolong));
    assert_eq!(guest.call(Call::fd_prestat_get, &[5], b""), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_prestat_get, &[1], b""), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_prestat_dir_name, &[1, 9], b""), Err(Errno::Notdir));
    let opened = guest.open(".", DIRECTORY, READ).unwrap();
    assert_eq!(guest.call(Call::fd_prestat_get, &[opened], b""), Err(Errno::Badf));
}

#[test]
fn rights_are_what_guests_expect() {
    let mut guest = Guest::new();
    let stdin = guest.fdstat(0).unwrap();
    assert_eq!((stdin.kind, stdin.base, stdin.inheriting), (0, READ, READ));
    assert_eq!(guest.fdstat(1).unwrap().base, WRITE);
    let root = guest.fdstat(ROOT).unwrap();
    assert_eq!((root.kind, root.flags), (3, 0));
    // Bits 9 to 26 without the two that set a size; and all below as well, with polling.
    let base = ((1 << 27) - (1 << 9)) & !(1 << 19 | 1 << 22);
    assert_eq!((root.base, root.inheriting), (base, ((1 << 28) - 1) & !(1 << 19)));
    let opened = guest.open(".", DIRECTORY, READ).unwrap();
    let all = (1 << 30) - 1;
    assert_eq!(guest.fdstat(opened).unwrap().base, all & !(1 << 2 | 1 << 6 | 1 << 19 | 1 << 22));
    let file = guest.file("a", "");
    assert_eq!(guest.fdstat(file).unwrap(), Fdstat { kind: 4, flags: 0, base: all, inheriting: all });
    assert_eq!(guest.fdstat(99), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_fdstat_set_rights, &[file, 0, 0], b""), Err(Errno::Notsup));
    assert_eq!(guest.call(Call::fd_fdstat_set_rights, &[99, 0, 0], b""), Err(Errno::Badf));
    assert_eq!(guest.call(Call::fd_fdstat_set_rights, &[1, 0, 0], b""), Err(Errno::Badf));
}

#[test]
fn many_contexts_share_one_descriptor() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let root = tempfile::tempdir().unwrap();
    let mut builder = Builder::new();
    builder.arg("app").unwrap().preopen(root.path(), "/").unwrap();
    let before = open();
    let contexts: Vec<_> = (0..100_000).map(|_| builder.build(Stdio::inherit())).collect();
    // Other tests open files meanwhile, but not thousands.
    assert!(open() < before + 1000, "{} for {} contexts", open(), contexts.len());
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let error = Builder::new().preopen("/no/such/dir".as_ref(), "/data").unwrap_err().to_string();
    assert!(error.contains("/no/such/dir") && error.contains("/data") && error.contains("No such file"), "{error}");
}
