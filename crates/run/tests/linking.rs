//! Instances that import from each other: what moves when a module is linked to them, and what they still share afterwards.
#![allow(clippy::unwrap_used)]

use gpu_run_abi::{Layout, TrapCode};
use gpu_run_compiler::{Build, CompileOptions, Entry, Error, Value, WasmFeatures};
use gpu_run_device::cpu;
use gpu_run_run::{End, Linker};
use gpu_run_run::{InstanceId, Settings};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A module of `tests/wat/linking`.
macro_rules! wat {
    ($name:literal) => {
        include_str!(concat!("wat/linking/", $name, ".wat"))
    };
}

const LAYOUTS: [Layout; 2] = [Layout::Linear, Layout::Interleaved];

struct Script(Linker);

impl Script {
    fn new(layout: Layout) -> Self {
        let compile = CompileOptions::new(Build::Exact(layout), Entry::Exports);
        Self(Linker::new(Settings { device: cpu::open(), compile, features: WasmFeatures::WASM3, max_memory: None }))
    }

    fn try_module(&mut self, wat: &str) -> Result<Result<InstanceId, TrapCode>, Error> {
        let wasm = Arc::new(wat::parse_str(wat).unwrap());
        Ok(self.0.instantiate(wasm)?.map_err(|trap| trap.code))
    }

    /// Instantiates, under a name that others import from.
    fn module(&mut self, name: &str, wat: &str) -> InstanceId {
        let instance = self.try_module(wat).unwrap().unwrap();
        self.0.register(name, instance);
        instance
    }

    fn call(&mut self, instance: InstanceId, function: &str, args: &[i32]) -> Result<Vec<Value>, TrapCode> {
        let args: Vec<_> = args.iter().map(|arg| Value::I32(*arg)).collect();
        let outcome = self.0.invoke(instance, function, &args, None).unwrap();
        match outcome.end {
            End::Returned => Ok(outcome.results),
            End::Trapped(trap) => Err(trap.code),
            End::Exited(code) => panic!("exited with {code}"),
        }
    }

    fn gives(&mut self, instance: InstanceId, function: &str, args: &[i32], expected: i32) {
        assert_eq!(self.call(instance, function, args), Ok(vec![Value::I32(expected)]), "{function}{args:?}");
    }
}

/// `filler.wat` that puts a function with `value` at `at` of the table `from` exports.
fn filler(from: &str, at: i32, value: i32) -> String {
    let text = wat!("filler").replace("\"from\"", &format!("{from:?}"));
    text.replace("1 (; at ;)", &at.to_string()).replace("11 (; value ;)", &value.to_string())
}

#[test]
fn references_to_functions_stay_right_when_homes_move_and_merge() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        let a = script.module("a", wat!("table"));
        let b = script.module("b", wat!("table"));
        let first = script.module("first", &filler("a", 1, 11));
        script.module("second", &filler("b", 2, 22));
        // Everything into one home: what was in either table is called from all sides.
        let both = script.module("both", wat!("both_tables"));
        script.gives(a, "call", &[0], 100);
        script.gives(a, "call", &[1], 11);
        script.gives(first, "call", &[1], 11);
        script.gives(b, "call", &[2], 22);
        assert_eq!(script.call(a, "call", &[2]), Err(TrapCode::IndirectCallToNull));
        script.call(both, "copy", &[]).unwrap();
        script.gives(a, "call", &[2], 22);
        script.module("third", &filler("a", 3, 33));
        for (at, value) in [(0, 100), (1, 11), (2, 22), (3, 33)] {
            script.gives(first, "call", &[at], value);
        }
    }
}

#[test]
fn what_has_grown_is_as_large_for_the_next_importer() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        let a = script.module("a", wat!("growing"));
        let larger = wat!("importing_grown");
        assert!(
            matches!(&script.try_module(larger), Err(Error::Module(e)) if e.to_string().contains("a memory of 2 to 5"))
        );
        script.gives(a, "grow", &[], 2);
        let b = script.try_module(larger).unwrap().unwrap();
        script.gives(b, "get", &[], 10);
        script.gives(b, "grow", &[], 2);
        script.gives(a, "grow", &[], 4);
    }
}

#[test]
fn a_start_function_that_traps_leaves_what_it_did() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        let a = script.module(
            "a",
            r#"(module (global $g (export "g") (mut i32) (i32.const 1)) (func (export "get") (result i32) (global.get $g)))"#,
        );
        assert_eq!(script.try_module(wat!("trapping_start")).unwrap().err(), Some(TrapCode::Unreachable));
        script.gives(a, "get", &[], 2);
    }
}

#[test]
fn segments_that_were_dropped_stay_dropped() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        let a = script.module("a", wat!("segments"));
        script.call(a, "drop", &[]).unwrap();
        script.module("b", r#"(module (import "a" "m" (memory 1)) (data "other"))"#);
        assert_eq!(script.call(a, "first", &[]), Err(TrapCode::MemoryOutOfBounds));
        script.gives(a, "second", &[], i32::from(b'e'));
    }
}

#[test]
fn exceptions_pass_from_one_module_to_another() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        script.module("a", wat!("throwing"));
        let b = script.module("b", wat!("catching"));
        script.gives(b, "catch", &[41], 42);
        script.gives(b, "twice", &[5], 5);
        assert_eq!(script.call(b, "catch", &[0]), Err(TrapCode::UncaughtException));
        script.gives(b, "catch", &[1], 2);
    }
}

#[test]
fn a_tag_is_the_same_by_whatever_way_it_is_imported() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        script.module("a", r#"(module (tag $t (export "t")) (func (export "throw") (throw $t)))"#);
        for name in ["b", "c"] {
            script.module(name, r#"(module (import "a" "throw" (func $f)) (func (export "throw") (call $f)))"#);
        }
        let d = script.module("d", wat!("catching_from_two"));
        script.gives(d, "count", &[], 2);
    }
}

#[test]
fn a_reference_to_an_exception_is_never_another_one() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        let a = script.module("a", wat!("keeping"));
        script.call(a, "keep", &[7]).unwrap();
        script.gives(a, "again", &[], 7);
        let b = script.module("b", wat!("other_exception"));
        script.call(b, "other", &[]).unwrap();
        assert_eq!(script.call(a, "again", &[]), Err(TrapCode::LostException));
        // Those that are too old are lost as well, and the last are not.
        script.call(a, "keep", &[9]).unwrap();
        for _ in 0..255 {
            script.call(b, "other", &[]).unwrap();
        }
        script.gives(a, "again", &[], 9);
        script.call(b, "other", &[]).unwrap();
        assert_eq!(script.call(a, "again", &[]), Err(TrapCode::LostException));
    }
}

#[test]
fn endless_tail_calls_are_ended() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        let a = script.module(
            "a",
            r#"(module (func (export "self") (return_call 0)) (func $f (export "two") (return_call $g)) (func $g (return_call $f)))"#,
        );
        for function in ["self", "two"] {
            let deadline = Instant::now() + Duration::from_millis(100);
            let outcome = script.0.invoke(a, function, &[], Some(deadline)).unwrap();
            assert!(matches!(outcome.end, End::Trapped(trap) if trap.code == TrapCode::Interrupted), "{function}");
        }
    }
}

#[test]
fn tail_calls_between_modules_take_no_stack() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        script.module("a", wat!("even"));
        let b = script.module("b", wat!("odd"));
        script.gives(b, "even", &[1_000_000], 1);
        script.gives(b, "even", &[999_999], 0);
        script.gives(b, "count", &[1_000_000], 1_000_001);
    }
}
