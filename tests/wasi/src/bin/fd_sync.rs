use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("synced", "0123456789");
        report("file", fd_sync(fd));
        let reading = open("given/file", 0, READ, 0).expect("opened");
        report("of a file opened to read", fd_sync(reading));
        on_others(|fd| fd_sync(fd));
    }
}
