use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("closed", "x");
        report("file", fd_close(fd));
        report("again", fd_close(fd));
        report("read after", read(fd, 1));
        let dir = directory("given/dir");
        report("the lowest number is taken again", Ok(dir == fd));
        report("directory", fd_close(dir));
        let [first, second] = [file("first", "1"), file("second", "2")];
        report("of two", fd_close(first));
        report("the other still reads", read(second, 5));
        report("the gap is filled", Ok(file("third", "3") == first));
        report("stdin", fd_close(0));
        report("read stdin after", read(0, 1));
        report("stdin's number is taken", Ok(file("zero", "") == 0));
        report("a preopened directory", fd_close(OTHER));
        report("open below it after", path_open(OTHER, 0, "kept", 0, READ, 0, 0));
        report("its prestat after", fd_prestat_get(OTHER).map(drop));
        report("none", fd_close(NONE));
        report("minus one", fd_close(u32::MAX));
    }
}
