use wasi_programs::*;

fn main() {
    unsafe {
        report("file", sock_accept(file("no-socket", ""), 0));
        report("nonblocking", sock_accept(file("no-socket", ""), FDFLAGS_NONBLOCK));
        on_others(|fd| sock_accept(fd, 0));
    }
}
