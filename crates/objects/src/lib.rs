//! Objects in S3, in Google Cloud Storage and on web servers, as files: read from any place on ([`Reader`]), and written in parts, so that
//! another process can continue ([`Upload`]). A folder of objects ([`ObjectFolder`]) is listed, read and written as a folder of files is.
//! A [`Folder`] of small objects, or of files, keeps what machines share.
//!
//! Requests that fail are made again for a while; what an object is must not change meanwhile. Credentials come from the environment
//! and are never shown.

#![cfg_attr(test, allow(clippy::unwrap_used))] // in a test, that is an assertion

mod address;
mod error;
mod folder;
mod read;
mod shared;
mod store;
mod upload;

pub use error::Error;
pub use folder::{Entry, ObjectFolder, Puts};
pub use read::{Fetch, Reader};
pub use shared::Folder;
pub use store::Object;
pub use upload::{Parts, Upload};

/// What an object is: two reads of the same state give the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub bytes: u64,
    /// The server's tag of its content, and when it was changed last.
    pub version: String,
}

fn state(meta: &object_store::ObjectMeta) -> State {
    // The tag of an object that was written again with the same content is the same.
    let version = format!("{} {}", meta.e_tag.as_deref().unwrap_or_default(), meta.last_modified.to_rfc3339());
    State { bytes: meta.size, version }
}
