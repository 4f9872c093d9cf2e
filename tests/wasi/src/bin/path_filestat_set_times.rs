use wasi_programs::*;

const GIVEN: Fstflags = FSTFLAGS_ATIM | FSTFLAGS_MTIM;

fn main() {
    unsafe {
        let set = |path: &str, flags, fstflags| path_filestat_set_times(ROOT, flags, path, THEN, LATER, fstflags);
        let told = |path: &str| path_filestat_get(ROOT, 0, path).map(times);
        make("timed", "");
        report("both", set("timed", 0, GIVEN));
        report("told", told("timed"));
        report("now", set("timed", 0, FSTFLAGS_ATIM_NOW | FSTFLAGS_MTIM_NOW));
        report("told", told("timed"));
        report("one", set("timed", 0, FSTFLAGS_MTIM));
        report("told", told("timed"));
        report("none", set("timed", 0, 0));
        report("told", told("timed"));
        report("contradiction", set("timed", 0, FSTFLAGS_MTIM | FSTFLAGS_MTIM_NOW));
        path_symlink("timed", ROOT, "to-timed").expect("linked");
        report("link itself", set("to-timed", 0, GIVEN));
        report("told", told("to-timed"));
        report("its target followed", set("to-timed", FOLLOW, GIVEN));
        report("told", told("timed"));
        path_create_directory(ROOT, "folder").expect("created");
        report("directory", set("folder", 0, GIVEN));
        report("told", told("folder"));
        report("directory followed", set("folder", FOLLOW, FSTFLAGS_ATIM_NOW | FSTFLAGS_MTIM));
        report("told", told("folder"));
        report("slash", set("folder/", 0, GIVEN));
        report("dangling itself", set("given/dangling", 0, GIVEN));
        report("in another", path_filestat_set_times(OTHER, 0, "kept", THEN, LATER, GIVEN));
        for (how, flags) in [("itself", 0), ("followed", FOLLOW)] {
            println!("bad paths, {how}");
            on_bad_paths(|path| set(path, flags, GIVEN));
        }
        report("on a file", path_filestat_set_times(file("opened", ""), 0, "x", THEN, LATER, GIVEN));
        on_others(|fd| path_filestat_set_times(fd, 0, "inner", THEN, LATER, GIVEN));
    }
}
