use super::*;
use rustix::fs::mkfifoat;
use std::os::unix::fs::symlink;

/// A folder with a file, a folder, and a secret beside it.
fn place() -> (tempfile::TempDir, PathBuf, Folder) {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("sub/file"), "inside").unwrap();
    fs::write(place.path().join("secret"), "outside").unwrap();
    let folder = Folder::open(&root);
    (place, root, folder)
}

fn nobody() -> Trust {
    Trust::default()
}

#[test]
fn only_regular_files_are_read_and_nothing_through_a_link() {
    let (place, root, folder) = place();
    assert_eq!(folder.read(Path::new("sub/file")).unwrap().1.st_size, 6);
    symlink("sub", root.join("way")).unwrap();
    symlink(place.path().join("secret"), root.join("link")).unwrap();
    mkfifoat(CWD, root.join("fifo"), Mode::from_raw_mode(0o600)).unwrap();
    let read = |path: &str| folder.read(Path::new(path)).unwrap_err();
    assert_eq!(read("link"), Errno::LOOP);
    assert_eq!(read("way/file"), Errno::NOTDIR);
    assert_eq!(read("fifo"), Errno::NXIO);
    assert_eq!(read("sub"), Errno::ISDIR);
    assert_eq!(read("../secret"), Errno::INVAL);
    assert_eq!(read("nothing"), Errno::NOENT);
}

#[test]
fn a_temporary_file_is_new_and_takes_a_links_place() {
    let (place, root, folder) = place();
    let secret = place.path().join("secret");
    symlink(&secret, root.join("sub/out")).unwrap();
    let (file, name) = folder.temporary("stem".as_ref()).unwrap();
    rustix::io::write(&file, b"new").unwrap();
    assert_ne!(folder.temporary("stem".as_ref()).unwrap().1, name);
    folder.rename(&name, Path::new("sub/out")).unwrap();
    assert_eq!(fs::read_to_string(root.join("sub/out")).unwrap(), "new");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "outside");
    folder.rename("sub".as_ref(), Path::new("stem.not-ours")).unwrap();
    folder.remove_temporary("stem".as_ref()).unwrap();
    assert_eq!(folder.list(Path::new("")).unwrap(), [("stem.not-ours".into(), FileType::Directory)]);
}

#[test]
fn folders_are_made_and_links_to_folders_not_entered() {
    let (place, root, folder) = place();
    symlink(place.path(), root.join("away")).unwrap();
    let (_, name) = folder.temporary("t".as_ref()).unwrap();
    assert_eq!(folder.rename(&name, Path::new("away/planted")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    assert!(!place.path().join("planted").exists());
    folder.rename(&name, Path::new("new/er/file")).unwrap();
    assert!(root.join("new/er/file").is_file());
    assert!(folder.remove(Path::new("away/secret")).is_err() && place.path().join("secret").exists());
}

#[test]
fn a_moved_folder_is_still_the_one_that_is_held() {
    let (place, root, folder) = place();
    fs::rename(&root, place.path().join("moved")).unwrap();
    symlink("/", &root).unwrap();
    assert!(folder.read(Path::new("sub/file")).is_ok());
    assert_eq!(folder.real_path().unwrap(), fs::canonicalize(place.path()).unwrap().join("moved"));
}

#[test]
fn the_users_path_is_followed_unless_a_guest_may_have_made_its_links() {
    let (place, root, _) = place();
    let link = root.join("sub/link");
    symlink("../../new", &link).unwrap();
    let entry = FolderEntry::find(&link, &nobody(), false).unwrap();
    assert_eq!(
        (entry.folder.real_path().unwrap(), &*entry.name),
        (fs::canonicalize(place.path()).unwrap(), "new".as_ref())
    );
    assert_eq!(entry.kind().unwrap(), None);
    let guests = || [root.as_path()].into_iter();
    let error = FolderEntry::find(&link, &Trust::new(guests(), false), false).unwrap_err();
    assert!(matches!(&error, FindError::UntrustedLink(at) if at.ends_with("root/sub/link")), "{error:?}");
    assert!(FolderEntry::find(&link, &Trust::new(guests(), true), false).is_ok());
    assert!(FolderEntry::find(&root.join("sub/file"), &Trust::new(guests(), false), false).is_ok());
    symlink("ring", root.join("ring")).unwrap();
    assert!(FolderEntry::find(&root.join("ring"), &nobody(), false).is_err());
    for path in ["/", ".", "..", "/tmp/.."] {
        assert!(FolderEntry::find(Path::new(path), &nobody(), false).unwrap().into_folder(false).is_ok(), "{path}");
    }
    let made = FolderEntry::find(&root.join("a/b/c"), &nobody(), true).unwrap().into_folder(true).unwrap();
    assert_eq!(made.real_path().unwrap(), fs::canonicalize(root.join("a/b/c")).unwrap());
}

#[test]
fn a_folder_swapped_for_a_link_again_and_again_leads_nowhere() {
    use std::io::Read;
    use std::sync::atomic::{AtomicBool, Ordering};
    let (place, root, folder) = place();
    fs::write(root.join("sub/secret"), "inside").unwrap();
    fs::write(place.path().join("victim"), "").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Not for ever, if the other fails.
            for _ in 0..1_000_000 {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                fs::rename(root.join("sub"), root.join("aside")).unwrap();
                symlink("..", root.join("sub")).unwrap();
                fs::remove_file(root.join("sub")).unwrap();
                fs::rename(root.join("aside"), root.join("sub")).unwrap();
            }
        });
        for _ in 0..3000 {
            if let Ok((mut file, _)) = folder.read(Path::new("sub/secret")) {
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                assert_eq!(text, "inside");
            }
            let _ = folder.remove(Path::new("sub/victim"));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(place.path().join("victim").exists());
    assert_eq!(fs::read_to_string(place.path().join("secret")).unwrap(), "outside");
}
