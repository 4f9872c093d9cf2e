//! gpu-run from Python: the extension module `gpu_run._native`.
//!
//! What users see is the package in `python/gpu_run`; it gives arguments their defaults, and has the documentation and the exceptions. Here
//! is what needs Rust: programs, the ways records take, Arrow.

mod answers;
mod arguments;
mod array;
mod capsule;
mod compile;
mod devices;
mod failure;
mod fit;
mod function;
mod given;
mod numbers;
mod of_python;
mod outputs;
mod program;
mod source;
mod text;
mod to_python;
mod udf;
mod work;

use pyo3::prelude::*;

/// The part of gpu_run that is written in Rust.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::array::Array;
    #[pymodule_export]
    use crate::compile::compile;
    #[pymodule_export]
    use crate::devices::devices;
    #[pymodule_export]
    use crate::function::Function;
    #[pymodule_export]
    use crate::outputs::Outputs;
    #[pymodule_export]
    use crate::program::Program;
    #[pymodule_export]
    use crate::udf::ArrowFunction;
    #[pymodule_export]
    use crate::work::settle;
}
