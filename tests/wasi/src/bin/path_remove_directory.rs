use wasi_programs::*;

fn main() {
    unsafe {
        let remove = |path: &str| path_remove_directory(ROOT, path);
        let make = |path: &str| path_create_directory(ROOT, path).expect("created");
        make("empty");
        report("empty", remove("empty"));
        report("again", remove("empty"));
        make("slash");
        report("slash", remove("slash/"));
        make("dot");
        report("dot", remove("dot/."));
        report("dots", remove("dot/.."));
        report("itself", remove("."));
        report("full", remove("given/dir"));
        report("file", remove("given/file"));
        report("file with a slash", remove("given/file/"));
        report("link", remove("given/link"));
        report("link to a directory", remove("given/to-dir"));
        report("link to a directory with a slash", remove("given/to-dir/"));
        make("opened");
        let fd = directory("opened");
        report("an open one", remove("opened"));
        report("create in it", path_create_directory(fd, "x"));
        report("its names", names(fd).map(|names| names.len()));
        report("in another", path_create_directory(OTHER, "made").and_then(|()| path_remove_directory(OTHER, "made")));
        on_bad_paths(remove);
        report("on a file", path_remove_directory(file("file", ""), "x"));
        on_others(|fd| path_remove_directory(fd, "made"));
    }
}
