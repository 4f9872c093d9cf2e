//! `fs FOLDER`: `std::fs`, in a folder of its own.

use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};
use uses_std::{done, kind, show};

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    std::env::set_current_dir(folder).expect("a folder that is there");
    files();
    options();
    whole_files();
    folders();
    metadata();
    times();
    permissions();
    locks();
    links();
    refused();
}

/// A file's text, from its beginning.
fn text(file: &mut File) -> String {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("a file that can be read");
    text
}

fn files() {
    show!(done(File::open("missing")), done(File::create("file")), done(File::create_new("file")));
    let mut file = File::create_new("new").expect("a new file");
    show!(kind(file.write(b"hello, world")), kind(file.set_len(5)), kind(file.sync_all()), kind(file.sync_data()));
    let mut other = file.try_clone().expect("the same file again");
    show!(kind(file.seek(SeekFrom::Start(1))), kind(other.stream_position()), kind(other.write(b"E")));
    drop(file);
    show!(kind(other.set_len(8)), kind(fs::read("new")), kind(other.metadata().map(|metadata| metadata.len())));
    show!(kind((&other).read(&mut [0; 4])), done(File::open("new").map(|file| format!("{file:?}"))));
}

fn options() {
    fs::write("options", "0123456789").expect("a file");
    let mut file = OpenOptions::new().read(true).write(true).open("options").expect("a file");
    show!(kind(file.write(b"ab")), text(&mut file));
    let mut file = OpenOptions::new().read(true).append(true).open("options").expect("a file");
    show!(kind(file.write(b"cd")), text(&mut file));
    let mut file = File::options().read(true).write(true).truncate(true).open("options").expect("a file");
    show!(text(&mut file));
    show!(done(OpenOptions::new().write(true).create(true).truncate(false).open("made")));
    show!(done(OpenOptions::new().write(true).create_new(true).open("made")));
    show!(done(OpenOptions::new().write(true).open("not-made")), done(OpenOptions::new().open("made")));
    let mut read_only = File::open("made").expect("a file");
    show!(read_only.write(b"x").is_err());
}

fn whole_files() {
    show!(kind(fs::write("whole", "text \u{e9}")), kind(fs::read("whole")), kind(fs::read_to_string("whole")));
    show!(kind(fs::copy("whole", "copy")), kind(fs::read_to_string("copy")), kind(fs::rename("copy", "renamed")));
    show!(kind(fs::exists("copy")), kind(fs::exists("renamed")), done(fs::copy("missing", "copy")));
    fs::write("bytes", [0xff]).expect("a file");
    show!(kind(fs::read_to_string("bytes")), kind(fs::remove_file("bytes")), kind(fs::remove_file("bytes")));
}

fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry")).collect();
    names.sort_by_key(fs::DirEntry::file_name);
    let shown = |entry: &fs::DirEntry| {
        let (kind, metadata) = (entry.file_type().expect("a type"), entry.metadata().expect("metadata"));
        format!("{} {:?} {} {}", entry.path().display(), entry.file_name(), kind.is_dir(), metadata.is_file())
    };
    names.iter().map(shown).collect()
}

fn folders() {
    show!(kind(fs::create_dir("folder")), kind(fs::create_dir("folder")), kind(fs::create_dir("no/folder")));
    show!(kind(fs::create_dir_all("folder/a/b")), kind(fs::create_dir_all("folder/a/b")));
    show!(kind(DirBuilder::new().create("folder/c")), kind(DirBuilder::new().create("folder/d/e")));
    show!(kind(DirBuilder::new().recursive(true).create("folder/d/e")), kind(fs::write("folder/file", "text")));
    show!(names("folder"), names(Path::new("folder").join("d")), done(fs::read_dir("missing")));
    show!(done(fs::read_dir("folder/file")), kind(fs::remove_dir("folder")), kind(fs::remove_dir("folder/c")));
    show!(kind(fs::rename("folder/d", "moved")), names("moved"));
    show!(kind(fs::remove_dir_all("folder")), kind(fs::exists("folder")), kind(fs::remove_dir_all("moved")));
    show!(kind(fs::remove_dir_all("moved")));
}

fn metadata() {
    fs::write("data", "12345").expect("a file");
    let metadata = fs::metadata("data").expect("metadata");
    show!(metadata.is_dir(), metadata.is_file(), metadata.is_symlink(), metadata.len());
    let kind_of = metadata.file_type();
    show!(kind_of.is_dir(), kind_of.is_file(), kind_of.is_symlink(), kind_of == metadata.file_type());
    show!(fs::metadata(".").map(|folder| folder.is_dir()).ok(), done(fs::metadata("missing")));
    show!(metadata.modified().is_ok(), metadata.accessed().is_ok());
    // WASI does not know when a file was made, and nor do some file systems.
    _ = metadata.created();
}

fn times() {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::new(seconds, 123_456_789);
    let file = File::create("times").expect("a file");
    show!(kind(file.set_modified(at(1_000_000_000))));
    let modified = |file: &File| file.metadata().and_then(|metadata| metadata.modified()).ok();
    show!(modified(&file) == Some(at(1_000_000_000)));
    show!(kind(file.set_times(FileTimes::new().set_accessed(at(1_100_000_000)).set_modified(at(1_200_000_000)))));
    show!(modified(&file) == Some(at(1_200_000_000)));
    let accessed = file.metadata().and_then(|metadata| metadata.accessed()).ok();
    show!(accessed == Some(at(1_100_000_000)));
    show!(kind(file.set_times(FileTimes::new())), modified(&file) == Some(at(1_200_000_000)));
}

fn permissions() {
    fs::write("permissions", "text").expect("a file");
    let permissions = fs::metadata("permissions").expect("metadata").permissions();
    show!(permissions.readonly());
    let mut others = permissions.clone();
    others.set_readonly(true);
    show!(others.readonly(), others == permissions);
    show!(kind(fs::set_permissions("permissions", others)));
    let is_readonly = || fs::metadata("permissions").map(|metadata| metadata.permissions().readonly());
    show!(kind(is_readonly()));
    let file = File::open("permissions").expect("a file");
    show!(kind(file.set_permissions(permissions)), kind(is_readonly()));
    show!(kind(file.metadata().map(|metadata| metadata.permissions().readonly())));
}

fn locks() {
    let (one, other) = (File::create("lock").expect("a file"), File::open("lock").expect("a file"));
    show!(kind(one.lock()), other.try_lock().map_err(|error| matches!(error, fs::TryLockError::WouldBlock)));
    show!(kind(one.unlock()), kind(one.lock_shared()), other.try_lock_shared().is_ok(), one.try_lock().is_err());
    show!(kind(other.unlock()), other.try_lock().is_err(), kind(one.unlock()), other.try_lock().is_ok());
    show!(std::io::Error::from(fs::TryLockError::WouldBlock).kind());
    drop(other);
    show!(one.try_lock_shared().is_ok());
}

fn links() {
    fs::create_dir("links").expect("a folder");
    fs::write("links/target", "text").expect("a file");
    show!(kind(fs::hard_link("links/target", "links/hard")), kind(fs::read_to_string("links/hard")));
    #[allow(deprecated)]
    let soft = fs::soft_link("target", "links/soft");
    show!(kind(soft), kind(fs::read_link("links/soft")), kind(fs::read_to_string("links/soft")));
    let link = fs::symlink_metadata("links/soft").expect("metadata");
    show!(link.is_symlink(), link.file_type().is_symlink(), fs::metadata("links/soft").map(|it| it.is_symlink()).ok());
    show!(kind(fs::read_link("links/target")), names("links"));
    let real = fs::canonicalize("links/../links/./soft").expect("a path");
    show!(real.is_absolute(), real.ends_with("links/target"), kind(fs::read_to_string(real)));
    show!(
        done(fs::canonicalize("links/missing")),
        kind(fs::remove_file("links/soft")),
        kind(fs::exists("links/target"))
    );
}

/// What lies outside of the given folders is denied, and natively needs permissions that nobody has.
fn refused() {
    show!(done(fs::write("/proc/no-such-file", "text")).is_err(), done(File::open("/no/such/file")).is_err());
}
