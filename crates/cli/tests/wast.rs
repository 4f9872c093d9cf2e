//! `gpu-run wast`: what it counts, what it prints, how it ends.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use support::{Place, Ran};

const GOOD: &str = include_str!("wast/good.wast");
const BAD: &str = include_str!("wast/bad.wast");
const LARGE: &str = include_str!("wast/large.wast");
const LINKED: &str = include_str!("wast/linked.wast");
const BEYOND: &str = include_str!("wast/beyond.wast");

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
    ran.says(&["`+magic` is not a version or feature"]);
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
    place.run("wast --device cpu empty").gives(2, "").says(&["empty contains no .wast file"]);
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
