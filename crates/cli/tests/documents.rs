//! What the documents name is there: files, in ARCHITECTURE.md's walks the functions in them, in docs/std.md the tests.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Documents that speak of the code as it is; `docs/lab` speaks of it as it was.
fn documents() -> Vec<PathBuf> {
    let folders = [root(), root().join("docs")];
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Everything between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// A path in a crate: `run/src/bus.rs`.
fn in_crate(quoted: &str) -> Option<PathBuf> {
    let (crate_, rest) = quoted.strip_prefix("crates/").unwrap_or(quoted).split_once('/')?;
    let is_source = ["src/", "tests/", "benches/", "examples/"].iter().any(|folder| rest.starts_with(folder));
    let is_plain = !rest.contains(['{', '*', ' ', '…']) && crate_.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    (is_source && is_plain && !crate_.is_empty()).then(|| root().join("crates").join(crate_).join(rest))
}

#[test]
fn every_source_file_that_a_document_names_exists() {
    let mut count = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for (name, path) in quoted(&text).filter_map(|quoted| Some((quoted, in_crate(quoted)?))) {
            assert!(path.exists(), "{} names {name}, which is not there", document.display());
            count += 1;
        }
    }
    assert!(count > 50, "only {count} files were found in the documents");
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target) {
            let file = target.split('#').next().unwrap();
            if file.is_empty() || target.contains("://") {
                continue;
            }
            let path = document.parent().unwrap().join(file);
            assert!(path.exists(), "{} links to {target}, which is not there", document.display());
        }
    }
}

#[test]
fn every_stop_of_a_walk_names_a_function_of_its_file() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let walks = text.split("\n## ").find(|section| section.starts_with("Seven walks")).unwrap();
    let mut count = 0;
    for line in walks.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        // What stands before the colon: a file, then functions of it.
        let head = line.split_once("`:").map_or(line, |(head, _)| head);
        let mut quoted = head.split('`').skip(1).step_by(2);
        let file = quoted.next().and_then(in_crate).unwrap_or_else(|| panic!("{line} names no file"));
        let source = fs::read_to_string(&file).unwrap();
        for function in quoted {
            let name = function.rsplit("::").next().unwrap();
            assert!(source.contains(&format!("fn {name}")), "{line}: no `{name}` in {}", file.display());
            count += 1;
        }
    }
    assert!(count > 20, "only {count} functions were found in the walks");
}

#[test]
fn the_examples_that_documents_show_are_those_of_the_repository() {
    for (document, example) in [("README.md", "unique-chars"), ("docs/together.md", "line-server")] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let source = fs::read_to_string(root().join(format!("examples/{example}/src/main.rs"))).unwrap();
        // Without the comment at its top.
        let source = &source[source.find("use ").unwrap()..];
        assert!(text.contains(&format!("```rust\n{source}```\n")), "{document} does not show {example} as it is");
    }
}

#[test]
fn every_test_that_the_page_about_std_names_exists() {
    let text = fs::read_to_string(root().join("docs/std.md")).unwrap();
    let is_listed =
        |file: &str, name: &str| fs::read_to_string(root().join(file)).unwrap().contains(&format!("\n[{name}]\n"));
    let mut count = 0;
    for (kind, name) in quoted(&text).filter_map(|quoted| quoted.split_once("::")) {
        let exists = match kind {
            "threads" => is_listed("tests/threads/programs.toml", name),
            "example" => is_listed("examples/programs.toml", name),
            "std" | "processes" => root().join(format!("tests/{kind}/src/bin/{name}.rs")).exists(),
            "net" => {
                fs::read_to_string(root().join("crates/cli/tests/net.rs")).unwrap().contains(&format!("fn {name}("))
            }
            "wasi" => root().join(format!("tests/wasi/src/bin/{name}.rs")).exists(),
            "backtrace" | "own_std" | "unstable_std" => {
                fs::read_to_string(root().join(format!("crates/cli/tests/{kind}.rs")))
                    .unwrap()
                    .contains(&format!("fn {name}("))
            }
            _ => continue,
        };
        assert!(exists || name == "NAME", "docs/std.md names {kind}::{name}, which is not there");
        count += 1;
    }
    assert!(count > 50, "only {count} tests were found in docs/std.md");
}
