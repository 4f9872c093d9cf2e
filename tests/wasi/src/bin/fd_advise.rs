use wasi_programs::*;

fn main() {
    unsafe {
        let fd = file("advised", "0123456789");
        for advice in
            [ADVICE_NORMAL, ADVICE_SEQUENTIAL, ADVICE_RANDOM, ADVICE_WILLNEED, ADVICE_DONTNEED, ADVICE_NOREUSE]
        {
            report(advice.name(), fd_advise(fd, 0, 10, advice));
        }
        report("to the end", fd_advise(fd, 5, 0, ADVICE_NORMAL));
        report("beyond the end", fd_advise(fd, 100, 100, ADVICE_WILLNEED));
        report("offset of the sign bit", fd_advise(fd, 1 << 63, 10, ADVICE_NORMAL));
        report("length of the sign bit", fd_advise(fd, 0, 1 << 63, ADVICE_NORMAL));
        report("beyond all files", fd_advise(fd, u64::MAX, u64::MAX, ADVICE_NORMAL));
        report("size after", fd_filestat_get(fd).map(stat));
        let reading = open("advised", 0, READ, 0).expect("opened");
        report("of a file opened to read", fd_advise(reading, 0, 10, ADVICE_NORMAL));
        on_others(|fd| fd_advise(fd, 0, 10, ADVICE_NORMAL));
    }
}
