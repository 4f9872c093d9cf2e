use wasi_programs::*;

unsafe fn used(fd: Fd, room: usize, cookie: u64) -> Result<usize, Errno> {
    let mut buffer = vec![0u8; room];
    fd_readdir(fd, buffer.as_mut_ptr(), room, cookie)
}

fn main() {
    unsafe {
        path_create_directory(ROOT, "listed").expect("created");
        for number in 0..20 {
            make(&format!("listed/file-{number:02}"), "x");
        }
        path_create_directory(ROOT, "listed/dir").expect("created");
        path_symlink("nowhere", ROOT, "listed/link").expect("linked");
        let fd = directory("listed");
        let all = entries(fd, 4096, 0).expect("entries");
        report("how many", Ok(all.len()));
        report(
            "first two",
            Ok(all[..2].iter().map(|entry| (entry.name.clone(), entry.kind, entry.next)).collect::<Vec<_>>()),
        );
        let mut sorted: Vec<_> = all.iter().map(|entry| format!("{} {}", entry.name, entry.kind)).collect();
        sorted.sort();
        report("names and kinds", Ok(sorted));
        report("cookies count", Ok(all.iter().zip(1..).all(|(entry, number)| entry.next == number)));
        let inode = |path| path_filestat_get(ROOT, 0, path).expect("stat").ino;
        let of = |name: &str| all.iter().find(|entry| entry.name == name).expect("an entry").inode;
        report("inode of a file", Ok(of("file-07") == inode("listed/file-07")));
        report("inode of a link", Ok(of("link") == inode("listed/link")));
        report("inode of the directory", Ok(of(".") == inode("listed")));
        for room in [64, 100, 333] {
            report(&format!("the same through {room} bytes"), entries(fd, room, 0).map(|some| some == all));
        }
        for (index, entry) in all.iter().enumerate().step_by(5) {
            report(&format!("from cookie {index}"), entries(fd, 4096, entry.next).map(|rest| rest == all[index + 1..]));
        }
        report("no room", used(fd, 0, 0));
        report("room for part of a header", used(fd, 10, 0));
        report("room for a header", used(fd, 24, 0));
        report("room for part of a name", used(fd, 24 + 25 + 25, 0));
        report("cookie of the last", used(fd, 4096, all.last().expect("last").next));
        report("cookie beyond", used(fd, 4096, 1000));
        report("cookie beyond all", used(fd, 4096, u64::MAX));
        report("empty directory", names(directory("listed/dir")));
        report("a file added", Ok(file("listed/new", "") > 0));
        report("is there from the beginning", names(fd).map(|names| names.contains(&"new".into())));
        report("a name that is not utf-8", names(directory("given/bytes")));
        report("file", used(file("opened", ""), 100, 0));
        report("rights to nothing", names(open("listed/dir", OFLAGS_DIRECTORY, 0, 0).expect("opened")));
        report("other", names(OTHER));
        // A listing that is read while it is emptied.
        let mut removed = 0;
        for entry in entries(fd, 64, 0).expect("entries") {
            if entry.name.starts_with("file-") {
                path_unlink_file(fd, &entry.name).expect("unlinked");
                removed += 1;
            }
        }
        report("removed", Ok(removed));
        on_others(|fd| used(fd, 0, 0));
    }
}
