//! Records that fail, and mistakes on the command line.

use super::*;

#[test]
fn failures_are_told_with_line_and_stderr_and_the_run_goes_on() {
    let place = Place::new();
    let ran = place.run_with_input("echo.wat --batch 2", b"a\ntrap\nb\nexit\nc\n");
    ran.gives(1, "a\n\nb\nexit\nc\n").says(&[
        "gpu-run: line 2 (record 1) trapped: unreachable\n",
        "at offset 0x",
        "    it went wrong\n",
        "gpu-run: line 4 (record 3) exited with 3\n",
        "gpu-run: 5 records, 2 failed, in ",
        "records/s)",
    ]);
}

#[test]
fn a_flood_of_failures_is_counted_not_told() {
    let place = Place::new();
    let ran = place.run_with_input("echo.wat --batch 16", "t\n".repeat(500).as_bytes());
    assert_eq!(ran.stderr.matches("trapped").count(), 10, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("only counted").count(), 1);
    ran.gives(1, &"\n".repeat(500)).says(&["500 records, 500 failed"]);
}

#[test]
fn fail_fast_stops_before_the_first_failure() {
    let place = Place::new();
    let input = format!("{}trap\nt\n{}", lines(40), lines(4000));
    place.write("in", &input);
    let ran = place.run("echo.wat -i in --fail-fast --batch 16").gives(1, &lines(40));
    let ran = ran.says(&["line 41 (record 40) trapped", "stopped at the first failure: 40 records, 1 failed"]);
    assert_eq!(ran.stderr.matches("trapped").count(), 1);
    // With a file, it can be gone on with, the failure included.
    place.run("echo.wat -i in -o out --fail-fast --batch 16").gives(1, "").says(&["--resume continues at record 32"]);
    assert_eq!(place.read("out"), lines(40));
    place.run("echo.wat -i in -o out --resume").gives(1, "").says(&["4042 records (32 by earlier runs), 2 failed"]);
    assert_eq!(place.read("out"), input.replace("trap\nt\n", "\n\n"));
}

#[test]
fn a_time_limit_ends_one_batch_and_the_next_one_runs() {
    let place = Place::new();
    let ran = place.run_with_input("stuck.wat --batch 1 --timeout 3s", b"aa\nb\ncc\n");
    ran.gives(1, "\n\n\n").says(&["line 2 (record 1) did not finish within 3.00 s", "3 records, 1 failed"]);
}

#[test]
fn a_record_that_is_a_tree_of_calls_fails_alone() {
    let place = Place::new();
    let functions: String = (0..60).map(|n| format!("(func $f{n} (call $f{0}) (call $f{0}))\n", n + 1)).collect();
    let leaf =
        "(global $g (mut i32) (i32.const 0)) (func $f60 (global.set $g (i32.add (global.get $g) (i32.const 1))))";
    let start = "(func (export \"_start\")";
    let tree = wat!("map/stuck").replace("(loop $again (br $again))", "(call $f0)");
    place.write("tree.wat", tree.replace(start, &format!("{leaf}\n{functions}{start}")));
    let ran = place.run_with_input("tree.wat --batch 1 --timeout 3s", b"aa\nb\ncc\n");
    ran.gives(1, "\n\n\n").says(&["line 2 (record 1) did not finish within 3.00 s", "3 records, 1 failed"]);
}

#[test]
fn mistakes_are_named_before_anything_is_written() {
    let place = Place::new();
    place.write("in", "a\n");
    place.write("folder/a", "a");
    place.write("bad.wat", "(module (func (export \"f\")))");
    for (line, parts) in [
        ("echo.wat -i nope", &["--input nope", "No such file"][..]),
        ("echo.wat -i in --split files", &["--split files needs a folder"]),
        ("echo.wat -i folder --split lines", &["--split lines needs a file", "cat folder/*"]),
        ("echo.wat -i in --split words", &["--split", "jsonl"]),
        ("echo.wat -i in --batch 0", &["--batch"]),
        ("echo.wat -i in --resume", &["--output"]),
        ("echo.wat -i in -o out --resume --force", &["--force"]),
        ("echo.wat -i in -o in", &["overlap: the input would be overwritten"]),
        ("echo.wat -i in -o ./folder/../in", &["overlap: the input would be overwritten"]),
        ("echo.wat -i folder -o folder", &["overlap: the input would be overwritten"]),
        ("echo.wat -i folder -o folder/out", &["overlap: the input would be overwritten"]),
        ("echo.wat -i folder -o folder/new/deep", &["overlap: the input would be overwritten"]),
        ("echo.wat -i folder -o .", &["overlap: the input would be overwritten"]),
        ("echo.wat -i folder -o in", &["--output in is a file"]),
        ("echo.wat -i in -o folder", &["--output folder is a folder"]),
        ("echo.wat --nonsense", &["--nonsense"]),
        ("bad.wat -i in -o out", &["no function `_start`"]),
        ("- -i -", &["cannot both come from stdin"]),
        ("echo.wat -i in --dir nope", &["--dir nope: no such folder"]),
    ] {
        place.run(line).gives(2, "").says(parts);
    }
    assert_eq!((place.read("in"), place.has("out")), ("a\n".into(), false));
    place.run("echo.wat -i in -o no/such/folder/out").gives(1, "").says(&["cannot write no/such/folder/out"]);
    place.run("echo.wat -i in -o /dev/full").gives(75, "").says(&["cannot write", "No space left"]);
    place.run("echo.wat -i in -o -").gives(0, "a\n");
    place.run("echo.wat -i in -o /dev/stdout").gives(0, "a\n");
    place.run("echo.wat -i in -o - --resume").gives(2, "").says(&["--resume needs --output"]);
    place.run("echo.wat -i in -o /dev/null").gives(0, "").says(&["1 record, 0 failed"]);
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly() {
    let place = Place::new();
    place.write("in", lines(20_000));
    let mut child = place.start("echo.wat -i in", Stdio::null());
    drop(child.stdout.take());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(141), ""));
}
