//! Open directories, and reading their entries.
//!
//! A listing is taken when a guest starts reading (cookie 0) and kept with the descriptor, so that a cookie
//! means the same entry however the directory changes meanwhile: no entry is seen twice, and a loop that removes what it reads
//! misses none.

use std::sync::Arc;

use cap_std::fs::{Dir, OpenOptions};
use rustix::fs::{AtFlags, FileType, fstat, statat};

use crate::Errno;
use crate::descriptor::Table;
use crate::encode::{Filestat, Filetype, Out, Result};

pub(crate) struct Directory {
    pub(crate) dir: Arc<Dir>,
    /// The name the guest knows it by, if it did not open it itself.
    pub(crate) preopen: Option<Arc<str>>,
    listing: Option<Vec<Entry>>,
}

struct Entry {
    ino: u64,
    kind: Filetype,
    name: Box<str>,
}

impl Directory {
    pub(crate) fn new(dir: Arc<Dir>, preopen: Option<Arc<str>>) -> Self {
        Self { dir, preopen, listing: None }
    }

    fn held(&self) -> usize {
        self.listing.as_ref().map_or(0, Vec::len)
    }
}

/// Entries that an instance's listings hold together. Beyond that they are taken anew for every call, and a cookie is
/// only a position: slower and less exact, but a guest cannot fill the host's memory with them.
const MAX_HELD: usize = 1 << 18;

/// `fd_readdir`: as many entries as fit, the last one cut off where the room ends.
pub(crate) fn read(table: &mut Table, fd: u64, room: u64, cookie: u64, out: &mut Out) -> Result {
    let directory = table.directory(fd)?;
    let listing = match directory.listing.take() {
        Some(listing) if cookie != 0 => listing,
        _ => list(&directory.dir)?,
    };
    put_entries(&listing, room, cookie, out)?;
    if table.directories().map(Directory::held).sum::<usize>() + listing.len() <= MAX_HELD {
        table.directory(fd)?.listing = Some(listing);
    }
    Ok(())
}

fn put_entries(listing: &[Entry], room: u64, cookie: u64, out: &mut Out) -> Result {
    let first = usize::try_from(cookie).unwrap_or(usize::MAX);
    let room = usize::try_from(room).unwrap_or(usize::MAX).saturating_add(4);
    out.put_u32(0);
    for (index, entry) in listing.iter().enumerate().skip(first) {
        if out.bytes.len() >= room {
            break;
        }
        out.put_u64(index as u64 + 1);
        out.put_u64(entry.ino);
        out.put_u32(entry.name.len() as u32);
        out.put(&[entry.kind as u8, 0, 0, 0]);
        out.put(entry.name.as_bytes());
    }
    out.bytes.truncate(room);
    let used = u32::try_from(out.bytes.len() - 4).map_err(|_| Errno::Overflow)?;
    out.bytes[..4].copy_from_slice(&used.to_le_bytes());
    Ok(())
}

fn list(dir: &Dir) -> Result<Vec<Entry>> {
    let own = Filestat::from(fstat(dir)?).ino;
    // The parent may be outside of what the guest may know: it gets the directory's own number.
    let mut entries = vec![
        Entry { ino: own, kind: Filetype::Directory, name: ".".into() },
        Entry { ino: own, kind: Filetype::Directory, name: "..".into() },
    ];
    // A descriptor of its own: the position in a directory belongs to what was opened.
    let opened = dir.open_with(".", OpenOptions::new().read(true))?.into_std();
    for entry in rustix::fs::Dir::new(opened)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => FileType::from_raw_mode(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode),
            known => known,
        };
        let name = name.to_str().map_err(|_| Errno::Ilseq)?;
        entries.push(Entry { ino: entry.ino(), kind: kind.into(), name: name.into() });
    }
    Ok(entries)
}
