//! `code-hashes [--texts FOLDER] PATH…` prints one line for each module in these files and folders and each way to
//! build it, with hashes of its CLIF and of its PTX. `scripts/same-code` compares the lines of two commits. `.wasm` and
//! `.wat` files are modules, `.wast` scripts have several.
//!
//! `--texts` also writes the CLIF and the PTX themselves, in two files for each line.

use gpu_run_abi::{Build, GangSizes, Layout, Placement};
use gpu_run_compiler::{CompileOptions, Compiled, Entry, explain};
use rayon::prelude::*;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use wast::lexer::Lexer;
use wast::parser::{self, ParseBuffer};
use wast::{QuoteWat, Wast, WastDirective};

/// Local memory of a thread on a large GPU, in bytes.
const LOCAL_BYTES: u32 = 256 << 10;

/// An example of a gang.
const GANG: GangSizes =
    GangSizes { threads: 1024, groups: 1, image_bytes: 64 << 20, stack_bytes: 4096, bus_bytes: 1 << 16 };

struct Module {
    name: String,
    wasm: Vec<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let mut texts = None;
    if args.first().is_some_and(|arg| arg == Path::new("--texts")) {
        texts = args.get(1).cloned();
        args.drain(..args.len().min(2));
    }
    if args.is_empty() {
        return Err("usage: code-hashes [--texts FOLDER] PATH…".into());
    }
    let mut files = Vec::new();
    for path in &args {
        find(path, &mut files)?;
    }
    files.sort();
    if let Some(folder) = &texts {
        fs::create_dir_all(folder)?;
    }
    let lines: Vec<String> = files
        .par_iter()
        .map(|file| Ok(modules(file)?.par_iter().flat_map_iter(|module| lines(module, texts.as_deref())).collect()))
        .collect::<Result<Vec<Vec<String>>, String>>()?
        .concat();
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Finds all files below a path that contain modules.
fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?.path();
        let is_module =
            entry.extension().is_some_and(|extension| ["wasm", "wat", "wast"].iter().any(|of| extension == *of));
        if is_module || entry.is_dir() {
            find(&entry, files)?;
        }
    }
    Ok(())
}

/// Returns the modules of a file, with names that do not depend on where the file lies.
fn modules(file: &Path) -> Result<Vec<Module>, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let bytes = fs::read(file).map_err(|error| told(&error))?;
    let parts: Vec<_> = file.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    let name = parts.into_iter().rev().collect::<Vec<_>>().join("/");
    if file.extension().is_none_or(|extension| extension != "wast") {
        let wasm = wat::parse_bytes(&bytes).map_err(|error| told(&error))?.into_owned();
        return Ok(vec![Module { name, wasm }]);
    }
    let text = String::from_utf8(bytes).map_err(|error| told(&error))?;
    let mut lexer = Lexer::new(&text);
    // The suite has confusing names on purpose.
    lexer.allow_confusing_unicode(true);
    let buffer = ParseBuffer::new_with_lexer(lexer).map_err(|error| told(&error))?;
    let script = parser::parse::<Wast<'_>>(&buffer).map_err(|error| told(&error))?;
    let encoded = script.directives.into_iter().filter_map(|directive| match directive {
        WastDirective::Module(mut module @ QuoteWat::Wat(_))
        | WastDirective::ModuleDefinition(mut module @ QuoteWat::Wat(_)) => module.encode().ok(),
        _ => None,
    });
    Ok(encoded.enumerate().map(|(at, wasm)| Module { name: format!("{name}:{at}"), wasm }).collect())
}

/// Every build of a module except gangs.
const BUILDS: [(&str, Build); 5] = [
    ("exact-linear", Build::Exact(Layout::Linear)),
    ("exact-interleaved", Build::Exact(Layout::Interleaved)),
    ("speculative-linear", Build::Speculative(Placement::Linear)),
    ("speculative-slots", Build::Speculative(Placement::Interleaved)),
    ("speculative-own", Build::Speculative(Placement::Local { bytes: LOCAL_BYTES })),
];

/// Returns the entry to compile: `_start` if the module exports it, else all exports.
fn entry(wasm: &[u8]) -> Entry {
    let is_command = wasmparser::Parser::new(0).parse_all(wasm).any(|payload| match payload {
        Ok(wasmparser::Payload::ExportSection(exports)) => {
            exports.into_iter().flatten().any(|export| export.name == "_start")
        }
        _ => false,
    });
    if is_command { Entry::Start } else { Entry::Exports }
}

fn lines(module: &Module, texts: Option<&Path>) -> Vec<String> {
    let clif = |options: &CompileOptions| match explain(&module.wasm, options, None) {
        Ok(functions) => functions.iter().map(|function| format!("; {}\n{}\n", function.name, function.clif)).collect(),
        Err(error) => format!("refused: {error}"),
    };
    let options = |build, entry| CompileOptions::new(build, entry);
    let ptx = |options: &CompileOptions| {
        let compiled = Compiled::new(&module.wasm, options).map(|compiled| compiled.ptx().to_owned());
        compiled.unwrap_or_else(|error| format!("refused: {error}"))
    };
    let mut texts_of = Vec::new();
    for (name, build) in BUILDS {
        let options = options(build, entry(&module.wasm));
        texts_of.push((name, clif(&options), ptx(&options)));
    }
    for (name, relaxed) in [("gang", false), ("gang-relaxed", true)] {
        let options = options(Build::Gang { sizes: GANG, relaxed }, Entry::Exports);
        texts_of.push((name, String::new(), ptx(&options)));
    }
    texts_of
        .into_iter()
        .map(|(build, clif, ptx)| {
            if let Some(folder) = texts {
                let name = format!("{}.{build}", module.name.replace('/', "_"));
                for (text, extension) in [(&clif, "clif"), (&ptx, "ptx")] {
                    // A text that cannot be written is only reported: the hashes are still printed.
                    if let Err(error) = fs::write(folder.join(format!("{name}.{extension}")), text) {
                        eprintln!("code-hashes: {name}.{extension}: {error}");
                    }
                }
            }
            format!("{} {build} clif {} ptx {}", module.name, hash(&clif), hash(&ptx))
        })
        .collect()
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}
