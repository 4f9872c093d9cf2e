//! `file-io [NAME]`: works in the current directory: creates, appends, seeks, renames, lists, truncates and removes
//! files, and looks at what went wrong where something must.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Written, appended to, and read back line by line.
fn journal(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    writeln!(file, "first")?;
    writeln!(file, "second")?;
    drop(file);
    OpenOptions::new().append(true).open(path)?.write_all(b"third\n")?;
    for (number, line) in BufReader::new(File::open(path)?).lines().enumerate() {
        println!("line {}: {}", number + 1, line?);
    }
    println!("{} is {} bytes", path.display(), fs::metadata(path)?.len());
    Ok(())
}

/// Random access: numbers at their places, a hole, an overwrite in the middle.
fn seeking(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    for i in 0..100u32 {
        file.write_all(&(i * i).to_le_bytes())?;
    }
    file.seek(SeekFrom::Start(4 * 50))?;
    file.write_all(&7u32.to_le_bytes())?;
    file.seek(SeekFrom::End(16))?; // beyond the end: the gap reads as zeros
    file.write_all(&9u32.to_le_bytes())?;
    let mut word = [0; 4];
    for at in [
        SeekFrom::Start(4 * 49),
        SeekFrom::Current(0),
        SeekFrom::Current(4 * 48),
        SeekFrom::End(-4),
        SeekFrom::Current(-8),
    ] {
        file.seek(at)?;
        file.read_exact(&mut word)?;
        println!("{at:?}: {} and then at {}", u32::from_le_bytes(word), file.stream_position()?);
    }
    file.set_len(10)?;
    file.rewind()?;
    let mut rest = Vec::new();
    file.read_to_end(&mut rest)?;
    println!("cut to {rest:?}");
    file.sync_all()
}

fn directories(root: &Path) -> io::Result<()> {
    fs::create_dir_all(root.join("a/b/c"))?;
    for name in ["a/one.txt", "a/two.txt", "a/b/three.txt"] {
        fs::write(root.join(name), name.repeat(3))?;
    }
    fs::rename(root.join("a/two.txt"), root.join("a/b/c/moved.txt"))?;
    fs::copy(root.join("a/one.txt"), root.join("a/copy.txt"))?;
    fs::rename(root.join("a/b"), root.join("d"))?;
    fs::remove_file(root.join("a/one.txt"))?;
    list(root, 1)
}

fn list(dir: &Path, depth: usize) -> io::Result<()> {
    let mut entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = if entry.file_type()?.is_dir() { "directory" } else { "file" };
        println!("{}{} ({kind})", "  ".repeat(depth), entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(&entry.path(), depth + 1)?;
        }
    }
    Ok(())
}

/// What must fail, and how. Where platforms name an error differently, it is enough that there is one.
fn mistakes(root: &Path, existing: &Path) {
    let kind = |what: &str, result: io::Result<()>| match result {
        Ok(()) => println!("{what}: should have failed"),
        Err(error) => println!("{what}: {:?}", error.kind()),
    };
    let create_new = OpenOptions::new().write(true).create_new(true).open(existing);
    kind("open what is not there", File::open(root.join("missing")).map(drop));
    kind("create what is there", create_new.map(drop));
    kind("a file used as a directory", fs::read_dir(existing).map(drop));
    kind("create a directory twice", fs::create_dir(root));
    println!("remove a directory that is not empty: fails {}", fs::remove_dir(root).is_err());
    let write_to_reader = File::open(existing).and_then(|mut file| file.write_all(b"x"));
    println!("write to what is open for reading: fails {}", write_to_reader.is_err());
    println!("exists: {} {}", existing.exists(), root.join("missing").exists());
}

fn main() -> io::Result<()> {
    let name = env::args().nth(1).unwrap_or_else(|| "work".to_owned());
    let root = Path::new(&name);
    fs::create_dir(root)?;
    journal(&root.join("journal.txt"))?;
    seeking(&root.join("numbers.bin"))?;
    directories(root)?;
    mistakes(root, &root.join("journal.txt"));
    fs::remove_dir_all(root.join("d"))?;
    println!("left behind:");
    list(root, 1)
}
