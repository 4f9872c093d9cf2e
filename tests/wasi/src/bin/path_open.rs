use wasi_programs::*;

unsafe fn told(opened: Result<Fd, Errno>) -> Result<String, Errno> {
    let fd = opened?;
    let kind = fd_fdstat_get(fd)?.fs_filetype.name();
    let content = pread(fd, 20, 0).unwrap_or_else(|errno| errno.name().into());
    fd_close(fd)?;
    Ok(format!("{kind} {content}"))
}

fn main() {
    unsafe {
        let open_as = |path: &str, flags, oflags, rights, fdflags| {
            told(path_open(ROOT, flags, path, oflags, rights, rights, fdflags))
        };
        let how = |name: &str, oflags| {
            for path in [
                "given/file",
                "given/dir",
                "given/link",
                "given/to-dir",
                "given/dangling",
                "given/loop",
                "given/file/",
                "given/dir/",
                ".",
            ] {
                for (flags, follow) in [(0, "itself"), (FOLLOW, "followed")] {
                    report(&format!("{name} {path} {follow}"), open_as(path, flags, oflags, READ, 0));
                }
            }
        };
        how("plain", 0);
        how("directory", OFLAGS_DIRECTORY);
        how("exclusive", OFLAGS_CREAT | OFLAGS_EXCL);
        how("directory and create", OFLAGS_DIRECTORY | OFLAGS_CREAT);
        how("exclusive without create", OFLAGS_EXCL);
        how("exclusive directory", OFLAGS_DIRECTORY | OFLAGS_EXCL);
        how("truncate directory", OFLAGS_DIRECTORY | OFLAGS_TRUNC);
        report("create", open_as("created", 0, OFLAGS_CREAT, BOTH, 0));
        report("create again", open_as("created", 0, OFLAGS_CREAT, BOTH, 0));
        report("create exclusively", open_as("exclusive", 0, OFLAGS_CREAT | OFLAGS_EXCL, BOTH, 0));
        report("create exclusively again", open_as("exclusive", 0, OFLAGS_CREAT | OFLAGS_EXCL, BOTH, 0));
        report("create through a dangling link", open_as("given/dangling", FOLLOW, OFLAGS_CREAT, BOTH, 0));
        report("what it made", open_as("given/nowhere", 0, 0, READ, 0));
        path_symlink("made-by-link", ROOT, "second-dangling").expect("linked");
        report("create at a dangling link, not followed", open_as("second-dangling", 0, OFLAGS_CREAT, BOTH, 0));
        report("create with a slash", open_as("slash/", 0, OFLAGS_CREAT, BOTH, 0));
        report("create below nothing", open_as("missing/created", 0, OFLAGS_CREAT, BOTH, 0));
        report("create where a directory is", open_as("given/dir", 0, OFLAGS_CREAT, BOTH, 0));
        make("truncated", "0123456789");
        report("truncate", open_as("truncated", 0, OFLAGS_TRUNC, BOTH, 0));
        make("truncated", "0123456789");
        report("truncate without a right to write", open_as("truncated", 0, OFLAGS_TRUNC, READ, 0));
        report("truncate a directory", open_as("given/dir", 0, OFLAGS_TRUNC, BOTH, 0));
        report("truncate through a link", open_as("given/link", FOLLOW, OFLAGS_TRUNC, BOTH, 0));
        report("a directory to write", open_as("given/dir", 0, 0, BOTH, 0));
        report("a directory to write, as one", open_as("given/dir", 0, OFLAGS_DIRECTORY, BOTH, 0));
        report("no rights", open_as("given/file", 0, 0, 0, 0));
        report("write only", open_as("given/file", 0, 0, WRITE, 0));
        for (name, flag) in [
            ("append", FDFLAGS_APPEND),
            ("nonblock", FDFLAGS_NONBLOCK),
            ("dsync", FDFLAGS_DSYNC),
            ("rsync", FDFLAGS_RSYNC),
            ("sync", FDFLAGS_SYNC),
            ("all sync", FDFLAGS_SYNC | FDFLAGS_DSYNC | FDFLAGS_RSYNC),
        ] {
            report(name, open_as("flagged", FOLLOW, OFLAGS_CREAT, BOTH, flag));
        }
        report("in another", told(path_open(OTHER, 0, "kept", 0, READ, READ, 0)));
        let dir = directory("given/dir");
        report("in an opened one", told(path_open(dir, 0, "inner", 0, READ, READ, 0)));
        report("its parent", told(path_open(dir, 0, "../file", 0, READ, READ, 0)));
        report("out of it and in again", told(path_open(dir, 0, "../dir/inner", 0, READ, READ, 0)));
        for (how, flags) in [("itself", 0), ("followed", FOLLOW)] {
            println!("bad paths, {how}");
            on_bad_paths(
                |path| if path.contains("dangling") { Ok(String::new()) } else { open_as(path, flags, 0, READ, 0) },
            );
            println!("bad paths, {how}, create");
            on_bad_paths(|path| open_as(path, flags, OFLAGS_CREAT, BOTH, 0));
        }
        let fd = open("given/file", 0, READ, 0).expect("opened");
        report("the lowest number", Ok(fd));
        report("on a file", told(path_open(fd, 0, "x", 0, READ, READ, 0)));
        on_others(|fd| told(path_open(fd, 0, "inner", 0, READ, READ, 0)));
    }
}
