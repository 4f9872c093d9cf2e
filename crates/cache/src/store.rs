//! The disk layer: entries as files.
//!
//! A hit opens one file, whose name follows from the key, so it costs the same however many entries there are. It reads
//! nothing about the cache as a whole: no list and no account. It takes no lock but the shared one on the entry itself.

use crate::entry::{self, About, Damage, Failure};
use crate::fault::{self, Oddity, odd};
use crate::in_use::InUse;
use crate::key::Key;
use crate::ledger::Ledger;
use crate::owner::Owner;
use crate::scan::{self, Item};
use crate::trust::{self, Distrust, FILE, Others, make_folder};
use crate::{Destination, Options};
use rustix::fs::{CWD, fstat};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Names in the cache's folder that no model may have: the cache's own folders, and its lock file.
pub(crate) const OWN_FOLDERS: [&str; 6] = ["tmp", "busy", "leases", "stats", "damaged", "lock"];
/// A folder that lies beside the models' and holds no entries: that of the stds, which `gpu-run build` makes. What may be done with it
/// is the sysroot crate's to say, so the cache looks at nothing in it.
pub(crate) const STDS: &str = "sysroots";
/// The extension of an entry's file, after 64 hexadecimal digits.
pub(crate) const EXTENSION: &str = "entry";
/// How many entries that were set aside are kept for inspection.
const MAX_DAMAGED: usize = 16;

/// Whether a name in the cache's folder is no model's.
pub(crate) fn is_own(name: &str) -> bool {
    name == STDS || OWN_FOLDERS.contains(&name)
}

#[derive(Debug)]
pub(crate) struct Store {
    /// The cache's folder, held open: this stays the folder that was checked, even if its name comes to mean another.
    folder: Arc<OwnedFd>,
    /// A path that leads to the open folder, even if its name comes to mean another.
    pub(crate) root: PathBuf,
    /// The cache's folder by its name, for messages.
    pub(crate) place: PathBuf,
    pub(crate) options: Options,
}

/// The result of looking up a key.
#[derive(Debug)]
pub(crate) enum Lookup<R> {
    Hit(Hit<R>),
    Miss,
    /// The entry was damaged and has been set aside.
    Damaged,
}

#[derive(Debug)]
pub(crate) struct Hit<R> {
    pub(crate) about: About,
    pub(crate) bytes: R,
    pub(crate) in_use: InUse,
}

/// The result of a write.
#[derive(Debug)]
pub(crate) struct Written {
    /// `None` if the entry was not kept: it is larger than the limit, or evicting what is not in use freed too little.
    pub(crate) kept: Option<InUse>,
    /// Bytes of the entry's file.
    pub(crate) bytes: u64,
    pub(crate) evicted: Vec<Item>,
}

impl Store {
    /// Opens the cache's folder, and creates it if need be. Code from this folder is run, so the folder is refused if
    /// another user owns it or others may write to it.
    pub(crate) fn open(options: Options) -> io::Result<Self> {
        make_folder(&options.dir)?;
        let folder = Arc::new(trust::open_folder(&options.dir, Others::MayRead)?);
        let place = fs::canonicalize(&options.dir)?;
        let held = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        // Without /proc the folder can only be reached by its name.
        let root = if held.is_dir() { held } else { place.clone() };
        for own in OWN_FOLDERS.iter().filter(|own| **own != "lock") {
            trust::check_named(&root.join(own)).map_err(|error| match Distrust::of(&error) {
                Some(distrust) => io::Error::new(error.kind(), Below { name: own, distrust }),
                None => error,
            })?;
        }
        let tag = root.join("CACHEDIR.TAG");
        if !tag.exists() {
            // Backup programs skip folders with this file. A read-only cache is usable without it.
            let _ = fs::write(tag, "Signature: 8a477f597d28d172789f06886806bc55\n# Programs compiled by gpu-run.\n");
        }
        Ok(Self { folder, root, place, options })
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.options.clock)()
    }

    /// The path of one of the cache's own folders or files.
    pub(crate) fn own(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Turns a path below `root` into the path that people know.
    pub(crate) fn shown(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.root).map_or_else(|_| path.to_owned(), |below| self.place.join(below))
    }

    /// The path of the key's entry. A model's entries are spread over 256 folders, so that none grows too long to list.
    pub(crate) fn path(&self, key: &Key) -> PathBuf {
        let hex = key.hex();
        self.root.join(key.model()).join(&hex[..2]).join(format!("{hex}.{EXTENSION}"))
    }

    pub(crate) fn lock(&self) -> io::Result<Ledger> {
        Ledger::lock(&self.own("lock"), self.options.locks, self.now())
    }

    pub(crate) fn get<R: Destination>(&self, key: &Key) -> Lookup<R> {
        let path = self.path(key);
        match self.read(key) {
            Ok(Ok(hit)) => Lookup::Hit(hit),
            Ok(Err((damage, seen))) => {
                self.set_aside(&path, key.model(), Some(seen), damage);
                Lookup::Damaged
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::debug!("{}: {error}", self.shown(&path).display());
                }
                Lookup::Miss
            }
        }
    }

    /// Opens the folder of the key's entry; fails if another user owns it or others may write to it.
    fn shard(&self, key: &Key) -> io::Result<OwnedFd> {
        let model = trust::open_folder_in(&*self.folder, key.model(), Others::MayRead)?;
        trust::open_folder_in(model, &key.hex()[..2], Others::MayRead)
    }

    /// Reads the key's entry. If it is damaged, returns the damage and the file it was found in.
    fn read<R: Destination>(&self, key: &Key) -> io::Result<Result<Hit<R>, (Damage, Inode)>> {
        let file = trust::open_file_in(self.shard(key)?, self.path(key).file_name().unwrap_or_default())?;
        odd(Oddity::Stale)?;
        let metadata = file.metadata()?;
        let inode = Inode::of(&metadata);
        if !metadata.is_file() {
            return Ok(Err((Damage::Irregular, inode)));
        }
        if let Err(distrust) = trust::check(&fstat(&file)?, Others::MayRead) {
            return Ok(Err((Damage::Distrusted(distrust), inode)));
        }
        // Held before it is read: from here on nobody evicts the entry.
        let in_use = self.hold(file.try_clone()?, key);
        let (about, bytes) = match entry::decode(&file, metadata.len(), key.hash()) {
            Ok(whole) => whole,
            Err(Failure::Damage(damage)) => return Ok(Err((damage, inode))),
            Err(Failure::Io(error)) => return Err(error),
        };
        self.touch(&file, &metadata);
        Ok(Ok(Hit { about, bytes, in_use }))
    }

    /// Records the use of an entry in its file's modification time (the header says when the entry was made). This
    /// takes one call on the file that is open anyway, changes only its inode, needs no list that many processes would
    /// write to, and survives a crash of this process.
    fn touch(&self, file: &File, metadata: &fs::Metadata) {
        let now = self.now();
        let age = metadata.modified().ok().and_then(|used| now.duration_since(used).ok());
        if age.is_none_or(|age| age >= self.options.touch_every) {
            let _ = odd(Oddity::Time).and_then(|()| file.set_modified(now));
        }
    }

    fn hold(&self, file: File, key: &Key) -> InUse {
        let lease = || InUse::lease(&self.folder, &self.own("leases"), &key.hex(), self.number());
        if !self.options.locks {
            return lease();
        }
        InUse::lock(file).unwrap_or_else(|_| lease())
    }

    /// Returns a new number for file names: unique in this process, over all its caches.
    pub(crate) fn number(&self) -> u64 {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        NUMBER.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes an entry's file. Until it is complete, nobody sees any of it. With `durable`, it is on disk when this
    /// returns and survives a crash of the process or the machine.
    pub(crate) fn put(&self, key: &Key, file: &[u8]) -> io::Result<Written> {
        let bytes = file.len() as u64;
        if bytes > self.options.limit {
            return Ok(Written { kept: None, bytes, evicted: Vec::new() });
        }
        let draft = Draft::write(self, file)?;
        // Held before others can see it, so that nobody evicts it first.
        let in_use = self.hold(draft.file.try_clone()?, key);
        let target = self.path(key);
        let folder = target.parent().unwrap_or(&self.root);
        make_folder(folder)?;
        self.shard(key)?;

        fault::point("lock")?;
        let ledger = self.lock()?;
        let before = fs::symlink_metadata(&target).map_or(0, |m| m.len());
        let (room, evicted) = scan::make_room(self, &ledger, bytes, &target, before)?;
        let Some(total) = room else { return Ok(Written { kept: None, bytes, evicted }) };
        fault::point("account")?;
        ledger.set_bytes(total + before, false)?;
        fault::point("rename")?;
        draft.rename(&target)?;
        fault::point("settle")?;
        ledger.set_bytes(total, false)?;
        drop(ledger);

        fault::point("sync folder")?;
        self.sync_folder(folder)?;
        fault::point("done")?;
        Ok(Written { kept: Some(in_use), bytes, evicted })
    }

    /// Syncs a folder and its parents up to the cache's root: a rename is on disk once its folder is synced, a new
    /// folder once its parent is.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        if !self.options.durable {
            return Ok(());
        }
        let mut at = Some(folder);
        while let Some(folder) = at.filter(|at| at.starts_with(&self.root)) {
            // Some file systems cannot sync a folder and say so. Their guarantees for a rename hold without it.
            match odd(Oddity::Sync).and_then(|()| File::open(folder)?.sync_all()) {
                Err(error) if error.kind() != io::ErrorKind::InvalidInput => return Err(error),
                _ => {}
            }
            at = folder.parent();
        }
        Ok(())
    }

    /// Replaces a JSON file in one step. The file is not synced: its content can be made again, or is a few counts.
    pub(crate) fn replace(&self, path: &Path, value: &impl serde::Serialize) -> io::Result<()> {
        let draft = self.own("tmp").join(format!("{}.{}.tmp", Owner::this(), self.number()));
        make_folder(&self.own("tmp"))?;
        let bytes = serde_json::to_vec_pretty(value)?;
        let written =
            create(&draft).and_then(|mut file| file.write_all(&bytes)).and_then(|()| fs::rename(&draft, path));
        written.inspect_err(|_| drop(fs::remove_file(&draft)))
    }

    /// Moves a file to `damaged/`. With `seen`, only if the path still leads to that file: another process may have put
    /// a good entry there. Returns whether the file was removed from its place.
    pub(crate) fn set_aside(&self, path: &Path, model: &str, seen: Option<Inode>, why: Damage) -> bool {
        let shown = self.shown(path);
        match why {
            // A warning, because a file that cannot be trusted is worth a look by the user.
            Damage::Distrusted(why) => tracing::warn!("not using a compiled program: {}: {why}", shown.display()),
            why => tracing::info!("set aside: {}: {why}", shown.display()),
        }
        let Ok(ledger) = self.lock() else { return false };
        let Ok(metadata) = fs::symlink_metadata(path) else { return false };
        if seen.is_some_and(|seen| seen != Inode::of(&metadata)) {
            return false;
        }
        let folder = self.own("damaged");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let aside = folder.join(format!("{}.{}.{model}.{name}", Owner::this(), self.number()));
        let moved = make_folder(&folder).and_then(|()| fs::rename(path, aside));
        if moved.is_err() && fs::remove_file(path).is_err() {
            return false;
        }
        // The account holds entries only: files that are not named like one were never added.
        let is_counted = metadata.is_file() && !matches!(why, Damage::Foreign);
        if let Some(bytes) = ledger.bytes().filter(|_| is_counted) {
            let _ = ledger.set_bytes(bytes.saturating_sub(metadata.len()), false);
        }
        scan::keep_newest(&folder, MAX_DAMAGED);
        true
    }
}

/// Identifies the file a path led to: its device and inode numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inode(u64, u64);

impl Inode {
    pub(crate) fn of(metadata: &fs::Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// Opens a file to read; does not block even if somebody put a pipe there.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    trust::open_file_in(CWD, path)
}

/// Creates a file that only its owner can access; fails if it exists.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(FILE).open(path)
}

/// One of the cache's own folders cannot be trusted.
#[derive(Debug, thiserror::Error)]
#[error("its folder `{name}`: {distrust}")]
struct Below {
    name: &'static str,
    distrust: Distrust,
}

/// A file in `tmp/` that other processes do not look at. Removed when dropped, unless it was renamed.
#[derive(Debug)]
struct Draft<'a> {
    store: &'a Store,
    path: PathBuf,
    file: File,
    done: bool,
}

impl<'a> Draft<'a> {
    /// Writes a new file. With `durable`, it is on disk when this returns.
    fn write(store: &'a Store, bytes: &[u8]) -> io::Result<Self> {
        fault::point("create")?;
        let path = store.own("tmp").join(format!("{}.{}.tmp", Owner::this(), store.number()));
        let file = match create(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_folder(&store.own("tmp"))?;
                create(&path)?
            }
            made => made?,
        };
        let mut draft = Self { store, path, file, done: false };
        fault::point("write")?;
        let (first, second) = bytes.split_at(bytes.len() / 2);
        draft.file.write_all(first)?;
        fault::point("write on")?;
        draft.file.write_all(second)?;
        // A failure does not matter: the file is new, and so is its time.
        let _ = odd(Oddity::Time).and_then(|()| draft.file.set_modified(store.now()));
        fault::point("sync")?;
        if store.options.durable {
            draft.file.sync_all()?;
        }
        Ok(draft)
    }

    /// Whether `metadata` is this file's.
    fn is(&self, metadata: &fs::Metadata) -> bool {
        self.file.metadata().is_ok_and(|ours| Inode::of(&ours) == Inode::of(metadata))
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        let renamed = fs::rename(&self.path, target).and_then(|()| odd(Oddity::Rename)).or_else(|error| {
            // On a network file system, a rename that is reported as failed may have been done.
            if fs::metadata(target).is_ok_and(|there| self.is(&there)) {
                return Ok(());
            }
            // `clear` may just have removed the folder, or there may be a folder where the file belongs.
            match error.kind() {
                io::ErrorKind::NotFound => make_folder(target.parent().unwrap_or(&self.store.root))?,
                io::ErrorKind::IsADirectory => fs::remove_dir_all(target)?,
                _ => return Err(error),
            }
            fs::rename(&self.path, target)
        });
        self.done = renamed.is_ok();
        renamed
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_file(&self.path);
        }
    }
}
