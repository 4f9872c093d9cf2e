//! The overlay: which files of std are replaced, added or edited.

use crate::{Error, Result};
use std::fs;
use std::path::Path;

/// The versions that the overlay was written for and tested with.
pub const SUPPORTED: [&str; 3] = ["1.95", "1.96", "1.97"];

/// A change of std's sources. Paths are below `library/std/src`.
enum Change {
    /// The file is replaced; it must be there.
    Replace(&'static str, &'static str),
    /// The file is new.
    Add(&'static str, &'static str),
    /// This text is put behind the first line that begins with `after`; there must be exactly one such line.
    Insert { file: &'static str, after: &'static str, text: &'static str },
}

const CHANGES: &[Change] = &[
    Change::Add("sys/pal/wasi/gpu_run.rs", include_str!("../overlay/gpu_run.rs")),
    Change::Insert {
        file: "sys/pal/wasi/mod.rs",
        after: "pub mod stack_overflow;",
        text: "#[cfg(target_env = \"p1\")]\n#[allow(dead_code)]\npub mod gpu_run;\n",
    },
    Change::Replace("sys/net/connection/wasip1.rs", include_str!("../overlay/net.rs")),
    Change::Insert {
        file: "sys/thread/unix.rs",
        after: "pub fn available_parallelism() -> io::Result<NonZero<usize>> {",
        text: "    #[cfg(all(target_os = \"wasi\", target_env = \"p1\"))]
    if let Some(count) = crate::sys::pal::gpu_run::parallelism() {
        return Ok(count);
    }
",
    },
];

/// Returns a hash of the overlay, as a part of a folder's name.
pub(crate) fn hash() -> String {
    let mut hasher = blake3::Hasher::new();
    for change in CHANGES {
        let parts = match change {
            Change::Replace(file, text) | Change::Add(file, text) => [*file, "", *text],
            Change::Insert { file, after, text } => [*file, *after, *text],
        };
        parts.iter().for_each(|part| _ = hasher.update(part.as_bytes()).update(&[0]));
    }
    hasher.finalize().to_hex()[..12].to_owned()
}

/// Lays the overlay over the sources of std in `library/std`.
pub fn lay_over(std: &Path) -> Result<()> {
    CHANGES.iter().try_for_each(|change| make(change, &std.join("src")))
}

fn make(change: &Change, src: &Path) -> Result<()> {
    let (file, text) = match change {
        Change::Replace(file, text) | Change::Add(file, text) => {
            let path = src.join(file);
            let is_new = matches!(change, Change::Add(..));
            if path.exists() == is_new {
                let what = if is_new { "it is there already" } else { "there is no such file" };
                return Err(Error::Changed { path, what });
            }
            (path, (*text).to_owned())
        }
        Change::Insert { file, after, text } => {
            let path = src.join(file);
            let old = fs::read_to_string(&path).map_err(|error| Error::File { path: path.clone(), error })?;
            let Some(new) = inserted(&old, after, text) else {
                return Err(Error::Changed { path, what: "the place of a change is not there, or not the only one" });
            };
            (path, new)
        }
    };
    fs::write(&file, text).map_err(|error| Error::File { path: file, error })
}

fn inserted(old: &str, after: &str, text: &str) -> Option<String> {
    let mut places = old.match_indices(after).filter(|(at, _)| *at == 0 || old[..*at].ends_with('\n'));
    let ((at, _), None) = (places.next()?, places.next()) else { return None };
    let end = at + old[at..].find('\n')? + 1;
    Some([&old[..end], text, &old[end..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_run_abi::extension;

    #[test]
    fn a_line_is_put_behind_its_place() {
        assert_eq!(inserted("a\nb {\nc\n", "b {", "x\n").as_deref(), Some("a\nb {\nx\nc\n"));
        assert_eq!(inserted("b {\n", "b {", "x\n").as_deref(), Some("b {\nx\n"));
    }

    #[test]
    fn a_place_that_is_missing_or_not_the_only_one_is_refused() {
        for old in ["", "a\n", " b {\n", "b {\nb {\n", "b {"] {
            assert_eq!(inserted(old, "b {", "x\n"), None, "{old:?}");
        }
    }

    /// The overlay cannot use the crate: std has no dependencies but its own.
    #[test]
    fn the_overlay_has_the_numbers_of_the_host() {
        let texts = [include_str!("../overlay/gpu_run.rs"), include_str!("../overlay/net.rs")].concat();
        let has = |line: String| assert!(texts.contains(&line), "{line}");
        has(format!(
            "const DESCRIPTOR: u32 = 0x{:04x}_{:04x};",
            extension::DESCRIPTOR >> 16,
            extension::DESCRIPTOR & 0xffff
        ));
        has(format!("const ADDRESS_BYTES: usize = {};", extension::ADDRESS_BYTES));
        macro_rules! all {
            ($module:ident, $ty:literal, $($name:ident),*) => {
                $(has(format!("pub const {}: {} = {};", stringify!($name), $ty, extension::$module::$name));)*
            };
        }
        all!(
            ask,
            "u8",
            TCP_CONNECT,
            TCP_LISTEN,
            UDP_BIND,
            UDP_CONNECT,
            UDP_SEND_TO,
            SET_OPTION,
            LOOK_UP,
            DUPLICATE,
            MULTICAST,
            PARALLELISM
        );
        all!(fetch, "u8", LOCAL_ADDRESS, PEER_ADDRESS, OPTION, RECEIVE_FROM, REPLY);
        all!(option, "u32", READ_TIMEOUT, WRITE_TIMEOUT, TTL, NODELAY, LINGER, BROADCAST, ONLY_V6, ERROR, KEEPALIVE);
        all!(option, "u32", MULTICAST_LOOP_V4, MULTICAST_TTL_V4, MULTICAST_LOOP_V6);
    }
}
