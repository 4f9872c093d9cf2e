use wasi_programs::*;

fn main() {
    unsafe {
        for (how, flags) in [("itself", 0), ("followed", FOLLOW)] {
            for path in [
                "given/file",
                "given/dir",
                "given/link",
                "given/to-dir",
                "given/dir/",
                "given/file/",
                "given/link/",
                "given/to-dir/",
                ".",
                "given/dir/..",
                "given/to-dir/inner",
                "given//file",
            ] {
                report(&format!("{path} {how}"), path_filestat_get(ROOT, flags, path).map(stat));
            }
            println!("bad paths, {how}");
            on_bad_paths(|path| path_filestat_get(ROOT, flags, path).map(stat));
        }
        let [path, fd] = [
            path_filestat_get(ROOT, 0, "given/file"),
            fd_filestat_get(open("given/file", 0, READ, 0).expect("opened")),
        ]
        .map(|stat| stat.expect("stat"));
        report(
            "the same file by its descriptor",
            Ok(path.ino == fd.ino && path.dev == fd.dev && path.mtim == fd.mtim && path.ctim == fd.ctim),
        );
        make("fresh", "1");
        report("times", path_filestat_get(ROOT, 0, "fresh").map(times));
        report("on a file", path_filestat_get(file("opened", ""), 0, "x").map(stat));
        on_others(|fd| path_filestat_get(fd, 0, "inner").map(stat));
    }
}
