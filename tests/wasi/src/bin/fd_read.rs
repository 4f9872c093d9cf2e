use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("read", "0123456789");
        report("first", read(fd, 4));
        report("then", read(fd, 4));
        report("the rest", read(fd, 4));
        report("the end", read(fd, 4));
        report("position", fd_tell(fd));
        fd_seek(fd, 0, WHENCE_SET).expect("sought");
        report("no room", read(fd, 0));
        report("no buffers", fd_read(fd, &[]));
        let (mut empty, mut buffer) = ([0; 0], [0; 3]);
        report(
            "an empty buffer first",
            fd_read(fd, &[iovec(&mut empty), iovec(&mut buffer)]).map(|count| text(&buffer[..count])),
        );
        let (mut a, mut b) = ([b'-'; 2], [b'-'; 3]);
        let count = fd_read(fd, &[iovec(&mut a), iovec(&mut b)]);
        report("two buffers", count.map(|count| (count, text(&a), text(&b))));
        fd_seek(fd, 100, WHENCE_SET).expect("sought");
        report("beyond the end", read(fd, 4));
        report("position stays", fd_tell(fd));
        report("writing only", read(open("read", 0, WRITE, 0).expect("opened"), 4));
        report("nonblocking", read(open("read", 0, READ, FDFLAGS_NONBLOCK).expect("opened"), 4));
        report("appending", read(open("read", 0, BOTH, FDFLAGS_APPEND).expect("opened"), 4));
        report("through a link", read(open("given/link", 0, READ, 0).expect("opened"), 40));
        let unlinked = file("unlinked", "still here");
        path_unlink_file(ROOT, "unlinked").expect("unlinked");
        report("unlinked", read(unlinked, 40));
        report("stdin", read(0, 6));
        report("stdin goes on", read(0, 3));
        report("nothing of stdin", read(0, 0));
        report("the rest of stdin", read(0, 100));
        report("stdin's end", read(0, 100));
        on_others(|fd| read(fd, 4));
    }
}
