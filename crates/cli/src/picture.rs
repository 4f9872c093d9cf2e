//! `--png FILE`: the picture that instances draw with the crate `gpu-run-guest`.

use anyhow::{Context, Result};
use gpu_run_compiler::printable;
use gpu_run_console::failure::Failure;
use gpu_run_console::terminal;
use gpu_run_run::{CommonMemory, Picture};
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, openat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The file. It, or its folder, is opened before the guest runs: a guest that can write to the folder cannot put a link in its
/// place.
#[derive(Debug)]
pub(crate) struct PngFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    File(File),
    /// The file is made when there is a picture.
    New {
        folder: OwnedFd,
        name: OsString,
    },
}

impl PngFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |what: &str| Failure::usage(format!("--png {}: {what}", printable::path(path)));
        if path == "-" {
            return Err(failed("stdout belongs to the guest").hint("name a file").into());
        }
        let target = match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                return Err(failed("not an ordinary file").hint("name a file, or one that is not there yet").into());
            }
            Ok(_) => existing(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok() {
                    return Err(failed("a link to a file that is not there").hint("name the file itself").into());
                }
                new(path)
            }
            Err(error) => Err(error),
        };
        let target = target.map_err(|error| failed(&error.to_string()).hint("name a file that you can write"))?;
        Ok(Self { path: path.to_owned(), target })
    }

    /// Writes what the instances of a program have drawn. Returns gpu-run's exit code: the program's own, unless that is 0 and
    /// there is no picture.
    pub(crate) fn write(self, drawn: &CommonMemory, program: &str, exit_code: u8) -> Result<u8> {
        match (self.try_write(drawn, program), exit_code) {
            (Ok(()), code) => Ok(code),
            (Err(error), 0) => Err(error),
            (Err(error), code) => {
                terminal::say(&format!("error: {error:#}\n"));
                Ok(code)
            }
        }
    }

    fn try_write(self, drawn: &CommonMemory, program: &str) -> Result<()> {
        let shown = printable::path(&self.path);
        let picture = drawn.picture().map_err(|error| Failure::compiler(program, error))?;
        let Some(picture) = picture else {
            let message = format!("{program} drew no picture: --png {shown} was not written");
            return Err(Failure::environment(message)
                .hint("a program draws with `Frame` of the crate gpu-run-guest")
                .into());
        };
        let file = match self.target {
            Target::File(file) => Ok(file),
            Target::New { folder, name } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(0o666);
                openat(&folder, &name, flags, mode).map(File::from).map_err(io::Error::from)
            }
        };
        let written = file.and_then(|file| encode(&file, &picture));
        written.with_context(|| format!("cannot write {shown}"))
    }
}

/// Opens a file that is there. Whatever is put in its place meanwhile, this does not wait.
fn existing(path: &Path) -> io::Result<Target> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(Target::File(file)),
        false => Err(io::Error::other("not an ordinary file")),
    }
}

/// Opens the folder of a file that is not there yet.
fn new(path: &Path) -> io::Result<Target> {
    let name = path.file_name().filter(|_| !path.as_os_str().as_encoded_bytes().ends_with(b"/"));
    let name = name.ok_or(Errno::ISDIR)?.to_owned();
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty())?;
    accessat(&folder, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())?;
    Ok(Target::New { folder, name })
}

fn encode(file: &File, picture: &Picture) -> io::Result<()> {
    file.set_len(0)?;
    (&*file).rewind()?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgb);
    // A guest must not keep gpu-run busy for minutes after its time is over.
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&picture.rgb)?;
    Ok(writer.finish()?)
}
