//! The shape of the workspace: dependencies point one way, and `unsafe` stays where it is looked after.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `abi` ◀ `wasm`, `ptx`, `wasi`, `device`, `cache` ◀ `engine` ◀ `machine` ◀ the command line: a crate depends on layers before its own only.
const LAYERS: &[&[&str]] = &[
    &["gpu-run-abi"],
    &["gpu-run-wasm", "gpu-run-ptx", "gpu-run-wasi", "gpu-run-device", "gpu-run-cache"],
    &["gpu-run-engine"],
    &["gpu-run-machine"],
    &["gpu-run"],
];

/// The crates that may contain `unsafe`.
const UNSAFE: &[&str] = &["gpu-run-abi", "gpu-run-device"];

fn layer(package: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&package))
}

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

#[test]
fn dependencies_point_one_way() {
    let packages = packages();
    assert_eq!(
        packages.len(),
        LAYERS.iter().map(|layer| layer.len()).sum::<usize>(),
        "a crate was added: give it a layer"
    );
    for package in &packages {
        let from = name(package);
        let layer_of_it = layer(from).unwrap_or_else(|| panic!("{from} has no layer"));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let to = name(dependency);
            if dependency["path"].is_null() {
                assert!(layer(to).is_none(), "{from} takes {to} from a registry, not from the workspace");
                continue;
            }
            let below = layer(to).unwrap_or_else(|| panic!("{from} depends on {to}, which has no layer"));
            assert!(below < layer_of_it, "{from} must not depend on {to}");
        }
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
fn unsafe_is_in_abi_and_device_only() {
    for package in packages() {
        let folder = Path::new(package["manifest_path"].as_str().expect("a path")).parent().expect("a folder");
        let mut files = Vec::new();
        rust_files(folder, &mut files);
        assert!(!files.is_empty(), "{} has no sources", folder.display());
        for file in files.iter().filter(|_| !UNSAFE.contains(&name(&package))) {
            let text = fs::read_to_string(file).expect("a source");
            if let Some(line) = line_of_unsafe(&text) {
                panic!("{}:{line}: `unsafe` outside {}", file.display(), UNSAFE.join(" and "));
            }
        }
    }
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

/// The first line with the keyword, comments and literals aside.
fn line_of_unsafe(text: &str) -> Option<usize> {
    let code = code_only(text);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.lines().position(|line| line.split(|c| !is_word(c)).any(|word| word == "unsafe")).map(|line| line + 1)
}

/// The text with comments and string literals left out, line by line.
fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let literal = literal_length(rest);
        if literal == 0 {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            code.extend(rest[..literal].chars().filter(|c| *c == '\n'));
            code.push(' ');
            rest = &rest[literal..];
        }
    }
    code
}

/// How long the comment or literal is that `text` begins with; 0 if it begins with neither.
fn literal_length(text: &str) -> usize {
    let until = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return until("*/", 2);
    }
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            return until(&format!("\"{}", "#".repeat(hashes)), hashes + 2);
        }
    }
    if text.starts_with('"') {
        return string_length(text);
    }
    // A quoted quote; other characters in quotes, and lifetimes, do no harm.
    if text.starts_with("'\"'") { 3 } else { 0 }
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

#[test]
fn the_keyword_is_found_in_code_and_nowhere_else() {
    assert_eq!(line_of_unsafe("fn f() {\n    unsafe { g() }\n}"), Some(2));
    assert_eq!(line_of_unsafe("let s = \"a \\\" b\"; unsafe fn f() {}"), Some(1));
    assert_eq!(
        line_of_unsafe("// unsafe\n/* unsafe */ let s = \"unsafe\"; let r = r#\"unsafe \" \"#; unsafely()"),
        None
    );
    assert_eq!(line_of_unsafe("let q = '\"'; unsafe {}"), Some(1));
}
