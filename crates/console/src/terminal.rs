//! Everything that gpu-run itself prints for people goes through here: control characters are printed as escapes, so
//! that a name from a module or of a file cannot control the terminal. The guests' own bytes, and files that are
//! written to stdout, do not go through here.

use crate::output::Standard;
use anyhow::Result;
use gpu_run_compiler::printable;
use std::io::{self, Write};

/// Prints text on stderr. Unlike `eprint!`, does not panic if stderr is closed.
pub fn say(text: &str) {
    let _ = io::stderr().write_all(printable::message(text).as_bytes());
}

/// Prints a command's result on stdout.
pub fn print(text: &str) -> Result<()> {
    Ok(Standard::stdout()?.write_all(printable::message(text).as_bytes())?)
}

/// A writer that escapes everything written to it. Each write must end with a whole character.
#[derive(Debug)]
pub struct Escaping<W>(pub W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(printable::message(&text).as_bytes())?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_bit_by_bit_is_escaped_too() {
        let mut out = Escaping(Vec::new());
        let name = "\x1b]0;x\x07";
        write!(out, "a {name} b\n\tc").unwrap();
        assert_eq!(String::from_utf8(out.0).unwrap(), "a \\u001b]0;x\\u0007 b\n\tc");
    }
}
