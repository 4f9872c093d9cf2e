//! Turns FILE, of whatever kind, into the bytes of a wasm module.
//!
//! Content takes precedence over the extension: a file that begins with `\0asm` is a module, and one that begins with
//! `(` or `;;` is WebAssembly text, whatever its name. Rust sources and Cargo packages go through the toolchain.

use crate::args::CacheArgs;
use crate::program_cache;
use crate::surface;
use anyhow::Result;
use gpu_run_compiler::printable;
use gpu_run_console::failure::Failure;
use gpu_run_run::Source;
use gpu_run_toolchain::{build_package, compile_file};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"\0asm";
/// How many bytes are read to find out what a file is.
const HEAD: u64 = 4096;

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Wasm,
    Wat,
    Rust,
    /// None of these, with a description of what it looks like.
    Other(Cow<'static, str>),
}

/// Loads FILE; `bin` chooses one of a package's binaries. Rust is compiled with gpu-run's own std, if there is one in the cache.
pub(crate) fn load(file: &Path, bin: Option<&str>, cache: &CacheArgs) -> Result<Source> {
    let name = printable::path(file);
    if file == Path::new("-") {
        return from_reader(io::stdin().lock(), Path::new("stdin"), "stdin".into(), cache);
    }
    let metadata = file.metadata().map_err(|error| cannot_open(file, &error))?;
    if metadata.is_dir() {
        return from_package(file, name, bin, cache);
    }
    if file.file_name().is_some_and(|n| n == "Cargo.toml") {
        return from_package(file.parent().unwrap_or(Path::new(".")), name, bin, cache);
    }
    if bin.is_some() {
        return Err(Failure::usage(format!("--bin chooses a binary of a Cargo package, but {name} is a file")).into());
    }
    from_reader(File::open(file).map_err(|error| cannot_open(file, &error))?, file, name, cache)
}

fn from_reader(mut reader: impl Read, path: &Path, name: String, cache: &CacheArgs) -> Result<Source> {
    let unreadable = |error| Failure::usage(format!("cannot read {name}: {error}"));
    let mut bytes = Vec::new();
    reader.by_ref().take(HEAD).read_to_end(&mut bytes).map_err(unreadable)?;
    let kind = classify(&bytes, path);
    if let Kind::Other(what) = kind {
        return Err(Failure::usage(format!("{name} is not a WebAssembly module: {what}"))
            .hint("gpu-run takes a .wasm, .wat or .rs file, or a Cargo package's folder; build with `cargo build --target wasm32-wasip1`")
            .into());
    }
    let argv0 = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    if kind == Kind::Rust {
        let argv0 = Path::new(&argv0).with_extension("wasm").display().to_string();
        return Ok(Source { argv0, wasm: compile_file(path, place(cache).as_deref())?.into(), name });
    }
    reader.read_to_end(&mut bytes).map_err(unreadable)?;
    let wasm = if kind == Kind::Wat { assemble(&bytes, path)? } else { bytes };
    Ok(Source { name, argv0, wasm: wasm.into() })
}

fn from_package(folder: &Path, name: String, bin: Option<&str>, cache: &CacheArgs) -> Result<Source> {
    if !folder.join("Cargo.toml").is_file() {
        return Err(Failure::usage(format!("{name} is a folder without a Cargo.toml"))
            .hint("give a Cargo package's folder, or a .wasm, .wat or .rs file")
            .into());
    }
    load(&build_package(folder, bin, place(cache).as_deref())?, None, cache)
}

/// Returns the cache's folder, where gpu-run's own std may be. A run that keeps no compiled programs uses that nevertheless.
fn place(cache: &CacheArgs) -> Option<PathBuf> {
    program_cache::place(&CacheArgs { no_cache: false, ..cache.clone() }).ok()?.ok()
}

fn assemble(text: &[u8], path: &Path) -> Result<Vec<u8>> {
    wat::Parser::new().parse_bytes(Some(path), text).map(Cow::into_owned).map_err(|error| {
        let file = printable::path(path);
        // The parser is built without support for components.
        if error.to_string().contains("parsing components") {
            return surface::component(&file.to_string()).into();
        }
        // wat's own message already names the file, the line and the column.
        Failure::usage(format!("{file} is not valid WebAssembly text\n{error}")).into()
    })
}

fn classify(head: &[u8], path: &Path) -> Kind {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if head.starts_with(MAGIC) {
        Kind::Wasm
    } else if text.starts_with(b"(") || text.starts_with(b";;") {
        Kind::Wat
    } else if !head.is_empty() && path.extension().is_some_and(|e| e == "rs") && !head.contains(&0) {
        Kind::Rust
    } else {
        Kind::Other(describe(head))
    }
}

/// Describes a file that is no module by its first bytes.
fn describe(head: &[u8]) -> Cow<'static, str> {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"\x7fELF", "it is a native (ELF) program or library; build its sources for wasm32-wasip1"),
        (b"\xcf\xfa\xed\xfe", "it is a native (Mach-O) program or library; build its sources for wasm32-wasip1"),
        (b"MZ", "it is a native (Windows) program; build its sources for wasm32-wasip1"),
        (b"!<arch>", "it is a static library; link it into a program first"),
        (b"BC\xc0\xde", "it is LLVM bitcode; build without `--emit=llvm-bc`"),
        (b"\x1f\x8b", "it is gzip data; unpack it first"),
        (b"\x28\xb5\x2f\xfd", "it is zstd data; unpack it first"),
        (b"\xfd7zXZ", "it is xz data; unpack it first"),
        (b"PK\x03\x04", "it is a zip archive; unpack it first"),
        (b"#!", "it is a script"),
    ];
    if head.is_empty() {
        return "it is empty".into();
    }
    if MAGIC.starts_with(head) {
        return format!("it ends after {} bytes, within the magic number `\\0asm`", head.len()).into();
    }
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*what).into();
    }
    let printable = |b: &u8| b.is_ascii_graphic() || b.is_ascii_whitespace() || *b >= 0x80;
    if head.iter().all(printable) {
        return "it is text, but not WebAssembly text, which begins with `(`".into();
    }
    let bytes: Vec<_> = head.iter().take(4).map(|b| format!("{b:02x}")).collect();
    format!("it begins with the bytes {}, but a module begins with 00 61 73 6d (`\\0asm`)", bytes.join(" ")).into()
}

fn cannot_open(file: &Path, error: &io::Error) -> Failure {
    let name = printable::path(file);
    if error.kind() != io::ErrorKind::NotFound {
        return Failure::usage(format!("cannot read {name}: {error}"));
    }
    let failure = Failure::usage(format!("{name}: no such file or folder"));
    let with_wasm = file.with_added_extension("wasm");
    if with_wasm.exists() {
        return failure.hint(format!("did you mean {}?", printable::path(&with_wasm)));
    }
    if let Some(command) = file.to_str().filter(|name| crate::args::is_command(name)) {
        return failure.hint(format!("options of `{command}` come after the word `{command}`"));
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(head: &[u8], path: &str) -> Kind {
        classify(head, Path::new(path))
    }

    #[test]
    fn content_decides_over_extension() {
        assert_eq!(kind(b"\0asm\x01\0\0\0", "a.wat"), Kind::Wasm);
        assert_eq!(kind(b"\0asm\x01\0\0\0", "a.rs"), Kind::Wasm);
        assert_eq!(kind(b"\xef\xbb\xbf \n(module)", "a.wasm"), Kind::Wat);
        assert_eq!(kind(b";; a comment\n(module)", "a"), Kind::Wat);
        assert_eq!(kind(b"fn main() {}", "a.rs"), Kind::Rust);
        assert!(matches!(kind(b"fn main() {}", "a.txt"), Kind::Other(_)));
    }

    #[test]
    fn what_is_no_module_is_named() {
        for (head, part) in [
            (&b""[..], "empty"),
            (b"\0as", "ends after 3 bytes"),
            (b"\x7fELF\x02", "ELF"),
            (b"hello", "text"),
            (&[0; 4096], "00 00 00 00"),
            (b"\0ASM\x01\0\0\0", "00 41 53 4d"),
        ] {
            let Kind::Other(what) = kind(head, "x.wasm") else { panic!("{head:?}") };
            assert!(what.contains(part), "{what}");
        }
    }

    #[test]
    fn wat_errors_say_where() {
        let error = from_reader(
            &b"(module\n  (func (result i32)))x"[..],
            Path::new("bad.wat"),
            "bad.wat".into(),
            &CacheArgs::default(),
        );
        let text = error.unwrap_err().to_string();
        assert!(text.contains("bad.wat:2:"), "{text}");
    }

    #[test]
    fn argv0_is_the_name_without_folders() {
        let source =
            from_reader(&b"(module)"[..], Path::new("/a/b/c.wat"), "/a/b/c.wat".into(), &CacheArgs::default()).unwrap();
        assert_eq!(source.argv0, "c.wat");
        assert_eq!(*source.wasm, b"\0asm\x01\0\0\0");
    }
}
