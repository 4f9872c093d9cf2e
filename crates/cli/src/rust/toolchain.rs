//! Compiles Rust sources to wasm with the installed toolchain.
//!
//! std for wasm32-wasip1 comes from rustup or from a *sysroot*: a folder that contains it, for systems where rustup
//! cannot download it. The search order is: a `--sysroot` in the user's own flags, `GPU_RUN_SYSROOT`, gpu-run's own std
//! if `gpu-run build` has made it, rustc's own sysroot, and a sysroot in the folder `.tools` of a Cargo project that contains the source, the current folder or the
//! gpu-run binary.

use super::own_std;
use anyhow::{Context, Result, bail};
use gpu_run_console::failure::Failure;
use gpu_run_sysroot::{Sysroot, Target};
use serde_json::Value;
use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TARGET: &str = "wasm32-wasip1";

/// Compiles a single Rust file; rustc's messages go to stderr.
pub(crate) fn compile_file(file: &Path) -> Result<Vec<u8>> {
    let flags = flags_for(file)?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let output = folder.path().join("program.wasm");
    let mut rustc = Command::new(rustc());
    rustc.args([
        "--target",
        TARGET,
        "-O",
        "--edition",
        "2024",
        "--crate-type",
        "bin",
        "--crate-name",
        &crate_name(file),
    ]);
    rustc.args(flags.iter()).arg("-o").arg(&output).arg(file).stdin(Stdio::null());
    tracing::info!(command = ?rustc, "compiling");
    let status = rustc.status().map_err(|error| not_started("rustc", &error))?;
    if !status.success() {
        return Err(Failure::usage(format!("{} does not compile for {TARGET}", file.display())).into());
    }
    std::fs::read(&output).with_context(|| format!("rustc did not write {}", output.display()))
}

/// Builds a package in release mode and returns the path of its binary; cargo's messages go to stderr.
pub(crate) fn build_package(folder: &Path, bin: Option<&str>) -> Result<PathBuf> {
    let manifest = folder.join("Cargo.toml");
    let chosen = choose(&binaries(&manifest)?, bin, &folder.display().to_string())?;
    let mut cargo = Command::new(cargo());
    cargo.args(["build", "--release", "--target", TARGET, "--message-format=json-render-diagnostics"]);
    cargo.args(["--package", &chosen.package, "--bin", &chosen.name]).arg("--manifest-path").arg(&manifest);
    cargo.stdin(Stdio::null()).stdout(Stdio::piped());
    let flags = flags_for(folder)?;
    if flags.changed {
        let flags = flags.with_configured(TARGET);
        cargo.env(&flags.variable, &flags.value);
    }
    tracing::info!(command = ?cargo, "building");
    let mut child = cargo.spawn().map_err(|error| not_started("cargo", &error))?;
    let mut artifact = None;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            artifact = executable(&line?, &chosen.name).or(artifact);
        }
    }
    if !child.wait()?.success() {
        return Err(Failure::usage(format!("{} does not build for {TARGET}", folder.display())).into());
    }
    artifact.with_context(|| format!("cargo did not build a binary named `{}` in {}", chosen.name, folder.display()))
}

/// Runs a command of cargo for a target with the std of a sysroot; returns cargo's exit code.
pub(crate) fn run_cargo(command: &str, target: &str, sysroot: &Sysroot, args: &[OsString]) -> Result<u8> {
    let mut cargo = Command::new(cargo());
    cargo.args([command, "--target", target]).args(args);
    let own = |name| {
        let flags = Flags::own(name, target).with(sysroot.path())?;
        anyhow::Ok(sysroot.panic().flags().iter().fold(flags, |all, flag| all.and(flag)))
    };
    let flags = own("RUSTFLAGS")?.with_configured(target);
    cargo.env(flags.variable, flags.value);
    if command == "test" {
        // Examples in documentation are compiled by rustdoc.
        let flags = own("RUSTDOCFLAGS")?;
        cargo.env(flags.variable, flags.value);
        let runner = variable(target, "RUNNER");
        if env::var_os(&runner).is_none() && configured(&format!("target.{target}.runner")).is_none() {
            cargo.env(runner, own_program());
        }
    }
    tracing::info!(command = ?cargo, "running cargo");
    let status = cargo.status().map_err(|error| not_started("cargo", &error))?;
    // A cargo that a signal ended has no code.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Returns gpu-run as cargo can call it, which takes no spaces in paths.
fn own_program() -> OsString {
    let own = env::current_exe().ok().filter(|path| !path.to_string_lossy().contains(char::is_whitespace));
    own.map_or_else(|| "gpu-run".into(), PathBuf::into_os_string)
}

/// Returns cargo's variable for a setting of a target.
fn variable(target: &str, name: &str) -> String {
    format!("CARGO_TARGET_{}_{name}", target.to_uppercase().replace('-', "_"))
}

/// Asks cargo for a value of its configuration files.
fn configured(key: &str) -> Option<Value> {
    let mut cargo = Command::new(cargo());
    cargo.args(["-Zunstable-options", "config", "get", key, "--format", "json-value"]);
    // The command is not stable yet. Without an answer, nothing is configured.
    let output = cargo.env("RUSTC_BOOTSTRAP", "1").stderr(Stdio::null()).output().ok()?;
    serde_json::from_slice(&output.stdout).ok().filter(|_| output.status.success())
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Binary {
    package: String,
    name: String,
    /// Whether the package's `default-run` names this binary.
    default: bool,
}

/// Returns the binaries that `cargo build` in the manifest's folder would build.
fn binaries(manifest: &Path) -> Result<Vec<Binary>> {
    let mut cargo = Command::new(cargo());
    cargo.args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"]).arg(manifest);
    let output = cargo.stderr(Stdio::inherit()).output().map_err(|error| not_started("cargo", &error))?;
    if !output.status.success() {
        return Err(Failure::usage(format!("cargo cannot read {}", manifest.display())).into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    Ok(listed(&metadata, &manifest.canonicalize()?))
}

/// Returns a package's own binaries, or, in a workspace without a root package, those of all default members.
fn listed(metadata: &Value, manifest: &Path) -> Vec<Binary> {
    let packages = || array(metadata, "packages");
    let own = |package: &&Value| package["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest);
    let default = |package: &&Value| array(metadata, "workspace_default_members").any(|id| *id == package["id"]);
    let selected: Vec<_> = if packages().any(|p| own(&p)) {
        packages().filter(own).collect()
    } else {
        packages().filter(default).collect()
    };
    let is_bin = |target: &&Value| array(target, "kind").any(|kind| kind == "bin");
    let binary = |package: &Value, target: &Value| Binary {
        package: text(package, "name"),
        name: text(target, "name"),
        default: package["default_run"].is_string() && package["default_run"] == target["name"],
    };
    selected.iter().flat_map(|p| array(p, "targets").filter(is_bin).map(|t| binary(p, t))).collect()
}

fn choose(binaries: &[Binary], wanted: Option<&str>, place: &str) -> Result<Binary> {
    let names = || binaries.iter().map(|b| format!("`{}`", b.name)).collect::<Vec<_>>().join(", ");
    let found = match (wanted, binaries) {
        (_, []) => bail!(
            Failure::usage(format!("{place} has no binary to run"))
                .hint("a library alone cannot be run; add src/main.rs, or run a .wasm with --invoke")
        ),
        (Some(name), _) => binaries.iter().find(|b| b.name == name).ok_or_else(|| {
            Failure::usage(format!("{place} has no binary `{name}`")).hint(format!("it has {}", names()))
        })?,
        (None, [only]) => only,
        (None, _) => binaries.iter().find(|b| b.default).ok_or_else(|| {
            Failure::usage(format!("{place} has {} binaries: {}", binaries.len(), names()))
                .hint("pass --bin NAME before the folder, or set default-run in Cargo.toml")
        })?,
    };
    Ok(found.clone())
}

/// Returns the path of the binary, if this line of cargo's output announces it.
fn executable(line: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let ours = message["reason"] == "compiler-artifact"
        && message["target"]["name"] == name
        && array(&message["target"], "kind").any(|kind| kind == "bin");
    if ours { message["executable"].as_str().map(PathBuf::from) } else { None }
}

/// Flags for rustc or rustdoc, and the variable that passes them to cargo.
#[derive(Debug)]
struct Flags {
    variable: String,
    value: String,
    /// What is between two flags.
    separator: &'static str,
    /// Whether a sysroot was added to the user's flags.
    changed: bool,
}

impl Flags {
    /// The user's own flags. `name` is `RUSTFLAGS` or `RUSTDOCFLAGS`. As in cargo, the first variable that is set overrides the others.
    fn own(name: &str, target: &str) -> Flags {
        let encoded = format!("CARGO_ENCODED_{name}");
        let is_set = |variable: &String| env::var_os(variable).is_some();
        let set = [encoded.clone(), name.to_owned()].into_iter().find(is_set);
        let variable = set.unwrap_or_else(|| variable(target, name));
        let separator = if variable == encoded { "\x1f" } else { " " };
        Flags { value: env::var(&variable).unwrap_or_default(), variable, separator, changed: false }
    }

    fn with(self, sysroot: &Path) -> Result<Flags> {
        let path = sysroot.display().to_string();
        if path.contains(char::is_whitespace) {
            let message = format!("cargo cannot be given a sysroot with spaces in its path: {path}");
            return Err(Failure::environment(message).hint("set GPU_RUN_CACHE to a folder without spaces").into());
        }
        Ok(Flags { changed: true, ..self.and(&format!("--sysroot={path}")) })
    }

    fn and(mut self, more: &str) -> Flags {
        if !self.value.is_empty() {
            self.value += self.separator;
        }
        self.value += more;
        self
    }

    /// A target's flags make cargo ignore those that its configuration has for all targets: so these are added.
    fn with_configured(self, target: &str) -> Flags {
        let is_targets = self.variable == variable(target, "RUSTFLAGS");
        let is_new = env::var_os(&self.variable).is_none();
        if !is_targets || !is_new || configured(&format!("target.{target}.rustflags")).is_some() {
            return self;
        }
        match configured("build.rustflags") {
            Some(Value::String(flags)) => self.and(&flags),
            Some(Value::Array(flags)) => flags.iter().filter_map(Value::as_str).fold(self, |all, flag| all.and(flag)),
            _ => self,
        }
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        self.value.split(self.separator).filter(|flag| !flag.is_empty())
    }
}

/// Returns the user's own flags, with a sysroot added if one is needed, or if gpu-run's own std was made.
fn flags_for(source: &Path) -> Result<Flags> {
    let own = Flags::own("RUSTFLAGS", TARGET);
    if own.value.contains("--sysroot") {
        return Ok(own);
    }
    if let Some(sysroot) = env::var_os("GPU_RUN_SYSROOT").map(PathBuf::from) {
        if !holds_std(&libdir(&sysroot)) {
            let message = format!("GPU_RUN_SYSROOT={} contains no std for {TARGET}", sysroot.display());
            return Err(Failure::environment(message).hint(format!("expected {}", libdir(&sysroot).display())).into());
        }
        return own.with(&sysroot);
    }
    if let Some(sysroot) = own_std::made(Target::Wasip1) {
        return own.with(&sysroot);
    }
    if rustc_has_target()? {
        return Ok(own);
    }
    match beside_a_project(source, &rustc_version()?) {
        Some(sysroot) => own.with(&sysroot),
        None => Err(Failure::environment(format!("this Rust toolchain has no std for {TARGET}"))
            .hint(format!("run: rustup target add {TARGET}"))
            .into()),
    }
}

fn rustc_has_target() -> Result<bool> {
    let output = Command::new(rustc())
        .args(["--print", "target-libdir", "--target", TARGET])
        .stderr(Stdio::null())
        .output()
        .map_err(|error| not_started("rustc", &error))?;
    Ok(output.status.success() && holds_std(Path::new(String::from_utf8_lossy(&output.stdout).trim())))
}

/// `rustc 1.95.0 (59807616e 2026-04-14)`
fn rustc_version() -> Result<String> {
    let output = Command::new(rustc()).arg("-V").output().map_err(|error| not_started("rustc", &error))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Looks for a sysroot in `.tools` or a folder in it, upwards from the source, the current folder and the gpu-run
/// binary.
fn beside_a_project(source: &Path, version: &str) -> Option<PathBuf> {
    let starts = [source.canonicalize().ok(), env::current_dir().ok(), env::current_exe().ok()];
    let projects =
        starts.iter().flatten().flat_map(|start| start.ancestors()).filter(|p| p.join("Cargo.toml").is_file());
    projects.map(|project| project.join(".tools")).find_map(|tools| sysroot_in(&tools, version))
}

/// Returns a sysroot that this very compiler made: it cannot use libraries of another version.
fn sysroot_in(tools: &Path, version: &str) -> Option<PathBuf> {
    let folders = std::fs::read_dir(tools).ok()?.flatten().map(|entry| entry.path());
    let mut candidates: Vec<_> = folders.flat_map(|folder| [folder.join("sysroot"), folder]).collect();
    candidates.sort();
    candidates.into_iter().find(|sysroot| std_in(&libdir(sysroot)).is_some_and(|std| made_by(&std, version)))
}

fn libdir(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib").join(TARGET).join("lib")
}

fn holds_std(libdir: &Path) -> bool {
    std_in(libdir).is_some()
}

fn std_in(libdir: &Path) -> Option<PathBuf> {
    let is_std = |name: &str| name.starts_with("libstd-") && name.ends_with(".rlib");
    let mut entries = std::fs::read_dir(libdir).ok()?.flatten();
    entries.find(|e| e.file_name().to_str().is_some_and(is_std)).map(|e| e.path())
}

/// Whether this version of rustc made a library: its metadata contains the version as `rustc -V` prints it.
fn made_by(library: &Path, version: &str) -> bool {
    let bytes = std::fs::read(library).unwrap_or_default();
    !version.is_empty() && bytes.windows(version.len()).any(|part| part == version.as_bytes())
}

/// Turns a file's name into a crate name that rustc accepts.
fn crate_name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let mut name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    name
}

fn rustc() -> OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn not_started(tool: &str, error: &std::io::Error) -> Failure {
    Failure::environment(format!("cannot start {tool}: {error}"))
        .hint(format!("install Rust from https://rustup.rs, then: rustup target add {TARGET}"))
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn binary(name: &str, default: bool) -> Binary {
        Binary { package: "p".into(), name: name.into(), default }
    }

    #[test]
    fn several_binaries_are_named_and_the_way_out_said() {
        let two = [binary("a", false), binary("b", false)];
        let text = choose(&two, None, "here").unwrap_err().to_string();
        assert!(text.contains("`a`, `b`") && text.contains("--bin NAME"), "{text}");
        assert_eq!(choose(&two, Some("b"), "here").unwrap().name, "b");
        assert!(choose(&two, Some("c"), "here").unwrap_err().to_string().contains("`a`, `b`"));
        assert_eq!(choose(&[binary("a", false), binary("b", true)], None, "here").unwrap().name, "b");
        assert!(choose(&[], None, "here").is_err());
    }

    #[test]
    fn a_packages_own_binaries_come_before_its_members() {
        let package = |name: &str, kind: &str| {
            json!({ "id": name, "name": name, "manifest_path": format!("/w/{name}/Cargo.toml"),
                    "default_run": null, "targets": [{ "kind": [kind], "name": name }] })
        };
        let metadata = json!({ "packages": [package("a", "bin"), package("b", "bin"), package("c", "lib")],
                               "workspace_default_members": ["a", "b", "c"] });
        let names = |at: &str| listed(&metadata, Path::new(at)).into_iter().map(|b| b.name).collect::<Vec<_>>();
        assert_eq!(names("/w/a/Cargo.toml"), ["a"]);
        assert_eq!(names("/w/c/Cargo.toml"), [""; 0]);
        assert_eq!(names("/w/Cargo.toml"), ["a", "b"]);
    }

    #[test]
    fn the_artifact_is_the_binary_not_a_build_script() {
        let line = |kind: &str| {
            json!({ "reason": "compiler-artifact", "target": { "name": "a", "kind": [kind] }, "executable": "/t/a.wasm" })
                .to_string()
        };
        assert_eq!(executable(&line("bin"), "a"), Some("/t/a.wasm".into()));
        assert_eq!(executable(&line("custom-build"), "a"), None);
        assert_eq!(executable(&line("bin"), "b"), None);
        assert_eq!(executable("warning: not json", "a"), None);
    }

    #[test]
    fn flags_are_put_together() {
        let none = |separator| Flags { variable: "V".into(), value: String::new(), separator, changed: false };
        let flags = none("\x1f").and("-Ca").with(Path::new("/s")).unwrap();
        assert_eq!(flags.value, "-Ca\x1f--sysroot=/s");
        assert_eq!(flags.iter().collect::<Vec<_>>(), ["-Ca", "--sysroot=/s"]);
        assert!(flags.changed);
        assert!(none(" ").with(Path::new("/a b")).is_err());
        assert_eq!(variable("wasm32-wasip1", "RUNNER"), "CARGO_TARGET_WASM32_WASIP1_RUNNER");
    }

    #[test]
    fn any_file_name_makes_a_crate_name() {
        for (file, name) in [("hello.rs", "hello"), ("my-prog.rs", "my_prog"), ("01.rs", "_01"), ("é.rs", "_")] {
            assert_eq!(crate_name(Path::new(file)), name);
        }
    }

    #[test]
    fn a_sysroot_of_this_compiler_is_found_under_tools() {
        let tools = tempfile::tempdir().unwrap();
        let version = "rustc 1.95.0 (59807616e 2026-04-14)";
        let sysroot_in = |tools| sysroot_in(tools, version);
        assert_eq!(sysroot_in(tools.path()), None);
        let sysroot = tools.path().join("wasm/sysroot");
        std::fs::create_dir_all(libdir(&sysroot)).unwrap();
        assert_eq!(sysroot_in(tools.path()), None, "an empty one does not count");
        let std = libdir(&sysroot).join("libstd-1234.rlib");
        std::fs::write(&std, "!<arch> rustc 1.94.1 (0123456 2026-03-01)").unwrap();
        assert_eq!(sysroot_in(tools.path()), None, "another compiler's does not count");
        std::fs::write(&std, format!("!<arch>\0{version}\0")).unwrap();
        assert_eq!(sysroot_in(tools.path()), Some(sysroot));
    }

    #[test]
    fn the_compiler_knows_its_own_library_by_the_version_in_it() {
        let sysroot = Command::new(rustc()).args(["--print", "target-libdir"]).output().unwrap();
        let std = std_in(Path::new(String::from_utf8_lossy(&sysroot.stdout).trim())).unwrap();
        assert!(made_by(&std, &rustc_version().unwrap()));
        assert!(!made_by(&std, "rustc 1.0.0 (a59de37e9 2015-05-13)"));
    }
}
