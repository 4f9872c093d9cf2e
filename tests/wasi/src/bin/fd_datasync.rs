use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("synced", "0123456789");
        report("file", fd_datasync(fd));
        let reading = open("given/file", 0, READ, 0).expect("opened");
        report("of a file opened to read", fd_datasync(reading));
        on_others(|fd| fd_datasync(fd));
    }
}
