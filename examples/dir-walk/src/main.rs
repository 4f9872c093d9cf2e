//! `dir-walk DIR [SIZE]`: lists a directory tree with the sizes of files and subtrees, marks files of at least SIZE bytes.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

#[derive(Default)]
struct Totals {
    files: usize,
    directories: usize,
    bytes: u64,
    large: usize,
}

struct Walk {
    threshold: u64,
    totals: Totals,
}

impl Walk {
    /// Lists what is in `dir`, by name, and returns the bytes below it.
    fn walk(&mut self, dir: &Path, depth: usize) -> io::Result<u64> {
        let mut entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let mut sum = 0;
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let indent = "  ".repeat(depth);
            if entry.file_type()?.is_dir() {
                println!("{:>8}  {indent}{name}/", "");
                let below = self.walk(&entry.path(), depth + 1)?;
                println!("{below:>8}  {indent}  in {name}/");
                self.totals.directories += 1;
                sum += below;
            } else {
                let size = entry.metadata()?.len();
                let large = size >= self.threshold;
                println!("{size:>8}  {indent}{name}{}", if large { " *" } else { "" });
                self.totals.files += 1;
                self.totals.large += usize::from(large);
                sum += size;
            }
        }
        self.totals.bytes = self.totals.bytes.max(sum);
        Ok(sum)
    }
}

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let Some(root) = args.next() else {
        eprintln!("usage: dir-walk DIR [SIZE]");
        return ExitCode::from(2);
    };
    let threshold = args.next().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let mut walk = Walk { threshold, totals: Totals::default() };
    if let Err(error) = walk.walk(Path::new(&root), 0) {
        eprintln!("dir-walk: {root}: {error}");
        return ExitCode::FAILURE;
    }
    let Totals { files, directories, bytes, large } = walk.totals;
    println!("{files} files and {directories} directories, {bytes} bytes; {large} files of {threshold} bytes or more");
    ExitCode::SUCCESS
}
