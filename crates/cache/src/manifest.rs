//! A list of the entries in a model's folder, for people and other tools.
//!
//! `manifest.json` is derived from the entries, and nothing depends on it: no hit reads it, and a missing or damaged
//! one is rebuilt from the entries' headers.

use crate::scan::{Item, list};
use crate::store::Store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const NAME: &str = "manifest.json";

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) label: String,
    /// Bytes of the entry's file.
    pub(crate) bytes: u64,
    pub(crate) unpacked_bytes: u64,
    pub(crate) compile_ms: u64,
    /// Seconds since 1970.
    pub(crate) made: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    model: String,
    /// Entries by key.
    entries: BTreeMap<String, Row>,
}

/// Adds and removes rows in the manifests, one for each model.
pub(crate) fn update(store: &Store, come: &[(String, String, Row)], gone: &[Item]) -> io::Result<()> {
    let mut models: Vec<&str> =
        come.iter().map(|c| c.0.as_str()).chain(gone.iter().map(|g| g.model.as_str())).collect();
    models.sort_unstable();
    models.dedup();
    let _alone = store.lock()?;
    for model in models {
        let folder = store.root.join(model);
        let read = fs::read(folder.join(NAME)).ok().and_then(|text| serde_json::from_slice::<Manifest>(&text).ok());
        let Some(mut manifest) = read else {
            rebuild_one(store, model)?;
            continue;
        };
        for item in gone.iter().filter(|item| item.model == model) {
            manifest.entries.remove(&item.hex);
        }
        for (_, hex, row) in come.iter().filter(|row| row.0 == model) {
            manifest.entries.insert(hex.clone(), row.clone());
        }
        store.replace(&folder.join(NAME), &manifest)?;
    }
    Ok(())
}

/// Rebuilds all manifests from the entries.
pub(crate) fn rebuild(store: &Store) -> io::Result<()> {
    let listing = list(store)?;
    let mut models: Vec<_> = listing.entries.iter().map(|item| item.model.clone()).collect();
    for folder in fs::read_dir(&store.root)?.flatten().filter(|f| f.path().join(NAME).exists()) {
        models.push(folder.file_name().to_string_lossy().into_owned());
    }
    models.sort_unstable();
    models.dedup();
    models.iter().try_for_each(|model| write(store, model, &listing.entries))
}

fn rebuild_one(store: &Store, model: &str) -> io::Result<()> {
    write(store, model, &list(store)?.entries)
}

fn write(store: &Store, model: &str, items: &[Item]) -> io::Result<()> {
    let mut manifest = Manifest { format: 1, model: model.to_owned(), entries: BTreeMap::new() };
    for item in items.iter().filter(|item| item.model == model) {
        let Ok(Ok(about)) = item.about() else { continue };
        let (label, took) = (about.label, about.took);
        manifest
            .entries
            .insert(item.hex.clone(), row(label, item.bytes, about.given, took.as_millis() as u64, about.made));
    }
    store.replace(&store.root.join(model).join(NAME), &manifest)
}

pub(crate) fn row(label: String, bytes: u64, unpacked_bytes: u64, compile_ms: u64, made: SystemTime) -> Row {
    let made = made.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Row { label, bytes, unpacked_bytes, compile_ms, made }
}
