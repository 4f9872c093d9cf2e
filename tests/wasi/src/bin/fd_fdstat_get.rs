use wasi_programs::*;

unsafe fn told(fd: Fd) -> Result<String, Errno> {
    let stat = fd_fdstat_get(fd)?;
    let (kind, flags) = (stat.fs_filetype.name(), stat.fs_flags);
    Ok(format!("{kind} flags {flags} base {:#x} inheriting {:#x}", stat.fs_rights_base, stat.fs_rights_inheriting))
}

fn main() {
    unsafe {
        make("stated", "x");
        for (name, rights) in
            [("no rights", 0), ("read", READ), ("write", WRITE), ("both", BOTH), ("all", (1 << 30) - 1)]
        {
            report(name, told(open("stated", 0, rights, 0).expect("opened")));
        }
        for (name, oflags) in [("create", OFLAGS_CREAT), ("truncate", OFLAGS_TRUNC)] {
            report(name, told(open("stated", oflags, 0, 0).expect("opened")));
        }
        for (name, fdflags) in [("append", FDFLAGS_APPEND), ("nonblock", FDFLAGS_NONBLOCK)] {
            report(name, told(open("stated", 0, BOTH, fdflags).expect("opened")));
        }
        report(
            "a directory with rights to write",
            told(open("given/dir", OFLAGS_DIRECTORY, READ | RIGHTS_FD_READDIR, 0).expect("opened")),
        );
        on_others(|fd| told(fd));
    }
}
