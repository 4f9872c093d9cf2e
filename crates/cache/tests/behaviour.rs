//! What a cache does, seen from one process.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use gpu_run_cache::{Cache, Damage, Key, Options, Origin};
use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use support::{HEADER, ask, bytes, files, key, options, result, walk};

fn cache(dir: &Path) -> Cache {
    Cache::open(options(dir))
}

/// With room for so many entries of 1000 bytes, and the tenth that is left free beside.
fn bounded(dir: &Path, entries: u64) -> Cache {
    Cache::open(Options { limit: (1000 + HEADER) * entries * 10 / 9 + 9, ..options(dir) })
}

#[test]
fn the_second_time_nothing_is_compiled() {
    let dir = tempfile::tempdir().unwrap();
    let compiled = AtomicU64::new(0);
    let get = |cache: &Cache| {
        let compile = || {
            compiled.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
            Ok::<_, Infallible>(b"result".to_vec())
        };
        cache.get_or_compile(&key(1), compile).unwrap()
    };
    let first = get(&cache(dir.path()));
    assert!(matches!(first.origin, Origin::Miss { took, kept: Some(_) } if took >= Duration::from_millis(20)));
    for _ in 0..3 {
        let again = get(&cache(dir.path()));
        assert_eq!(again.bytes, b"result");
        assert!(matches!(again.origin, Origin::Hit { saved } if saved >= Duration::from_millis(20)), "{again:?}");
    }
    assert_eq!(compiled.into_inner(), 1);
    let stats = cache(dir.path()).stats().unwrap();
    assert_eq!((stats.total.counts.hits, stats.total.counts.misses, stats.total.entries), (3, 1, 1));
    assert!(stats.total.counts.saved_ms >= 60 && stats.models.len() == 1, "{stats:?}");
}

#[test]
fn what_does_not_compile_is_not_kept_and_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let cache = cache(dir.path());
    assert_eq!(cache.get_or_compile(&key(1), || Err("no")).unwrap_err(), "no");
    assert!(!ask(&cache, 1, 10).1);
    assert!(ask(&cache, 1, 10).1);
}

#[test]
fn every_flipped_byte_and_every_truncation_on_disk_is_a_miss_that_repairs() {
    let dir = tempfile::tempdir().unwrap();
    let cache = cache(dir.path());
    ask(&cache, 1, 300);
    ask(&cache, 2, 300);
    let path = files(dir.path()).into_iter().find(|p| p.to_string_lossy().contains(&key(1).hex())).unwrap();
    let whole = fs::read(&path).unwrap();
    let mut repaired = 0;
    let mut broken = |content: &[u8], what: &str| {
        fs::write(&path, content).unwrap();
        assert!(!ask(&cache, 1, 300).1, "{what} was not noticed");
        assert!(ask(&cache, 1, 300).1, "{what} was not repaired");
        assert!(ask(&cache, 2, 300).1, "{what} harmed another");
        repaired += 1;
        assert_eq!(cache.counts().repaired, repaired, "{what}");
    };
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x40;
        broken(&flipped, &format!("a flip of byte {at}"));
    }
    for length in 0..whole.len() {
        broken(&whole[..length], &format!("a truncation to {length}"));
    }
    broken(b"something else", "a foreign file");
    assert!(walk(&dir.path().join("damaged")).len() <= 16);
}

#[test]
fn a_std_is_no_damaged_entry() {
    let dir = tempfile::tempdir().unwrap();
    let cache = cache(dir.path());
    ask(&cache, 1, 50);
    let std = dir.path().join("sysroots/1.95.0-0/lib/libstd.rlib");
    fs::create_dir_all(std.parent().unwrap()).unwrap();
    fs::write(&std, "std").unwrap();
    fs::write(dir.path().join("sysroots/lock"), "").unwrap();
    // Whatever its mode, programs are kept.
    fs::set_permissions(dir.path().join("sysroots"), fs::Permissions::from_mode(0o775)).unwrap();
    let check = cache.verify(true).unwrap();
    assert_eq!((check.whole, check.damaged.len(), check.repaired), (1, 0, 0), "{check:?}");
    assert!(ask(&Cache::open(options(dir.path())), 1, 50).1);
    cache.prune(Some(Duration::ZERO), Some(0)).unwrap();
    assert_eq!(cache.clear().unwrap().bytes, 0);
    assert!(std.is_file() && dir.path().join("sysroots/lock").is_file());
}

#[test]
fn another_keys_entry_in_the_place_a_folder_and_a_pipe_are_misses() {
    let dir = tempfile::tempdir().unwrap();
    let cache = cache(dir.path());
    let path = |n: u64| {
        let hex = key(n).hex();
        dir.path().join("test-model").join(&hex[..2]).join(format!("{hex}.entry"))
    };
    ask(&cache, 1, 50);
    ask(&cache, 2, 50);
    fs::copy(path(1), path(2)).unwrap();
    assert!(!ask(&cache, 2, 50).1);
    fs::remove_file(path(2)).unwrap();
    fs::create_dir(path(2)).unwrap();
    fs::write(path(2).join("x"), "").unwrap();
    assert!(!ask(&cache, 2, 50).1);
    assert!(ask(&cache, 2, 50).1);
    fs::remove_file(path(2)).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path(2)).status().unwrap().success());
    assert!(!ask(&cache, 2, 50).1, "and did not wait for anybody to write into it");
    assert!(ask(&cache, 2, 50).1);
}

#[test]
fn the_least_recently_used_goes_first_and_the_limit_holds() {
    let dir = tempfile::tempdir().unwrap();
    let cache = bounded(dir.path(), 3);
    for n in [1, 2, 3] {
        assert!(!ask(&cache, n, 1000).1);
    }
    assert!(ask(&cache, 1, 1000).1, "a use that is recorded");
    ask(&cache, 4, 1000);
    let there = |n: u64| cache.get(&key(n)).is_some();
    assert_eq!([1, 2, 3, 4].map(there), [true, false, true, true]);
    assert_eq!(cache.counts().evictions, 1);
    assert!(cache.put(&key(5), &result(5, 1000), Duration::ZERO));
    assert!(bytes(dir.path()) <= 3 * (1000 + HEADER));
    assert!(!cache.put(&key(6), &result(6, 5000), Duration::ZERO), "larger than the limit");
    assert_eq!(files(dir.path()).len(), 3);
}

#[test]
fn what_is_in_use_is_never_evicted_whoever_evicts() {
    for locks in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let open = || Cache::open(Options { locks, ..bounded_options(dir.path(), 2) });
        let (user, evictor) = (open(), open());
        let one = ask(&user, 1, 1000).0;
        let two = ask(&user, 2, 1000).0;
        assert!(one.in_use.is_held() && two.in_use.is_held());
        for n in 3..10 {
            assert!(!ask(&evictor, n, 1000).1, "everything else is in use");
        }
        assert!(ask(&evictor, 1, 1000).1 && ask(&evictor, 2, 1000).1, "locks: {locks}");
        let kept = one.in_use.clone();
        drop((one, two));
        ask(&evictor, 10, 1000);
        assert!(ask(&evictor, 1, 1000).1, "held by a clone");
        assert!(evictor.get(&key(2)).is_none(), "no longer used");
        drop(kept);
        assert_eq!(evictor.clear().unwrap().in_use, 0);
        assert_eq!(files(dir.path()).len(), 0);
    }
}

fn bounded_options(dir: &Path, entries: u64) -> Options {
    Options { limit: (1000 + HEADER) * entries * 10 / 9 + 9, ..options(dir) }
}

#[test]
fn where_nothing_can_be_written_everything_is_compiled_and_nothing_fails() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let none = cache(&file.join("cache"));
    assert_eq!(none.path(), None);
    for _ in 0..2 {
        assert!(!ask(&none, 1, 10).1);
    }
    assert!(none.stats().unwrap_err().to_string().contains("there is no cache"));
    let off = Cache::off("switched off");
    assert!(!ask(&off, 1, 10).1 && !off.put(&key(1), b"", Duration::ZERO) && off.get(&key(1)).is_none());
}

#[test]
fn threads_that_miss_together_compile_once() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, compiled) = (cache(dir.path()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let compile = || {
                    compiled.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(50));
                    Ok::<_, Infallible>(result(1, 10))
                };
                assert_eq!(cache.get_or_compile(&key(1), compile).unwrap().bytes, result(1, 10));
            });
        }
    });
    assert_eq!(compiled.into_inner(), 1);
    assert_eq!((cache.counts().hits, cache.counts().misses), (7, 1));
}

#[test]
fn statistics_are_added_up_over_caches_and_survive_them() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..5 {
        let cache = cache(dir.path());
        ask(&cache, n, 10);
        ask(&cache, n, 10);
    }
    let cache = cache(dir.path());
    let other = Key::new("another model", &1).unwrap();
    cache.get(&other);
    let stats = cache.stats().unwrap();
    assert_eq!((stats.total.counts.hits, stats.total.counts.misses), (5, 6));
    assert_eq!(stats.models["test-model"].counts.hits, 5);
    assert_eq!(stats.models["another-model"].counts.misses, 1);
    assert_eq!(stats.total.hit_rate, Some(5.0 / 11.0));
    let left = walk(&dir.path().join("stats"));
    assert_eq!(left.len(), 2, "the totals and this one's own: {left:?}");
    let json = serde_json::to_value(&stats).unwrap();
    for name in ["entries", "bytes", "hits", "misses", "hit_rate", "evictions", "repaired", "saved_ms"] {
        assert!(json[name].is_number() && json["models"]["test-model"][name].is_number(), "{name} in {json}");
    }
}

#[test]
fn manifests_follow_the_entries_and_are_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test-model/manifest.json");
    let entries = || {
        let manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        manifest["entries"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    let named = key(1).labelled("hello.wasm");
    cache(dir.path()).put(&named, b"x", Duration::from_millis(7));
    assert_eq!(entries(), [named.hex()]);
    ask(&cache(dir.path()), 2, 10);
    assert_eq!(entries().len(), 2);
    let before = fs::read(&path).unwrap();
    fs::write(&path, "{").unwrap();
    cache(dir.path()).verify(true).unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
    let cache = cache(dir.path());
    let listed = cache.list().unwrap();
    assert!(listed.iter().any(|l| l.label == "hello.wasm" && l.took == Duration::from_millis(7)), "{listed:?}");
    cache.clear().unwrap();
    assert_eq!(entries().len(), 0);
}

#[test]
fn pruning_goes_by_age_then_by_size_and_sweeps() {
    let dir = tempfile::tempdir().unwrap();
    let store = cache(dir.path());
    for n in 0..6 {
        ask(&store, n, 1000);
    }
    let file = |n: u64| files(dir.path()).into_iter().find(|p| p.to_string_lossy().contains(&key(n).hex())).unwrap();
    let days = |n: u64| Duration::from_secs(n * 24 * 3600);
    let past = std::time::SystemTime::now() - days(40);
    fs::File::open(file(0)).unwrap().set_modified(past).unwrap();
    fs::write(dir.path().join("tmp/0123-1-1-1.5.tmp"), "of another machine, and young").unwrap();
    let old = fs::File::create(dir.path().join("tmp/0123-1-1-1.6.tmp")).unwrap();
    old.set_modified(past).unwrap();
    let pruned = store.prune(Some(days(30)), None).unwrap();
    assert_eq!((pruned.entries, pruned.bytes, pruned.leftovers), (1, 1000 + HEADER, 1));
    let pruned = store.prune(None, Some(3 * (1000 + HEADER))).unwrap();
    assert_eq!((pruned.entries, files(dir.path()).len()), (2, 3));
    assert!(store.get(&key(5)).is_some() && store.get(&key(1)).is_none());
    assert_eq!(store.counts().evictions, 3);
}

#[test]
fn verify_finds_what_a_hit_would_and_repairs_only_if_asked() {
    let dir = tempfile::tempdir().unwrap();
    let cache = cache(dir.path());
    for n in 0..4 {
        ask(&cache, n, 100);
    }
    let all = files(dir.path());
    let mut content = fs::read(&all[0]).unwrap();
    content[130] ^= 1;
    fs::write(&all[0], content).unwrap();
    fs::write(all[1].with_file_name("notes.txt"), "mine").unwrap();
    fs::rename(&all[2], all[2].with_file_name(format!("{}.entry", "0".repeat(64)))).unwrap();
    let check = cache.verify(false).unwrap();
    let mut damages: Vec<_> = check.damaged.iter().map(|d| d.1).collect();
    damages.sort_by_key(|d| format!("{d:?}"));
    assert_eq!(damages, [Damage::Foreign, Damage::Key, Damage::Sum]);
    assert_eq!((check.whole, check.repaired), (2, 0));
    assert_eq!(cache.verify(true).unwrap().repaired, 3);
    let check = cache.verify(true).unwrap();
    assert_eq!((check.whole, check.damaged.len()), (2, 0));
    assert_eq!(cache.counts().repaired, 3);
}

#[test]
fn an_entry_its_user_refuses_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let cache = cache(dir.path());
    ask(&cache, 1, 100);
    cache.discard(&key(1));
    cache.discard(&key(2));
    assert!(!ask(&cache, 1, 100).1);
    assert_eq!(cache.counts().repaired, 1);
}

#[test]
fn what_the_cache_makes_is_its_owners_alone() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("cache");
    let cache = cache(&place);
    ask(&cache, 1, 10);
    drop(cache);
    let mut folders = vec![place];
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => folders.push(entry),
                false if entry.ends_with("CACHEDIR.TAG") => {}
                false => assert_eq!(mode(&entry), 0o600, "{}", entry.display()),
            }
        }
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Every folder on the way to key 1's entry, and those that the cache has for itself.
fn folders(dir: &Path) -> Vec<std::path::PathBuf> {
    let entry = files(dir).pop().unwrap();
    let shard = entry.parent().unwrap();
    vec![dir.to_owned(), shard.parent().unwrap().to_owned(), shard.to_owned(), dir.join("tmp"), dir.join("stats")]
}

#[test]
fn a_folder_that_others_may_write_to_is_not_used_and_the_commands_say_why() {
    let dir = tempfile::tempdir().unwrap();
    ask(&cache(dir.path()), 1, 10);
    for folder in folders(dir.path()) {
        let usual = mode(&folder);
        for bad in [0o777, 0o720, 0o1777] {
            set_mode(&folder, bad);
            let cache = cache(dir.path());
            assert!(!ask(&cache, 1, 10).1, "{} of mode {bad:o} was used", folder.display());
            assert!(!ask(&cache, 1, 10).1, "{} of mode {bad:o} was used", folder.display());
            let refusal = cache.list().unwrap_err().to_string();
            assert!(refusal.contains(&format!("its mode is {bad:04o}")), "{refusal}");
            assert!(refusal.contains(folder.file_name().unwrap().to_str().unwrap()), "{refusal}");
            assert!(cache.stats().is_err() && cache.verify(true).is_err() && cache.prune(None, None).is_err());
        }
        set_mode(&folder, usual);
        assert!(ask(&cache(dir.path()), 1, 10).1, "{} is good again", folder.display());
    }
}

#[test]
fn an_entry_that_others_may_write_to_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    ask(&cache(dir.path()), 1, 10);
    for bad in [0o666, 0o620, 0o602] {
        let path = files(dir.path()).pop().unwrap();
        set_mode(&path, bad);
        let cache = cache(dir.path());
        let check = cache.verify(false).unwrap();
        assert!(matches!(check.damaged[..], [(_, Damage::Distrusted(_))]), "{check:?}");
        assert!(!ask(&cache, 1, 10).1, "an entry of mode {bad:o} was used");
        assert!(ask(&cache, 1, 10).1);
        assert_eq!(mode(&path), 0o600);
    }
}

#[test]
fn a_link_is_never_an_entry_nor_a_folder_of_entries() {
    let dir = tempfile::tempdir().unwrap();
    ask(&cache(dir.path()), 1, 10);
    let path = files(dir.path()).pop().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("moved");
    fs::rename(&path, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &path).unwrap();
    assert!(!ask(&cache(dir.path()), 1, 10).1, "a link was followed");
    assert!(ask(&cache(dir.path()), 1, 10).1 && !path.is_symlink(), "and made again");
    let shard = path.parent().unwrap();
    fs::rename(shard, elsewhere.path().join("shard")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("shard"), shard).unwrap();
    let cache = cache(dir.path());
    assert!(!ask(&cache, 1, 10).1 && !ask(&cache, 1, 10).1, "a link was followed");
}

#[test]
fn what_belongs_to_another_user_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    ask(&cache(dir.path()), 1, 10);
    let give = |path: &Path, to: u32| std::os::unix::fs::chown(path, Some(to), None);
    let entry = files(dir.path()).pop().unwrap();
    if give(&entry, 4711).is_err() {
        eprintln!("not tried: only root can give a file away"); // whose it is, is judged in `trust`, with numbers
        return;
    }
    assert!(!ask(&cache(dir.path()), 1, 10).1, "another's entry was used");
    assert!(ask(&cache(dir.path()), 1, 10).1);
    for folder in folders(dir.path()) {
        give(&folder, 4711).unwrap();
        let cache = cache(dir.path());
        assert!(!ask(&cache, 1, 10).1, "{} was used", folder.display());
        let refusal = cache.list().unwrap_err().to_string();
        assert!(refusal.contains("belongs to user 4711"), "{refusal}");
        give(&folder, 0).unwrap();
        drop(cache);
        assert!(ask(&self::cache(dir.path()), 1, 10).1);
    }
}

#[test]
fn another_folder_put_in_its_place_is_neither_read_nor_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (place, aside) = (dir.path().join("cache"), dir.path().join("aside"));
    let cache = cache(&place);
    ask(&cache, 1, 10);
    fs::rename(&place, &aside).unwrap();
    fs::create_dir(&place).unwrap();
    fs::create_dir(place.join("damaged")).unwrap();
    for n in 0..40 {
        fs::write(place.join("damaged").join(n.to_string()), "precious").unwrap();
    }
    assert!(ask(&cache, 1, 10).1, "its own is still there");
    ask(&cache, 2, 10);
    let entry = files(&aside).into_iter().find(|path| path.to_string_lossy().contains(&key(1).hex())).unwrap();
    fs::write(&entry, "damaged").unwrap();
    assert!(!ask(&cache, 1, 10).1);
    cache.clear().unwrap();
    drop(cache);
    assert_eq!(fs::read_dir(&place).unwrap().count(), 1, "something was written there");
    assert_eq!(fs::read_dir(place.join("damaged")).unwrap().count(), 40, "something was removed there");
}
