//! `examples/programs.toml`, `tests/programs/real.toml` and `tests/threads/programs.toml`: which programs there are and how each is
//! run. The format is described at the top of the first, and what the last adds to it at its top.

use crate::tested;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Aspect {
    Stdout,
    Stderr,
    Exit,
    Files,
}

/// How instance number I of many gets an input of its own.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Vary {
    Arg,
    Env,
    Stdin,
    #[default]
    None,
}

/// One table of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Spec {
    args: Vec<String>,
    env: BTreeMap<String, String>,
    stdin: Option<PathBuf>,
    /// The fixture that is the program's directory; empty for an empty one.
    pub(crate) dir: Option<String>,
    pub(crate) exit: i32,
    pub(crate) trap: Option<String>,
    pub(crate) compare: Vec<Aspect>,
    pub(crate) stderr_contains: Vec<String>,
    pub(crate) vary: Vary,
    /// The .wasm file, from the root of the repository.
    wasm: Option<PathBuf>,
    /// Whether the lines of stdout may come in any order.
    pub(crate) sort: bool,
    /// Whether it needs a std with unwinding, which cannot be built everywhere.
    pub(crate) unwinds: bool,
    /// What stdout is, where the native build prints something else.
    pub(crate) expected: Option<String>,
    /// The numbers of threads to run it with.
    pub(crate) threads: Vec<usize>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            args: Vec::new(),
            env: BTreeMap::new(),
            stdin: None,
            dir: None,
            exit: 0,
            trap: None,
            compare: vec![Aspect::Stdout, Aspect::Stderr, Aspect::Exit],
            stderr_contains: Vec::new(),
            vary: Vary::None,
            wasm: None,
            sort: false,
            unwinds: false,
            expected: None,
            threads: vec![8, 32, 1024],
        }
    }
}

/// What one run of a program is given, its directory aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    /// Without the program's name.
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) stdin: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) spec: Spec,
    /// The build directory, and the target of the .wasm file in it.
    built: PathBuf,
    target: &'static str,
}

impl Program {
    /// Every program of a file, by name; without a `wasm` key, it is an example.
    pub(crate) fn all(file: &Path) -> Vec<Program> {
        Self::read(file, build_directory("GPU_RUN_EXAMPLES", "examples/target"), "wasm32-wasip1")
    }

    /// Every program with threads, by name.
    pub(crate) fn all_with_threads() -> Vec<Program> {
        let built = build_directory("GPU_RUN_THREADS", "tests/threads/target");
        Self::read(&tested::root().join("tests/threads/programs.toml"), built, "wasm32-wasip1-threads")
    }

    fn read(file: &Path, built: PathBuf, target: &'static str) -> Vec<Program> {
        let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let tables: BTreeMap<String, Spec> =
            toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        tables.into_iter().map(|(name, spec)| Program { name, spec, built: built.clone(), target }).collect()
    }

    pub(crate) fn wasm(&self) -> PathBuf {
        match &self.spec.wasm {
            Some(file) => tested::root().join(file),
            None => self.built.join(self.target).join("release").join(format!("{}.wasm", self.name)),
        }
    }

    /// The same program for this machine.
    pub(crate) fn native(&self) -> PathBuf {
        self.built.join("release").join(&self.name)
    }

    /// What a run on its own is given.
    pub(crate) fn input(&self) -> Input {
        let spec = &self.spec;
        let read =
            |file: &PathBuf| fs::read(fixtures().join(file)).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        Input {
            args: spec.args.clone(),
            env: spec.env.clone(),
            stdin: spec.stdin.as_ref().map(read).unwrap_or_default(),
        }
    }

    /// What a run with this many threads is given: their number is the first argument, and stands for `{threads}` in the environment.
    pub(crate) fn with_threads(&self, threads: usize) -> Input {
        let mut input = self.input();
        input.args.insert(0, threads.to_string());
        for value in input.env.values_mut() {
            *value = value.replace("{threads}", &threads.to_string());
        }
        input
    }

    /// What instance number `instance` of many is given.
    pub(crate) fn varied(&self, instance: usize) -> Input {
        let mut input = self.input();
        match self.spec.vary {
            Vary::Arg => input.args.push(instance.to_string()),
            Vary::Env => drop(input.env.insert("GPU_RUN_INSTANCE".into(), instance.to_string())),
            Vary::Stdin => input.stdin.extend(format!("{instance}\n").bytes()),
            Vary::None => {}
        }
        input
    }
}

pub(crate) fn fixtures() -> PathBuf {
    tested::root().join("examples/fixtures")
}

/// Where `scripts/build-examples` or `scripts/build-threads` puts what it builds; a variable names another build directory.
fn build_directory(variable: &str, below_root: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| tested::root().join(below_root), PathBuf::from)
}
