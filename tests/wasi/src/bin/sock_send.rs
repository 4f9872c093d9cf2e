use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("no-socket", "0123");
        report("file", sock_send(fd, &[ciovec(b"x")], 0));
        report("position stays", fd_tell(fd));
        on_others(|fd| sock_send(fd, &[ciovec(b"x")], 0));
    }
}
