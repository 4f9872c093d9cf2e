use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("read", "0123456789");
        report("beginning", pread(fd, 4, 0));
        report("middle", pread(fd, 4, 3));
        report("up to the end", pread(fd, 40, 6));
        report("at the end", pread(fd, 4, 10));
        report("beyond", pread(fd, 4, 1000));
        report("nothing", pread(fd, 0, 0));
        report("position stays", fd_tell(fd));
        report("no room at all", fd_pread(fd, &[], 0));
        let (mut a, mut b) = ([0; 0], [0; 3]);
        report(
            "an empty buffer first",
            fd_pread(fd, &[iovec(&mut a), iovec(&mut b)], 2).map(|count| text(&b[..count])),
        );
        report("the sign bit", pread(fd, 4, 1 << 63));
        report("beyond all files", pread(fd, 4, u64::MAX));
        report("writing only", pread(open("read", 0, WRITE, 0).expect("opened"), 4, 0));
        report("nonblocking", pread(open("read", 0, READ, FDFLAGS_NONBLOCK).expect("opened"), 4, 0));
        on_others(|fd| pread(fd, 4, 0));
    }
}
