//! Compiled programs are kept: from the command line, and over processes.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use support::{Place, Ran, wat};

/// A folder with a program in it and a cache beside.
struct Cached(Place);

impl Cached {
    fn new() -> Self {
        Self(Place::new().with("hello.wat", wat!("hello")).with("add.wat", ADD))
    }

    fn dir(&self) -> PathBuf {
        self.0.path().join("cache")
    }

    fn run(&self, line: &str) -> Ran {
        self.with(line, &[])
    }

    fn with(&self, line: &str, variables: &[(&str, &str)]) -> Ran {
        let mut command = self.0.command(line);
        command.env("GPU_RUN_CACHE", self.dir()).envs(variables.iter().copied());
        Ran::from(command.output().unwrap())
    }

    /// Runs the program and says `hit`, `miss` or `off`, and how often something was compiled.
    fn hello(&self, options: &str) -> (String, u64) {
        let ran = self.run(&format!("--device cpu --stats=json {options} hello.wat")).gives(0, "hello\n");
        said(&ran.stderr)
    }

    fn stats(&self) -> Value {
        let ran = self.run("cache stats --json");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

const ADD: &str =
    r#"(module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))"#;

fn said(stderr: &str) -> (String, u64) {
    let object: Value = serde_json::from_str(stderr.lines().find(|l| l.starts_with('{')).unwrap()).unwrap();
    (object["cache"].as_str().unwrap().to_owned(), object["compilations"].as_u64().unwrap())
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() && !path.ends_with("damaged") => found.extend(entries(&path)),
            path if path.extension().is_some_and(|e| e == "entry") => found.push(path),
            _ => {}
        }
    }
    found
}

#[test]
fn the_second_run_of_a_program_compiles_nothing() {
    let cached = Cached::new();
    assert_eq!(cached.hello(""), ("miss".into(), 2), "wasm to PTX, PTX to machine code");
    assert_eq!(cached.hello(""), ("hit".into(), 0));
    // Where the file lies and what it is called is no matter: its content is.
    std::fs::rename(cached.0.path().join("hello.wat"), cached.0.path().join("other.wat")).unwrap();
    let ran = cached.run("--device cpu --stats=json other.wat").gives(0, "hello\n");
    assert_eq!(said(&ran.stderr), ("hit".into(), 0));
    let stats = cached.stats();
    assert_eq!((&stats["hits"], &stats["misses"], &stats["entries"]), (&2.into(), &1.into(), &1.into()));
    let text = cached.run("--device cpu --stats other.wat").gives(0, "hello\n");
    text.says(&["cache    hit, saved", "compile  nothing"]);
}

#[test]
fn a_map_an_invocation_and_another_layout_are_found_again_too() {
    let cached = Cached::new().0.with("in.txt", "a\nb\nc\n");
    let cached = Cached(cached);
    for (line, output) in [
        ("map hello.wat --device cpu -i in.txt --stats=json", "hello\nhello\nhello\n"),
        ("--device cpu --stats=json --invoke add add.wat 2 3", "5\n"),
        ("--device cpu --stats=json --layout interleaved hello.wat", "hello\n"),
    ] {
        assert_eq!(said(&cached.run(line).gives(0, output).stderr), ("miss".into(), 2), "{line}");
        assert_eq!(said(&cached.run(line).gives(0, output).stderr), ("hit".into(), 0), "{line}");
    }
    assert_eq!(cached.hello(""), ("hit".into(), 0), "a map on cpu runs the same build");
}

#[test]
fn where_it_is_can_be_said_in_three_ways_and_whether_it_is_in_two() {
    let cached = Cached::new();
    assert_eq!(cached.hello("--no-cache"), ("off".into(), 2));
    assert!(!cached.dir().exists());
    assert_eq!(cached.hello("--cache-dir elsewhere"), ("miss".into(), 2));
    assert_eq!(entries(&cached.0.path().join("elsewhere")).len(), 1);
    let home = cached.0.path().to_string_lossy().into_owned();
    let path = |variables: &[(&str, &str)]| {
        let mut command = cached.0.command("cache path");
        command.env_remove("GPU_RUN_CACHE").env_remove("XDG_CACHE_HOME").env("HOME", &home);
        Ran::from(command.envs(variables.iter().copied()).output().unwrap())
    };
    path(&[]).gives(0, &format!("{home}/.cache/gpu-run\n"));
    path(&[("XDG_CACHE_HOME", "/xdg")]).gives(0, "/xdg/gpu-run\n");
    path(&[("XDG_CACHE_HOME", "relative")]).gives(0, &format!("{home}/.cache/gpu-run\n"));
    path(&[("GPU_RUN_CACHE", "/here")]).gives(0, "/here\n");
    path(&[("GPU_RUN_CACHE", "off")]).gives(1, "").says(&["there is no cache", "GPU_RUN_CACHE is `off`"]);
    cached.run("--no-cache --cache-dir x hello.wat").gives(2, "").says(&["--no-cache"]);
    cached
        .with("--device cpu hello.wat", &[("GPU_RUN_CACHE_LIMIT", "much")])
        .gives(2, "")
        .says(&["GPU_RUN_CACHE_LIMIT"]);
}

#[test]
fn a_folder_that_cannot_be_written_and_a_full_disk_are_one_warning() {
    let cached = Cached::new();
    std::fs::write(cached.dir(), "a file").unwrap();
    let ran = cached.run("--device cpu hello.wat").gives(0, "hello\n");
    assert_eq!(ran.stderr.matches("programs are not kept").count(), 1, "{}", ran.stderr);
    std::fs::remove_file(cached.dir()).unwrap();
    for step in 1..9 {
        let full = format!("fail:{step}");
        let ran = cached.with("--device cpu hello.wat", &[("GPU_RUN_TEST_CACHE", &full)]).gives(0, "hello\n");
        assert!(ran.stderr.matches("programs are not kept").count() <= 1, "{}", ran.stderr);
        if step == 1 {
            ran.says(&["programs are not kept", "no space left"]);
        }
    }
    cached.run("--device cpu hello.wat").gives(0, "hello\n");
    cached.run("cache verify").gives(0, "1 intact, 0 damaged\n");
}

#[test]
fn a_damaged_entry_is_repaired_by_the_next_run_and_found_by_verify() {
    let cached = Cached::new();
    cached.hello("");
    let path = entries(&cached.dir()).remove(0);
    let damage = || {
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.len() - 100;
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    };
    damage();
    assert_eq!(cached.hello(""), ("miss".into(), 2));
    assert_eq!(cached.hello(""), ("hit".into(), 0));
    damage();
    let ran = cached.run("cache verify");
    assert!(ran.code == Some(1) && ran.stdout.contains("its checksum is wrong"), "{}", ran.stdout);
    let ran = cached.run("cache verify --repair");
    assert!(
        ran.code == Some(0) && ran.stdout.ends_with("0 intact, 1 damaged, of which 1 set aside\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(cached.stats()["repaired"], 2);
}

#[test]
fn preloading_makes_the_first_run_a_hit_and_names_what_cannot_be() {
    let cached = Cached(Place::new().with("hello.wat", wat!("hello")).with("add.wat", ADD).with("bad.wasm", "no"));
    let ran = cached.run("cache preload --device cpu hello.wat hello.wat");
    assert!(
        ran.code == Some(0) && ran.stdout.contains("hello.wat (linear): compiled in"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert_eq!(cached.hello(""), ("hit".into(), 0));
    let ran = cached.run("cache preload --device cpu bad.wasm add.wat hello.wat");
    assert!(ran.code == Some(1) && ran.stdout == "hello.wat (linear): already in the cache\n", "{}", ran.stdout);
    ran.says(&["bad.wasm is not a WebAssembly module", "add.wat", "_start"]);
}

#[test]
fn listing_pruning_and_clearing() {
    let cached = Cached::new();
    cached.hello("");
    cached.hello("--layout interleaved");
    let list = cached.run("cache list").stdout;
    assert!(list.contains("hello.wat (linear)") && list.contains("hello.wat (interleaved)"), "{list}");
    let json = cached.run("cache list --json").stdout;
    assert!(
        json.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["bytes"].is_u64())
            && json.lines().count() == 2
    );
    let text = cached.run("cache stats").stdout;
    assert!(text.contains("HIT RATE") && text.contains("cpu-") && text.contains("1 GiB at most"), "{text}");
    cached.run("cache prune --max-age 30d").gives(0, "removed 0 entries, 0 B\n");
    let pruned = cached.run("cache prune --max-size 1").stdout;
    assert!(pruned.starts_with("removed 2 entries"), "{pruned}");
    assert_eq!(cached.stats()["evictions"], 2);
    cached.hello("");
    let cleared = cached.run("cache clear").stdout;
    assert!(cleared.starts_with("removed 1 entry"), "{cleared}");
    assert_eq!(entries(&cached.dir()).len(), 0);
    cached.run("cache prune --max-age soon").gives(2, "").says(&["`d`"]);
}

/// `linear` or `interleaved`, of tune's last line.
fn fastest(text: &str) -> &str {
    let line = text.lines().find_map(|line| line.strip_prefix("fastest: ")).unwrap_or_else(|| panic!("{text}"));
    line.split(',').next().unwrap()
}

#[test]
fn what_tune_found_is_what_map_takes_from_then_on() {
    let cached = Cached(Cached::new().0.with("in.txt", "a\nb\nc\n"));
    let tuned = cached.run("tune hello.wat --device cpu -i in.txt");
    assert_eq!(tuned.code, Some(0), "{}", tuned.stderr);
    for part in ["3 records", "linear, 3 at once", "interleaved, local memory, 3 at once", "records/s", "from now on"] {
        assert!(tuned.stdout.contains(part), "{part}: {}", tuned.stdout);
    }
    // Both builds are there by now: whichever it is, nothing is compiled.
    let map = "map hello.wat --device cpu -i in.txt";
    let mapped = cached.run(&format!("{map} --stats=json")).gives(0, "hello\nhello\nhello\n");
    assert_eq!(said(&mapped.stderr), ("hit".into(), 0));
    let mapped = cached.run(&format!("{map} --stats")).gives(0, "hello\nhello\nhello\n");
    let layout = format!("{} layout", fastest(&tuned.stdout));
    assert!(mapped.stderr.contains(&layout), "{layout}: {}", mapped.stderr);
    // That it was found with three is no reason to run three at once.
    std::fs::write(cached.0.path().join("long.txt"), "a\n".repeat(100)).unwrap();
    let mapped = cached.run("map hello.wat --device cpu -i long.txt --stats").gives(0, &"hello\n".repeat(100));
    assert!(mapped.stderr.contains("100 instances in 1 launch"), "{}", mapped.stderr);
    // What is asked for by name counts more.
    for layout in ["linear", "interleaved"] {
        let mapped = cached.run(&format!("{map} --stats --layout {layout}")).gives(0, "hello\nhello\nhello\n");
        assert!(mapped.stderr.contains(&format!("{layout} layout")), "{}", mapped.stderr);
    }
    let list = cached.run("cache list");
    assert!(list.stdout.contains("hello.wat, tuning"), "{}", list.stdout);
}

#[test]
fn a_map_that_tunes_first_loses_no_record() {
    let cached = Cached(Cached::new().0.with("in.txt", "a\n".repeat(100)));
    let all = "hello\n".repeat(100);
    // Fewer at once than there are: the first batch was taken before the others are read.
    let tuned = cached.run("map hello.wat --device cpu -i in.txt --batch 30 --tune").gives(0, &all);
    assert!(tuned.stderr.contains("30 records") && tuned.stderr.contains("from now on"), "{}", tuned.stderr);
    let off = [("GPU_RUN_CACHE", "off")];
    let tuned = cached.with("map hello.wat --device cpu -i in.txt --tune", &off).gives(0, &all);
    assert!(tuned.stderr.contains("not kept: there is no cache"), "{}", tuned.stderr);
    assert_eq!(cached.run("map hello.wat -i in.txt --tune --layout linear").code, Some(2));
    let none = Cached(Cached::new().0.with("in.txt", ""));
    none.run("tune hello.wat --device cpu -i in.txt").gives(2, "").says(&["no record", "--input"]);
}
