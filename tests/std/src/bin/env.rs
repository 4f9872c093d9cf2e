//! `std::env`: with the arguments `one "two words"`, the variable `GIVEN`, and a folder that it may use.

use std::collections::BTreeMap;
use std::env::{self, consts};
use std::ffi::OsString;
use std::path::PathBuf;
use uses_std::{done, show};

fn main() {
    show!(env::args().skip(1).collect::<Vec<_>>(), env::args().len(), env::args().next_back());
    show!(env::args_os().skip(1).collect::<Vec<_>>(), env::args_os().len(), env::args_os().next_back());
    variables();
    folders();
    paths();
    // These say which system this is: none with a name here, Linux natively.
    show!(!consts::ARCH.is_empty(), consts::OS.len() < 8, consts::FAMILY.len() < 8);
    let affixes = [consts::DLL_PREFIX, consts::DLL_SUFFIX, consts::DLL_EXTENSION];
    show!(affixes.iter().all(|affix| affix.len() < 6));
    show!(consts::EXE_SUFFIX.trim_start_matches('.') == consts::EXE_EXTENSION);
}

fn variables() {
    show!(env::var("GIVEN"), env::var("MISSING"), env::var_os("GIVEN"), env::var_os("MISSING"));
    // SAFETY: this program has one thread.
    unsafe {
        env::set_var("SET", "here");
        env::set_var("GIVEN", "other");
        env::remove_var("MISSING");
    }
    show!(env::var("SET"), env::var("GIVEN"));
    let mine = |name: &str| ["SET", "GIVEN"].contains(&name);
    let all: BTreeMap<String, String> = env::vars().filter(|(name, _)| mine(name)).collect();
    let all_os: BTreeMap<OsString, OsString> =
        env::vars_os().filter(|(name, _)| name.to_str().is_some_and(mine)).collect();
    show!(all, all_os);
    // SAFETY: as above.
    unsafe { env::remove_var("SET") };
    show!(env::var("SET"), env::var("SET") == Err(env::VarError::NotPresent));
    show!(env::VarError::NotUnicode(OsString::from("x")).to_string());
}

fn folders() {
    let begin = env::current_dir().expect("a folder");
    show!(begin.is_absolute());
    std::fs::create_dir_all("inner/deeper").expect("a folder");
    show!(done(env::set_current_dir("inner")), env::current_dir().ok() == Some(begin.join("inner")));
    show!(done(env::set_current_dir("deeper")), env::current_dir().ok() == Some(begin.join("inner/deeper")));
    show!(done(env::set_current_dir("../..")), env::current_dir().ok() == Some(begin.clone()));
    show!(done(env::set_current_dir("missing")), done(env::set_current_dir(&begin)));
    show!(env::temp_dir().is_absolute());
    // SAFETY: this program has one thread.
    unsafe { env::set_var("TMPDIR", "/somewhere/else") };
    show!(env::temp_dir());
    // SAFETY: as above.
    unsafe { env::set_var("HOME", "/home/somebody") };
    show!(env::home_dir());
    // The path has a meaning for `Command` only.
    show!(env::current_exe().is_ok_and(|path| path.is_absolute()));
}

fn paths() {
    show!(env::split_paths("/a:b c::/d").collect::<Vec<PathBuf>>());
    show!(env::join_paths(["/a", "b c", ""]).ok(), env::join_paths(["a:b"]).is_err());
    let error: env::JoinPathsError = env::join_paths(["a:b"]).expect_err("a separator");
    show!(error.to_string().is_empty());
}
