use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("stated", "0123456789");
        report("file", fd_filestat_get(fd).map(stat));
        report("times", fd_filestat_get(fd).map(times));
        report("grown", write(fd, "0123456789abc").and_then(|_| fd_filestat_get(fd)).map(stat));
        path_link(ROOT, 0, "stated", ROOT, "linked").expect("linked");
        report("linked", fd_filestat_get(fd).map(stat));
        path_unlink_file(ROOT, "linked").expect("unlinked");
        path_unlink_file(ROOT, "stated").expect("unlinked");
        report("unlinked", fd_filestat_get(fd).map(stat));
        let [a, b] = [open("given/file", 0, READ, 0), open("given/link", 0, READ, 0)]
            .map(|fd| fd_filestat_get(fd.expect("opened")).expect("stat"));
        report("one inode through a link", Ok(a.ino == b.ino && a.dev == b.dev));
        let other = fd_filestat_get(directory("given/dir")).expect("stat");
        report("two inodes", Ok(a.ino != other.ino));
        report("writing only", fd_filestat_get(open("given/file", 0, WRITE, 0).expect("opened")).map(stat));
        on_others(|fd| fd_filestat_get(fd).map(stat));
    }
}
