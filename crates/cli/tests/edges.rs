//! The shape of the workspace: dependencies point one way, and `unsafe` stays where it is looked after.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The only crates that may contain `unsafe`: the one that drives devices, the guest's, which names exports, the one for apps, which takes
/// a descriptor, and Python's, which takes arrays of other libraries. All others keep to the workspace's lint, which denies it.
const UNSAFE: [&str; 4] = ["gpu-run-device", "gpu-run-guest", "gpu-run-python", "gpu-run-ui"];

/// The workspace's packages, as cargo describes them.
fn packages() -> Vec<Value> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().expect("a name")
}

/// A crate of ours, as ARCHITECTURE.md calls it.
fn short(package: &str) -> &str {
    package.strip_prefix("gpu-run-").unwrap_or(package)
}

/// The list of crates in ARCHITECTURE.md, in its order: `name  what it does  -> crates it depends on`.
fn drawn() -> Vec<(String, BTreeSet<String>)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let text = fs::read_to_string(file).expect("ARCHITECTURE.md");
    let section = text.split("\n## ").find(|section| section.starts_with("Crates\n")).expect("a section on crates");
    let list = section.split("```").nth(1).expect("a list");
    let line = |line: &str| {
        let (crate_, dependencies) = line.split_once("->")?;
        let name = crate_.split_whitespace().next()?.to_owned();
        Some((name, dependencies.split_whitespace().map(str::to_owned).collect()))
    };
    list.lines().filter_map(line).collect()
}

#[test]
fn the_crates_and_their_edges_are_those_that_architecture_md_draws() {
    let mut found = BTreeMap::new();
    for package in &packages() {
        let mut dependencies = BTreeSet::new();
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let is_ours = name(dependency).starts_with("gpu-run");
            assert_eq!(is_ours, !dependency["path"].is_null(), "{} takes {dependency}", name(package));
            // Tests may use more than what they test.
            if is_ours && dependency["kind"].is_null() {
                dependencies.insert(short(name(dependency)).to_owned());
            }
        }
        found.insert(short(name(package)).to_owned(), dependencies);
    }
    let drawn = drawn();
    assert_eq!(drawn.iter().cloned().collect::<BTreeMap<_, _>>(), found);
    // A crate depends on those above it only: there is no circle.
    for (at, (name, dependencies)) in drawn.iter().enumerate() {
        let above: BTreeSet<_> = drawn[..at].iter().map(|(name, _)| name.clone()).collect();
        assert!(dependencies.is_subset(&above), "{name} depends on {:?} below it", dependencies - &above);
    }
}

#[test]
fn every_crate_takes_the_workspaces_lints() {
    for package in packages() {
        let manifest = package["manifest_path"].as_str().expect("a path");
        let text = fs::read_to_string(manifest).expect("the manifest");
        let table: toml::Table = toml::from_str(&text).expect("TOML");
        let inherited = table.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
        assert_eq!(inherited, Some(true), "{manifest} has no `[lints] workspace = true`");
    }
}

#[test]
fn only_these_crates_lift_the_lint_against_unsafe() {
    for package in packages() {
        let folder = Path::new(package["manifest_path"].as_str().expect("a path")).parent().expect("a folder");
        let mut files = Vec::new();
        rust_files(folder, &mut files);
        assert!(!files.is_empty(), "{} has no sources", folder.display());
        let lint = concat!("unsafe", "_code");
        let lifts = |file: &PathBuf| fs::read_to_string(file).expect("a source").contains(lint);
        let lifted: Vec<_> = files.into_iter().filter(lifts).collect();
        assert_eq!(!lifted.is_empty(), UNSAFE.contains(&name(&package)), "{lifted:?}");
    }
}

/// Which parts of the command line name which others: a part is a file or a folder of `src`.
fn parts_of_cli() -> BTreeMap<String, BTreeSet<String>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut parts = BTreeMap::<String, BTreeSet<String>>::new();
    for file in files {
        let path = file.strip_prefix(&source).expect("it is below").with_extension("");
        let part = path.iter().next().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("a source");
        let named = text.split("crate::").skip(1).flat_map(|rest| {
            let list = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(list, _)| list);
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let first = |item: &str| item.trim().split(|c| !is_name(c)).next().unwrap_or_default().to_owned();
            list.unwrap_or(rest.split(';').next().unwrap_or_default()).split(',').map(first).collect::<Vec<_>>()
        });
        parts.entry(part).or_default().extend(named);
    }
    let known: BTreeSet<_> = parts.keys().cloned().collect();
    parts.remove("main");
    for (part, named) in &mut parts {
        named.retain(|other| known.contains(other) && other != part);
    }
    parts
}

#[test]
fn no_files_of_the_command_line_name_each_other_in_a_circle() {
    let mut parts = parts_of_cli();
    assert!(parts.len() > 10 && parts.values().any(|named| named.contains("args")), "{parts:?}");
    // Whoever names nobody that is left can be in no circle.
    while let Some(free) = parts.iter().find(|(_, named)| named.is_empty()).map(|(part, _)| part.clone()) {
        parts.remove(&free);
        for named in parts.values_mut() {
            named.remove(&free);
        }
    }
    assert!(parts.is_empty(), "a circle: {parts:?}");
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
