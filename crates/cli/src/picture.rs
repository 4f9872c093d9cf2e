//! `--png FILE`: the picture that instances draw with the crate `gpu-run-guest`.

use anyhow::{Context, Result};
use gpu_run_compiler::printable;
use gpu_run_console::failure::Failure;
use gpu_run_run::{CommonMemory, Picture};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek};
use std::path::{Path, PathBuf};

/// The file, opened before the guest runs: a guest that can write to its folder cannot put a link in its place.
#[derive(Debug)]
pub(crate) struct PngFile {
    path: PathBuf,
    file: File,
}

impl PngFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| {
            Failure::usage(format!("--png {}: {error}", printable::path(path))).hint("name a file that you can write")
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes what the instances have drawn.
    pub(crate) fn write(&self, drawn: &CommonMemory, program: &str) -> Result<()> {
        let picture = drawn.picture().map_err(|error| Failure::compiler(program, error))?;
        let Some(picture) = picture else {
            let message = format!("{program} drew no picture: --png has nothing to write");
            return Err(Failure::usage(message).hint("a program draws with `Frame` of the crate gpu-run-guest").into());
        };
        self.encode(&picture).with_context(|| format!("cannot write {}", printable::path(&self.path)))
    }

    fn encode(&self, picture: &Picture) -> Result<()> {
        self.file.set_len(0)?;
        (&self.file).rewind()?;
        let mut encoder = png::Encoder::new(BufWriter::new(&self.file), picture.width, picture.height);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&picture.rgb)?;
        Ok(writer.finish()?)
    }
}
