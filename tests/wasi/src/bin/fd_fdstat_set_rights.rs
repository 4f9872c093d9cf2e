use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("rights", "0123456789");
        let stat = fd_fdstat_get(fd).expect("stat");
        report("the same", fd_fdstat_set_rights(fd, stat.fs_rights_base, stat.fs_rights_inheriting));
        report("fewer", fd_fdstat_set_rights(fd, RIGHTS_FD_READ, 0));
        report("reads after", read(fd, 3));
        report("writes after", write(fd, "x"));
        report("more", fd_fdstat_set_rights(fd, (1 << 30) - 1, (1 << 30) - 1));
        on_others(|fd| fd_fdstat_set_rights(fd, RIGHTS_FD_READ, 0));
    }
}
