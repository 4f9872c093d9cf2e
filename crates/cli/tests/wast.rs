//! `gpu-run wast`: what it counts, what it prints, how it ends.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use support::{Place, Ran};

const GOOD: &str = r#"
(module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
        (func (export "trap") unreachable))
(assert_return (invoke "add" (i32.const 1) (i32.const 2)) (i32.const 3))
(assert_trap (invoke "trap") "unreachable")
(assert_invalid (module (func (result i32))) "type mismatch")
"#;

/// The third line is wrong.
const BAD: &str = r#"(module (func (export "one") (result i32) (i32.const 1)))
(assert_return (invoke "one") (i32.const 1))
(assert_return (invoke "one") (i32.const 2))
(assert_return (invoke "two") (i32.const 2))
"#;

/// A registered module, one that imports it, one with garbage collection, and a thread.
const BEYOND: &str = r#"
(module $a (func (export "one") (result i32) (i32.const 1)) (table (export "t") 1 funcref)
  (func (export "null") (result i32) (ref.is_null (table.get 0 (i32.const 0)))))
(register "a" $a)
(module $b (import "a" "t" (table 1 funcref)) (func $f) (elem (i32.const 0) $f) (func (export "two") (result i32) (i32.const 2)))
(assert_return (invoke "two") (i32.const 2))
(assert_return (invoke $a "null") (i32.const 0))
(assert_return (invoke $a "one") (i32.const 1))
(module (type $s (struct)) (func (export "new") (drop (struct.new $s))))
(invoke "new")
(thread $t (invoke $a "one"))
"#;

#[test]
fn a_passing_script_is_counted_in_each_layout() {
    let place = Place::new().with("good.wast", GOOD);
    let both = "good.wast  8 passed, 0 failed\n1 file: 8 passed, 0 failed\n";
    place.run("wast --device cpu good.wast").gives(0, both);
    for layout in ["linear", "interleaved"] {
        let one = both.replace('8', "4");
        let ran = place.run(&format!("wast --device cpu --layout {layout} good.wast"));
        ran.gives(0, &one);
    }
}

/// A memory that grows by 800 pages, and calls 300 deep: what the suite asks for.
const LARGE: &str = r#"
(module (memory 1)
  (func (export "grow") (result i32) (memory.grow (i32.const 800)))
  (func $down (export "down") (param i64) (result i64)
    (if (result i64) (i64.eqz (local.get 0)) (then (i64.const 7))
      (else (i64.add (i64.const 1) (call $down (i64.sub (local.get 0) (i64.const 1))))))))
(assert_return (invoke "grow") (i32.const 1))
(assert_return (invoke "down" (i64.const 300)) (i64.const 307))
"#;

#[test]
fn a_script_that_a_device_has_no_memory_for_runs_on_cpu() {
    let place = Place::new().with("large.wast", LARGE);
    // As much as an H200 has left when others leave it 8, 4 and 2 GiB.
    for (mib, on_cpu) in [(7470, &[][..]), (3470, &["interleaved"]), (1500, &["linear", "interleaved"])] {
        let mut command = place.command("wast --device cpu large.wast");
        let ran = Ran::from(command.env("GPU_RUN_TEST_SCARCE", format!("{mib},270336,128")).output().unwrap());
        let ran = ran.gives(0, "large.wast  6 passed, 0 failed\n1 file: 6 passed, 0 failed\n");
        let said = |layout| {
            format!("gpu-run: scarce has too little free memory for scripts in the {layout} layout: they run on cpu\n")
        };
        assert_eq!(ran.stderr, on_cpu.iter().map(said).collect::<String>());
    }
}

#[test]
fn a_failing_assertion_is_named_with_its_line_and_layout() {
    let place = Place::new().with("bad.wast", BAD);
    let ran = place.run("wast --device cpu --layout linear bad.wast");
    let ran = ran.gives(1, "bad.wast  2 passed, 2 failed\n1 file: 2 passed, 2 failed\n");
    ran.says(&["bad.wast:3 (linear): expected", "got [I32(1)]", "bad.wast:4 (linear): ", "`two`"]);
}

#[test]
fn what_is_not_supported_is_counted_apart_with_its_reason() {
    let place = Place::new().with("beyond.wast", BEYOND);
    let ran = place.run("wast --device cpu --layout linear -v beyond.wast");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let reasons = "3 not supported (garbage collection: 2, the directive Thread: 1)";
    assert!(ran.stdout.contains(&format!("6 passed, 0 failed, {reasons}")), "{}", ran.stdout);
    ran.says(&["beyond.wast:11 (linear): not supported: the directive Thread"]);
}

/// Registered modules: what one writes the others see, also where its instantiation traps half-way.
const LINKED: &str = r#"
(module $a (memory (export "m") 1) (table (export "t") 2 funcref) (global $g (export "g") (mut i32) (i32.const 1))
  (type $ft (func (result i32)))
  (func (export "byte") (result i32) (i32.load8_u (i32.const 7)))
  (func (export "call") (param i32) (result i32) (call_indirect (type $ft) (local.get 0)))
  (func (export "set") (param i32) (global.set $g (local.get 0))))
(register "a" $a)
(assert_trap (module
  (import "a" "m" (memory 1)) (import "a" "t" (table 2 funcref)) (func $f (result i32) (i32.const 42))
  (elem (i32.const 1) $f) (data (i32.const 7) "x") (data (i32.const 65536) "y")) "out of bounds memory access")
(assert_return (invoke $a "byte") (i32.const 120))
(assert_return (invoke $a "call" (i32.const 1)) (i32.const 42))
(invoke $a "set" (i32.const 9))
(module $b (import "a" "g" (global $g (mut i32))) (import "a" "m" (memory 1)) (memory 1) (func (export "get") (result i32) (global.get $g))
  (func (export "copy") (result i32)
    (memory.copy 1 0 (i32.const 3) (i32.const 7) (i32.const 1)) (i32.load8_u 1 (i32.const 3))))
(assert_return (invoke "get") (i32.const 9))
(assert_return (invoke "copy") (i32.const 120))
(assert_unlinkable (module (import "a" "m" (memory 2))) "incompatible import type")
(assert_unlinkable (module (import "a" "nothing" (func))) "unknown import")
"#;

#[test]
fn linked_modules_share_what_they_import() {
    let place = Place::new().with("linked.wast", LINKED);
    place
        .run("wast --device cpu linked.wast")
        .gives(0, "linked.wast  22 passed, 0 failed\n1 file: 22 passed, 0 failed\n");
}

#[test]
fn a_script_says_which_version_its_modules_are_of() {
    let two = r#"(assert_invalid (module (memory 1) (memory 1)) "multiple memories")"#;
    let place = Place::new().with("new.wast", two).with("old.wast", format!("{two}\n;;! wasm = 2.0\n"));
    place
        .run("wast --device cpu --layout linear old.wast")
        .gives(0, "old.wast  1 passed, 0 failed\n1 file: 1 passed, 0 failed\n");
    let ran = place.run("wast --device cpu --layout linear new.wast");
    ran.gives(1, "new.wast  0 passed, 1 failed\n1 file: 0 passed, 1 failed\n");
    let place = place.with("odd.wast", ";;! wasm = 3.0 +magic\n");
    let ran = place.run("wast --device cpu --layout linear odd.wast");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    ran.says(&["`+magic` is no version or feature"]);
}

#[test]
fn a_script_that_cannot_be_parsed_is_named_and_the_others_run() {
    let place = Place::new().with("good.wast", GOOD).with("malformed.wast", "(module\n(func (i32.const )\n");
    let ran = place.run("wast --device cpu --layout linear malformed.wast good.wast");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stdout.contains("malformed.wast  cannot be parsed\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("good.wast       4 passed, 0 failed\n"), "{}", ran.stdout);
    ran.says(&["malformed.wast is not a script", ":2:"]);
}

#[test]
fn a_folder_is_all_scripts_below_it_by_name() {
    let place = Place::new()
        .with("s/b.wast", GOOD)
        .with("s/a/x.wast", GOOD)
        .with("s/c.wat", "not one")
        .with("z.wast", "(module)");
    let ran = place.run("wast --device cpu --layout linear --jobs 3 s z.wast");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let names: Vec<_> = ran.stdout.lines().map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(names, ["s/a/x.wast", "s/b.wast", "z.wast", "3 files: 9 passed, 0 failed"]);
}

#[test]
fn files_that_cannot_be_read_end_with_2() {
    let place = Place::new().with("empty/readme", "").with("bytes.wast", [0xff, 0xfe]);
    place.run("wast --device cpu missing.wast").gives(2, "").says(&["missing.wast: No such file"]);
    place.run("wast --device cpu empty").gives(2, "").says(&["empty holds no .wast file"]);
    place.run("wast --device cpu bytes.wast").gives(2, "").says(&["bytes.wast is not a script", "UTF-8"]);
    assert_eq!(place.run("wast").code, Some(2));
    assert_eq!(place.run("wast --jobs 0 a.wast").code, Some(2));
}

#[test]
fn a_script_that_loses_the_device_is_blamed_and_the_others_are_not() {
    let place = Place::new().with("a.wast", GOOD).with("b.wast", GOOD).with("c.wast", GOOD);
    // Six launches each: the module and two calls, each with a second one that asks how it ended. The ninth loses the device
    // for `b` and `c`; run again, each on a fresh one, `b` has the fourteenth, its second call.
    let mut command = place.command("wast --device cpu --layout linear --jobs 1 a.wast b.wast c.wast");
    let ran = support::Ran::from(command.env("GPU_RUN_TEST_FAULT", "launch:9,14").output().unwrap());
    let ran = ran.gives(
        1,
        "a.wast  4 passed, 0 failed\nb.wast  2 passed, 1 failed\nc.wast  4 passed, 0 failed\n3 files: 10 passed, 1 failed\n",
    );
    ran.says(&["b.wast:5 (linear): ", "GPU_RUN_TEST_FAULT", "the rest of the file was not run"]);
}
