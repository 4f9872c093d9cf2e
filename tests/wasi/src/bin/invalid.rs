//! Not a function but what they share: enumerators and flags that do not exist. Its argument names the case.

use wasi_programs::*;

fn main() {
    let case = std::env::args().nth(1).unwrap_or_default();
    unsafe {
        let fd = file("opened", "0123456789") as i32;
        let root = ROOT as i32;
        let (path, length) = ("given/file".as_ptr() as i32, 10);
        let mut buffer = [0u64; 64];
        let room = buffer.as_mut_ptr() as i32;
        println!("{case}");
        let returned = match case.as_str() {
            "clock" => raw::clock_time_get(4, 0, room),
            "clock minus one" => raw::clock_time_get(-1, 0, room),
            "clock of a resolution" => raw::clock_res_get(4, room),
            "advice" => raw::fd_advise(fd, 0, 10, 6),
            "whence" => raw::fd_seek(fd, 0, 3, room),
            "signal" => raw::proc_raise(31),
            "fdflags" => raw::fd_fdstat_set_flags(fd, 32),
            "rights" => raw::fd_fdstat_set_rights(fd, 1 << 40, 0),
            "fstflags" => raw::fd_filestat_set_times(fd, 0, 0, 16),
            "fstflags of a path" => raw::path_filestat_set_times(root, 0, path, length, 0, 0, 16),
            "lookupflags" => raw::path_filestat_get(root, 2, path, length, room),
            "lookupflags of times" => raw::path_filestat_set_times(root, 2, path, length, 0, 0, 1),
            "lookupflags of a link" => raw::path_link(root, 2, path, length, root, path, length),
            "lookupflags of open" => raw::path_open(root, 2, path, length, 0, 2, 0, 0, room),
            "oflags" => raw::path_open(root, 0, path, length, 16, 2, 0, 0, room),
            "rights of open" => raw::path_open(root, 0, path, length, 0, 1 << 40, 0, 0, room),
            "inherited rights of open" => raw::path_open(root, 0, path, length, 0, 2, 1 << 40, 0, room),
            "fdflags of open" => raw::path_open(root, 0, path, length, 0, 2, 0, 32, room),
            "fdflags of accept" => raw::sock_accept(fd, 32, room),
            "riflags" => raw::sock_recv(fd, room, 0, 4, room, room + 8),
            "siflags" => raw::sock_send(fd, room, 0, 1, room),
            "sdflags" => raw::sock_shutdown(fd, 4),
            "event" => poll(room, [0, 3, 0, 0, 0, 0]),
            "clock of an event" => poll(room, [0, 0, 4, 0, 0, 0]),
            "flags of an event" => poll(room, [0, 0, 1, 0, 0, 2]),
            "a bad descriptor, too" => raw::fd_advise(NONE as i32, 0, 10, 6),
            other => panic!("no case {other:?}"),
        };
        report("returned", code(returned));
    }
}

/// One subscription, word by word.
unsafe fn poll(room: i32, subscription: [u64; 6]) -> i32 {
    (room as *mut [u64; 6]).write(subscription);
    raw::poll_oneoff(room, room + 64, 1, room + 128)
}
