use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("written", "");
        report("first", write(fd, "hello "));
        report("then", write(fd, "world"));
        report("nothing", write(fd, ""));
        report("no buffers", fd_write(fd, &[]));
        report("an empty buffer first", fd_write(fd, &[ciovec(b""), ciovec(b"!")]));
        report("position", fd_tell(fd));
        report("content", pread(fd, 100, 0));
        let two = file("two", "");
        report("two buffers", fd_write(two, &[ciovec(b"one,"), ciovec(b"two")]));
        report("position is what was written", fd_tell(two));
        fd_filestat_set_size(two, 0).expect("emptied");
        let large = vec![b'L'; 300_000];
        let mut written = 0;
        let whole = file("large", "");
        while written < large.len() {
            written += fd_write(whole, &[ciovec(&large[written..])]).expect("written");
        }
        report("a lot", fd_filestat_get(whole).map(stat));
        fd_seek(fd, 50, WHENCE_SET).expect("sought");
        report("beyond the end", write(fd, "far"));
        report("size", fd_filestat_get(fd).map(stat));
        report("reading only", write(open("written", 0, READ, 0).expect("opened"), "x"));
        report("created without rights", write(open("created", OFLAGS_CREAT, 0, 0).expect("opened"), "x"));
        let [first, second] = [0, 1].map(|_| open("written", 0, BOTH, FDFLAGS_APPEND).expect("opened"));
        report("appended", write(first, "A"));
        report("by another", write(second, "B"));
        report("again", write(first, "C"));
        report("positions", Ok((fd_tell(first).ok(), fd_tell(second).ok())));
        report("the end", pread(fd, 10, 53));
        report("stdout", write(1, "to stdout\n"));
        report("stderr", write(2, "to stderr\n"));
        for (name, fd) in others().into_iter().filter(|(name, _)| *name != "stdout") {
            report(&format!("on {name}"), write(fd, "x"));
        }
    }
}
