use wasi_programs::*;

unsafe fn target(fd: Fd, path: &str, room: usize) -> Result<(usize, String), Errno> {
    let mut buffer = vec![b'-'; room.max(8)];
    let used = path_readlink(fd, path, buffer.as_mut_ptr(), room)?;
    Ok((used, text(&buffer)))
}

fn main() {
    unsafe {
        report("link", target(ROOT, "given/link", 8));
        report("exact room", target(ROOT, "given/link", 4));
        report("less room", target(ROOT, "given/link", 2));
        report("no room", target(ROOT, "given/link", 0));
        report("of a dangling one", target(ROOT, "given/dangling", 20));
        report("slash", target(ROOT, "given/link/", 8));
        report("to a directory", target(ROOT, "given/to-dir", 8));
        report("through one", target(ROOT, "given/to-dir/inner", 8));
        report("file", target(ROOT, "given/file", 8));
        report("directory", target(ROOT, "given/dir", 8));
        report("itself", target(ROOT, ".", 8));
        on_bad_paths(|path| target(ROOT, path, 40));
        report("on a file", target(file("opened", ""), "x", 8));
        on_others(|fd| target(fd, "inner", 8));
    }
}
