//! Ways out that must not be.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::guest::*;
use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::stdio::Null;
use gpu_run_wasi::{Errno, Reply};

const SECRET: &str = "the outside's secret";
/// Whatever takes so long never ends.
const HANGS: Duration = Duration::from_secs(120);

/// A guest beside whose directory lies a secret, and in whose directory the host left every kind of link to it.
fn tempted() -> Guest {
    let guest = Guest::new();
    let outside = guest.outside().to_owned();
    std::fs::write(outside.join("secret"), SECRET).unwrap();
    std::fs::create_dir(outside.join("private")).unwrap();
    std::fs::write(outside.join("private/secret"), SECRET).unwrap();
    std::fs::create_dir_all(guest.host("in/side")).unwrap();
    std::fs::write(guest.host("in/file"), "fine").unwrap();
    symlink("../secret", guest.host("relative")).unwrap();
    symlink(outside.join("secret"), guest.host("absolute")).unwrap();
    symlink("../private", guest.host("directory")).unwrap();
    symlink(outside.join("private"), guest.host("absolute-directory")).unwrap();
    symlink("..", guest.host("up")).unwrap();
    symlink("in/up-again", guest.host("chain")).unwrap();
    symlink("../up", guest.host("in/up-again")).unwrap();
    symlink("/", guest.host("slash")).unwrap();
    symlink("/proc/self/root", guest.host("magic")).unwrap();
    guest
}

/// Paths that lead to the secret, if anything does.
const TO_SECRET: &[&str] = &[
    "../secret",
    "./../secret",
    "in/../../secret",
    "in/side/../../../secret",
    "in//..//..//secret",
    "relative",
    "absolute",
    "directory/secret",
    "absolute-directory/secret",
    "up/secret",
    "up/private/secret",
    "chain/secret",
    "in/up-again/secret",
    "directory/../secret",
    "../root/../secret",
];

#[test]
fn nothing_opens_the_secret() {
    let mut guest = tempted();
    let absolute = guest.outside().join("secret").to_str().unwrap().to_owned();
    let through_root = format!("slash{absolute}");
    let through_proc = format!("magic{absolute}");
    for path in TO_SECRET.iter().copied().chain([absolute.as_str(), &through_root, &through_proc]) {
        for flags in [0, FOLLOW] {
            for (oflags, rights) in [(0, READ), (0, READ | WRITE), (CREAT, WRITE), (TRUNC, WRITE), (DIRECTORY, READ)] {
                let result = guest.open_at(ROOT, path, flags, oflags, rights, 0);
                let refused = matches!(result, Err(Errno::Perm | Errno::Loop | Errno::Notdir));
                assert!(refused, "{path}: {result:?}");
            }
        }
        assert_eq!(guest.path_filestat(path, FOLLOW), Err(Errno::Perm), "{path}");
        let words = [ROOT, FOLLOW, path.len() as u64, 0, 0, 10];
        let times = guest.call(Call::path_filestat_set_times, &words, path.as_bytes()).map(|_| ());
        assert_eq!(times, Err(Errno::Perm), "{path}");
    }
    assert_eq!(std::fs::read_to_string(guest.outside().join("secret")).unwrap(), SECRET);
}

#[test]
fn nothing_is_made_or_removed_outside() {
    let mut guest = tempted();
    let absolute = guest.outside().join("new").to_str().unwrap().to_owned();
    for prefix in ["..", "up", "chain", "directory", "absolute-directory", "in/../.."] {
        let new = format!("{prefix}/new");
        let secret = format!("{prefix}/secret");
        assert_eq!(guest.open(&new, CREAT, WRITE), Err(Errno::Perm), "{new}");
        assert_eq!(guest.path(Call::path_create_directory, ROOT, &new), Err(Errno::Perm));
        assert_eq!(guest.path(Call::path_unlink_file, ROOT, &secret), Err(Errno::Perm));
        assert_eq!(guest.path(Call::path_remove_directory, ROOT, &secret), Err(Errno::Perm));
        assert_eq!(guest.symlink("target", &new), Err(Errno::Perm));
        assert_eq!(guest.link("in/file", &new), Err(Errno::Perm));
        assert_eq!(guest.link(&secret, "stolen"), Err(Errno::Perm));
        assert_eq!(guest.rename("in/file", &new), Err(Errno::Perm));
        assert_eq!(guest.rename(&secret, "stolen"), Err(Errno::Perm));
        assert_eq!(guest.readlink(&secret, 99), Err(Errno::Perm));
    }
    assert_eq!(guest.path(Call::path_create_directory, ROOT, &absolute), Err(Errno::Perm));
    assert_eq!(guest.rename("in/file", &absolute), Err(Errno::Perm));
    assert!(!guest.outside().join("new").exists() && !guest.host("stolen").exists());
    assert!(guest.host("in/file").exists());
}

#[test]
fn links_within_lead_where_they_should() {
    let mut guest = tempted();
    symlink("../in/file", guest.host("in/back")).unwrap();
    symlink("in", guest.host("to-in")).unwrap();
    for path in ["in/back", "to-in/file", "in/../in/file", "in/side/../file"] {
        let fd = guest.open(path, 0, READ).unwrap();
        assert_eq!(guest.read(fd, 9).unwrap(), b"fine", "{path}");
    }
}

#[test]
fn the_parent_of_an_opened_directory_is_out_of_reach() {
    let mut guest = tempted();
    let inner = guest.open("in", DIRECTORY, READ).unwrap();
    assert_eq!(guest.open_at(inner, "..", FOLLOW, DIRECTORY, READ, 0), Err(Errno::Perm));
    assert_eq!(guest.open_at(inner, "../in/file", FOLLOW, 0, READ, 0), Err(Errno::Perm));
    assert_eq!(guest.open_at(ROOT, "..", FOLLOW, DIRECTORY, READ, 0), Err(Errno::Perm));
}

#[test]
fn a_link_made_by_the_guest_opens_no_way_out() {
    let mut guest = tempted();
    guest.symlink("../secret", "mine").unwrap();
    assert_eq!(guest.open("mine", 0, READ), Err(Errno::Perm));
    guest.symlink("..", "in/two").unwrap();
    guest.rename("in/two", "moved").unwrap();
    assert_eq!(guest.open("moved/secret", 0, READ), Err(Errno::Perm));
    assert_eq!(guest.readlink("mine", 99).unwrap(), b"../secret", "what it says may be read");
    assert_eq!(guest.readlink("absolute", 99), Err(Errno::Perm), "but not where the host's things are");
}

#[test]
fn two_directories_exchange_files_and_nothing_more() {
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("theirs"), "theirs").unwrap();
    let mut guest = Guest::with(Null, |builder| {
        builder.preopen(other.path(), "/other").unwrap();
    });
    guest.file("ours", "ours");
    guest.two_paths(Call::path_rename, (ROOT, "ours"), (4, "moved")).unwrap();
    guest.two_paths(Call::path_link, (4, "theirs"), (ROOT, "linked")).unwrap();
    assert_eq!(std::fs::read(other.path().join("moved")).unwrap(), b"ours");
    assert_eq!(std::fs::read(guest.host("linked")).unwrap(), b"theirs");
    assert_eq!(guest.two_paths(Call::path_rename, (4, "moved"), (ROOT, "../out")), Err(Errno::Perm));
    assert_eq!(guest.two_paths(Call::path_link, (4, "../x"), (ROOT, "out")), Err(Errno::Perm));
}

/// Says that it is time to stop when it goes, also if a test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One thread swaps a directory for a link that leads out, as fast as it can; the guest opens through it all the while.
#[test]
fn a_race_is_never_won() {
    let mut guest = tempted();
    let (swap, inside, way_out) = (guest.host("swap"), guest.host("inside"), guest.host("way-out"));
    std::fs::create_dir(&swap).unwrap();
    std::fs::write(swap.join("secret"), "harmless").unwrap();
    symlink("../private", &way_out).unwrap();
    let stop = AtomicBool::new(false);
    let (mut harmless, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = std::fs::rename(&swap, &inside);
                let _ = std::fs::rename(&way_out, &swap);
                let _ = std::fs::rename(&swap, &way_out);
                let _ = std::fs::rename(&inside, &swap);
            }
        });
        let _stop = Stop(&stop);
        let words = [ROOT, FOLLOW, 11, 0, READ, 0, 0];
        // On a busy machine the other thread may not run for a long time: then until both were seen.
        let began = Instant::now();
        while (harmless == 0 || refused == 0 || harmless + refused < 10_000) && began.elapsed() < HANGS {
            if guest.try_call(Call::path_open, &words, b"swap/secret") == Reply::Done(Errno::Success) {
                let fd = u64::from(u32_at(&guest.out.bytes, 0));
                assert_eq!(guest.read(fd, 100).unwrap(), b"harmless");
                guest.close(fd).unwrap();
                harmless += 1;
            } else {
                refused += 1;
            }
            if let Ok(stat) = guest.path_filestat("swap/secret", FOLLOW) {
                assert_eq!(stat.size, 8);
            }
        }
    });
    assert!(harmless > 0 && refused > 0, "no race was run: {harmless} harmless, {refused} refused");
}
