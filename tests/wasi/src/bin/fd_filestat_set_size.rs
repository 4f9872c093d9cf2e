use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("sized", "0123456789");
        fd_seek(fd, 8, WHENCE_SET).expect("sought");
        report("shorter", fd_filestat_set_size(fd, 4));
        report("content", pread(fd, 50, 0));
        report("position stays", fd_tell(fd));
        report("reads nothing there", read(fd, 5));
        report("longer", fd_filestat_set_size(fd, 12));
        report("zeros", pread(fd, 50, 0));
        report("the same", fd_filestat_set_size(fd, 12));
        report("size", fd_filestat_get(fd).map(stat));
        report("beyond all files", fd_filestat_set_size(fd, u64::MAX));
        report("the sign bit", fd_filestat_set_size(fd, 1 << 63));
        report("size after", fd_filestat_get(fd).map(stat));
        report("of a file opened to read", fd_filestat_set_size(open("given/file", 0, READ, 0).expect("opened"), 1));
        let appending = open("given/file", 0, WRITE, FDFLAGS_APPEND).expect("opened");
        report("appending", fd_filestat_set_size(appending, 3));
        report("appended", write(appending, "end"));
        report("content", pread(open("given/file", 0, READ, 0).expect("opened"), 50, 0));
        on_others(|fd| fd_filestat_set_size(fd, 0));
    }
}
