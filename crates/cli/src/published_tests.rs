use super::*;
use serde::Deserialize;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Sample {
    pid: u32,
    device: String,
    seconds: f64,
    phases: Vec<(String, f64, Option<f64>)>,
}

impl Published for Sample {
    const PREFIX: &'static str = "sample-";
    fn pid(&self) -> u32 {
        self.pid
    }
}

fn sample() -> Sample {
    let phases = vec![("work".to_owned(), 1.5, Some(0.25))];
    Sample { pid: std::process::id(), device: "cpu".into(), seconds: 0.5, phases }
}

fn place() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("gpu-run");
    (place, path)
}

fn refusal(path: &Path) -> String {
    let made = Folder::make(path).unwrap_err().to_string();
    assert_eq!(Folder::open(path).unwrap_err().to_string(), made, "top and boot say the same");
    assert!(made.contains("XDG_RUNTIME_DIR"), "{made}");
    made
}

#[test]
fn what_is_published_is_read() {
    let (_place, path) = place();
    assert!(Folder::open(&path).unwrap().is_none());
    let folder = Folder::make(&path).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let name = file_name::<Sample>(sample().pid);
    for _ in 0..2 {
        folder.replace(&name, &encode(&sample()).unwrap()).unwrap();
    }
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "a draft was left");
    let read = |name: &str| folder.read::<Sample>(&std::ffi::CString::new(name).unwrap());
    assert_eq!(read(&name).unwrap().1, sample());
    fs::rename(path.join(&name), path.join(file_name::<Sample>(1))).unwrap();
    assert!(read(&file_name::<Sample>(1)).is_none(), "it is another process's");
}

#[test]
fn somebody_looks_as_long_as_the_file_is_renewed() {
    let (_place, path) = place();
    let publisher = Publisher { folder: Folder::make(&path).unwrap(), name: String::new() };
    assert!(!publisher.is_asked());
    publisher.folder.replace(ASKED, b"").unwrap();
    assert!(publisher.is_asked());
    let file = File::options().write(true).open(path.join(ASKED)).unwrap();
    file.set_modified(SystemTime::now() - 2 * ASKED_WITHIN).unwrap();
    assert!(!publisher.is_asked());
}

#[test]
fn a_folder_that_others_may_use_is_refused() {
    let (_place, path) = place();
    for mode in [0o777, 0o770, 0o1777, 0o755, 0o711] {
        let _ = fs::create_dir(&path);
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let refusal = refusal(&path);
        assert!(refusal.contains(&format!("{mode:04o}")), "{refusal}");
    }
}

#[test]
fn a_link_or_a_file_in_its_place_is_refused() {
    let (place, path) = place();
    fs::create_dir(place.path().join("elsewhere")).unwrap();
    fs::set_permissions(place.path().join("elsewhere"), Permissions::from_mode(0o700)).unwrap();
    symlink("elsewhere", &path).unwrap();
    assert!(refusal(&path).contains("it is not a folder"));
    fs::remove_file(&path).unwrap();
    symlink("nowhere", &path).unwrap();
    assert!(refusal(&path).contains("it is not a folder"));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    assert!(refusal(&path).contains("it is not a folder"));
}

#[test]
fn a_folder_of_another_user_is_refused() {
    let (_place, path) = place();
    Folder::make(&path).unwrap();
    if std::os::unix::fs::chown(&path, Some(4711), None).is_err() {
        eprintln!("not tried: only root can give a folder away"); // whose it is, is judged in `trust`, with numbers
        return;
    }
    let refusal = refusal(&path);
    assert!(refusal.contains("belongs to user 4711"), "{refusal}");
}

#[test]
fn nothing_is_written_through_a_link() {
    let (place, path) = place();
    let folder = Folder::make(&path).unwrap();
    let victim = place.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let name = file_name::<Sample>(1);
    for planted in [name.clone(), format!(".{name}.tmp")] {
        symlink(&victim, path.join(planted)).unwrap();
    }
    folder.replace(&name, b"new").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(path.join(&name)).unwrap(), b"new");
    assert!(!path.join(&name).is_symlink());
}

#[test]
fn what_is_no_file_of_ours_is_passed_over_at_once() {
    let (_place, path) = place();
    let folder = Folder::make(&path).unwrap();
    let name = |pid| std::ffi::CString::new(file_name::<Sample>(pid)).unwrap();
    rustix::fs::mknodat(&folder.0, name(1), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
    fs::create_dir(path.join(file_name::<Sample>(2))).unwrap();
    symlink("/dev/zero", path.join(file_name::<Sample>(3))).unwrap();
    let long = File::create(path.join(file_name::<Sample>(4))).unwrap();
    long.set_len(1 << 40).unwrap();
    fs::write(path.join(file_name::<Sample>(5)), r#"{"pid":5,"seconds":1e300}"#).unwrap();
    for pid in 1..6 {
        assert!(folder.read::<Sample>(&name(pid)).is_none(), "{pid}");
    }
}

#[test]
fn every_flipped_byte_and_every_truncation_is_noticed() {
    let whole = encode(&sample()).unwrap();
    assert_eq!(decode::<Sample>(&whole), Some(sample()));
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bad = whole.clone();
            bad[at] ^= 1 << bit;
            assert_eq!(decode::<Sample>(&bad), None, "bit {bit} of byte {at}");
        }
        assert_eq!(decode::<Sample>(&whole[..at]), None, "{at} bytes");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_refused_and_no_more(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2000)) {
        assert_eq!(decode::<Sample>(&bytes), None);
    }
}
