//! A folder of objects: those whose names begin with the same words. They are listed, read and written, several at once.

use crate::address::{Address, PATIENT, SCHEMES, Site, name_of};
use crate::error::Error;
use crate::read::{Fetch, Reader, Wanted};
use crate::store::{Object, present};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use std::collections::VecDeque;
use std::fmt;
use tokio::task::JoinHandle;

/// Objects that are asked about at once while a folder is listed.
const HEADS_AT_ONCE: usize = 16;
/// Objects that are written at once, and their bytes.
const PUTS_AT_ONCE: usize = 32;
const BYTES_AT_ONCE: u64 = 64 << 20;

/// A folder of objects. Clones are the same folder.
#[derive(Clone)]
pub struct ObjectFolder {
    site: Site,
    path: Path,
    /// Its address, without anything secret, and with a `/` at the end.
    name: String,
}

/// An object in a folder, as it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path below the folder.
    pub name: String,
    pub bytes: u64,
    /// The server's tag of its content; when it was changed last, if the server has no tags.
    pub version: String,
}

impl Entry {
    pub(crate) fn new(name: String, meta: &ObjectMeta) -> Self {
        // Answers about one object and lists differ in quotes and in fractions of seconds.
        let tag = meta.e_tag.as_deref().map(|tag| tag.trim_matches('"').to_owned());
        let version = tag.unwrap_or_else(|| meta.last_modified.timestamp().to_string());
        Self { name, bytes: meta.size, version }
    }

    /// Whether an answer is about the object as it was listed.
    pub(crate) fn is_of(&self, meta: &ObjectMeta) -> bool {
        let now = Self::new(String::new(), meta);
        (now.bytes, &now.version) == (self.bytes, &self.version)
    }
}

impl ObjectFolder {
    /// Whether a text is the address of a folder: a bucket, or one that ends with a `/`.
    pub fn is_address(text: &str) -> bool {
        Address::parse(text, &SCHEMES).is_ok_and(|address| address.is_folder())
    }

    /// Takes an address such as `s3://bucket/folder/`; its last `/` may be left out. Nothing is asked yet.
    pub fn open(address: &str) -> Result<Self, Error> {
        let address = Address::parse(address, &SCHEMES)?;
        let site = address.site(PATIENT)?;
        Self::listed_at(site, address.path, &address.name)
    }

    /// As [`ObjectFolder::new`], unless nothing there can be listed.
    pub(crate) fn listed_at(site: Site, path: Path, other: &str) -> Result<Self, Error> {
        match site.parts {
            Some(_) => Ok(Self::new(site, path, other)),
            None => Err(Error::NotListed(other.to_owned())),
        }
    }

    /// The folder at `path`, in the same bucket as an object of the name `other`.
    pub(crate) fn new(site: Site, path: Path, other: &str) -> Self {
        let mut name = name_of(other, &path);
        if !name.ends_with('/') {
            name.push('/');
        }
        Self { site, path, name }
    }

    /// Its address, without anything secret, and with a `/` at the end.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The object whose path below the folder is `below`.
    pub fn object(&self, below: &str) -> Result<Object, Error> {
        let path = self.path_of(below)?;
        let name = name_of(&self.name, &path);
        Ok(Object::new(self.site.clone(), path, name))
    }

    /// The folder whose path below this one is `below`.
    pub fn below(&self, below: &str) -> Result<Self, Error> {
        Ok(Self::new(self.site.clone(), self.path_of(below)?, &self.name))
    }

    fn path_of(&self, below: &str) -> Result<Path, Error> {
        let wrong = || Error::Name { folder: self.name.clone(), name: below.to_owned() };
        let path = match self.path.is_root() {
            true => below.to_owned(),
            false => format!("{}/{below}", self.path),
        };
        let parsed = Path::parse(&path).map_err(|_| wrong())?;
        // No other object may stand in for it.
        if parsed.as_ref() == path && parsed != self.path { Ok(parsed) } else { Err(wrong()) }
    }

    /// Returns all objects in the folder and in the folders in it, by name, folder by folder, as files are. Empty objects that
    /// only stand for folders are left out. It is an error if there is nothing of that name at all.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        let found = self.list_if_any()?;
        found.ok_or_else(|| Error::Missing(self.name.clone()))
    }

    /// As [`ObjectFolder::list`]; `None` if there is nothing of that name.
    pub fn list_if_any(&self) -> Result<Option<Vec<Entry>>, Error> {
        let folder = self.clone();
        present(self.site.wait(async move { folder.listed().await })).map(Option::flatten)
    }

    async fn listed(&self) -> Result<Option<Vec<Entry>>, Error> {
        let (mut found, mut failures) = (Vec::new(), 0);
        let (mut last, mut is_there): (Option<Path>, bool) = (None, false);
        loop {
            let mut list = match &last {
                None => self.site.store.list(Some(&self.path)),
                // What was listed already is not asked for again.
                Some(last) => self.site.store.list_with_offset(Some(&self.path), last),
            };
            let failure = loop {
                match list.next().await {
                    None => break None,
                    Some(Err(error)) => break Some(error),
                    Some(Ok(meta)) => {
                        failures = 0;
                        is_there = true;
                        found.extend(self.name_of(&meta.location).map(|name| Entry::new(name, &meta)));
                        last = Some(meta.location);
                    }
                }
            };
            let Some(failure) = failure else { break };
            self.site.after_failure(&self.name, &failure, &mut failures).await?;
        }
        if !is_there {
            return Ok(None);
        }
        sort(&mut found);
        self.without_folders(found).await.map(Some)
    }

    /// Returns the path of an object below the folder.
    fn name_of(&self, path: &Path) -> Option<String> {
        let below = match self.path.is_root() {
            true => path.as_ref(),
            false => path.as_ref().strip_prefix(self.path.as_ref())?.strip_prefix('/')?,
        };
        (!below.is_empty()).then(|| below.to_owned())
    }

    /// Leaves out empty objects that stand for folders: some tools make them, with a `/` at the end of their names, which
    /// the list does not show.
    async fn without_folders(&self, found: Vec<Entry>) -> Result<Vec<Entry>, Error> {
        let names: Vec<_> = found.iter().skip(1).map(|next| next.name.clone()).collect();
        let is_followed = |(at, entry): (usize, &Entry)| {
            let below = names.get(at).and_then(|next| next.strip_prefix(entry.name.as_str()));
            below.is_some_and(|below| below.starts_with('/'))
        };
        let followed: Vec<bool> = found.iter().enumerate().map(is_followed).collect();
        let exists = |(entry, is_followed): (Entry, bool)| async move {
            if entry.bytes > 0 {
                return Ok(Some(entry));
            }
            if is_followed {
                return Ok(None);
            }
            let object = self.object(&entry.name)?;
            let head = present(object.again(|| object.site.store.head(&object.path)).await)?;
            Ok(head.map(|_| entry))
        };
        let asked = stream::iter(found.into_iter().zip(followed)).map(exists).buffered(HEADS_AT_ONCE);
        asked.try_filter_map(|entry| async move { Ok(entry) }).try_collect().await
    }

    /// Begins to read a whole object of the list. It fails if the object has changed since.
    pub fn fetch(&self, entry: &Entry) -> Result<Fetch, Error> {
        let object = self.object(&entry.name)?;
        Ok(Fetch::begin(object, Wanted::Entry(entry.clone()), 0..entry.bytes))
    }

    /// Reads an object of the list as a file. It fails if the object has changed since.
    pub fn reader(&self, entry: &Entry) -> Result<Reader, Error> {
        Ok(Reader::listed(self.object(&entry.name)?, entry.clone()))
    }

    /// Begins to write objects.
    pub fn puts(&self) -> Puts {
        Puts { folder: self.clone(), under_way: VecDeque::new(), bytes: 0 }
    }
}

/// Sorts by name, folder by folder, and leaves of the same name the longest: the others stand for folders.
fn sort(found: &mut Vec<Entry>) {
    found.sort_by(|a, b| a.name.split('/').cmp(b.name.split('/')).then_with(|| b.bytes.cmp(&a.bytes)));
    found.dedup_by(|b, a| a.name == b.name);
}

/// Writes the objects of a folder, several at once.
pub struct Puts {
    folder: ObjectFolder,
    under_way: VecDeque<Sent>,
    /// The bytes of those under way.
    bytes: u64,
}

struct Sent {
    done: JoinHandle<Result<(), Error>>,
    name: String,
    bytes: u64,
}

impl Puts {
    pub fn folder(&self) -> &ObjectFolder {
        &self.folder
    }

    /// Makes, or replaces, the object of this name; without content, it is removed. An error may be about an earlier one.
    pub fn put(&mut self, name: &str, content: Option<&[u8]>) -> Result<(), Error> {
        let object = self.folder.object(name)?;
        let bytes = content.map_or(0, <[u8]>::len) as u64;
        while self.under_way.len() >= PUTS_AT_ONCE || self.bytes > 0 && self.bytes + bytes > BYTES_AT_ONCE {
            self.take_one()?;
        }
        let (name, content) = (object.name().to_owned(), content.map(Bytes::copy_from_slice));
        let site = object.site.clone();
        let done = site.spawn(async move {
            match content {
                Some(content) => {
                    object.again(|| object.site.store.put(&object.path, content.clone().into())).await.map(drop)
                }
                None => present(object.again(|| object.site.store.delete(&object.path)).await).map(drop),
            }
        });
        self.bytes += bytes;
        self.under_way.push_back(Sent { done, name, bytes });
        Ok(())
    }

    /// Waits until all are in the store.
    pub fn flush(&mut self) -> Result<(), Error> {
        while !self.under_way.is_empty() {
            self.take_one()?;
        }
        Ok(())
    }

    fn take_one(&mut self) -> Result<(), Error> {
        let Some(Sent { done, name, bytes }) = self.under_way.pop_front() else { return Ok(()) };
        self.bytes -= bytes;
        let done = self.folder.site.wait(done);
        done.map_err(|error| Error::Failed { object: name, message: error.to_string() })?
    }
}

impl Drop for Puts {
    fn drop(&mut self) {
        self.under_way.iter().for_each(|sent| sent.done.abort());
    }
}

impl fmt::Debug for ObjectFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectFolder").field(&self.name).finish()
    }
}

impl fmt::Debug for Puts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Puts").field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_in_the_order_of_files() {
        let entry = |name: &str, bytes| Entry { name: name.into(), bytes, version: String::new() };
        // The order of a server's list, in which `-` and `.` are before `/`.
        let mut found: Vec<_> = ["a-b", "a.txt", "a/z", "a/z/q", "a0", "b", "b"].map(|name| entry(name, 0)).into();
        found.push(entry("b", 3));
        sort(&mut found);
        let names: Vec<_> = found.iter().map(|entry| (entry.name.as_str(), entry.bytes)).collect();
        assert_eq!(names, [("a/z", 0), ("a/z/q", 0), ("a-b", 0), ("a.txt", 0), ("a0", 0), ("b", 3)]);
    }
}
