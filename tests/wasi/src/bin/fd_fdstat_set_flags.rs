use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("flagged", "0123456789");
        let flags = || fd_fdstat_get(fd).map(|stat| stat.fs_flags);
        report("append", fd_fdstat_set_flags(fd, FDFLAGS_APPEND));
        report("told", flags());
        report("written at the end", write(fd, "ab"));
        report("position", fd_tell(fd));
        report("pwrite at the end", pwrite(fd, "cd", 0));
        report("nonblock", fd_fdstat_set_flags(fd, FDFLAGS_NONBLOCK));
        report("told", flags());
        report("nonblocking read", pread(fd, 5, 0));
        report("nonblocking read at the end", read(fd, 5));
        report("none", fd_fdstat_set_flags(fd, 0));
        report("told", flags());
        report("seek", fd_seek(fd, 0, WHENCE_SET));
        report("written at the beginning", write(fd, "XY"));
        for (name, flags) in [
            ("dsync", FDFLAGS_DSYNC),
            ("rsync", FDFLAGS_RSYNC),
            ("sync", FDFLAGS_SYNC),
            ("append and sync", FDFLAGS_APPEND | FDFLAGS_SYNC),
        ] {
            report(name, fd_fdstat_set_flags(fd, flags));
        }
        report("told", flags());
        report("content", pread(fd, 50, 0));
        on_others(|fd| fd_fdstat_set_flags(fd, 0));
    }
}
