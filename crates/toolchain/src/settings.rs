//! What cargo is set to do for a target: by variables, configuration files and `--config`, in cargo's own order.
//!
//! gpu-run adds flags to the user's. A variable or an option that adds some makes cargo ignore those from other places, so gpu-run
//! asks cargo for what is configured, and hands over all of the flags that apply in the variable that comes before everything else.

use crate::compile::{cargo, rustc};
use serde_json::Value;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whom flags are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    Rustc,
    /// rustdoc, which compiles the examples in documentation.
    Rustdoc,
}

impl Flags {
    fn variable(self) -> &'static str {
        match self {
            Flags::Rustc => "RUSTFLAGS",
            Flags::Rustdoc => "RUSTDOCFLAGS",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Flags::Rustc => "rustflags",
            Flags::Rustdoc => "rustdocflags",
        }
    }

    /// The variable and its value that pass flags to cargo, also flags with spaces.
    pub(crate) fn encoded(self, flags: &[String]) -> (String, String) {
        (format!("CARGO_ENCODED_{}", self.variable()), flags.join("\x1f"))
    }

    /// Returns the flags of the variables that come before all others.
    fn of_variables(self) -> Option<Vec<String>> {
        let split = |text: String, at: char| {
            text.split(at).map(str::trim).filter(|f| !f.is_empty()).map(String::from).collect()
        };
        let encoded = text(&format!("CARGO_ENCODED_{}", self.variable())).map(|text| split(text, '\x1f'));
        encoded.or_else(|| text(self.variable()).map(|text| split(text, ' ')))
    }
}

/// The flags for a single file, which cargo has no part in: those of variables.
pub(crate) fn of_variables(target: &str) -> Vec<String> {
    let of_target = || list(&text(&variable(target, Flags::Rustc.variable())).into());
    Flags::Rustc.of_variables().unwrap_or_else(of_target)
}

/// Returns cargo's variable for a setting of a target.
fn variable(target: &str, name: &str) -> String {
    format!("CARGO_TARGET_{}_{name}", target.to_uppercase().replace('-', "_"))
}

fn text(variable: &str) -> Option<String> {
    env::var_os(variable).map(|value| value.to_string_lossy().into_owned())
}

/// The settings of cargo for a target.
#[derive(Clone, Debug)]
pub struct Settings {
    target: &'static str,
    /// The options `--config` of the user's.
    config: Vec<OsString>,
}

impl Settings {
    /// `args` are those of a command of cargo.
    pub fn of(target: &'static str, args: &[OsString]) -> Settings {
        let mut config = Vec::new();
        let mut args = args.iter().take_while(|arg| *arg != "--");
        while let Some(arg) = args.next() {
            if arg == "--config" {
                config.extend([Some(arg), args.next()].into_iter().flatten().cloned());
            } else if arg.to_string_lossy().starts_with("--config=") {
                config.push(arg.clone());
            }
        }
        Settings { target, config }
    }

    /// Returns the user's flags: the first place that has any counts, and all entries for the target are one place.
    pub fn flags(&self, kind: Flags) -> Vec<String> {
        if let Some(flags) = kind.of_variables() {
            return flags;
        }
        let mut flags =
            self.get(&format!("target.{}.{}", self.target, kind.key())).map(|own| list(&own)).unwrap_or_default();
        self.conditional().iter().for_each(|entry| flags.extend(list(&entry[kind.key()])));
        if flags.is_empty() {
            flags = self.get(&format!("build.{}", kind.key())).map(|all| list(&all)).unwrap_or_default();
        }
        flags
    }

    pub fn has_runner(&self) -> bool {
        self.get(&format!("target.{}.runner", self.target)).is_some()
            || self.conditional().iter().any(|entry| !entry["runner"].is_null())
    }

    /// Whether the user chose a linker.
    pub fn has_linker(&self) -> bool {
        self.get(&format!("target.{}.linker", self.target)).is_some()
            || self.conditional().iter().any(|entry| !entry["linker"].is_null())
    }

    /// Returns the rustc that cargo uses.
    pub fn rustc(&self) -> PathBuf {
        if env::var_os("RUSTC").is_none()
            && let Some(Value::String(path)) = self.get("build.rustc")
        {
            return resolve(path.into());
        }
        rustc().into()
    }

    /// Returns the entries of configuration files for all targets of a kind that the target is of, as in `[target.'cfg(unix)']`.
    fn conditional(&self) -> Vec<Value> {
        let Some(Value::Object(targets)) = self.get("target") else { return Vec::new() };
        let conditional: Vec<_> = targets.into_iter().filter(|(key, _)| key.starts_with("cfg(")).collect();
        if conditional.is_empty() {
            return Vec::new();
        }
        let mut rustc = Command::new(self.rustc());
        let output = rustc.args(["--print", "cfg", "--target", self.target]).stderr(Stdio::null()).output();
        let cfgs = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let cfgs: Vec<&str> = cfgs.lines().collect();
        conditional.into_iter().filter(|(key, _)| holds(key, &cfgs)).map(|(_, entry)| entry).collect()
    }

    /// Asks cargo for a setting.
    fn get(&self, key: &str) -> Option<Value> {
        let mut cargo = Command::new(cargo());
        cargo.arg("-Zunstable-options").args(&self.config).args(["config", "get", key, "--format", "json-value"]);
        // The command is not stable yet. Without an answer, nothing is configured.
        let output = cargo.env("RUSTC_BOOTSTRAP", "1").stderr(Stdio::null()).output().ok()?;
        serde_json::from_slice(&output.stdout).ok().filter(|_| output.status.success())
    }
}

/// Returns a list of flags, which may be written as one text.
fn list(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split_whitespace().map(String::from).collect(),
        Value::Array(flags) => flags.iter().filter_map(Value::as_str).map(String::from).collect(),
        _ => Vec::new(),
    }
}

/// A path with folders in a configuration file begins where its folder `.cargo` is, which cargo does not say: here or above.
fn resolve(path: PathBuf) -> PathBuf {
    if path.is_absolute() || path.components().count() == 1 {
        return path;
    }
    let here = env::current_dir().unwrap_or_default();
    let found = here.ancestors().map(|folder| folder.join(&path)).find(|path: &PathBuf| Path::is_file(path));
    found.unwrap_or(path)
}

/// Whether a condition such as `cfg(all(unix, not(target_os = "linux")))` holds where rustc prints these.
fn holds(condition: &str, cfgs: &[&str]) -> bool {
    let condition = condition.trim();
    let call = condition.strip_suffix(')').and_then(|call| call.split_once('('));
    match call.map(|(name, inner)| (name.trim(), parts(inner))) {
        Some(("cfg" | "all", parts)) => parts.iter().all(|part| holds(part, cfgs)),
        Some(("any", parts)) => parts.iter().any(|part| holds(part, cfgs)),
        Some(("not", parts)) => !parts.iter().all(|part| holds(part, cfgs)),
        _ => match condition.split_once('=') {
            Some((name, value)) => cfgs.contains(&format!("{}={}", name.trim(), value.trim()).as_str()),
            None => condition == "true" || cfgs.contains(&condition),
        },
    }
}

/// Splits a list at the commas that are not in parentheses or quotes.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut is_quoted) = (0, false);
    let is_between = |c: char| {
        match c {
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0 && !is_quoted
    };
    list.split(is_between).filter(|part| !part.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_hold_as_rustc_says() {
        let cfgs = ["panic=\"abort\"", "target_family=\"wasm\"", "target_os=\"wasi\"", "wasm"];
        for condition in [
            "cfg(target_os = \"wasi\")",
            "cfg(all())",
            "cfg( wasm )",
            "cfg(true)",
            "cfg(not(unix))",
            "cfg(any(unix, all(wasm, target_family=\"wasm\",)))",
            "cfg(all(not(any(unix, windows)), panic = \"abort\"))",
        ] {
            assert!(holds(condition, &cfgs), "{condition}");
        }
        for condition in [
            "cfg(unix)",
            "cfg(any())",
            "cfg(false)",
            "cfg(not(wasm))",
            "cfg(target_os = \"wasi,wasm\")",
            "cfg(all(wasm, unix))",
            "cfg(not(all(wasm)))",
        ] {
            assert!(!holds(condition, &cfgs), "{condition}");
        }
    }

    #[test]
    fn flags_are_a_text_or_a_list() {
        assert_eq!(list(&json!("-Ca  -Cb")), ["-Ca", "-Cb"]);
        assert_eq!(list(&json!(["-Clink-arg=a b", "-Cb"])), ["-Clink-arg=a b", "-Cb"]);
        assert!(list(&Value::Null).is_empty());
        let (variable, value) = Flags::Rustdoc.encoded(&["-Ca b".into(), "-Cc".into()]);
        assert_eq!((variable.as_str(), value.as_str()), ("CARGO_ENCODED_RUSTDOCFLAGS", "-Ca b\x1f-Cc"));
    }

    #[test]
    fn the_users_config_options_are_cargos_here_too() {
        let of = |args: &[&str]| Settings::of("t", &args.iter().map(OsString::from).collect::<Vec<_>>()).config;
        assert_eq!(of(&["-v", "--config", "a=1", "--config=b=2", "-p", "c"]), ["--config", "a=1", "--config=b=2"]);
        assert!(of(&["--", "--config", "a=1"]).is_empty());
        assert_eq!(variable("wasm32-wasip1", "RUNNER"), "CARGO_TARGET_WASM32_WASIP1_RUNNER");
    }
}
