//! What the tests of the library share: a guest on the `cpu` device, and maps of it.
#![allow(dead_code, clippy::unwrap_used)] // not every test uses all of it; one that cannot go on panics

use gpu_run_abi::Layout;
use gpu_run_compiler::{Build, CompileOptions, Compiled, Entry, Program};
use gpu_run_map::{Batches, Ended, Error, Finished, Input, Map, Observer, Options, Output, Split, Unfinished};
use gpu_run_run::{Common, Source};
use gpu_run_wasi::Builder;
use std::path::Path;
use std::sync::Arc;

pub(crate) struct Guest {
    wasm: Arc<Vec<u8>>,
    program: Arc<Program>,
}

impl Guest {
    pub(crate) fn new(wat: &str) -> Self {
        let wasm = Arc::new(wat::parse_str(wat).unwrap());
        let options = CompileOptions::new(Build::Exact(Layout::Linear), Entry::Start);
        let compiled = Compiled::new(&wasm, &options).unwrap();
        let program = Arc::new(Program::load(gpu_run_device::cpu::open(), Arc::new(compiled)).unwrap());
        Self { wasm, program }
    }

    pub(crate) fn open(&self, input: Input, output: Output, options: Options) -> Result<Map, Error> {
        let source = Source { name: "guest.wat".into(), argv0: "guest.wasm".into(), wasm: self.wasm.clone() };
        Map::open(input, output, options, source, None)
    }

    /// Three records at a time.
    pub(crate) fn run(&self, map: Map, observer: Box<dyn Observer>) -> Ended {
        self.try_run(map, observer).unwrap()
    }

    pub(crate) fn try_run(&self, map: Map, observer: Box<dyn Observer>) -> Result<Ended, Error> {
        let common = Common::default();
        let batches = Batches { max_records: 3, lanes: None, learned: None, slow: None, gangs: None, common };
        map.begin(observer)?.run(vec![(self.program.clone(), batches)])
    }

    pub(crate) fn finish(&self, map: Map) -> Finished {
        match self.run(map, Box::new(())) {
            Ended::Finished(finished) => *finished,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn options(split: Split) -> Options {
    Options {
        split,
        context: Builder::new(),
        function: None,
        args: Vec::new(),
        env: Vec::new(),
        folders: Vec::new(),
        follow_links: false,
        shard: None,
        unfinished: Unfinished::Refuse,
        fail_fast: false,
        interrupt: None,
        timeout: None,
        max_memory: None,
    }
}

pub(crate) fn file(path: &Path) -> Output {
    Output::Path(path.to_owned())
}
