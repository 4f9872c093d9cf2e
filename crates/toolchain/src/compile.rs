//! Compiles Rust sources to wasm with the installed toolchain.
//!
//! std for wasm32-wasip1 comes from rustup or from a *sysroot*: a folder that contains it, for systems where rustup
//! cannot download it. The search order is: a `--sysroot` in the user's own flags, `GPU_RUN_SYSROOT`, gpu-run's own std
//! if `gpu-run build` has made it, rustc's own sysroot, and a sysroot in the folder `.tools` of a Cargo project that contains the source, the current folder or the
//! gpu-run binary.

use crate::own_std;
use crate::settings::{self, Flags, Settings};
use anyhow::{Context, Result, bail};
use gpu_run_console::failure::Failure;
use gpu_run_sysroot::{Sysroot, Target};
use serde_json::Value;
use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TARGET: &str = "wasm32-wasip1";

/// Compiles a single Rust file; rustc's messages go to stderr. `cache` is gpu-run's, where its own std may be.
pub fn compile_file(file: &Path, cache: Option<&Path>) -> Result<Vec<u8>> {
    let mut flags = settings::of_variables(TARGET);
    if let Some(sysroot) = sysroot_for(file, &flags, rustc().into(), cache)? {
        flags.push(sysroot_flag(&sysroot)?);
    }
    flags.extend(other_linker(&flags, || rustc().into(), || false));
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
    rustc.args(flags).arg("-o").arg(&output).arg(file).stdin(Stdio::null());
    tracing::info!(command = ?rustc, "compiling");
    let status = rustc.status().map_err(|error| not_started("rustc", &error))?;
    if !status.success() {
        return Err(Failure::usage(format!("{} does not compile for {TARGET}", file.display())).into());
    }
    std::fs::read(&output).with_context(|| format!("rustc did not write {}", output.display()))
}

/// Builds a package in release mode and returns the path of its binary; cargo's messages go to stderr.
pub fn build_package(folder: &Path, bin: Option<&str>, cache: Option<&Path>) -> Result<PathBuf> {
    let manifest = folder.join("Cargo.toml");
    let chosen = choose(&binaries(&manifest)?, bin, &folder.display().to_string())?;
    let mut cargo = Command::new(cargo());
    cargo.args(["build", "--release", "--target", TARGET, "--message-format=json-render-diagnostics"]);
    cargo.args(["--package", &chosen.package, "--bin", &chosen.name]).arg("--manifest-path").arg(&manifest);
    cargo.stdin(Stdio::null()).stdout(Stdio::piped());
    let settings = Settings::of(TARGET, &[]);
    let mut flags = settings.flags(Flags::Rustc);
    let given = flags.len();
    if let Some(sysroot) = sysroot_for(folder, &flags, settings.rustc(), cache)? {
        flags.push(sysroot_flag(&sysroot)?);
    }
    flags.extend(other_linker(&flags, || settings.rustc(), || settings.has_linker()));
    if flags.len() > given {
        let (variable, value) = Flags::Rustc.encoded(&flags);
        cargo.env(variable, value);
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

/// Returns cargo with a command for a target, which uses the std of a sysroot.
pub fn cargo_with(
    command: &str,
    target: &str,
    settings: &Settings,
    sysroot: &Sysroot,
    args: &[OsString],
) -> Result<Command> {
    let mut cargo = Command::new(cargo());
    cargo.args([command, "--target", target]);
    let rustc_flags = settings.flags(Flags::Rustc);
    let linker = other_linker(&rustc_flags, || settings.rustc(), || settings.has_linker());
    let mut pass = |kind: Flags, mut flags: Vec<String>| {
        match named_sysroot(&flags) {
            None => flags.push(sysroot_flag(sysroot.path())?),
            Some(named) if Path::new(named) == sysroot.path() => {}
            Some(named) => {
                let message = format!("the flags for Rust name another sysroot than gpu-run's own std: {named}");
                return Err(anyhow::Error::from(
                    Failure::usage(message)
                        .hint(format!("leave out --sysroot, or use cargo {command} --target {target}")),
                ));
            }
        }
        flags.extend(sysroot.panic().flags().iter().map(|flag| (*flag).to_owned()));
        flags.extend(linker.clone());
        let (variable, value) = kind.encoded(&flags);
        cargo.env(variable, value);
        Ok(())
    };
    pass(Flags::Rustc, rustc_flags)?;
    if command == "test" {
        pass(Flags::Rustdoc, settings.flags(Flags::Rustdoc))?;
        if !settings.has_runner() {
            // A list, so that a path may have spaces. JSON's texts are TOML's, too.
            cargo.arg("--config").arg(format!("target.{target}.runner={}", Value::from(vec![own_program()])));
        }
    }
    cargo.args(args);
    Ok(cargo)
}

/// Runs cargo in place of gpu-run; returns why it cannot.
pub fn become_cargo(mut cargo: Command) -> anyhow::Error {
    tracing::info!(command = ?cargo, "running cargo");
    not_started("cargo", &cargo.exec()).into()
}

/// Returns gpu-run as cargo can call it.
fn own_program() -> String {
    let own = env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    own.unwrap_or_else(|| "gpu-run".into())
}

/// Returns the flag for another linker, where rustc's own for WebAssembly is missing and nobody chose one: distributions have `wasm-ld`
/// of LLVM instead, and not every rustc of theirs knows that.
fn other_linker(flags: &[String], rustc: impl Fn() -> PathBuf, is_chosen: impl Fn() -> bool) -> Option<String> {
    const OTHER: &str = "wasm-ld";
    let paths = env::var_os("PATH").unwrap_or_default();
    let is_program = |name: &str| env::split_paths(&paths).any(|folder| folder.join(name).is_file());
    if !is_program(OTHER) || is_program("rust-lld") || flags.iter().any(|flag| flag.contains("linker=")) {
        return None;
    }
    let output = Command::new(rustc()).args(["--print", "sysroot"]).stderr(Stdio::null()).output().ok()?;
    let hosts = Path::new(String::from_utf8_lossy(&output.stdout).trim()).join("lib/rustlib");
    let has_own = hosts.read_dir().ok()?.flatten().any(|host| host.path().join("bin/rust-lld").is_file());
    (!has_own && !is_chosen()).then(|| format!("-Clinker={OTHER}"))
}

/// Returns the flag that names a sysroot.
fn sysroot_flag(sysroot: &Path) -> Result<String> {
    let path = sysroot.to_str().ok_or_else(|| {
        Failure::environment(format!("cargo cannot be given a path that is not UTF-8: {}", sysroot.display()))
            .hint("set GPU_RUN_CACHE to another folder")
    })?;
    Ok(format!("--sysroot={path}"))
}

/// Returns the sysroot that flags name.
fn named_sysroot(flags: &[String]) -> Option<&str> {
    let at = flags.iter().position(|flag| flag == "--sysroot" || flag.starts_with("--sysroot="))?;
    flags[at].strip_prefix("--sysroot=").or_else(|| flags.get(at + 1).map(String::as_str)).or(Some(""))
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

/// Returns the sysroot that std is taken from, unless that is rustc's own, or one that the user's flags name.
fn sysroot_for(source: &Path, flags: &[String], rustc: PathBuf, cache: Option<&Path>) -> Result<Option<PathBuf>> {
    if named_sysroot(flags).is_some() {
        return Ok(None);
    }
    if let Some(sysroot) = env::var_os("GPU_RUN_SYSROOT").map(PathBuf::from) {
        if !holds_std(&libdir(&sysroot)) {
            let message = format!("GPU_RUN_SYSROOT={} contains no std for {TARGET}", sysroot.display());
            return Err(Failure::environment(message).hint(format!("expected {}", libdir(&sysroot).display())).into());
        }
        return Ok(Some(sysroot));
    }
    if let Some(sysroot) = cache.and_then(|cache| own_std::made(Target::Wasip1, rustc, cache)) {
        return Ok(Some(sysroot));
    }
    if rustc_has_target()? {
        return Ok(None);
    }
    match beside_a_project(source, &rustc_version()?) {
        Some(sysroot) => Ok(Some(sysroot)),
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

pub(crate) fn rustc() -> OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

pub(crate) fn cargo() -> OsString {
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
    fn a_sysroot_in_flags_is_seen() {
        let named = |flags: &[&str]| {
            named_sysroot(&flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>()).map(str::to_owned)
        };
        assert_eq!(named(&["-Ca", "--sysroot=/a b"]).as_deref(), Some("/a b"));
        assert_eq!(named(&["--sysroot", "/a"]).as_deref(), Some("/a"));
        assert_eq!(named(&["--sysroot"]).as_deref(), Some(""));
        assert_eq!(named(&["-Clink-arg=--sysroot=/a"]), None);
        assert_eq!(sysroot_flag(Path::new("/a b")).unwrap(), "--sysroot=/a b");
        let no_text = <OsString as std::os::unix::ffi::OsStringExt>::from_vec(b"/a\xff".to_vec());
        assert!(sysroot_flag(Path::new(&no_text)).is_err());
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
