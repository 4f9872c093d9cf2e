//! An object in a store, and requests about it.

use crate::address::{Address, PATIENT, SCHEMES, Site, name_of};
use crate::error::Error;
use crate::folder::{Entry, ObjectFolder};
use crate::read::Reader;
use crate::upload::{Parts, Upload};
use crate::{State, state};
use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use std::fmt;
use std::future::Future;

/// An object in a store. Clones are the same object.
#[derive(Clone)]
pub struct Object {
    pub(crate) site: Site,
    pub(crate) path: Path,
    /// Its address, without anything secret.
    name: String,
}

impl Object {
    /// Whether a text is meant as an object's address, and not as a path.
    pub fn is_address(text: &str) -> bool {
        Address::is_one(text)
    }

    /// Takes an address such as `s3://bucket/key`. Nothing is asked yet.
    pub fn open(address: &str) -> Result<Self, Error> {
        let address = Address::parse(address, &SCHEMES)?;
        if address.is_folder() {
            return Err(Error::Address(address.name, "it names a folder, and no object in it"));
        }
        Ok(Self::new(address.site(PATIENT)?, address.path, address.name))
    }

    pub(crate) fn new(site: Site, path: Path, name: String) -> Self {
        Self { site, path, name }
    }

    /// The object in the same place whose name has a suffix.
    pub fn beside(&self, suffix: &str) -> Self {
        let path = self.path_beside(suffix);
        let name = name_of(&self.name, &path);
        Self { path, name, ..self.clone() }
    }

    /// The folder in the same place whose name has a suffix.
    pub fn folder_beside(&self, suffix: &str) -> ObjectFolder {
        ObjectFolder::new(self.site.clone(), self.path_beside(suffix), &self.name)
    }

    /// The folder of this name, instead of the object.
    pub fn into_folder(self) -> Result<ObjectFolder, Error> {
        ObjectFolder::listed_at(self.site, self.path, &self.name)
    }

    fn path_beside(&self, suffix: &str) -> Path {
        // No other object may stand in for it: it could be this one.
        Path::parse(format!("{}{suffix}", self.path)).expect("a path with a longer name is a path")
    }

    /// Its address, without anything secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it can be written.
    pub fn is_writable(&self) -> bool {
        self.site.parts.is_some()
    }

    /// Returns what it is now; `None` if it does not exist.
    pub fn state(&self) -> Result<Option<State>, Error> {
        let object = self.clone();
        let found = self.wait(async move { object.again(|| object.site.store.head(&object.path)).await });
        present(found.map(|meta| state(&meta)))
    }

    /// Returns what it is now, as a list of its folder would say; `None` if it does not exist.
    pub fn entry(&self) -> Result<Option<Entry>, Error> {
        let object = self.clone();
        let found = self.wait(async move { object.again(|| object.site.store.head(&object.path)).await });
        present(found.map(|meta| Entry::new(self.path.filename().unwrap_or_default().to_owned(), &meta)))
    }

    /// Begins to read.
    pub fn reader(&self) -> Result<Reader, Error> {
        let state = self.state()?.ok_or_else(|| Error::Missing(self.name.clone()))?;
        Ok(Reader::new(self.clone(), state))
    }

    /// Returns the bytes of a small object; `None` if it does not exist.
    pub fn get(&self) -> Result<Option<Bytes>, Error> {
        let object = self.clone();
        let get =
            async move { object.again(|| async { object.site.store.get(&object.path).await?.bytes().await }).await };
        present(self.wait(get))
    }

    /// Makes, or replaces, a small object in one step.
    pub fn put(&self, bytes: Bytes) -> Result<(), Error> {
        let object = self.clone();
        let put = async move { object.again(|| object.site.store.put(&object.path, bytes.clone().into())).await };
        self.wait(put).map(drop)
    }

    /// Removes it, if it exists.
    pub fn remove(&self) -> Result<(), Error> {
        let object = self.clone();
        present(self.wait(async move { object.again(|| object.site.store.delete(&object.path)).await })).map(drop)
    }

    /// Begins to write it. It appears, or is replaced, when the upload is finished.
    pub fn upload(&self) -> Result<Upload, Error> {
        Upload::begin(self.clone())
    }

    /// Continues to write it where these parts end.
    pub fn continue_upload(&self, parts: Parts) -> Result<Upload, Error> {
        Upload::continued(self.clone(), parts)
    }

    /// Waits, in any thread, until a request is done.
    pub(crate) fn wait<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> T {
        self.site.wait(request)
    }

    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.site.spawn(request)
    }

    /// Makes a request until it succeeds, fails for good, or has failed too often.
    pub(crate) async fn again<T, F>(&self, mut request: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let mut failures = 0;
        loop {
            match request().await {
                Ok(done) => return Ok(done),
                Err(error) => self.after_failure(&error, &mut failures).await?,
            }
        }
    }

    /// See [`Site::after_failure`].
    pub(crate) async fn after_failure(&self, error: &object_store::Error, failures: &mut u32) -> Result<(), Error> {
        self.site.after_failure(&self.name, error, failures).await
    }
}

/// Returns what was found; `None` if there is nothing.
pub(crate) fn present<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Object").field(&self.name).finish()
    }
}
