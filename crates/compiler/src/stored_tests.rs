#![allow(clippy::unwrap_used)]

use super::*;
use crate::compile::{Entry, default_features};
use gpu_run_abi::Build;
use gpu_run_abi::Layout;

const WAT: &str = include_str!("../tests/wat/stored.wat");

fn compiled(wat: &str) -> Compiled {
    let options = CompileOptions::new(Build::Exact(Layout::Linear), Entry::Exports);
    Compiled::new(&wat::parse_str(wat).unwrap(), &options).unwrap()
}

fn again<'a>(compiled: &Compiled, bytes: &'a [u8]) -> Result<(Compiled, &'a [u8])> {
    read(bytes, compiled.wasm.clone(), &compiled.options, default_features())
}

#[test]
fn a_program_is_the_same_after_writing_and_reading() {
    for wat in [WAT, "(module)", r#"(module (memory 1) (data (i32.const 65536) "x"))"#] {
        let compiled = compiled(wat);
        let bytes = write(&compiled, b"the code").unwrap();
        let (read, code) = again(&compiled, &bytes).unwrap();
        assert_eq!(code, b"the code");
        let show = |c: &Compiled| {
            let all = (&c.slots, &c.initial, &c.memories, c.has_start, c.asks_device, &c.entries, &c.globals);
            format!("{all:?}")
        };
        assert_eq!(show(&read), show(&compiled));
        assert_eq!(read.symbols().name(0), compiled.symbols().name(0), "names come from the module");
    }
}

#[test]
fn bytes_that_are_cut_or_changed_never_panic() {
    let compiled = compiled(WAT);
    let bytes = write(&compiled, b"code").unwrap();
    for length in 0..bytes.len() {
        assert!(again(&compiled, &bytes[..length]).is_err(), "{length} bytes");
    }
    for at in 0..bytes.len() {
        for bits in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= bits;
            let _ = again(&compiled, &changed);
        }
    }
}
