use wasi_programs::*;

fn main() {
    unsafe {
        let receive = |fd, flags| {
            let mut buffer = [0; 8];
            sock_recv(fd, &[iovec(&mut buffer)], flags)
        };
        let fd = file("no-socket", "0123");
        report("file", receive(fd, 0));
        report("peek", receive(fd, RIFLAGS_RECV_PEEK));
        report("wait for all", receive(fd, RIFLAGS_RECV_WAITALL));
        report("position stays", fd_tell(fd));
        on_others(|fd| receive(fd, 0));
    }
}
