//! Order, count, forms of input and output.

use super::*;

#[test]
fn every_line_gives_one_record_in_order_whatever_the_batch() {
    let place = Place::new();
    let text = lines(300);
    place.write("in.txt", &text);
    for batch in ["", "--batch 1", "--batch 7", "--batch 299", "--batch 300", "--batch 100000"] {
        place.run(&format!("echo.wat --input in.txt {batch}")).gives(0, &text).says(&["300 records, 0 failed"]);
    }
    place.run("echo.wat -i in.txt -o out.txt --batch 64").gives(0, "");
    assert_eq!(place.read("out.txt"), text);
    assert!(!place.has("out.txt.gpu-run-map"), "a finished output has no journal");
    place.run_with_input("echo.wat --layout interleaved --batch 40 -i -", text.as_bytes()).gives(0, &text);
}

#[test]
fn a_newline_is_added_where_it_is_missing_and_nothing_else() {
    let place = Place::new();
    place
        .run_with_input("echo.wat", b"a\nq\n\nb\r\nlast")
        .gives(0, "a\n\n\nb\r\nlast\n")
        .says(&["5 records, 0 failed"]);
    place.run_with_input("args.wat {}", b"x y\r\n\nz").gives(0, "args.wat\0x y\0\nargs.wat\0\0\nargs.wat\0z\0\n");
}

#[test]
fn an_empty_input_gives_an_empty_output() {
    let place = Place::new();
    place.write("empty", "");
    fs::create_dir(place.path("folder")).unwrap();
    place.run_with_input("echo.wat", b"").gives(0, "").says(&["0 records, 0 failed"]);
    place.run("echo.wat -i empty -o out").gives(0, "");
    assert_eq!(place.read("out"), "");
    place.run("echo.wat -i empty --split csv").gives(0, "");
    place.run("echo.wat -i folder -o outs").gives(0, "");
    assert!(place.path("outs").is_dir());
}

#[test]
fn numbers_are_counted_over_the_whole_input() {
    let place = Place::new();
    let expected: String = (0..25).map(|i| format!("A=b\0GPU_RUN_INSTANCE={i}\0\n")).collect();
    place.run_with_input("number.wat --batch 4 --env A=b", &[b'\n'; 25]).gives(0, &expected);
}

#[test]
fn braces_in_arguments_are_the_record_and_the_rest_is_the_guests() {
    let place = Place::new();
    place
        .run_with_input("args.wat --batch 1 one --x={}", b"a\nb\n")
        .gives(0, "args.wat\0one\0--x=a\0\nargs.wat\0one\0--x=b\0\n");
    place.run_with_input("args.wat -- --batch {}{}", b"a\n").gives(0, "args.wat\0--batch\0aa\0\n");
    place.run_with_input("args.wat same", b"a\nb\n").gives(0, "args.wat\0same\0\nargs.wat\0same\0\n");
    let ran = place.run_with_input("args.wat {}", b"a\nb\0c\nd\n");
    ran.gives(1, "args.wat\0a\0\n\nargs.wat\0d\0\n").says(&["line 2 (record 1)", "NUL", "3 records, 1 failed"]);
}

#[test]
fn a_huge_record_goes_through_with_small_ones() {
    let place = Place::new();
    let huge = "x".repeat(70 << 20);
    let text = format!("a\n{huge}\nb\n");
    place.write("in", &text);
    place.run("cat.wat -i in -o out").gives(0, "").says(&["3 records, 0 failed"]);
    assert!(place.read("out") == text, "70 MiB in one line");
}

#[test]
fn help_teaches_and_stats_are_counted() {
    let place = Place::new();
    let help = place.run("--help");
    for part in ["--resume", "GPU_RUN_INSTANCE", "Exit codes", "--split csv", "[default: stdout]"] {
        assert!(help.stdout.contains(part), "{part} is not in:\n{}", help.stdout);
    }
    let ran = place.run_with_input("echo.wat --stats=json --batch 2", b"a\nt\ne\n");
    let last = ran.stderr.lines().last().unwrap();
    let object: serde_json::Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {last}"));
    assert_eq!((&object["instances"], &object["launches"], &object["trapped"]), (&3.into(), &2.into(), &1.into()));
    assert_eq!((&object["exits"]["0"], &object["exits"]["3"]), (&1.into(), &1.into()));
}
