use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("written", "0123456789");
        report("middle", pwrite(fd, "AB", 3));
        report("over the end", pwrite(fd, "xyz", 9));
        report("content", pread(fd, 50, 0));
        report("far beyond", pwrite(fd, "end", 20));
        report("the hole is zeros", pread(fd, 50, 0));
        report("position stays", fd_tell(fd));
        report("nothing", pwrite(fd, "", 100));
        report("no buffers", fd_pwrite(fd, &[], 100));
        report("size", fd_filestat_get(fd).map(stat));
        report("the sign bit", pwrite(fd, "x", 1 << 63));
        report("beyond all files", pwrite(fd, "x", u64::MAX));
        report("reading only", pwrite(open("written", 0, READ, 0).expect("opened"), "x", 0));
        let appending = open("written", 0, WRITE, FDFLAGS_APPEND).expect("opened");
        report("appending", pwrite(appending, "tail", 0));
        report("position of it", fd_tell(appending));
        report("content", pread(fd, 50, 0));
        on_others(|fd| pwrite(fd, "", 0));
    }
}
