//! The two folders a program of `tests/wasi` is given, and all that is in them afterwards.
//!
//! ```text
//! outside            what no program may reach
//! root/              the program's `.`
//!   given/file       0123456789
//!   given/dir/inner  inner
//!   given/bytes/\xff a name that is not UTF-8
//!   given/link       ▶ file, a symbolic link
//!   given/to-dir     ▶ dir
//!   given/dangling   ▶ nowhere
//!   given/loop       ▶ loop
//!   given/absolute   ▶ /etc/passwd
//!   given/escape     ▶ ../../outside
//!   given/up         ▶ ../..
//! other/kept         the program's `other`
//! ```

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What is older was set by the program, and is compared.
const RECENT: i64 = 1_500_000_000;

pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> io::Result<Self> {
        let place = Self(tempfile::tempdir()?);
        let given = place.root().join("given");
        fs::create_dir_all(given.join("dir"))?;
        fs::create_dir(given.join("bytes"))?;
        fs::create_dir(place.other())?;
        let files: [(PathBuf, &str); 5] = [
            (place.0.path().join("outside"), "not for programs"),
            (given.join("file"), "0123456789"),
            (given.join("dir/inner"), "inner"),
            (given.join("bytes").join(OsStr::from_bytes(b"\xff")), ""),
            (place.other().join("kept"), "kept"),
        ];
        for (path, content) in files {
            fs::write(path, content)?;
        }
        let links = [
            ("link", "file"),
            ("to-dir", "dir"),
            ("dangling", "nowhere"),
            ("loop", "loop"),
            ("absolute", "/etc/passwd"),
            ("escape", "../../outside"),
            ("up", "../.."),
        ];
        for (name, target) in links {
            symlink(target, given.join(name))?;
        }
        Ok(place)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    pub(crate) fn other(&self) -> PathBuf {
        self.0.path().join("other")
    }

    /// Everything here, a line each, by path.
    pub(crate) fn tree(&self) -> io::Result<BTreeMap<PathBuf, String>> {
        let mut tree = BTreeMap::new();
        collect(self.0.path(), Path::new(""), &mut tree)?;
        Ok(tree)
    }
}

fn collect(root: &Path, below: &Path, tree: &mut BTreeMap<PathBuf, String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let name = below.join(entry?.file_name());
        let path = root.join(&name);
        let metadata = fs::symlink_metadata(&path)?;
        tree.insert(name.clone(), describe(&path, &metadata)?);
        if metadata.is_dir() {
            collect(root, &name, tree)?;
        }
    }
    Ok(())
}

/// What it is, who may what, and what is in it.
fn describe(path: &Path, metadata: &Metadata) -> io::Result<String> {
    let kind = if metadata.is_dir() {
        "directory".into()
    } else if metadata.is_symlink() {
        format!("link to {:?}", fs::read_link(path)?)
    } else {
        let content = fs::read(path)?;
        let start = &content[..content.len().min(80)];
        format!("file of {}, {} links: {:?}", content.len(), metadata.nlink(), String::from_utf8_lossy(start))
    };
    let time = |seconds: i64, nanoseconds: i64| match seconds {
        RECENT.. => "recent".into(),
        _ => format!("{seconds}.{nanoseconds:09}"),
    };
    let modified = time(metadata.mtime(), metadata.mtime_nsec());
    Ok(format!("{kind}, mode {:o}, modified {modified}", metadata.mode()))
}
