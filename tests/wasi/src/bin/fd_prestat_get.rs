use wasi_programs::*;

fn main() {
    unsafe {
        let told = |fd| fd_prestat_get(fd).map(|prestat| (prestat.tag, prestat.u.dir.pr_name_len));
        report("other", told(OTHER));
        report("after the last", told(5));
        report("file", told(file("opened", "")));
        on_others(told);
    }
}
