use wasi_programs::*;

fn main() {
    unsafe {
        let unlink = |path: &str| path_unlink_file(ROOT, path);
        make("file", "");
        report("file", unlink("file"));
        report("again", unlink("file"));
        report("directory", unlink("given/dir"));
        report("directory with a slash", unlink("given/dir/"));
        report("itself", unlink("."));
        report("file with a slash", unlink("given/file/"));
        report("link", unlink("given/link"));
        report("what it led to stays", path_filestat_get(ROOT, 0, "given/file").map(stat));
        report("link to a directory with a slash", unlink("given/to-dir/"));
        report("link to a directory", unlink("given/to-dir"));
        report("what it led to stays", path_filestat_get(ROOT, 0, "given/dir/inner").map(stat));
        report("dangling", unlink("given/dangling"));
        report("escaping", unlink("given/escape"));
        let fd = file("opened", "still here");
        report("an open one", unlink("opened"));
        report("still reads", read(fd, 20));
        report("its links", fd_filestat_get(fd).map(stat));
        report("in another", path_unlink_file(OTHER, "kept"));
        on_bad_paths(unlink);
        report("on a file", path_unlink_file(fd, "x"));
        on_others(|fd| path_unlink_file(fd, "missing"));
    }
}
