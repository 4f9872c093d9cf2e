//! The overlay: which files of std are replaced, added or edited.

use crate::{Error, Result, at};
use std::fs;
use std::path::Path;

/// The versions that the overlay was written for and tested with.
pub const SUPPORTED: [&str; 3] = ["1.95", "1.96", "1.97"];

/// A change of std's sources. Paths are below `library/std/src`.
enum Change {
    /// The file is replaced; it must be there.
    Replace(&'static str, &'static str),
    /// The file is new.
    Add(&'static str, &'static str),
    /// A text in a file is replaced; it must be there, once.
    Edit { file: &'static str, old: &'static str, new: &'static str },
}

use Change::{Add, Edit, Replace};

/// For all versions.
const CHANGES: &[Change] = &[
    Add("sys/pal/wasi/gpu_run.rs", include_str!("../overlay/gpu_run.rs")),
    Edit {
        file: "sys/pal/wasi/mod.rs",
        old: "pub mod stack_overflow;\n",
        new: "pub mod stack_overflow;\n#[allow(dead_code)]\npub mod gpu_run;\n",
    },
    Add("sys/pal/wasi/gpu_run/files.rs", include_str!("../overlay/files.rs")),
    Edit {
        file: "sys/fs/unix.rs",
        old: "        let mut stat: stat64 = unsafe { mem::zeroed() };
        cvt(unsafe { fstat64(fd, &mut stat) })?;
",
        new: "        let stat = crate::sys::gpu_run::files::stat_of_file(fd)?;\n",
    },
    Edit {
        file: "sys/fs/unix.rs",
        old: "    let mut stat: stat64 = unsafe { mem::zeroed() };
    cvt(unsafe { stat64(p.as_ptr(), &mut stat) })?;
",
        new: "    let stat = crate::sys::gpu_run::files::stat_of_path(p, true)?;\n",
    },
    Edit {
        file: "sys/fs/unix.rs",
        old: "    let mut stat: stat64 = unsafe { mem::zeroed() };
    cvt(unsafe { lstat64(p.as_ptr(), &mut stat) })?;
",
        new: "    let stat = crate::sys::gpu_run::files::stat_of_path(p, false)?;\n",
    },
    Edit {
        file: "sys/fs/unix.rs",
        old: "    let r = unsafe { libc::realpath(path.as_ptr(), ptr::null_mut()) };
    if r.is_null() {
        return Err(io::Error::last_os_error());
    }
    Ok(PathBuf::from(OsString::from_vec(unsafe {
        let buf = CStr::from_ptr(r).to_bytes().to_vec();
        libc::free(r as *mut _);
        buf
    })))
",
        new: "    crate::sys::gpu_run::files::canonicalize(path)\n",
    },
    Edit {
        file: "sys/fs/unix.rs",
        old: "        cvt_r(|| unsafe { libc::fchmod(self.as_raw_fd(), perm.mode) })?;
        Ok(())
",
        new: "        crate::sys::gpu_run::files::set_permissions(self.as_raw_fd(), perm.mode)\n",
    },
    Edit {
        file: "sys/fs/unix.rs",
        old: "    cvt_r(|| unsafe { libc::chmod(p.as_ptr(), perm.mode) }).map(|_| ())\n",
        new: "    let fd = cvt_r(|| unsafe { open64(p.as_ptr(), libc::O_RDONLY) })?;
    File(unsafe { FileDesc::from_raw_fd(fd) }).set_permissions(perm)
",
    },
    Edit {
        file: "sys/io/error/wasi.rs",
        old: "        libc::ENOTDIR => NotADirectory,\n",
        new: "        libc::ENOTDIR => NotADirectory,\n        libc::ENOTEMPTY => DirectoryNotEmpty,\n",
    },
    Replace("sys/net/connection/wasip1.rs", include_str!("../overlay/net.rs")),
    Replace("sys/process/unsupported.rs", include_str!("../overlay/process.rs")),
    Replace("sys/pipe/unsupported.rs", include_str!("../overlay/pipe.rs")),
    Add("os/wasi/process.rs", include_str!("../overlay/os_process.rs")),
    Edit { file: "os/wasi/mod.rs", old: "\npub mod io;\n", new: "\npub mod io;\nmod process;\n" },
    Edit {
        file: "sys/thread/unix.rs",
        old: "pub fn available_parallelism() -> io::Result<NonZero<usize>> {\n",
        new: "pub fn available_parallelism() -> io::Result<NonZero<usize>> {
    if let Some(count) = crate::sys::pal::gpu_run::parallelism() {
        return Ok(count);
    }
",
    },
    // wasm32-unknown-unknown has random numbers, too.
    Edit {
        file: "sys/random/mod.rs",
        old: "    target_os = \"android\",\n    all(target_family = \"wasm\", target_os = \"unknown\"),\n",
        new: "    target_os = \"android\",\n",
    },
    Edit {
        file: "sys/fs/unix.rs",
        old: "Err(io::const_error!(io::ErrorKind::Unsupported, \"lock() not supported\"))",
        new: "crate::sys::gpu_run::lock(self.as_raw_fd(), crate::sys::gpu_run::lock::EXCLUSIVE)",
    },
    Edit {
        file: "sys/fs/unix.rs",
        old: "Err(io::const_error!(io::ErrorKind::Unsupported, \"lock_shared() not supported\"))",
        new: "crate::sys::gpu_run::lock(self.as_raw_fd(), crate::sys::gpu_run::lock::SHARED)",
    },
    Edit {
        file: "sys/fs/unix.rs",
        old: "Err(TryLockError::Error(io::const_error!(
            io::ErrorKind::Unsupported,
            \"try_lock() not supported\"
        )))",
        new: "crate::sys::gpu_run::try_lock(self.as_raw_fd(), crate::sys::gpu_run::lock::EXCLUSIVE)",
    },
    Edit {
        file: "sys/fs/unix.rs",
        old: "Err(TryLockError::Error(io::const_error!(
            io::ErrorKind::Unsupported,
            \"try_lock_shared() not supported\"
        )))",
        new: "crate::sys::gpu_run::try_lock(self.as_raw_fd(), crate::sys::gpu_run::lock::SHARED)",
    },
    Edit {
        file: "sys/fs/unix.rs",
        old: "Err(io::const_error!(io::ErrorKind::Unsupported, \"unlock() not supported\"))",
        new: "crate::sys::gpu_run::lock(self.as_raw_fd(), crate::sys::gpu_run::lock::NONE)",
    },
    Replace("../../backtrace/src/backtrace/noop.rs", include_str!("../overlay/backtrace_trace.rs")),
    Replace("../../backtrace/src/symbolize/noop.rs", include_str!("../overlay/backtrace_symbolize.rs")),
    // Where a panic ends the program, gpu-run prints its backtrace.
    Edit {
        file: "sys/backtrace.rs",
        old: "        if cfg!(test) {\n            return Ok(());\n",
        new: "        if cfg!(any(test, panic = \"abort\")) {\n            return Ok(());\n",
    },
    // A program's folders are not those that it was built in: of a path below `/`, nothing is left out.
    Edit {
        file: "sys/backtrace.rs",
        old: "        if let Some(cwd) = cwd {\n",
        new: "        if let Some(cwd) = cwd.filter(|cwd| cwd.parent().is_some()) {\n",
    },
    // Tests that expect a panic can run where it unwinds.
    Edit {
        file: "../../test/src/lib.rs",
        old: "        && (cfg!(target_family = \"wasm\") || cfg!(target_os = \"zkvm\"))\n",
        new: "        && (cfg!(target_family = \"wasm\") || cfg!(target_os = \"zkvm\"))\n        && cfg!(panic = \"abort\")\n",
    },
    // All paths that std uses go through this function.
    Edit {
        file: "sys/helpers/small_c_string.rs",
        old: "f: &dyn Fn(&CStr) -> io::Result<T>) -> io::Result<T> {\n    run_with_cstr(path",
        new: "f: &dyn Fn(&CStr) -> io::Result<T>) -> io::Result<T> {
    let _paths = crate::sys::gpu_run::use_paths();
    let path = &*crate::sys::gpu_run::files::without_leading_dots(path);
    run_with_cstr(path",
    },
    Edit {
        file: "os/fd/owned.rs",
        old: "    #[cfg(any(target_arch = \"wasm32\", target_os = \"hermit\", target_os = \"trusty\"))]
    #[stable(feature = \"io_safety\", since = \"1.63.0\")]
    pub fn try_clone_to_owned(&self) -> io::Result<OwnedFd> {
        Err(io::Error::UNSUPPORTED_PLATFORM)
",
        new: "    #[stable(feature = \"io_safety\", since = \"1.63.0\")]
    pub fn try_clone_to_owned(&self) -> io::Result<OwnedFd> {
        let fd = crate::sys::gpu_run::duplicate(self.as_raw_fd())?;
        // SAFETY: the host has just made it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
",
    },
];

/// In which file paths are differs between the versions.
const CHANGES_1_95: &[Change] = &[
    Add("sys/paths/wasi.rs", include_str!("../overlay/paths.rs")),
    Replace("sys/pal/wasi/os.rs", include_str!("../overlay/os_1_95.rs")),
];
const CHANGES_SINCE_1_96: &[Change] = &[
    Replace("sys/paths/wasi.rs", include_str!("../overlay/paths.rs")),
    Edit {
        file: "sys/paths/mod.rs",
        // The first branch that fits is taken.
        old: "    target_os = \"wasi\" => {\n",
        new: "    target_os = \"wasi\" => {
        mod wasi;
        use wasi as imp;
    }
    target_os = \"wasi\" => {
",
    },
];
const CHANGES_SINCE_1_97: &[Change] = &[Edit {
    file: "sys/process/unsupported.rs",
    old: "    pub fn get_env_clear(&self) -> bool {\n",
    new: "    pub fn get_resolved_envs(&self) -> super::env::CommandResolvedEnvs {
        super::env::CommandResolvedEnvs::new(self.env.capture())
    }

    pub fn get_env_clear(&self) -> bool {\n",
}];

/// Returns the changes for a version, in their order.
fn changes(version: &str) -> impl Iterator<Item = &'static Change> {
    let is = |known: &str| version.starts_with(known) && version[known.len()..].starts_with('.');
    let paths = if is("1.95") { CHANGES_1_95 } else { CHANGES_SINCE_1_96 };
    let later = if is("1.95") || is("1.96") { &[] } else { CHANGES_SINCE_1_97 };
    [CHANGES, paths, later].into_iter().flatten()
}

/// Returns a hash of the overlay for a version, and of how stds are made, as a part of a folder's name.
pub(crate) fn hash(version: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[crate::make::MANNER]);
    for change in changes(version) {
        let parts = match change {
            Replace(file, text) | Add(file, text) => [*file, "", *text],
            Edit { file, old, new } => [*file, *old, *new],
        };
        parts.iter().for_each(|part| _ = hasher.update(part.as_bytes()).update(&[0]));
    }
    hasher.finalize().to_hex()[..12].to_owned()
}

/// Lays the overlay over the sources of std in `library/std`.
pub fn lay_over(std: &Path, version: &str) -> Result<()> {
    changes(version).try_for_each(|change| make(change, &std.join("src")))
}

fn make(change: &Change, src: &Path) -> Result<()> {
    let (file, text) = match change {
        Replace(file, text) | Add(file, text) => {
            let path = src.join(file);
            let is_new = matches!(change, Add(..));
            if path.exists() == is_new {
                let what = if is_new { "it is there already" } else { "there is no such file" };
                return Err(Error::Changed { path, what });
            }
            let folder = path.parent().unwrap_or(src);
            fs::create_dir_all(folder).map_err(at(folder))?;
            (path, (*text).to_owned())
        }
        Edit { file, old, new } => {
            let path = src.join(file);
            let text = fs::read_to_string(&path).map_err(at(&path))?;
            let Some(edited) = edited(&text, old, new) else {
                return Err(Error::Changed { path, what: "the text of a change is not there, or not once" });
            };
            (path, edited)
        }
    };
    fs::write(&file, text).map_err(at(&file))
}

fn edited(text: &str, old: &str, new: &str) -> Option<String> {
    let (before, after) = text.split_once(old)?;
    (!after.contains(old)).then(|| [before, new, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_run_abi::{TrapCode, extension};

    #[test]
    fn a_text_is_replaced() {
        assert_eq!(edited("a\nb {\nc\n", "b {\n", "b {\nx\n").as_deref(), Some("a\nb {\nx\nc\n"));
    }

    #[test]
    fn a_text_that_is_missing_or_not_the_only_one_is_refused() {
        for text in ["", "a", "bb", "b a b"] {
            assert_eq!(edited(text, "b", "x"), None, "{text:?}");
        }
    }

    #[test]
    fn each_version_has_its_own_changes() {
        let count = |version| changes(version).count();
        assert_eq!(count("1.95.1"), CHANGES.len() + CHANGES_1_95.len());
        assert_eq!(count("1.96.0"), CHANGES.len() + CHANGES_SINCE_1_96.len());
        assert_eq!(count("1.97.2"), CHANGES.len() + CHANGES_SINCE_1_96.len() + CHANGES_SINCE_1_97.len());
        assert_ne!(hash("1.95.0"), hash("1.96.0"));
        assert_eq!(hash("1.95.0"), hash("1.95.1"));
    }

    /// The overlay cannot use the crate: std has no dependencies but its own.
    #[test]
    fn the_overlay_has_the_numbers_of_the_host() {
        let texts = [
            include_str!("../overlay/gpu_run.rs"),
            include_str!("../overlay/net.rs"),
            include_str!("../overlay/process.rs"),
        ]
        .concat();
        let has = |line: String| assert!(texts.contains(&line), "{line}");
        has(format!(
            "const DESCRIPTOR: u32 = 0x{:04x}_{:04x};",
            extension::DESCRIPTOR >> 16,
            extension::DESCRIPTOR & 0xffff
        ));
        has(format!("const ADDRESS_BYTES: usize = {};", extension::ADDRESS_BYTES));
        macro_rules! all {
            ($module:ident, $ty:literal, $($name:ident),*) => {
                $(has(format!("pub const {}: {} = {};", stringify!($name), $ty, extension::$module::$name));)*
            };
        }
        all!(
            ask,
            "u8",
            TCP_CONNECT,
            TCP_LISTEN,
            UDP_BIND,
            UDP_CONNECT,
            UDP_SEND_TO,
            SET_OPTION,
            LOOK_UP,
            DUPLICATE,
            MULTICAST,
            PARALLELISM,
            PROCESS_START,
            PROCESS_KILL,
            PROCESS_ID,
            LOCK,
            SET_PERMISSIONS
        );
        all!(
            fetch,
            "u8",
            LOCAL_ADDRESS,
            PEER_ADDRESS,
            OPTION,
            RECEIVE_FROM,
            REPLY,
            PIPE,
            PROCESS_END,
            CURRENT_DIR,
            EXECUTABLE,
            CALLS,
            FUNCTIONS
        );
        all!(lock, "u32", NONE, SHARED, EXCLUSIVE, NO_WAIT);
        all!(ended, "u32", EXITED, TRAPPED);
        assert_eq!(extension::NO_STREAM, u32::MAX);
        all!(option, "u32", READ_TIMEOUT, WRITE_TIMEOUT, TTL, NODELAY, LINGER, BROADCAST, ONLY_V6, ERROR, KEEPALIVE);
        all!(option, "u32", MULTICAST_LOOP_V4, MULTICAST_TTL_V4, MULTICAST_LOOP_V6);
    }

    #[test]
    fn the_overlay_has_the_names_of_traps() {
        let text = include_str!("../overlay/process.rs");
        for code in TrapCode::ALL {
            // A child's status is never one of these: they do not say what the child did.
            if !matches!(code, TrapCode::Inexact | TrapCode::Deviated | TrapCode::LostException) {
                let line = format!("        {} => {:?},", code as u8, code.message());
                assert!(text.contains(&line), "{line}");
            }
        }
    }
}
