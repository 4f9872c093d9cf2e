//! docs/std.md is complete. Its first table has a row for every public module of std; this is ignored where std's sources are not
//! installed. The tables of eight modules have every stable item, with the number of its methods, and the program that a table is
//! shown by (`tests/std`) uses each function and method: `std-items.txt`, which `scripts/std-items` makes, lists them.

use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let source = source_of_std();
    let is_missing = source.is_none();
    let kind = if is_missing { "std's sources are missing: rustup component add rust-src" } else { "" };
    let test = || every_module_of_std_has_a_row(&source.unwrap_or_default());
    let modules = Trial::test("every_module_of_std_has_a_row", test).with_kind(kind).with_ignored_flag(is_missing);
    // 77: there is nothing to compare with.
    let status = Command::new(root().join("scripts/std-items")).arg("--check").status().ok().and_then(|it| it.code());
    let items = Trial::test("the_list_of_items_is_that_of_std", move || match status {
        Some(0) => Ok(()),
        _ => Err("run scripts/std-items".into()),
    });
    let trials = vec![
        modules,
        items.with_ignored_flag(status == Some(77)),
        Trial::test("every_item_has_a_row", every_item_has_a_row),
        Trial::test("every_function_is_used_by_its_program", every_function_is_used_by_its_program),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> Result<String, Failed> {
    Ok(fs::read_to_string(root().join("docs/std.md"))?)
}

/// A stable item of a module that the page describes item by item.
struct Item {
    /// The module of std, not one below it.
    module: &'static str,
    /// As the page has it: `File`, `mpsc::Sender`.
    name: String,
    kind: &'static str,
    /// Constants and methods.
    members: Vec<&'static str>,
}

fn items() -> impl Iterator<Item = Item> {
    let lines = include_str!("std-items.txt").lines().skip(1);
    lines.filter_map(|line| {
        let mut words = line.split(' ');
        let (path, kind, name) = (words.next()?, words.next()?, words.next()?);
        let (module, below) = path.split_once("::").unwrap_or((path, ""));
        let name = if below.is_empty() { name.into() } else { format!("{below}::{name}") };
        Some(Item { module, name, kind, members: words.collect() })
    })
}

/// Returns what stands in the first cells of the table of a module, in the order of the page: `File` (19).
fn table(page: &str, module: &str) -> Vec<(String, Option<usize>)> {
    let heading = format!("\n### `{module}`\n");
    let section = page.split_once(&heading).map_or("", |(_, rest)| rest.split("\n#").next().unwrap_or_default());
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let first = rows.filter_map(|row| row.trim_matches('|').split(" | ").next());
    let named = first.flat_map(|cell| {
        let mut parts = cell.split('`').skip(1);
        std::iter::from_fn(move || Some((parts.next()?, parts.next().unwrap_or_default())))
    });
    let count = |behind: &str| behind.trim_start().strip_prefix('(')?.split_once(')')?.0.parse().ok();
    named.map(|(name, behind)| (name.to_owned(), count(behind))).collect()
}

fn every_item_has_a_row() -> Result<(), Failed> {
    let page = page()?;
    let mut modules: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for item in items() {
        modules.entry(item.module).or_default().insert(item.name, item.members.len());
    }
    let mut wrong = Vec::new();
    for (module, mut items) in modules {
        for (name, count) in table(&page, module) {
            match items.remove(&name) {
                Some(members) if count.unwrap_or(0) == members => {}
                Some(members) => wrong.push(format!("`{module}::{name}` has {members} methods")),
                None => wrong.push(format!("`{module}::{name}` is there twice, or not in std")),
            }
        }
        wrong.extend(items.keys().map(|name| format!("`{module}::{name}` has no row")));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn every_function_is_used_by_its_program() -> Result<(), Failed> {
    let mut programs: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let (mut missing, mut count) = (Vec::new(), 0);
    for item in items() {
        let words = match programs.entry(item.module) {
            std::collections::btree_map::Entry::Occupied(program) => program.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => place.insert(words(item.module)?),
        };
        let own = item.name.rsplit("::").next().filter(|_| ["fn", "constant"].contains(&item.kind));
        for name in own.into_iter().chain(item.members.iter().copied()) {
            count += 1;
            if !words.contains(name) {
                missing.push(format!("{}::{} {name}", item.module, item.name));
            }
        }
    }
    if count < 700 {
        return Err(format!("only {count} functions and methods were found").into());
    }
    if missing.is_empty() { Ok(()) } else { Err(format!("not used: {}", missing.join(", ")).into()) }
}

/// The words of the program about a module.
fn words(module: &str) -> Result<BTreeSet<String>, Failed> {
    let source = fs::read_to_string(root().join("tests/std/src/bin").join(module).with_extension("rs"))?;
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let words = code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    Ok(words.map(str::to_owned).collect())
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

/// Returns what the rows of the first table quote in their first column.
fn rows() -> Result<BTreeSet<String>, Failed> {
    let text = page()?;
    let table =
        text.lines().skip_while(|line| !line.starts_with("|---")).skip(1).take_while(|line| line.starts_with('|'));
    let first = table.filter_map(|row| row.trim_matches('|').split(" | ").next());
    Ok(first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect())
}
