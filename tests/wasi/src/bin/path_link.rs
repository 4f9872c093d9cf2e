use wasi_programs::*;

fn main() {
    unsafe {
        let link = |old: &str, new: &str| path_link(ROOT, 0, old, ROOT, new);
        make("first", "content");
        report("new name", link("first", "second"));
        report("links", path_filestat_get(ROOT, 0, "second").map(stat));
        let [a, b] = ["first", "second"].map(|path| path_filestat_get(ROOT, 0, path).expect("stat").ino);
        report("one inode", Ok(a == b));
        report("written through one", write(open("first", 0, WRITE, 0).expect("opened"), "CON"));
        report("read through the other", read(open("second", 0, READ, 0).expect("opened"), 20));
        report("onto a file", link("first", "given/file"));
        report("onto a directory", link("first", "given/dir"));
        report("onto a dangling link", link("first", "given/dangling"));
        report("onto itself", link("first", "first"));
        report("of a directory", link("given/dir", "dir"));
        report("of a link", link("given/link", "linked-link"));
        report("is a link", path_filestat_get(ROOT, 0, "linked-link").map(stat));
        report("followed", path_link(ROOT, FOLLOW, "given/link", ROOT, "followed"));
        report("slash after the old", link("first/", "slash"));
        report("slash after the new", link("first", "slash/"));
        report("into a directory", link("first", "given/dir/linked"));
        report("across", path_link(ROOT, 0, "first", OTHER, "from-root"));
        report("back", path_link(OTHER, 0, "kept", ROOT, "from-other"));
        println!("bad paths, old");
        on_bad_paths(|path| link(path, "from-bad"));
        println!("bad paths, new");
        on_bad_paths(|path| link("first", path));
        report("on a file", path_link(file("opened", ""), 0, "x", ROOT, "y"));
        for (name, fd) in others() {
            report(&format!("from {name}"), path_link(fd, 0, "inner", ROOT, &format!("from-{name}")));
            report(&format!("to {name}"), path_link(ROOT, 0, "first", fd, &format!("to-{name}")));
        }
    }
}
