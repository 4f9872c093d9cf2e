use wasi_programs::*;

fn main() {
    unsafe {
        let create = |path: &str| path_create_directory(ROOT, path);
        report("new", create("new"));
        report("again", create("new"));
        report("below", create("new/below"));
        report("slash", create("slash/"));
        report("dots", create("new/./below/../other"));
        report("where a file is", create("given/file"));
        report("where a link is", create("given/link"));
        report("here", create("."));
        report("below a linked directory", create("given/to-dir/made"));
        report("in another", path_create_directory(OTHER, "made"));
        report("in an opened one", path_create_directory(directory("new"), "deeper"));
        report("with a parent inside", path_create_directory(directory("new"), "../beside"));
        on_bad_paths(create);
        report("on a file", path_create_directory(file("opened", ""), "x"));
        on_others(|fd| if fd == ROOT { Ok(()) } else { path_create_directory(fd, "made") });
    }
}
