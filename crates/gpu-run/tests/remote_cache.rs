//! A cache that machines share, in the library.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

use gpu_run::{Command, Config, Engine, Error, Module};
use std::path::{Path, PathBuf};

const SECRET: &str = "a secret of at least 32 characters";
const PROGRAM: &[u8] = br#"(module (memory (export "memory") 1) (func (export "_start")))"#;

/// Runs the program with a local cache of its own.
fn run(config: Config, local: &Path) {
    let engine = Engine::new(&config.device("cpu").cache(local)).unwrap();
    let module = Module::new(&engine, PROGRAM).unwrap();
    assert!(Command::new(&module).status().unwrap().success());
}

fn entries(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match file.path() {
            path if path.is_dir() => found.extend(entries(&path, extension)),
            path if path.extension().is_some_and(|e| e == extension) => found.push(path),
            _ => {}
        }
    }
    found
}

#[test]
fn one_engine_sends_what_another_takes() {
    let (remote, local) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let address = format!("file://{}", remote.path().display());
    let config = || Config::new().remote_cache(&address, SECRET);
    run(config(), &local.path().join("first"));
    let sent = entries(remote.path(), "signed");
    assert_eq!(sent.len(), 1);
    let whole = std::fs::read(&sent[0]).unwrap();
    // Compiling may be faster than the remote cache, but not every time.
    let is_taken = |n: usize| {
        let local = local.path().join(n.to_string());
        run(config(), &local);
        // The entry tells when it was made, so another one differs.
        let here = std::fs::read(&entries(&local, "entry")[0]).unwrap();
        whole.ends_with(&here)
    };
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!((0..50).any(is_taken));
    assert!(std::fs::read(&sent[0]).unwrap() == whole, "it was overwritten");
    // Without the secret there is no remote cache to use, and with another none of its entries.
    let local = local.path().join("other");
    run(Config::new().remote_cache(&address, &SECRET.replace('a', "b")), &local);
    assert!(!whole.ends_with(&std::fs::read(&entries(&local, "entry")[0]).unwrap()));
}

#[test]
fn what_cannot_be_is_said_without_the_secret() {
    for (address, secret, why) in
        [("https://host/cache", SECRET, "s3://, gs:// or file://"), ("s3://bucket/cache", "tell nobody", "at least 32")]
    {
        let config = Config::new().device("cpu").remote_cache(address, secret);
        let Err(Error::Cache(message)) = Engine::new(&config) else { panic!("it is taken") };
        assert!(message.contains(why) && !message.contains(secret), "{message}");
        assert!(!format!("{config:?}").contains(secret));
    }
}
