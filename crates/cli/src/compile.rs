//! `gpu-run compile FILE`: writes what FILE compiles to.

use crate::args::{CacheArgs, CompileArgs, Emit};
use crate::program::offline_options;
use crate::source;
use crate::surface::Surface;
use anyhow::{Context, Result};
use gpu_run_compiler::{CompileOptions, Compiled, Entry, printable};
use gpu_run_console::failure::Failure;
use gpu_run_console::output::Standard;
use gpu_run_console::progress::Progress;
use gpu_run_run::Source;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) fn compile(args: &CompileArgs) -> Result<u8> {
    let emit = form(args.output.as_deref(), args.emit)?;
    let source = source::load(&args.file, args.codegen.bin.as_deref(), &CacheArgs::default())?;
    let surface = Surface::read(&source.wasm, &source.name)?;
    surface.check_imports(&source.name)?;
    let entry = if surface.is_command() { Entry::Start } else { Entry::Exports };
    let layout = args.codegen.layout.resolve(false, 1);
    let options = surface.settle(offline_options(&args.codegen, entry, layout, args.checks));
    let progress = Progress::start(format!("compiling {}", source.name));
    let text = text(&source, &options, emit, args.codegen.compile_timeout)
        .map_err(|error| Failure::compiler(&source.name, error))?;
    drop(progress);
    write(&args.output.clone().unwrap_or_else(|| default_output(&source, emit)), &text)?;
    Ok(0)
}

fn text(
    source: &Source,
    options: &CompileOptions,
    emit: Emit,
    limit: Duration,
) -> Result<String, gpu_run_compiler::Error> {
    match emit {
        Emit::Ptx => Ok(Compiled::within(&source.name, source.wasm.clone(), options, limit)?.ptx().to_owned()),
        Emit::Clif => {
            let functions = gpu_run_compiler::explain_within(&source.name, source.wasm.clone(), options, None, limit)?;
            Ok(functions
                .iter()
                .map(|f| format!("; {} (function {})\n{}\n\n", f.name, f.index, f.clif.trim_end()))
                .collect())
        }
    }
}

fn write(output: &Path, text: &str) -> Result<()> {
    if output == Path::new("-") {
        return Ok(Standard::stdout()?.write_all(text.as_bytes())?);
    }
    std::fs::write(output, text).with_context(|| format!("cannot write {}", printable::path(output)))
}

/// Returns the form to write: `--emit`, or the one that OUT's extension names.
fn form(output: Option<&Path>, emit: Option<Emit>) -> Result<Emit, Failure> {
    let Some(output) = output.filter(|output| emit.is_none() && *output != Path::new("-")) else {
        return Ok(emit.unwrap_or(Emit::Ptx));
    };
    match output.extension().and_then(|extension| extension.to_str()) {
        Some("ptx") => Ok(Emit::Ptx),
        Some("clif") => Ok(Emit::Clif),
        _ => Err(Failure::usage(format!(
            "{}: the name does not say whether to write PTX or CLIF",
            printable::path(output)
        ))
        .hint("name it .ptx or .clif, or pass --emit ptx or --emit clif")),
    }
}

fn default_output(source: &Source, emit: Emit) -> PathBuf {
    Path::new(&source.argv0).with_extension(match emit {
        Emit::Ptx => "ptx",
        Emit::Clif => "clif",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_says_what_to_write_unless_emit_does() {
        let form = |output: Option<&str>, emit| form(output.map(Path::new), emit).ok();
        assert_eq!(form(None, None), Some(Emit::Ptx));
        assert_eq!(form(Some("-"), None), Some(Emit::Ptx));
        assert_eq!(form(Some("-"), Some(Emit::Clif)), Some(Emit::Clif));
        assert_eq!(form(Some("a.clif"), None), Some(Emit::Clif));
        assert_eq!(form(Some("a.txt"), None), None);
        assert_eq!(form(Some("a.txt"), Some(Emit::Ptx)), Some(Emit::Ptx));
    }

    #[test]
    fn the_default_output_lies_here_not_beside_the_source() {
        let source = Source { name: "/a/b/c.wasm".into(), argv0: "c.wasm".into(), wasm: Vec::new().into() };
        assert_eq!(default_output(&source, Emit::Ptx), Path::new("c.ptx"));
    }
}
