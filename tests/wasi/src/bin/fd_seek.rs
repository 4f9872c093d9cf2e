use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("sought", "0123456789");
        report("set", fd_seek(fd, 4, WHENCE_SET));
        report("read", read(fd, 2));
        report("current", fd_seek(fd, 2, WHENCE_CUR));
        report("back", fd_seek(fd, -3, WHENCE_CUR));
        report("read", read(fd, 1));
        report("end", fd_seek(fd, 0, WHENCE_END));
        report("before the end", fd_seek(fd, -4, WHENCE_END));
        report("read", read(fd, 100));
        report("beyond the end", fd_seek(fd, 6, WHENCE_END));
        report("read there", read(fd, 1));
        report("size stays", fd_filestat_get(fd).map(stat));
        report("write there", write(fd, "Z"));
        report("the hole is zeros", pread(fd, 100, 0));
        report("before the beginning", fd_seek(fd, -1, WHENCE_SET));
        report("before it, from the end", fd_seek(fd, -100, WHENCE_END));
        report("before it, from here", fd_seek(fd, -100, WHENCE_CUR));
        report("position stays", fd_tell(fd));
        report("very far", fd_seek(fd, i64::MAX, WHENCE_SET));
        report("farther", fd_seek(fd, i64::MAX, WHENCE_CUR));
        report("too far", fd_seek(fd, i64::MAX, WHENCE_CUR));
        report("read there", read(fd, 1));
        report("write there", write(fd, "x"));
        let appending = open("sought", 0, BOTH, FDFLAGS_APPEND).expect("opened");
        report("appending", fd_seek(appending, 3, WHENCE_SET));
        report("reads there", read(appending, 2));
        on_others(|fd| fd_seek(fd, 0, WHENCE_SET));
    }
}
