//! A machine's code: a wasm module that was built as a kernel.
//!
//! A custom section ([`SECTION`]) of the module says which versions it was built with: that of the state, and that of
//! the interface to the code that replaces it. Both must be this gpu-run's. The module's data must lie below the state.
//! That part of memory belongs to the code: it is made anew from the module at every load, and nothing in it is carried
//! over. So a kernel has no mutable statics; every load, checkpoint and restart would lose them.

use crate::checkpoint::Hash;
use crate::error::{At, Error, Result};
use crate::layout::{INTERFACE, SECTION, STATE, VERSION};
use crate::place::Place;
use std::path::Path;
use std::sync::Arc;
use wasmparser::{CompositeInnerType, DataKind, ExternalKind, Operator, Parser, Payload, TypeRef};

/// A machine's code. It is checked as far as possible without compiling it.
#[derive(Clone)]
pub struct Kernel {
    wasm: Arc<Vec<u8>>,
    hash: Hash,
    place: Place,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kernel({} bytes, {})", self.wasm.len(), self.hash)
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Kernel {}

/// Functions that a kernel must export.
const ENTRIES: [&str; 2] = ["boot", "run"];

impl Kernel {
    /// Returns the kernel that is built into gpu-run.
    pub fn built_in() -> Self {
        Self::unchecked(crate::KERNEL.to_vec(), Place::MACHINE)
    }

    /// Returns the built-in kernel with the entries for measurements.
    pub fn measuring() -> Self {
        Self::unchecked(crate::KERNEL_MEASURE.to_vec(), Place::MACHINE)
    }

    pub fn read(path: &Path) -> Result<Self> {
        Self::named(&path.display().to_string(), std::fs::read(path).at(path)?)
    }

    /// Checks the bytes of a module. Errors call it `name`.
    pub fn named(name: &str, wasm: Vec<u8>) -> Result<Self> {
        let refused = |why: String| Error::Usage(format!("{name} cannot be used as the machine's code: {why}"));
        if !wasm.starts_with(b"\0asm") {
            return Err(refused("it is not a wasm module".to_owned()));
        }
        let found = Found::read(&wasm).map_err(|error| refused(format!("it is not a valid wasm module: {error}")))?;
        let Some(section) = found.section else {
            return Err(refused(format!(
                "it has no section `{SECTION}`: build it from crates/kernel (scripts/build-kernel)"
            )));
        };
        let (version, interface, place) = Place::read(&section).map_err(refused)?;
        if !Place::is_ours(version, interface) {
            return Err(refused(format!(
                "it is built for states of version {version} and interface {interface}, but this gpu-run has version {VERSION} and interface {INTERFACE}"
            )));
        }
        if let Some(missing) = ENTRIES.iter().find(|entry| !found.entries.iter().any(|name| name == *entry)) {
            return Err(refused(format!("it exports no function `{missing}` without parameters and results")));
        }
        if found.data_end > u64::from(STATE) {
            let end = found.data_end;
            return Err(refused(format!(
                "its data ends at byte {end}, but the machine's state begins at byte {STATE}"
            )));
        }
        Ok(Self::unchecked(wasm, place))
    }

    fn unchecked(wasm: Vec<u8>, place: Place) -> Self {
        let hash = Hash::from_bytes(*blake3::hash(&wasm).as_bytes());
        Self { wasm: Arc::new(wasm), hash, place }
    }

    /// Returns where the kernel's state lies.
    pub fn place(&self) -> Place {
        self.place
    }

    pub fn hash(&self) -> Hash {
        self.hash
    }

    pub fn wasm(&self) -> &Arc<Vec<u8>> {
        &self.wasm
    }

    /// Returns a string from the module's data by its address: the text of a debug message.
    pub(crate) fn text(&self, at: u32, length: u32) -> Option<String> {
        for payload in Parser::new(0).parse_all(&self.wasm) {
            let Ok(Payload::DataSection(segments)) = payload else { continue };
            for segment in segments.into_iter().flatten() {
                let Some(from) = place(&segment.kind).and_then(|start| at.checked_sub(start)) else { continue };
                if let Some(bytes) = segment.data.get(from as usize..(from as usize).saturating_add(length as usize)) {
                    return Some(String::from_utf8_lossy(bytes).into_owned());
                }
            }
        }
        None
    }
}

/// What the checks need to know of a module.
#[derive(Debug, Default)]
struct Found {
    /// The bytes of the section [`SECTION`].
    section: Option<Vec<u8>>,
    /// Exported functions without parameters and results.
    entries: Vec<String>,
    data_end: u64,
}

impl Found {
    fn read(wasm: &[u8]) -> wasmparser::Result<Self> {
        let mut found = Self::default();
        // For each type: whether it has neither parameters nor results. For each function: its type.
        let (mut bare, mut functions) = (Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::CustomSection(section) if section.name() == SECTION => {
                    found.section = Some(section.data().to_vec());
                }
                Payload::TypeSection(types) => {
                    for group in types {
                        bare.extend(group?.types().map(|ty| match &ty.composite_type.inner {
                            CompositeInnerType::Func(ty) => ty.params().is_empty() && ty.results().is_empty(),
                            _ => false,
                        }));
                    }
                }
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        if let TypeRef::Func(ty) = import?.ty {
                            functions.push(ty);
                        }
                    }
                }
                Payload::FunctionSection(types) => {
                    for ty in types {
                        functions.push(ty?);
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export?;
                        let ty = functions.get(export.index as usize).and_then(|ty| bare.get(*ty as usize));
                        if export.kind == ExternalKind::Func && ty == Some(&true) {
                            found.entries.push(export.name.to_owned());
                        }
                    }
                }
                Payload::DataSection(segments) => {
                    for segment in segments {
                        let segment = segment?;
                        let end = place(&segment.kind).map_or(0, |at| u64::from(at) + segment.data.len() as u64);
                        found.data_end = found.data_end.max(end);
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

/// Returns the address of an active data segment.
fn place(kind: &DataKind<'_>) -> Option<u32> {
    let DataKind::Active { offset_expr, .. } = kind else { return None };
    match offset_expr.get_operators_reader().read() {
        Ok(Operator::I32Const { value }) => Some(value as u32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(wasm: Vec<u8>) -> String {
        Kernel::named("k.wasm", wasm).unwrap_err().to_string()
    }

    fn text(body: &str) -> Vec<u8> {
        wat::parse_str(format!("(module {body})")).unwrap()
    }

    /// The section's bytes for two numbers, as wat writes strings.
    fn section(version: u32, interface: u32) -> String {
        let bytes = [version.to_le_bytes(), interface.to_le_bytes()].concat();
        let bytes: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
        format!(r#"(@custom "{SECTION}" "{bytes}")"#)
    }

    #[test]
    fn the_kernels_in_the_tree_are_images() {
        for wasm in [crate::KERNEL, crate::KERNEL_DEBUG, crate::KERNEL_MEASURE] {
            Kernel::named("kernel.wasm", wasm.to_vec()).unwrap();
        }
    }

    #[test]
    fn what_is_no_kernel_is_refused_with_the_reason() {
        assert!(
            refused(b"not wasm".to_vec())
                .contains("k.wasm cannot be used as the machine's code: it is not a wasm module")
        );
        assert!(refused(crate::KERNEL[..crate::KERNEL.len() / 2].to_vec()).contains("it is not a valid wasm module"));
        assert!(refused(text("")).contains("no section"));
        let ours = section(VERSION, INTERFACE);
        assert!(refused(text(&ours)).contains("no function `boot`"));
        let typed = format!(r#"{ours} (func (export "boot")) (func (export "run") (param i32))"#);
        assert!(refused(text(&typed)).contains("no function `run` without parameters"));
        let high = format!(
            r#"{ours} (memory 2) (data (i32.const 65530) "too far up") (func (export "boot")) (func (export "run"))"#
        );
        assert!(refused(text(&high)).contains("65540"));
    }

    #[test]
    fn another_version_is_refused_and_both_are_named() {
        let message = refused(text(&section(VERSION + 6, INTERFACE)));
        assert!(message.contains("version 7") && message.contains(&format!("version {VERSION} and")), "{message}");
        assert!(refused(text(&section(VERSION, 99))).contains("interface 99"));
    }
}
