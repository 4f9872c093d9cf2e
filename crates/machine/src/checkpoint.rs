//! A machine's state between two ticks, in memory and on disk.
//!
//! A checkpoint is written to a temporary file beside its target, synced, and renamed; then the folder is synced. So a
//! reader finds either the old or the new file, whole. A file begins with what a reader must check first (magic number,
//! version, length, tick), then has the state packed with LZ4, and ends with a hash of everything before it.

use crate::error::{At, Error, Result};
use crate::layout::{H_MAGIC, H_TICK, H_VERSION, MAGIC, STATE, STATE_END, VERSION};
use crate::log::is_nearly;
use crate::place::Place;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const FILE_MAGIC: &[u8; 8] = b"GPRCKPT\n";
/// Magic number, version, bytes of the state, tick.
const HEADER: usize = 8 + 8 + 8 + 8;
const HASH: usize = 32;

/// Bytes of the machine's own state.
pub(crate) const STATE_BYTES: usize = (STATE_END - STATE) as usize;
/// The longest state that a checkpoint can have.
const MAX_STATE_BYTES: u64 = 1 << 30;

/// A BLAKE3 hash of a machine's state or of its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash([u8; 32]);

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Hash {
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A machine's state between two ticks.
#[derive(Clone, PartialEq, Eq)]
pub struct Checkpoint {
    state: Vec<u8>,
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checkpoint(tick {}, {} bytes)", self.tick(), self.state.len())
    }
}

impl Checkpoint {
    /// Makes a checkpoint of bytes from the machine's memory.
    pub(crate) fn new(state: Vec<u8>) -> Self {
        debug_assert!(state.len() >= STATE_BYTES);
        Self { state }
    }

    pub fn status(&self) -> &[u8] {
        &self.state
    }

    /// Fails if this is not the state of a kernel with this place.
    pub(crate) fn check(&self, place: &Place) -> Result<()> {
        let word = |at: usize| {
            let bytes = self.state.get(STATE_BYTES + at..STATE_BYTES + at + 4)?;
            bytes.try_into().ok().map(u32::from_le_bytes)
        };
        let found = word(0).zip(word(4));
        let wanted = place.room().map(|room| (room.magic, room.version));
        if found == wanted && self.state.len() == place.state_bytes() {
            return Ok(());
        }
        let name = |kernel: Option<(u32, u32)>| match kernel {
            None => "the machine's".to_owned(),
            Some((magic, version)) => {
                format!("that of `{}`, version {version}", magic.to_le_bytes().escape_ascii())
            }
        };
        Err(Error::Usage(format!(
            "the checkpoint's state is {}, but this kernel's is {}: resume it with the kernel that wrote it",
            name(found),
            name(wanted)
        )))
    }

    /// Returns a word of the machine's own state by its address in the machine's memory.
    pub fn word(&self, at: u32) -> u32 {
        let at = (at - STATE) as usize;
        let bytes = self.state.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    }

    /// Returns how many ticks the machine has done.
    pub fn tick(&self) -> u64 {
        self.word(H_TICK) as u64 | (self.word(H_TICK + 4) as u64) << 32
    }

    pub fn hash(&self) -> Hash {
        Hash(*blake3::hash(&self.state).as_bytes())
    }

    /// Writes the checkpoint to a file. It is on disk when this returns; until then, the old file is.
    pub fn write(&self, path: &Path) -> Result<()> {
        let bytes = self.encode();
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (draft, mut file) = create_beside(folder, &name).at(path)?;
        let written = file.write_all(&bytes).and_then(|()| file.sync_all());
        let written = written.and_then(|()| fs::rename(&draft, path)).and_then(|()| File::open(folder)?.sync_all());
        written.inspect_err(|_| drop(fs::remove_file(&draft))).at(path)
    }

    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).at(path)?;
        Self::decode(&bytes).map_err(|why| match why {
            Refused::Version(theirs) => Error::Version { path: path.to_owned(), theirs, ours: VERSION },
            Refused::Damage(why) => Error::Damaged { path: path.to_owned(), why: why.to_owned() },
            Refused::Foreign => Error::Foreign { path: path.to_owned(), why: "it is not a checkpoint".to_owned() },
        })
    }

    fn encode(&self) -> Vec<u8> {
        let packed = lz4_flex::block::compress(&self.state);
        let mut bytes = Vec::with_capacity(HEADER + packed.len() + HASH);
        bytes.extend(FILE_MAGIC);
        bytes.extend((VERSION as u64).to_le_bytes());
        bytes.extend((self.state.len() as u64).to_le_bytes());
        bytes.extend(self.tick().to_le_bytes());
        bytes.extend(packed);
        bytes.extend(blake3::hash(&bytes).as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, Refused> {
        let damage = Refused::Damage;
        match bytes.first_chunk() {
            Some(magic) if magic == FILE_MAGIC => {}
            Some(magic) if is_nearly(magic, FILE_MAGIC) => return Err(damage("its header is damaged")),
            _ => return Err(Refused::Foreign),
        }
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_le_bytes).ok_or(damage("it is cut short"))
        };
        // Checked before the hash: a file of another version may end in another way.
        let version = number(8)?;
        if version != VERSION as u64 {
            return Err(Refused::Version(version as u32));
        }
        let (length, tick) = (number(16)?, number(24)?);
        let end = bytes.len().checked_sub(HASH).filter(|end| *end >= HEADER).ok_or(damage("it is cut short"))?;
        if blake3::hash(&bytes[..end]).as_bytes() != &bytes[end..] {
            return Err(damage("its checksum is wrong: it is damaged or cut short"));
        }
        // The state of a kernel with a room is longer (`place`).
        if !(STATE_BYTES as u64..=MAX_STATE_BYTES).contains(&length) {
            return Err(damage("its state has the wrong length"));
        }
        let state = lz4_flex::block::decompress(&bytes[HEADER..end], length as usize);
        let checkpoint = Self { state: state.map_err(|_| damage("its state cannot be unpacked"))? };
        let header = [checkpoint.word(H_MAGIC), checkpoint.word(H_VERSION)];
        if checkpoint.state.len() as u64 != length || header != [MAGIC, VERSION] || checkpoint.tick() != tick {
            return Err(damage("its state is not valid"));
        }
        Ok(checkpoint)
    }
}

/// Creates a file in a folder under a name that does not exist yet. An existing file or link of that name is never
/// used: somebody else may have put it there.
fn create_beside(folder: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".{name}.{}.{number}.tmp", std::process::id()));
        match File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u64::from(u32::MAX) => {}
            made => return Ok((path, made?)),
        }
    }
}

#[derive(Debug)]
enum Refused {
    Version(u32),
    Foreign,
    Damage(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Checkpoint {
        let mut state = vec![0; STATE_BYTES];
        state[..4].copy_from_slice(&MAGIC.to_le_bytes());
        state[4..8].copy_from_slice(&VERSION.to_le_bytes());
        state[8] = 77;
        state[STATE_BYTES - 1] = 5;
        Checkpoint::new(state)
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ckpt");
        sample().write(&path).unwrap();
        let read = Checkpoint::read(&path).unwrap();
        assert_eq!((read.tick(), read.hash()), (77, sample().hash()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a draft was left");
    }

    #[test]
    fn every_flipped_byte_and_every_truncation_is_noticed() {
        let good = sample().encode();
        assert!(Checkpoint::decode(&good).is_ok());
        let mut bad = good.clone();
        // A state of zeros packs to the same bytes over and over: its ends, and some of its middle.
        for at in (0..good.len()).filter(|at| *at < 2048 || good.len() - at < 2048 || at % 97 == 0) {
            bad[at] ^= 1 << (at % 8);
            assert!(Checkpoint::decode(&bad).is_err(), "byte {at}");
            bad[at] = good[at];
            assert!(Checkpoint::decode(&good[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn no_link_that_is_in_the_way_is_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        for number in 0..200 {
            let draft = format!(".a.ckpt.{}.{number}.tmp", std::process::id());
            std::os::unix::fs::symlink(&victim, folder.path().join(draft)).unwrap();
        }
        sample().write(&folder.path().join("a.ckpt")).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        Checkpoint::read(&folder.path().join("a.ckpt")).unwrap();
    }

    #[test]
    fn another_version_is_refused_and_both_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.ckpt");
        let mut bytes = sample().encode();
        bytes[8] = 200;
        fs::write(&path, bytes).unwrap();
        let message = Checkpoint::read(&path).unwrap_err().to_string();
        assert!(message.contains("version 200") && message.contains(&format!("version {VERSION}")), "{message}");
    }

    #[test]
    fn a_failed_write_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dir");
        fs::create_dir_all(path.join("in the way")).unwrap();
        assert!(sample().write(&path).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a draft was left");
    }
}
