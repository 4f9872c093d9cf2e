//! Who owns a file or a folder, and who may change it.
//!
//! gpu-run runs code from the cache and replaces files in it, both only where nobody else could have put something. So
//! it opens every folder and file once, without following links below the first folder, and checks what it opened
//! rather than what the name leads to a moment later. Write access by an access control list shows in the group's bits
//! of the mode.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::process::geteuid;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// The mode of a new folder: its owner's alone.
pub(crate) const FOLDER: u32 = 0o700;
/// The mode of a new file: its owner's alone.
pub(crate) const FILE: u32 = 0o600;

/// What other users may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Reading, but not writing.
    MayRead,
    MayNothing,
}

/// Why a file or a folder is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    #[error("it belongs to user {owner}, but gpu-run runs as user {us}")]
    Owner { owner: u32, us: u32 },
    #[error("other users can write to it (its mode is {mode:04o}): if none did, run `chmod go-w` on it")]
    Writable { mode: u32 },
    #[error("other users can access it (its mode is {mode:04o}): run `chmod go=` on it")]
    Readable { mode: u32 },
    #[error("it is not a folder")]
    NoFolder,
}

impl Distrust {
    /// Returns the reason if `error` is about trust.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref().and_then(|inner| inner.downcast_ref()).copied()
    }
}

impl From<Distrust> for io::Error {
    fn from(distrust: Distrust) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, distrust)
    }
}

/// Checks that a file with this owner and mode belongs to user `us` and grants others no more than `others`.
fn judge(owner: u32, mode: u32, us: u32, others: Others) -> Result<(), Distrust> {
    let mode = mode & 0o7777;
    if owner != us {
        return Err(Distrust::Owner { owner, us });
    }
    if mode & 0o022 != 0 {
        return Err(Distrust::Writable { mode });
    }
    if others == Others::MayNothing && mode & 0o077 != 0 {
        return Err(Distrust::Readable { mode });
    }
    Ok(())
}

pub(crate) fn check(stat: &Stat, others: Others) -> Result<(), Distrust> {
    judge(stat.st_uid, stat.st_mode, geteuid().as_raw(), others)
}

fn check_folder(stat: &Stat, others: Others) -> Result<(), Distrust> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => check(stat, others),
        _ => Err(Distrust::NoFolder),
    }
}

/// Creates a folder and its missing parents, for their owner alone.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Opens a folder that the user has named, and checks it. The name may be a link; the link's target is checked.
pub fn open_folder(path: &Path, others: Others) -> io::Result<OwnedFd> {
    open_in(CWD, path, OFlags::empty(), others)
}

/// Opens a folder whose name others may have taken, and checks it. Follows no link.
pub fn open_folder_in(folder: impl AsFd, name: impl AsRef<Path>, others: Others) -> io::Result<OwnedFd> {
    open_in(folder, name.as_ref(), OFlags::NOFOLLOW, others)
}

fn open_in(folder: impl AsFd, path: &Path, more: OFlags, others: Others) -> io::Result<OwnedFd> {
    let opened = openat(folder, path, OFlags::DIRECTORY | OFlags::CLOEXEC | more, Mode::empty());
    let opened = opened.map_err(|error| match error {
        // Reported for a link.
        rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP => Distrust::NoFolder.into(),
        error => io::Error::from(error),
    })?;
    check_folder(&fstat(&opened)?, others)?;
    Ok(opened)
}

/// Opens a file to read. Never blocks, whatever kind of file it is, and follows no link. Does not check the owner.
pub fn open_file_in(folder: impl AsFd, name: impl AsRef<Path>) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(openat(folder, name.as_ref(), flags, Mode::empty())?.into())
}

/// Checks that a folder, if it exists, is owned by us and that nobody else may write to it. For folders that are used
/// by name and lie where only we can create them.
pub(crate) fn check_named(path: &Path) -> io::Result<()> {
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(check_folder(&stat, Others::MayRead)?),
        Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_is_anothers_or_may_be_written_by_others_is_not_trusted() {
        let judged = |owner, mode| judge(owner, mode, 1000, Others::MayRead);
        for mode in [0o700, 0o755, 0o600, 0o644, 0o500, 0o2750] {
            assert_eq!(judged(1000, mode), Ok(()), "{mode:o}");
        }
        assert_eq!(judged(1001, 0o700), Err(Distrust::Owner { owner: 1001, us: 1000 }));
        assert_eq!(judged(0, 0o755), Err(Distrust::Owner { owner: 0, us: 1000 }), "root's is root's");
        assert_eq!(judge(1000, 0o700, 0, Others::MayRead), Err(Distrust::Owner { owner: 1000, us: 0 }));
        for mode in [0o777, 0o720, 0o702, 0o1777, 0o622] {
            assert_eq!(judged(1000, mode), Err(Distrust::Writable { mode }), "{mode:o}");
        }
        for mode in [0o750, 0o704, 0o711] {
            assert_eq!(judge(1000, mode, 1000, Others::MayNothing), Err(Distrust::Readable { mode }), "{mode:o}");
        }
    }

    #[test]
    fn below_the_first_folder_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("real")).unwrap();
        fs::set_permissions(folder.path().join("real"), Permissions::from_mode(0o700)).unwrap();
        symlink("real", folder.path().join("link")).unwrap();
        let opened = open_folder(&folder.path().join("link"), Others::MayNothing).unwrap();
        drop(opened);
        let root = open_folder(folder.path(), Others::MayRead).unwrap();
        open_folder_in(&root, "real", Others::MayNothing).unwrap();
        let refused = open_folder_in(&root, "link", Others::MayRead).unwrap_err();
        assert_eq!(Distrust::of(&refused), Some(Distrust::NoFolder));
        assert!(open_file_in(&root, "link").is_err());
        assert!(check_named(&folder.path().join("link")).is_err());
        check_named(&folder.path().join("nothing")).unwrap();
    }
}
