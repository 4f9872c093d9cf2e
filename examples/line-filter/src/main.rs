//! `line-filter [-n] [-u] [-r] [-v] [WORD]`: reads standard input line by line and prints the lines that contain WORD.
//! `-n` numbers them, `-u` puts them in upper case, `-r` reverses them, `-v` prints the others. Totals go to standard error.

use std::env;
use std::io::{self, BufRead, BufWriter, Write};
use std::process::ExitCode;

#[derive(Default)]
struct Options {
    number: bool,
    upper: bool,
    reverse: bool,
    invert: bool,
    word: String,
}

fn parse(args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    for arg in args {
        match arg.as_str() {
            "-n" => options.number = true,
            "-u" => options.upper = true,
            "-r" => options.reverse = true,
            "-v" => options.invert = true,
            flag if flag.starts_with('-') => return Err(format!("unknown option {flag}")),
            _ => options.word = arg,
        }
    }
    Ok(options)
}

fn filter(options: &Options) -> io::Result<(usize, usize)> {
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut read, mut printed) = (0, 0);
    for line in io::stdin().lock().lines() {
        let mut line = line?;
        read += 1;
        if line.contains(&options.word) == options.invert {
            continue;
        }
        printed += 1;
        if options.upper {
            line = line.to_uppercase(); // ß becomes SS: the line may grow
        }
        if options.reverse {
            line = line.chars().rev().collect();
        }
        if options.number {
            write!(out, "{read:>4}  ")?;
        }
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok((read, printed))
}

fn main() -> ExitCode {
    let options = match parse(env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("line-filter: {message}");
            return ExitCode::from(2);
        }
    };
    match filter(&options) {
        Ok((read, printed)) => {
            eprintln!("{printed} of {read} lines");
            if printed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("line-filter: {error}");
            ExitCode::from(2)
        }
    }
}
