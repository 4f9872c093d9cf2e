//! An embedder's functions, called from instances in both layouts.

#![allow(clippy::unwrap_used)] // In a test, that is an assertion.

use gpu_run_compiler::{
    Build, CompileOptions, Compiled, EmbedderFunction, Entry, Layout, Parameter, Program, Value, ValueType,
};
use gpu_run_device::cpu;
use gpu_run_run::{End, RunOptions};
use gpu_run_wasi::{Builder, FunctionAnswer, FunctionCall, Functions, InstanceFunctions, Stdio};
use std::sync::Arc;

/// Sends `length` bytes from an odd address, gets them back reversed at another one, and returns the sum of what the host returned, if all
/// bytes are right; otherwise the first that is not.
const MODULE: &str = r#"
    (module
        (import "host" "reversed" (func $reversed (param i64 i32 i32 f32 i32 i32) (result f64)))
        (memory 4)
        (func (export "f") (param $length i32) (result f64)
            (local $i i32) (local $sum f64)
            (loop $fill
                (i32.store8 (i32.add (i32.const 1001) (local.get $i)) (i32.mul (local.get $i) (i32.const 7)))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $fill (i32.lt_u (local.get $i) (local.get $length))))
            (local.set $sum (call $reversed (i64.const -3) (i32.const 1001) (local.get $length) (f32.const 0.5)
                (i32.const 100003) (local.get $length)))
            (local.set $i (i32.const 0))
            (loop $check
                (if (i32.ne
                        (i32.load8_u (i32.add (i32.const 100003) (local.get $i)))
                        (i32.load8_u (i32.sub (i32.add (i32.const 1000) (local.get $length)) (local.get $i))))
                    (then (return (f64.neg (f64.convert_i32_u (local.get $i))))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $check (i32.lt_u (local.get $i) (local.get $length))))
            (local.get $sum)))
"#;

struct Host;

/// The instance's number.
struct OfInstance(u64);

impl Functions for Host {
    fn of_instance(&self, number: u64) -> Box<dyn InstanceFunctions> {
        Box::new(OfInstance(number))
    }
}

impl InstanceFunctions for OfInstance {
    fn call(&mut self, call: FunctionCall<'_>) -> FunctionAnswer {
        let (words, bytes) = call.input.split_at(4 * 8);
        let word = |at: usize| u64::from_le_bytes(words[at * 8..][..8].try_into().unwrap());
        assert_eq!(
            (call.function, word(0) as i64, word(1), f32::from_bits(word(2) as u32)),
            (0, -3, bytes.len() as u64, 0.5)
        );
        assert_eq!((word(3), call.room), (bytes.len() as u64, bytes.len()));
        let result = (self.0 as f64 + bytes.len() as f64).to_bits();
        FunctionAnswer::Done { result, bytes: bytes.iter().rev().copied().collect() }
    }
}

#[test]
fn bytes_arrive_and_come_back_in_both_layouts() {
    let function = EmbedderFunction {
        module: "host".into(),
        name: "reversed".into(),
        parameters: vec![Parameter::I64, Parameter::Bytes, Parameter::F32, Parameter::Room],
        result: Some(ValueType::F64),
    };
    let wasm = wat::parse_str(MODULE).unwrap();
    for build in
        [Build::Exact(Layout::Linear), Build::Exact(Layout::Interleaved), Build::speculative(Layout::Interleaved, 0)]
    {
        let options = CompileOptions {
            embedder: [function.clone()].into(),
            ..CompileOptions::new(build, Entry::Function("f".into()))
        };
        let compiled = Compiled::new(&wasm, &options).unwrap();
        let program = Arc::new(Program::load(cpu::open(), Arc::new(compiled)).unwrap());
        for length in [1, 511, 4097, 70_001] {
            let context = |number| Builder::new().number(number).functions(Arc::new(Host)).build(Stdio::null());
            let contexts = (0..40).map(context).collect();
            let arguments = [Value::I32(length)];
            let (outcomes, _) = gpu_run_run::run(&program, "f", &arguments, contexts, &RunOptions::default()).unwrap();
            for (number, outcome) in outcomes.iter().enumerate() {
                let expected = Value::F64((number as f64 + f64::from(length)).to_bits());
                assert_eq!(
                    (&outcome.end, &outcome.results[..]),
                    (&End::Returned, &[expected][..]),
                    "{build:?}, {length}"
                );
            }
        }
    }
}
