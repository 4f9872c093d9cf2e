use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("told", "0123456789");
        report("at first", fd_tell(fd));
        report("read", read(fd, 3));
        report("after", fd_tell(fd));
        report("written", write(fd, "ab"));
        report("after", fd_tell(fd));
        report("sought", fd_seek(fd, 100, WHENCE_SET));
        report("after", fd_tell(fd));
        let appending = open("told", 0, BOTH, FDFLAGS_APPEND).expect("opened");
        report("appending at first", fd_tell(appending));
        report("written", write(appending, "xyz"));
        report("after", fd_tell(appending));
        on_others(|fd| fd_tell(fd));
    }
}
