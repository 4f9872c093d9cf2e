//! Writes an object in parts: nobody sees it before it is whole, and another process can continue it.

use crate::State;
use crate::error::Error;
use crate::store::Object;
use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Bytes of a part, at least, but for the last.
const LEAST_PART: usize = 5 << 20;
/// Bytes of the first part. There are at most 10,000 parts, so each is a little larger than the one before it: 3 TB have room.
const FIRST_PART: usize = 8 << 20;
const PART_GROWTH: usize = 64 << 10;
/// Parts that are sent at once.
const AT_ONCE: usize = 3;

/// The parts of an upload that are in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// The store's name for the upload.
    id: String,
    /// The store's name for each part.
    parts: Vec<String>,
    /// Bytes of all parts together.
    bytes: u64,
    /// Whether these are all parts of the object: it only has to be put together.
    is_whole: bool,
    /// What the object was before, if it existed: if it is something else now, it may have been put together already.
    before: Option<String>,
}

impl Parts {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// An object that is being written.
pub struct Upload {
    object: Object,
    store: Arc<dyn MultipartStore>,
    done: Parts,
    /// Whether another process had all parts already, and may have put them together.
    was_whole: bool,
    under_way: VecDeque<Sent>,
    /// Not sent yet.
    held: Vec<u8>,
}

struct Sent {
    part: JoinHandle<Result<PartId, Error>>,
    bytes: u64,
}

impl Upload {
    pub(crate) fn begin(object: Object) -> Result<Self, Error> {
        let mut upload = Self::continued(object.clone(), Parts::default())?;
        let store = upload.store.clone();
        upload.done.before = upload.object.state()?.map(|state| state.version);
        upload.done.id =
            upload.object.wait(async move { object.again(|| store.create_multipart(&object.path)).await })?;
        Ok(upload)
    }

    pub(crate) fn continued(object: Object, done: Parts) -> Result<Self, Error> {
        let Some(store) = object.site.parts.clone() else { return Err(Error::ReadOnly(object.name().to_owned())) };
        let was_whole = done.is_whole;
        Ok(Self { object, store, done, was_whole, under_way: VecDeque::new(), held: Vec::new() })
    }

    /// Returns how many bytes were written, in all processes.
    pub fn bytes(&self) -> u64 {
        self.done.bytes + self.under_way.iter().map(|sent| sent.bytes).sum::<u64>() + self.held.len() as u64
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.held.extend_from_slice(bytes);
        let parts = self.done.parts.len() + self.under_way.len();
        if self.held.len() >= FIRST_PART + parts * PART_GROWTH { self.send() } else { Ok(()) }
    }

    /// Whether [`Upload::flush`] can send everything: parts have a least size.
    pub fn can_flush(&self) -> bool {
        self.held.is_empty() || self.held.len() >= LEAST_PART
    }

    /// Sends everything, if that is possible, and waits until it is in the store. Returns what is there: all that was written, and where it
    /// was not possible, all but the end.
    pub fn flush(&mut self) -> Result<&Parts, Error> {
        if !self.held.is_empty() && self.can_flush() {
            self.send()?;
        }
        while !self.under_way.is_empty() {
            self.take_one()?;
        }
        Ok(&self.done)
    }

    /// Sends the rest. Returns what is in the store then: all of it.
    pub fn close(&mut self) -> Result<&Parts, Error> {
        if !self.done.is_whole {
            // An object without a part cannot be put together.
            if !self.held.is_empty() || self.done.parts.is_empty() && self.under_way.is_empty() {
                self.send()?;
            }
            self.flush()?;
            self.done.is_whole = true;
        }
        Ok(&self.done)
    }

    /// Sends the rest, and puts the parts together. From here on the object is there.
    pub fn finish(mut self) -> Result<(), Error> {
        self.close()?;
        let is_there =
            |state: State| state.bytes == self.done.bytes && Some(&state.version) != self.done.before.as_ref();
        if self.was_whole && self.object.state()?.is_some_and(is_there) {
            return Ok(());
        }
        let (object, store, done) = (self.object.clone(), self.store.clone(), self.done.clone());
        let completed = self.object.wait(async move {
            let parts = || done.parts.iter().map(|id| PartId { content_id: id.clone() }).collect();
            object.again(|| store.complete_multipart(&object.path, &done.id, parts())).await
        });
        match completed {
            Ok(_) => Ok(()),
            // The answer to a request that did succeed may have been lost.
            Err(Error::Missing(name)) => match self.object.state()?.is_some_and(is_there) {
                true => Ok(()),
                false => Err(Error::UploadGone(name)),
            },
            Err(error) => Err(error),
        }
    }

    /// Gives up what was sent.
    pub fn abort(self) -> Result<(), Error> {
        let (object, store, id) = (self.object.clone(), self.store.clone(), self.done.id.clone());
        drop(self);
        let aborted =
            object.clone().wait(async move { object.again(|| store.abort_multipart(&object.path, &id)).await });
        match aborted {
            Err(Error::Missing(_)) => Ok(()),
            aborted => aborted,
        }
    }

    /// Sends what is held as the next part.
    fn send(&mut self) -> Result<(), Error> {
        while self.under_way.len() >= AT_ONCE {
            self.take_one()?;
        }
        let bytes = Bytes::from(std::mem::take(&mut self.held));
        let number = self.done.parts.len() + self.under_way.len();
        let (object, store, id, length) = (self.object.clone(), self.store.clone(), self.done.id.clone(), bytes.len());
        let put = async move {
            let sent = object.again(|| store.put_part(&object.path, &id, number, bytes.clone().into())).await;
            sent.map_err(|error| match error {
                Error::Missing(name) => Error::UploadGone(name),
                error => error,
            })
        };
        self.under_way.push_back(Sent { part: self.object.spawn(put), bytes: length as u64 });
        Ok(())
    }

    /// Waits for the first part that is under way.
    fn take_one(&mut self) -> Result<(), Error> {
        let Some(Sent { part, bytes }) = self.under_way.pop_front() else { return Ok(()) };
        let sent = self.object.wait(part);
        let failed = |error: tokio::task::JoinError| Error::Failed {
            object: self.object.name().to_owned(),
            message: error.to_string(),
        };
        let part = sent.map_err(failed)??;
        self.done.parts.push(part.content_id);
        self.done.bytes += bytes;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.under_way.iter().for_each(|sent| sent.part.abort());
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("object", &self.object).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
