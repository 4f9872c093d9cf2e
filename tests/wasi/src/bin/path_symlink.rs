use wasi_programs::*;

fn main() {
    unsafe {
        let link = |target: &str, path: &str| path_symlink(target, ROOT, path);
        make("file", "content");
        report("to a file", link("file", "to-file"));
        report("reads", read(open("to-file", 0, READ, 0).expect("opened"), 20));
        report("to nothing", link("nothing", "to-nothing"));
        report("again", link("file", "to-nothing"));
        report("over a file", link("file", "given/file"));
        report("over a directory", link("file", "given/dir"));
        report("to a directory", link("given/dir", "to-dir"));
        report("through it", path_filestat_get(ROOT, 0, "to-dir/inner").map(stat));
        report("to itself", link("self", "self"));
        report("to its parent", link("..", "given/dir/to-parent"));
        report("through it", path_filestat_get(ROOT, FOLLOW, "given/dir/to-parent/file").map(stat));
        report("out", link("../outside", "to-outside"));
        report("through it", path_filestat_get(ROOT, FOLLOW, "to-outside").map(stat));
        report("absolute", link("/etc/passwd", "to-absolute"));
        report("empty", link("", "to-empty"));
        report("slash", link("file", "slash/"));
        report("slash in the target", link("file/", "target-slash"));
        report("long", link(&"x".repeat(300), "to-long"));
        report("too long", link(&"x/".repeat(3000), "to-too-long"));
        report("nul in the target", link("a\0b", "to-nul"));
        report("not utf-8 in the target", link(not_utf8(), "to-bytes"));
        report("in another", path_symlink("kept", OTHER, "link"));
        println!("bad paths");
        on_bad_paths(|path| link("file", path));
        report("on a file", path_symlink("x", open("file", 0, READ, 0).expect("opened"), "y"));
        on_others(|fd| if fd == ROOT { Ok(()) } else { path_symlink("x", fd, "linked") });
    }
}
