//! Instances that import from each other: what moves when a module is linked to them, and what they still share afterwards.
#![allow(clippy::unwrap_used)]

use gpu_run_abi::{Layout, TrapCode};
use gpu_run_compiler::{Build, CompileOptions, Entry, Error, Value, WasmFeatures};
use gpu_run_device::cpu;
use gpu_run_run::{End, Linker};
use gpu_run_run::{InstanceId, Settings};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LAYOUTS: [Layout; 2] = [Layout::Linear, Layout::Interleaved];

struct Script(Linker);

impl Script {
    fn new(layout: Layout) -> Self {
        let compile = CompileOptions { build: Build::Exact(layout), sm: 75, entry: Entry::Exports, registers: None };
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

/// A table of functions that others fill, and a call through it.
const TABLE: &str = r#"(module
  (type $f (func (result i32)))
  (table (export "t") 8 funcref)
  (func $own (result i32) (i32.const 100))
  (elem (i32.const 0) $own)
  (func (export "call") (param i32) (result i32) (call_indirect (type $f) (local.get 0))))"#;

/// Puts a function that gives `value` at `at` of the table `from` exports.
fn filler(from: &str, at: i32, value: i32) -> String {
    format!(
        r#"(module (import "{from}" "t" (table 8 funcref)) (type (func (param i64))) (type $f (func (result i32)))
             (global $g i32 (i32.const {value})) (func $f (type $f) (global.get $g)) (elem (i32.const {at}) $f)
             (func (export "call") (param i32) (result i32) (call_indirect (type $f) (local.get 0))))"#
    )
}

#[test]
fn references_to_functions_stay_right_when_homes_move_and_merge() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        let a = script.module("a", TABLE);
        let b = script.module("b", TABLE);
        let first = script.module("first", &filler("a", 1, 11));
        script.module("second", &filler("b", 2, 22));
        // Everything into one home: what was in either table is called from all sides.
        let both = r#"(module (import "a" "t" (table $a 8 funcref)) (import "b" "t" (table $b 8 funcref))
            (func (export "copy") (table.copy $a $b (i32.const 2) (i32.const 2) (i32.const 1))))"#;
        let both = script.module("both", both);
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
        let a = script.module(
            "a",
            r#"(module (memory (export "m") 1 5) (table (export "t") 1 9 funcref)
                 (func (export "grow") (result i32) (drop (table.grow (ref.null func) (i32.const 2)))
                   (drop (memory.grow (i32.const 1))) (i32.store (i32.const 70000) (i32.const 7)) (memory.size)))"#,
        );
        let larger = r#"(module (import "a" "m" (memory 2 5)) (import "a" "t" (table 3 9 funcref))
            (func (export "get") (result i32) (i32.add (table.size) (i32.load (i32.const 70000))))
            (func (export "grow") (result i32) (memory.grow (i32.const 1))))"#;
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
        let broken = r#"(module (import "a" "g" (global $g (mut i32)))
            (func $start (global.set $g (i32.const 2)) unreachable) (start $start))"#;
        assert_eq!(script.try_module(broken).unwrap().err(), Some(TrapCode::Unreachable));
        script.gives(a, "get", &[], 2);
    }
}

#[test]
fn segments_that_were_dropped_stay_dropped() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        let a = script.module(
            "a",
            r#"(module (memory (export "m") 1) (data $d "abc") (data $e "de")
                 (func (export "drop") (data.drop $d))
                 (func (export "first") (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)))
                 (func (export "second") (result i32)
                   (memory.init $e (i32.const 0) (i32.const 1) (i32.const 1)) (i32.load8_u (i32.const 0))))"#,
        );
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
        script.module(
            "a",
            r#"(module (tag $t (export "t") (param i32 f64)) (tag $other)
                 (func (export "throw") (param i32) (if (local.get 0) (then (throw $t (local.get 0) (f64.const 0.5))))
                   (throw $other)))"#,
        );
        let b = script.module(
            "b",
            r#"(module (import "a" "t" (tag $t (param i32 f64))) (import "a" "throw" (func $throw (param i32)))
                 (func (export "catch") (param i32) (result i32)
                   (block $h (result i32 f64) (try_table (catch $t $h) (call $throw (local.get 0))) (unreachable))
                   (i32.trunc_f64_s (f64.mul (f64.const 2))) (i32.add))
                 (func $again (param i32) (local $e exnref)
                   (local.set $e (block $h (result exnref) (try_table (catch_all_ref $h) (call $throw (local.get 0))) (return)))
                   (throw_ref (local.get $e)))
                 (func (export "twice") (param i32) (result i32)
                   (block $h (result i32 f64) (try_table (catch $t $h) (call $again (local.get 0))) (unreachable)) (drop)))"#,
        );
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
        let d = script.module(
            "d",
            r#"(module (import "b" "throw" (func $b)) (import "c" "throw" (func $c)) (import "a" "t" (tag $t))
                 (func (export "count") (result i32)
                   (block $h (try_table (catch $t $h) (call $b)) (return (i32.const 0)))
                   (block $h (try_table (catch $t $h) (call $c)) (return (i32.const 1))) (i32.const 2)))"#,
        );
        script.gives(d, "count", &[], 2);
    }
}

#[test]
fn a_reference_to_an_exception_is_never_another_one() {
    for layout in LAYOUTS {
        let mut script = Script::new(layout);
        let a = script.module(
            "a",
            r#"(module (tag $t (export "t") (param i32)) (global $kept (export "kept") (mut exnref) (ref.null exn))
                 (func (export "keep") (param i32)
                   (global.set $kept (block $h (result exnref)
                     (try_table (result exnref) (catch_all_ref $h) (throw $t (local.get 0))))))
                 (func (export "again") (result i32) (block $h (result i32)
                   (try_table (result i32) (catch $t $h) (throw_ref (global.get $kept))))))"#,
        );
        script.call(a, "keep", &[7]).unwrap();
        script.gives(a, "again", &[], 7);
        let b = script.module(
            "b",
            r#"(module (import "a" "t" (tag $t (param i32)))
                 (func (export "other") (drop (block $h (result exnref)
                     (try_table (result exnref) (catch_all_ref $h) (throw $t (i32.const 8)))))))"#,
        );
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
        script.module(
            "a",
            r#"(module (type $f (func (param i32 i64) (result i32))) (table (export "t") 1 funcref)
                 (func (export "even") (type $f)
                   (if (i32.eqz (local.get 0)) (then (return (i32.const 1))))
                   (return_call_indirect (type $f)
                     (i32.sub (local.get 0) (i32.const 1)) (i64.add (local.get 1) (i64.const 3)) (i32.const 0))))"#,
        );
        let b = script.module(
            "b",
            r#"(module (type $f (func (param i32 i64) (result i32))) (import "a" "t" (table 1 funcref))
                 (import "a" "even" (func $even (type $f)))
                 (func $odd (type $f) (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
                   (return_call $even (i32.sub (local.get 0) (i32.const 1)) (local.get 1)))
                 (elem (i32.const 0) $odd)
                 (func (export "even") (param i32) (result i32) (call $even (local.get 0) (i64.const 0)))
                 (func (export "count") (param i32) (result i32) (return_call $count (local.get 0) (i32.const 0)))
                 (func $count (param i32 i32) (result i32) (local i32)
                   (local.set 2 (i32.add (local.get 2) (i32.const 1)))
                   (if (i32.eqz (local.get 0)) (then (return (i32.add (local.get 1) (local.get 2)))))
                   (return_call $count (i32.sub (local.get 0) (i32.const 1)) (i32.add (local.get 1) (local.get 2)))))"#,
        );
        script.gives(b, "even", &[1_000_000], 1);
        script.gives(b, "even", &[999_999], 0);
        script.gives(b, "count", &[1_000_000], 1_000_001);
    }
}
