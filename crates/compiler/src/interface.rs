//! What a module imports and exports, before it is compiled for anything.

use crate::compile::default_features;
use crate::error::Error;
use gpu_run_abi::threads;
use gpu_run_wasm::{self as wasm, ExportKind, FuncType, ImportKind, Unlinked};

pub type FunctionType = FuncType;

/// What a module imports and exports.
#[derive(Clone, Debug, Default)]
pub struct Interface {
    /// By module.
    pub imports: Vec<(String, Item)>,
    pub exports: Vec<Item>,
    /// Whether the program can start threads.
    pub has_threads: bool,
    pub memories: Memories,
}

/// What a module's memories are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memories {
    #[default]
    None,
    /// The first one has 32-bit addresses and belongs to the instance alone.
    First,
    Other,
}

/// Something that is imported or exported.
#[derive(Clone, Debug)]
pub struct Item {
    pub name: String,
    /// Its type, if it is a function.
    pub function: Option<FunctionType>,
}

impl Interface {
    /// Validates a module and reads what it imports and exports.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let module = wasm::decode_unlinked(bytes, default_features())?;
        let exports = module.exports.iter().map(|export| {
            let function = match export.kind {
                ExportKind::Function(index) => Some(module.function_type(index).clone()),
                _ => None,
            };
            Item { name: export.name.to_owned(), function }
        });
        let exports = exports.collect();
        let memories = match &module.memories[..] {
            [] => Memories::None,
            [first, ..] if !first.is_64 && !first.shared => Memories::First,
            _ => Memories::Other,
        };
        Ok(Self { imports: imports(&module), exports, has_threads: has_threads(&module), memories })
    }
}

fn has_threads(module: &Unlinked<'_>) -> bool {
    let mut memories = module.memories.iter();
    module.imports.iter().any(|import| match import.kind {
        ImportKind::Memory => {
            memories.next().is_some_and(|memory| memory.shared) && threads::is_memory(import.module, import.name)
        }
        _ => threads::is_spawn(import.module, import.name),
    })
}

fn imports(module: &Unlinked<'_>) -> Vec<(String, Item)> {
    let mut functions = 0..;
    let item = |import: &wasm::Import<'_>| {
        let index = (import.kind == ImportKind::Function).then(|| functions.next()).flatten();
        let function = index.map(|index| module.function_type(index).clone());
        (import.module.to_owned(), Item { name: import.name.to_owned(), function })
    };
    module.imports.iter().map(item).collect()
}

/// An import that nobody provides, or only with another type.
#[derive(Clone, Debug)]
pub struct Unprovided {
    pub module: String,
    pub import: String,
    /// Its kind, with its type if it is a function.
    pub what: String,
    /// The type of what has its name.
    pub found: Option<String>,
}

impl Unprovided {
    /// Returns the import that an error is about, if it is about one.
    pub fn of(error: &wasm::Error) -> Option<Self> {
        match error.clone() {
            wasm::Error::UnknownImport { module, name, kind } => {
                Some(Self { module, import: name, what: kind, found: None })
            }
            wasm::Error::ImportType { module, name, found, expected } => {
                Some(Self { module, import: name, what: found, found: Some(expected) })
            }
            _ => None,
        }
    }
}
