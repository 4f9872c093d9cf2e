use wasi_programs::*;

fn main() {
    unsafe {
        let [a, b] = [file("a", "of a"), file("b", "of b")];
        report("onto another", fd_renumber(a, b));
        report("the old number", read(a, 9));
        report("the new one", read(b, 9));
        report("the gap is filled", Ok(file("c", "of c") == a));
        report("onto itself", fd_renumber(b, b));
        fd_seek(b, 1, WHENCE_SET).expect("sought");
        report("the position came along", read(b, 9));
        report("none onto one", fd_renumber(NONE, b));
        report("one onto none", fd_renumber(b, NONE));
        report("none onto itself", fd_renumber(NONE, NONE));
        report("minus one", fd_renumber(u32::MAX, b));
        report("onto minus one", fd_renumber(b, u32::MAX));
        report("still there", fd_tell(b));
        report("a file onto stdin", fd_renumber(b, 0));
        fd_seek(0, 0, WHENCE_SET).expect("sought");
        report("reads as stdin", read(0, 9));
        report("a directory onto a file", fd_renumber(directory("given/dir"), a));
        report("is a directory", names(a));
        report("a preopened one onto it", fd_renumber(OTHER, a));
        report("its old number", names(OTHER));
        report("its new one", names(a));
        report("its prestat", fd_prestat_get(a).map(|prestat| prestat.u.dir.pr_name_len));
        report("stdout", fd_renumber(2, OTHER));
        report("onto what was closed", fd_renumber(1, 2));
    }
}
