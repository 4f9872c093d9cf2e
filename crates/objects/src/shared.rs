//! A folder that machines share: objects below a prefix, or files in a folder of the file system.
//!
//! What is kept there is small and can be made again. So a failing store is given up soon, and nothing is continued.

use crate::address::{Address, Manner, choice, shown};
use crate::error::Error;
use crate::folder::ObjectFolder;
use crate::store::{Object, present};
use bytes::Bytes;
use futures_util::StreamExt;
use gpu_run_cache::{RemoteError, RemoteStore};
use object_store::ObjectStoreExt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use url::Url;

const SCHEMES: [&str; 3] = ["s3", "gs", "file"];

/// Nobody waits for these requests any longer than for the work that they save.
const BRIEF: Manner = Manner {
    silence: Duration::from_secs(10),
    connect: Duration::from_secs(3),
    repeat: (Duration::from_secs(5), 2),
    failures: 1,
};

/// How the name of a file ends that is being written.
const DRAFT: &str = ".draft";
/// The age from which such a file is taken for that of a dead process.
const MAX_DRAFT_AGE: Duration = Duration::from_secs(24 * 3600);

/// A folder that machines share.
#[derive(Clone, Debug)]
pub struct Folder {
    name: String,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Objects(Arc<Prefix>),
    Files(PathBuf),
}

/// Where the names of objects begin. The client is made when the first one is asked for: most runs need none.
#[derive(Debug)]
struct Prefix {
    address: Address,
    folder: OnceLock<ObjectFolder>,
}

impl Prefix {
    fn object(&self, name: &str) -> Result<Object, Error> {
        if let Some(folder) = self.folder.get() {
            return folder.object(name);
        }
        let Address { path, name: own_name, .. } = &self.address;
        let folder = ObjectFolder::new(self.address.site(BRIEF)?, path.clone(), own_name);
        self.folder.get_or_init(|| folder).object(name)
    }
}

impl Folder {
    /// Takes an address such as `s3://bucket/prefix`, `gs://bucket/prefix` or `file:///folder`. Nothing is asked yet.
    pub fn open(address: &str) -> Result<Self, Error> {
        let url = Url::parse(address).ok().filter(|url| url.scheme() == "file");
        let Some(url) = url else {
            let address = Address::parse(address, &SCHEMES)?;
            let name = address.name.trim_end_matches('/').to_owned();
            return Ok(Self { name, place: Place::Objects(Arc::new(Prefix { address, folder: OnceLock::new() })) });
        };
        let is_plain = url.query().is_none() && url.fragment().is_none();
        match url.to_file_path() {
            Ok(path) if is_plain => Ok(Self { name: address.to_owned(), place: Place::Files(path) }),
            _ => Err(Error::Address(shown(&url), "it must be a folder of this machine, as in file:///srv/cache")),
        }
    }

    /// Its address, without anything secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what lies under a name; `None` if nothing does.
    pub fn get(&self, name: &str, most: usize) -> Result<Option<Bytes>, Error> {
        match &self.place {
            Place::Objects(folder) => get_object(&folder.object(name)?, most),
            Place::Files(folder) => read(folder, name, most),
        }
    }

    /// Puts bytes under a name, in one step.
    pub fn put(&self, name: &str, bytes: Bytes) -> Result<(), Error> {
        match &self.place {
            Place::Objects(folder) => folder.object(name)?.put(bytes),
            Place::Files(folder) => {
                write(&folder.join(name), &bytes).map_err(|error| failed(&folder.join(name), &error))
            }
        }
    }

    /// The ways an address may begin.
    pub fn schemes() -> String {
        choice(&SCHEMES)
    }
}

fn get_object(object: &Object, most: usize) -> Result<Option<Bytes>, Error> {
    let asked = object.clone();
    let too_large = |bytes| Error::TooLarge { name: object.name().to_owned(), bytes, most };
    let got = object.wait(async move {
        let get = || async {
            let answer = asked.site.store.get(&asked.path).await?;
            let said = answer.meta.size;
            if said > most as u64 {
                return Ok(Err(said));
            }
            let (mut bytes, mut stream) = (Vec::with_capacity(said as usize), answer.into_stream());
            while let Some(chunk) = stream.next().await {
                bytes.extend_from_slice(&chunk?);
                if bytes.len() > most {
                    return Ok(Err(bytes.len() as u64));
                }
            }
            Ok(Ok(bytes))
        };
        asked.again(get).await
    });
    match present(got)? {
        Some(Ok(bytes)) => Ok(Some(bytes.into())),
        Some(Err(bytes)) => Err(too_large(bytes)),
        None => Ok(None),
    }
}

fn read(folder: &Path, name: &str, most: usize) -> Result<Option<Bytes>, Error> {
    let path = folder.join(name);
    let read = || {
        let metadata = fs::metadata(&path)?;
        if !metadata.is_file() {
            // Opening a pipe would block.
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::with_capacity(most.min(metadata.len() as usize));
        File::open(&path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) if bytes.len() > most => {
            Err(Error::TooLarge { name: path.display().to_string(), bytes: bytes.len() as u64, most })
        }
        Ok(bytes) => Ok(Some(bytes.into())),
        // A file system that is not mounted looks like an empty folder: then nothing is written there, either.
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_dir() => Ok(None),
        Err(error) => Err(failed(if folder.is_dir() { &path } else { folder }, &error)),
    }
}

/// Writes a file that others see when it is whole.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    remove_old_drafts(folder);
    // Unique among the processes of all machines: the time tells those apart that have the same number.
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let draft = folder.join(format!("{time:x}-{}-{number}{DRAFT}", std::process::id()));
    let mut file = File::create_new(&draft)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&draft, path));
    written.inspect_err(|_| drop(fs::remove_file(&draft)))
}

/// Removes what dead processes have left.
fn remove_old_drafts(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = || file.metadata().ok()?.modified().ok()?.elapsed().ok();
        if file.file_name().to_string_lossy().ends_with(DRAFT) && age().is_some_and(|age| age > MAX_DRAFT_AGE) {
            let _ = fs::remove_file(file.path());
        }
    }
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::Failed { object: path.display().to_string(), message: error.to_string() }
}

/// A remote cache's entries can lie in a folder.
impl RemoteStore for Folder {
    fn name(&self) -> &str {
        self.name()
    }

    fn get(&self, name: &str, most: usize) -> Result<Option<Vec<u8>>, RemoteError> {
        Ok(self.get(name, most)?.map(Vec::from))
    }

    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), RemoteError> {
        Ok(self.put(name, bytes.into())?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn folder(path: &Path) -> Folder {
        Folder::open(&format!("file://{}", path.display())).unwrap()
    }

    #[test]
    fn a_file_is_there_as_a_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(place.path());
        assert_eq!(folder.get("a/b", 10).unwrap(), None);
        folder.put("a/b", Bytes::from_static(b"0123456789")).unwrap();
        folder.put("a/b", Bytes::from_static(b"9876543210")).unwrap();
        assert_eq!(folder.get("a/b", 10).unwrap().as_deref(), Some(&b"9876543210"[..]));
        let error = folder.get("a/b", 9).unwrap_err().to_string();
        assert!(error.contains("at most 9"), "{error}");
        let names: Vec<_> = fs::read_dir(place.path().join("a")).unwrap().map(|f| f.unwrap().file_name()).collect();
        assert_eq!(names, ["b"], "something is left");
    }

    #[test]
    fn what_a_dead_process_left_is_removed_and_what_is_being_written_is_not() {
        let place = tempfile::tempdir().unwrap();
        let (old, new) = (place.path().join("1-2-3.draft"), place.path().join("4-5-6.draft"));
        let long_ago = SystemTime::now() - 2 * MAX_DRAFT_AGE;
        File::create_new(&old).unwrap().set_modified(long_ago).unwrap();
        File::create_new(&new).unwrap();
        folder(place.path()).put("a", Bytes::new()).unwrap();
        assert_eq!((old.exists(), new.exists()), (false, true));
    }

    #[test]
    fn a_folder_that_is_gone_or_no_file_is_an_error_and_blocks_nobody() {
        let place = tempfile::tempdir().unwrap();
        let missing = place.path().join("missing");
        let error = folder(&missing).get("a", 10).unwrap_err().to_string();
        assert!(error.contains("missing") && !missing.exists(), "{error}");
        fs::create_dir(place.path().join("a")).unwrap();
        assert!(folder(place.path()).get("a", 10).is_err());
    }

    #[test]
    fn an_address_is_that_of_a_folder() {
        for (address, name) in [
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/a/b/", "s3://bucket/a/b"),
            ("file:///srv/cache", "file:///srv/cache"),
        ] {
            assert_eq!(Folder::open(address).unwrap().name(), name);
        }
        for (address, why) in [
            ("ftp://host/a", "s3://, gs:// or file://"),
            ("https://host/a", "s3://, gs:// or file://"),
            ("s3://me:pass@bucket/a", "a name or a password"),
            ("s3://bucket/a?X-Amz-Signature=1", "a question"),
            ("file://host/a", "a folder of this machine"),
            ("file:///a?b", "a folder of this machine"),
            ("/srv/cache", "cannot be parsed"),
        ] {
            let error = Folder::open(address).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("pass@"), "{error}");
        }
    }
}
