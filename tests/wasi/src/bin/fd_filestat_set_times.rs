use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("timed", "x");
        let told = || fd_filestat_get(fd).map(times);
        report("both", fd_filestat_set_times(fd, THEN, LATER, FSTFLAGS_ATIM | FSTFLAGS_MTIM));
        report("told", told());
        report("one", fd_filestat_set_times(fd, LATER, 1, FSTFLAGS_ATIM));
        report("told", told());
        report("the other", fd_filestat_set_times(fd, 1, THEN, FSTFLAGS_MTIM));
        report("told", told());
        report("none", fd_filestat_set_times(fd, 1, 1, 0));
        report("told", told());
        report("now", fd_filestat_set_times(fd, 1, 1, FSTFLAGS_ATIM_NOW));
        report("told", told());
        report("now and then", fd_filestat_set_times(fd, THEN, 1, FSTFLAGS_ATIM | FSTFLAGS_MTIM_NOW));
        report("told", told());
        report("contradiction", fd_filestat_set_times(fd, THEN, THEN, FSTFLAGS_ATIM | FSTFLAGS_ATIM_NOW));
        report("the other", fd_filestat_set_times(fd, THEN, THEN, FSTFLAGS_MTIM | FSTFLAGS_MTIM_NOW));
        report("the beginning of time", fd_filestat_set_times(fd, 0, 0, FSTFLAGS_ATIM | FSTFLAGS_MTIM));
        report("told", told());
        report("the end", fd_filestat_set_times(fd, THEN, LATER, FSTFLAGS_ATIM | FSTFLAGS_MTIM));
        let reading = open("given/file", 0, READ, 0).expect("opened");
        report("of a file opened to read", fd_filestat_set_times(reading, THEN, LATER, FSTFLAGS_ATIM | FSTFLAGS_MTIM));
        report("told", fd_filestat_get(reading).map(times));
        on_others(|fd| fd_filestat_set_times(fd, THEN, LATER, FSTFLAGS_ATIM | FSTFLAGS_MTIM));
        report("the directory's", fd_filestat_get(directory("given/dir")).map(times));
    }
}
