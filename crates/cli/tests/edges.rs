//! The shape of the workspace: dependencies point one way, and `unsafe` stays where it is looked after.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `abi` ◀ `wasm`, `ptx`, `wasi`, `device`, `cache` ◀ `compiler` ◀ `run`, `gang` ◀ `map`, `wast`, `console` ◀ `machine` ◀ the command line: a crate depends on layers before its own only.
const LAYERS: &[&[&str]] = &[
    &["gpu-run-abi"],
    &["gpu-run-wasm", "gpu-run-ptx", "gpu-run-wasi", "gpu-run-device", "gpu-run-cache"],
    &["gpu-run-compiler"],
    &["gpu-run-run", "gpu-run-gang"],
    // Beside them, and not before: no library talks to people.
    &["gpu-run-map", "gpu-run-wast", "gpu-run-console"],
    &["gpu-run-machine"],
    &["gpu-run"],
];

/// The only crate that may contain `unsafe`: all others keep to the workspace's lint, which denies it.
const UNSAFE: &str = "gpu-run-device";

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
fn only_the_device_crate_lifts_the_lint_against_unsafe() {
    for package in packages() {
        let folder = Path::new(package["manifest_path"].as_str().expect("a path")).parent().expect("a folder");
        let mut files = Vec::new();
        rust_files(folder, &mut files);
        assert!(!files.is_empty(), "{} has no sources", folder.display());
        let lint = concat!("unsafe", "_code");
        let lifts = |file: &PathBuf| fs::read_to_string(file).expect("a source").contains(lint);
        let lifted: Vec<_> = files.into_iter().filter(lifts).collect();
        assert_eq!(!lifted.is_empty(), name(&package) == UNSAFE, "{lifted:?}");
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
