//! The layers of the crate: each uses only itself and the layers below it.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers from the bottom to the top. Each is a list of files and folders of `src`.
const LAYERS: [&[&str]; 5] =
    [&["program", "symbols", "error"], &["analysis"], &["print"], &["guest"], &["block", "function", "lib"]];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// Collects all source files below a folder, each with the module of the crate that it belongs to.
fn sources(folder: &Path, module: Option<&str>, found: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(folder).expect("the crate's sources") {
        let path = entry.expect("the crate's sources").path();
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let module = module.unwrap_or(&stem);
        if path.is_dir() {
            sources(&path, Some(module), found);
        } else {
            found.push((module.to_string(), path));
        }
    }
}

/// Returns a source without its comments.
fn code(source: &str) -> String {
    source.lines().flat_map(|line| [line.split("//").next().unwrap_or_default(), "\n"]).collect()
}

/// Returns the modules of the crate that a source names: `crate::print::body` and `crate::{Error, print::body}` name
/// `print`. Names in comments do not count.
fn named(source: &str) -> Vec<String> {
    let code = code(source);
    let mut modules = Vec::new();
    for (at, prefix) in code.match_indices("crate::") {
        let rest = &code[at + prefix.len()..];
        let list = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => rest.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default(),
        };
        for name in list.split(',') {
            let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
            modules.push(name.trim().chars().take_while(is_word).collect());
        }
    }
    modules
}

#[test]
fn every_arrow_points_down() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), None, &mut files);
    let mut wrong = Vec::new();
    for (module, path) in files {
        let from = layer(&module).unwrap_or_else(|| panic!("{}: which layer is this?", path.display()));
        let source = fs::read_to_string(&path).expect("a source file");
        // In a folder's `mod.rs`, `super` is the crate.
        let hidden = if path.ends_with("mod.rs") { "super::" } else { "super::super::" };
        if code(&source).contains(hidden) {
            wrong.push(format!("{}: `{hidden}` hides where an arrow leads; write `crate::`", path.display()));
        }
        // Types of the public interface are named as `crate::Name`: they are in the lowest layer.
        for to in named(&source).iter().filter_map(|name| Some((name, layer(name)?))).filter(|(_, to)| *to > from) {
            wrong.push(format!("{}: `{module}` is below `{}`", path.display(), to.0));
        }
    }
    assert!(wrong.is_empty(), "arrows that point up:\n{}", wrong.join("\n"));
}

#[test]
fn names_are_found() {
    let source = "use crate::print::body::Body;\nuse crate::{Error, guest::Guest};\n// crate::analysis\nlet x = crate::block::f();";
    assert_eq!(named(source), ["print", "Error", "guest", "block"]);
}
