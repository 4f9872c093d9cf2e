use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("no-socket", "0123");
        for (name, how) in
            [("reading", SDFLAGS_RD), ("writing", SDFLAGS_WR), ("both", SDFLAGS_RD | SDFLAGS_WR), ("neither", 0)]
        {
            report(name, sock_shutdown(fd, how));
        }
        on_others(|fd| sock_shutdown(fd, SDFLAGS_RD));
    }
}
