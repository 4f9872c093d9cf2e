use wasi_programs::*;

fn main() {
    unsafe {
        let name = |fd, room: usize| {
            let mut buffer = vec![b'-'; 8];
            fd_prestat_dir_name(fd, buffer.as_mut_ptr(), room).map(|()| text(&buffer))
        };
        report("root", name(ROOT, 1));
        report("other", name(OTHER, 5));
        report("more room", name(OTHER, 8));
        report("less room", name(OTHER, 4));
        report("no room", name(OTHER, 0));
        report("file", name(file("opened", ""), 8));
        on_others(|fd| name(fd, 8));
    }
}
