//! The name of an entry: a hash of everything the entry was made from.

use serde::Serialize;
use std::fmt;

/// Bytes in a key's hash.
pub const KEY_BYTES: usize = 32;

/// Names one entry: the device model it is for, and the hash of its recipe.
///
/// Two keys are equal if model and hash are equal. The label is for people only.
#[derive(Clone)]
pub struct Key {
    model: String,
    hash: [u8; KEY_BYTES],
    label: String,
}

impl Key {
    /// Makes the key of what `recipe` produces for `model`. The recipe is one struct that holds *everything* that
    /// influences the result, including the input's own hash ([`Key::content`]). Its names and values are hashed
    /// together, so that no two recipes share a key.
    pub fn new(model: &str, recipe: &impl Serialize) -> Result<Self, crate::Error> {
        let text = serde_json::to_vec(&(model, recipe)).map_err(crate::Error::Recipe)?;
        let hash = *blake3::Hasher::new_derive_key(CONTEXT).update(&text).finalize().as_bytes();
        Ok(Self { model: folder_name(model), hash, label: String::new() })
    }

    /// Adds a label, which `gpu-run cache list` shows.
    pub fn labelled(mut self, label: &str) -> Self {
        let end = label.char_indices().nth(MAX_LABEL).map_or(label.len(), |(at, _)| at);
        self.label = label[..end].to_owned();
        self
    }

    /// Returns the hash of an input, to be put into a recipe.
    pub fn content(bytes: &[u8]) -> String {
        hex(&crate::pieces::sum(bytes))
    }

    /// The name of the model's folder, which holds the entry.
    pub fn model(&self) -> &str {
        &self.model
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    /// The hash in hexadecimal digits: the name of the entry's file without its extension.
    pub fn hex(&self) -> String {
        hex(&self.hash)
    }

    pub(crate) fn hash(&self) -> &[u8; KEY_BYTES] {
        &self.hash
    }
}

/// The context string for BLAKE3's key derivation. It changes with the format of an entry, so that entries of two
/// formats never share a key.
const CONTEXT: &str = "gpu-run program cache, entry format 2";
/// Characters of a label that are kept.
const MAX_LABEL: usize = 200;

pub(crate) fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Turns a model's name into a folder's name: `NVIDIA H200` becomes `NVIDIA-H200`. No result leads out of the cache or
/// is one of the cache's own folders.
fn folder_name(model: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = model.chars().take(64).map(plain).collect();
    let name = name.trim_matches(['.', '-']);
    match name {
        "" => "unnamed".into(),
        _ if crate::store::is_own(name) => format!("{name}-model"),
        _ => name.into(),
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.model == other.model
    }
}

impl Eq for Key {}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.model, &self.hex()[..12])
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Recipe<'a> {
        content: &'a str,
        options: &'a str,
    }

    #[test]
    fn every_part_of_a_recipe_is_in_the_key() {
        let key = |model, content, options| Key::new(model, &Recipe { content, options }).unwrap();
        let base = key("cpu", "ab", "c");
        assert_eq!(base, key("cpu", "ab", "c"));
        for other in [key("cpu", "a", "bc"), key("cpu", "ab", ""), key("gpu", "ab", "c"), key("cpu", "c", "ab")] {
            assert_ne!(base, other);
        }
        assert_eq!(base, base.clone().labelled("a name"), "a label tells programs nothing");
    }

    #[test]
    fn no_models_name_leads_out_of_the_cache() {
        for (model, folder) in [
            ("NVIDIA H200", "NVIDIA-H200"),
            ("cpu-x86_64", "cpu-x86_64"),
            ("../../etc", "etc"),
            ("", "unnamed"),
            ("...", "unnamed"),
            ("tmp", "tmp-model"),
            ("sysroots", "sysroots-model"),
            ("a/b\0c", "a-b-c"),
        ] {
            assert_eq!(Key::new(model, &()).unwrap().model(), folder, "{model:?}");
        }
    }
}
