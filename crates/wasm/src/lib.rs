//! WebAssembly in, Cranelift IR out.
//!
//! [`decode`] reads and validates a module and surveys its functions. [`link`](link::link) makes one program of several
//! modules. [`translate`](translate()) turns every function, every import's stub and the kernel that starts an instance
//! into CLIF. A function may access its instance's slot ([`slot`]) and nothing else. Every address that a guest
//! computes is checked before it is used, and every trap names the function and offset it came from.
//!
//! Nothing here knows PTX, and nothing here panics on a module that [`decode`] accepted: an unsupported feature is an
//! [`Error`] that names it.

mod callgraph;
mod canonical;
mod code;
mod constant;
mod cost;
mod declared;
mod decode;
mod embedder;
mod error;
pub mod link;
mod locals;
mod pass;
pub mod printable;
mod provided;
mod runtime;
pub mod slot;
mod translate;
mod types;
mod work;

pub use constant::Constant;
pub use cranelift_codegen::ir;
pub use decode::{
    DataSegment, ElementKind, ElementSegment, Export, ExportKind, Global, Import, ImportKind, Memory, Module, Table,
    Unlinked, decode, decode_unlinked,
};
pub use embedder::{EmbedderFunction, EmbedderFunctions, Parameter};
pub use error::Error;
pub use provided::Imported;
pub use runtime::{ENDINGS, FRESH, GANG, KERNEL, START, THREADS};
pub use translate::function_reference;
pub use translate::{Function, FunctionKind, Options, Program, translate};
pub use types::{FuncType, ValType, words};
pub use wasmparser::WasmFeatures;
