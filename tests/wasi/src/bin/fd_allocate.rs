use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("allocated", "0123456789");
        report("within", fd_allocate(fd, 0, 5));
        report("beyond the end", fd_allocate(fd, 5, 100));
        report("nothing", fd_allocate(fd, 0, 0));
        report("size after", fd_filestat_get(fd).map(stat));
        let reading = open("given/file", 0, READ, 0).expect("opened");
        report("of a file opened to read", fd_allocate(reading, 0, 100));
        on_others(|fd| fd_allocate(fd, 0, 10));
    }
}
