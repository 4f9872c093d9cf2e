//! The first table of docs/std.md has a row for every public module of std. Ignored where std's sources are not installed.

use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let source = source_of_std();
    let is_missing = source.is_none();
    let kind = if is_missing { "std's sources are missing: rustup component add rust-src" } else { "" };
    let test = || every_module_of_std_has_a_row(&source.unwrap_or_default());
    let trial = Trial::test("every_module_of_std_has_a_row", test).with_kind(kind).with_ignored_flag(is_missing);
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit();
}

/// Returns std's `lib.rs`, from rustup's component rust-src.
fn source_of_std() -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    fs::read_to_string(sysroot.join("lib/rustlib/src/rust/library/std/src/lib.rs")).ok()
}

fn every_module_of_std_has_a_row(source: &str) -> Result<(), Failed> {
    let (modules, rows) = (modules(source), rows()?);
    if modules.len() < 60 {
        return Err(format!("only {} modules were found in std", modules.len()).into());
    }
    let missing: Vec<_> = modules.difference(&rows).collect();
    let unknown: Vec<_> = rows.difference(&modules).collect();
    match missing.is_empty() && unknown.is_empty() {
        true => Ok(()),
        false => Err(format!("docs/std.md lacks {missing:?}, and std has no {unknown:?}").into()),
    }
}

/// Returns the names of the public modules.
fn modules(source: &str) -> BTreeSet<String> {
    let module = |line: &str| {
        let own = line.strip_prefix("pub mod ");
        let name = own
            .or_else(|| line.strip_prefix("pub use core::"))
            .or_else(|| line.strip_prefix("pub use alloc_crate::"))?;
        let name = name.trim_end_matches([';', ' ', '{']);
        // Macros are exported in the same way, and `rt` is hidden.
        let is_module = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        let macros = ["cfg_select", "concat_bytes", "format", "matches", "rt", "todo"];
        (is_module && !name.is_empty() && !macros.contains(&name)).then(|| name.to_owned())
    };
    source.lines().filter_map(module).collect()
}

/// Returns what the rows quote in their first column.
fn rows() -> Result<BTreeSet<String>, Failed> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/std.md"))?;
    let table =
        text.lines().skip_while(|line| !line.starts_with("|---")).skip(1).take_while(|line| line.starts_with('|'));
    let first = table.filter_map(|row| row.trim_matches('|').split(" | ").next());
    Ok(first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect())
}
