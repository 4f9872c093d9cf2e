//! Open directories, and reading their entries.
//!
//! The first read of a directory (cookie 0) takes a listing, which is kept with the descriptor. So a cookie always
//! means the same entry, however the directory changes: no entry is seen twice, and a loop that removes what it reads
//! misses none.

use std::sync::Arc;

use cap_std::fs::{Dir, OpenOptions};
use rustix::fs::{AtFlags, DirEntry, FileType, fstat, statat};

use crate::descriptor::Table;
use crate::encode::{Filestat, Filetype, Out, Result};
use crate::{Access, Errno};

pub(crate) struct Directory {
    pub(crate) dir: Arc<Dir>,
    /// The guest's name for a preopened directory; `None` for one that the guest opened itself.
    pub(crate) preopen: Option<Arc<str>>,
    pub(crate) access: Access,
    listing: Option<Vec<Entry>>,
}

struct Entry {
    ino: u64,
    kind: Filetype,
    name: Box<str>,
}

impl Entry {
    fn new(dir: &Dir, entry: &DirEntry) -> Result<Self> {
        let name = entry.file_name();
        let kind = match entry.file_type() {
            FileType::Unknown => FileType::from_raw_mode(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode),
            known => known,
        };
        let name = name.to_str().map_err(|_| Errno::Ilseq)?;
        Ok(Self { ino: entry.ino(), kind: kind.into(), name: name.into() })
    }

    /// Returns how much of the host's memory the entry takes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.len()
    }
}

impl Directory {
    pub(crate) fn new(dir: Arc<Dir>, preopen: Option<Arc<str>>, access: Access) -> Self {
        Self { dir, preopen, access, listing: None }
    }

    /// Returns another descriptor of the same folder, which reads its entries from the beginning.
    pub(crate) fn share(&self) -> Self {
        Self { dir: self.dir.clone(), preopen: self.preopen.clone(), access: self.access, listing: None }
    }

    fn held(&self) -> usize {
        self.listing.iter().flatten().map(Entry::bytes).sum()
    }
}

/// The most bytes of entries that all listings of an instance may hold. A larger directory is read anew for every call,
/// and a cookie is then only a position. That is slower and less exact, but a guest cannot fill the host's memory with
/// listings.
const MAX_HELD_BYTES: usize = 16 << 20;
/// The most bytes of entries in one answer. An answer shorter than the guest's buffer would mean the end of the
/// directory, so a guest with a larger buffer and a larger directory gets an error instead.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// `fd_readdir`: returns as many entries as fit; the last one is cut off where the buffer ends.
pub(crate) fn read(table: &mut Table, fd: u64, room: u64, cookie: u64, out: &mut Out) -> Result {
    read_within(table, fd, room, cookie, out, Limits { held: MAX_HELD_BYTES, answer: MAX_ANSWER_BYTES })
}

#[derive(Clone, Copy)]
struct Limits {
    held: usize,
    answer: usize,
}

fn read_within(table: &mut Table, fd: u64, room: u64, cookie: u64, out: &mut Out, limits: Limits) -> Result {
    let directory = table.directory(fd)?;
    let held = directory.listing.take().filter(|_| cookie != 0);
    let mut answer = Answer::new(room, cookie, out, limits.answer);
    if let Some(listing) = held {
        answer.at = cookie;
        for entry in listing.iter().skip(usize::try_from(cookie).unwrap_or(usize::MAX)) {
            answer.put(entry)?;
        }
        answer.finish()?;
        table.directory(fd)?.listing = Some(listing);
        return Ok(());
    }
    let dir = directory.dir.clone();
    let mut left = limits.held.saturating_sub(table.directories().map(Directory::held).sum());
    let mut listing = Some(Vec::new());
    for entry in entries(&dir)? {
        let entry = entry?;
        answer.put(&entry)?;
        match left.checked_sub(entry.bytes()) {
            Some(rest) => left = rest,
            None => listing = None,
        }
        match &mut listing {
            Some(listing) => listing.push(entry),
            // The answer is full, and the rest is not kept either.
            None if answer.is_full() => break,
            None => {}
        }
    }
    answer.finish()?;
    table.directory(fd)?.listing = listing;
    Ok(())
}

/// The answer of `fd_readdir`: its length, and the entries from a cookie on.
struct Answer<'a> {
    out: &'a mut Out,
    room: usize,
    /// The most bytes that the answer may have.
    most: usize,
    /// The number of the next entry, and of the first entry that the guest wants.
    at: u64,
    first: u64,
}

impl<'a> Answer<'a> {
    fn new(room: u64, first: u64, out: &'a mut Out, most: usize) -> Self {
        out.put_u32(0);
        Self { out, room: usize::try_from(room).unwrap_or(usize::MAX).saturating_add(4), most, at: 0, first }
    }

    fn is_full(&self) -> bool {
        self.out.bytes.len() >= self.room
    }

    fn put(&mut self, entry: &Entry) -> Result {
        self.at = self.at.saturating_add(1);
        if self.at <= self.first || self.is_full() {
            return Ok(());
        }
        if self.out.bytes.len() > self.most {
            return Err(Errno::Overflow.into());
        }
        self.out.put_u64(self.at);
        self.out.put_u64(entry.ino);
        self.out.put_u32(entry.name.len() as u32);
        self.out.put(&[entry.kind as u8, 0, 0, 0]);
        self.out.put(entry.name.as_bytes());
        Ok(())
    }

    fn finish(self) -> Result {
        self.out.bytes.truncate(self.room);
        let used = u32::try_from(self.out.bytes.len() - 4).map_err(|_| Errno::Overflow)?;
        self.out.bytes[..4].copy_from_slice(&used.to_le_bytes());
        Ok(())
    }
}

/// Returns all entries of a directory.
fn entries(dir: &Dir) -> Result<impl Iterator<Item = Result<Entry>>> {
    let own = Filestat::from(fstat(dir)?).ino;
    // The guest may not learn about the parent directory: `..` gets the directory's own inode number.
    let own = [".", ".."].map(|name| Ok(Entry { ino: own, kind: Filetype::Directory, name: name.into() }));
    // Opened anew: the read position belongs to the open file description.
    let opened = dir.open_with(".", OpenOptions::new().read(true))?.into_std();
    let others = rustix::fs::Dir::new(opened)?.filter_map(move |entry| match entry {
        Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => None,
        Ok(entry) => Some(Entry::new(dir, &entry)),
        Err(error) => Some(Err(error.into())),
    });
    Ok(own.into_iter().chain(others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::Descriptor;
    use crate::encode::Stop;
    use cap_std::ambient_authority;
    use std::collections::BTreeSet;

    /// A directory with so many files, as descriptor 0.
    fn directory(count: usize) -> (tempfile::TempDir, Table) {
        let folder = tempfile::tempdir().expect("a folder");
        for n in 0..count {
            std::fs::write(folder.path().join(format!("{n:040}")), "").expect("a file");
        }
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).expect("it is there");
        let mut table = Table::default();
        let inserted = table.insert(Descriptor::Directory(Directory::new(dir.into(), None, Access::ReadOnly)));
        assert!(matches!(inserted, Ok(0)));
        (folder, table)
    }

    #[test]
    fn a_directory_larger_than_the_host_holds_is_read_to_its_end() {
        let (_folder, mut table) = directory(300);
        for held in [0, 5000, 1 << 20] {
            let limits = Limits { held, answer: 1 << 20 };
            let (mut cookie, mut seen, mut out) = (0, BTreeSet::new(), Out::default());
            loop {
                out.clear();
                assert!(read_within(&mut table, 0, 1000, cookie, &mut out, limits).is_ok());
                let entries = &out.bytes[4..];
                let size = |at: usize| 24 + entries[at + 16] as usize;
                let mut at = 0;
                while at + 24 <= entries.len() && at + size(at) <= entries.len() {
                    cookie = u64::from(entries[at]) | u64::from(entries[at + 1]) << 8;
                    seen.insert(entries[at + 24..at + size(at)].to_vec());
                    at += size(at);
                }
                if entries.len() < 1000 {
                    break;
                }
            }
            assert_eq!(seen.len(), 302, "{held} bytes are held");
            let kept = table.directories().map(Directory::held).sum::<usize>();
            assert!(kept <= held, "{kept} bytes are held, not {held}");
        }
    }

    #[test]
    fn an_answer_without_end_is_refused_and_a_short_one_is_not() {
        let (_folder, mut table) = directory(100);
        let limits = Limits { held: 1 << 20, answer: 2000 };
        let mut out = Out::default();
        let refused = read_within(&mut table, 0, u64::MAX, 0, &mut out, limits);
        assert!(matches!(refused, Err(Stop::Errno(Errno::Overflow))));
        assert!(out.bytes.len() < 4000);
        out.clear();
        assert!(read_within(&mut table, 0, 1500, 0, &mut out, limits).is_ok());
        assert_eq!(out.bytes.len(), 1504);
    }
}
