use wasi_programs::*;

fn main() {
    unsafe {
        let rename = |old: &str, new: &str| path_rename(ROOT, old, ROOT, new);
        let make = |path: &str| make(path, path);
        let folder = |path: &str| path_create_directory(ROOT, path).expect("created");
        make("old");
        report("file", rename("old", "new"));
        report("the old is gone", path_filestat_get(ROOT, 0, "old").map(stat));
        make("second");
        report("onto a file", rename("second", "new"));
        report("content", read(open("new", 0, READ, 0).expect("opened"), 20));
        report("onto itself", rename("new", "new"));
        report("onto a link", rename("new", "given/link"));
        report("the link is gone", path_filestat_get(ROOT, 0, "given/link").map(stat));
        report("what it led to stays", path_filestat_get(ROOT, 0, "given/file").map(stat));
        make("third");
        report("onto a dangling link", rename("third", "given/dangling"));
        make("fourth");
        report("onto a directory", rename("fourth", "given/dir"));
        report("with a slash", rename("fourth", "slash/"));
        report("with a slash after the old", rename("fourth/", "slash"));
        folder("folder");
        report("directory", rename("folder", "folder-2"));
        report("directory with slashes", rename("folder-2/", "folder-3/"));
        report("directory onto a file", rename("folder-3", "fourth"));
        report("directory onto a full one", rename("folder-3", "given/dir"));
        folder("empty");
        report("directory onto an empty one", rename("folder-3", "empty"));
        folder("parent");
        report("directory below itself", rename("parent", "parent/child"));
        report("full directory", rename("given/dir", "moved-dir"));
        report("its content", path_filestat_get(ROOT, 0, "moved-dir/inner").map(stat));
        path_symlink("fourth", ROOT, "link").expect("linked");
        report("link", rename("link", "moved-link"));
        report("is a link", path_filestat_get(ROOT, 0, "moved-link").map(stat));
        let fd = open("fourth", 0, READ, 0).expect("opened");
        report("an open one", rename("fourth", "fifth"));
        report("still reads", read(fd, 20));
        report("across", path_rename(ROOT, "fifth", OTHER, "from-root"));
        report("onto a file across", path_rename(OTHER, "from-root", OTHER, "kept"));
        report("back", path_rename(OTHER, "kept", ROOT, "back"));
        report("directory across", path_rename(ROOT, "empty", OTHER, "from-root-dir"));
        report("itself", rename(".", "dot"));
        report("onto here", rename("back", "."));
        report("dots", rename("back", "moved-dir/../renamed"));
        println!("bad paths, old");
        on_bad_paths(|path| {
            if path == "given/dangling" || path.contains("link") || path == "given/loop" {
                Ok(())
            } else {
                rename(path, "from-bad")
            }
        });
        println!("bad paths, new");
        on_bad_paths(|path| {
            make("for-bad");
            rename("for-bad", path)
        });
        report("on a file", path_rename(file("opened", ""), "x", ROOT, "y"));
        for (name, fd) in [("stdin", 0), ("stdout", 1), ("none", NONE)] {
            report(&format!("from {name}"), path_rename(fd, "inner", ROOT, "x"));
            report(&format!("to {name}"), path_rename(ROOT, "for-bad", fd, "x"));
        }
    }
}
