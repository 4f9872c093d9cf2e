//! `map --invoke`: a call for each record gives what `gpu-run --invoke` gives for it.

use super::*;
use fastrand::Rng;

fn place() -> Place {
    let place = Place::new();
    place.write("calls.wat", wat!("map/calls"));
    place
}

/// An argument for a parameter of type `ty`; now and then one that is none.
fn argument(rng: &mut Rng, ty: &str) -> String {
    const INTEGERS: [&str; 9] = [
        "0",
        "1",
        "-1",
        "2147483647",
        "-2147483648",
        "4294967295",
        "9223372036854775807",
        "-9223372036854775808",
        "0xff",
    ];
    const FLOATS: [&str; 9] = ["0", "-0", "nan", "inf", "-inf", "1e-45", "2147483648", "-2147483904", "1e300"];
    match (ty, rng.u32(0..12)) {
        (_, 0) => ["x", "1.5.5", "99999999999999999999", "é"][rng.usize(0..4)].into(),
        ("i32" | "i64", 1..6) => INTEGERS[rng.usize(0..INTEGERS.len())].into(),
        ("i32", _) => rng.i32(..).to_string(),
        ("i64", _) => rng.i64(..).to_string(),
        (_, 1..6) => FLOATS[rng.usize(0..FLOATS.len())].into(),
        ("f32", _) => f32::from_bits(rng.u32(..)).to_string(),
        _ => (rng.f64() * 1000.0).to_string(),
    }
}

#[test]
fn a_record_gives_what_invoke_gives_for_it() {
    let place = place();
    let mut rng = Rng::with_seed(1);
    for (function, types) in
        [("mixed", &["i32", "i64", "f32", "f64"][..]), ("same", &["i32", "i64", "f32", "f64"]), ("halved", &["f32"])]
    {
        let records: Vec<String> = (0..40)
            .map(|_| {
                let count =
                    (types.len() + rng.usize(0..12)).saturating_sub(11).max(types.len() * rng.usize(0..8).min(1));
                let mut words: Vec<_> = types.iter().cycle().take(count).map(|ty| argument(&mut rng, ty)).collect();
                words.extend((rng.u32(0..12) == 0).then(|| "7".to_owned()));
                words.join([" ", "\t", "   "][rng.usize(0..3)])
            })
            .collect();
        let (mut expected, mut failed) = (String::new(), 0);
        for record in &records {
            let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
            command.args(["--device", "cpu", "--invoke", function, "calls.wat"]).args(record.split_whitespace());
            command.current_dir(place.0.path()).env("GPU_RUN_CACHE", place.path("cache"));
            let ran: Ran = command.output().unwrap().into();
            failed += u32::from(ran.code != Some(0));
            let results: Vec<_> = ran.stdout.lines().collect();
            writeln!(expected, "{}", results.join(" ")).unwrap();
        }
        assert!(failed > 3 && failed < 37, "{function}: {failed} of 40 fail");
        place.write("in", records.join("\n") + "\n");
        let ran = place.run(&format!("calls.wat --invoke {function} -i in"));
        ran.gives(1, &expected).says(&[&format!("40 records, {failed} failed")]);
    }
}

/// Numbers, as `moody` returns them; and how many of them fail.
fn moody(count: u32) -> (String, String, u32) {
    let (mut input, mut output, mut failed) = (String::new(), String::new(), 0);
    for x in 0..count {
        writeln!(input, "{x}").unwrap();
        failed += u32::from(x % 1000 < 2);
        match x % 1000 {
            0..3 => output.push('\n'),
            _ => writeln!(output, "{}", x * 10).unwrap(),
        }
    }
    (input, output, failed)
}

#[test]
fn calls_that_fail_take_no_others_with_them() {
    let place = place();
    let (input, output, failed) = moody(5000);
    place.write("in", input);
    for (devices, line) in [("cpu", ""), ("cpu", "--batch 100"), ("cpu", "--batch 2500"), ("cpu:0,1", "--batch 1500")] {
        let line = format!("calls.wat --invoke moody -i in {line}");
        let ran: Ran = place.command_on(devices, &line).output().unwrap().into();
        ran.gives(1, &output).says(&[
            &format!("5000 records, {failed} failed"),
            "line 1 (record 0) trapped: unreachable",
            "it went wrong",
            "line 1002 (record 1001) exited with 3",
        ]);
    }
}

#[test]
fn an_instance_that_is_set_up_once_serves_many_calls() {
    let place = place();
    place.write("in", "7\n".repeat(5000));
    let ran = place.run("calls.wat --invoke count -i in");
    let counts: Vec<u32> = ran.stdout.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!((counts.len(), ran.code), (5000, Some(0)), "{}", ran.stderr);
    let most = counts.iter().max().unwrap();
    assert!((2..=64).contains(most) && !counts.contains(&0), "{most}");
}

#[test]
fn what_a_function_prints_comes_before_its_result() {
    let place = place();
    let numbers: Vec<_> = (0..5000).map(|x: u32| x.wrapping_mul(7919) % 4001).collect();
    let lines = |show: fn(&u32) -> String| numbers.iter().map(show).collect::<String>();
    place.write("in", lines(|x| format!("{x}\n")));
    let expected = lines(|x| if x % 2 == 1 { format!("odd: {x}\n") } else { format!("{x}\n") });
    place.run("calls.wat --invoke chatty -i in --batch 2000").gives(0, &expected);
}

#[test]
fn a_call_that_does_not_end_takes_no_others_with_it() {
    let place = place();
    let lines = |show: fn(u32) -> String| (0..3000).map(show).collect::<String>();
    place.write("in", lines(|x| format!("{x}\n")));
    let ran = place.run("calls.wat --invoke slow -i in --timeout 2s");
    ran.gives(1, &lines(|x| if x == 77 { "\n".into() } else { format!("{x}\n") }))
        .says(&["line 78 (record 77) did not finish within 2", "3000 records, 1 failed"]);
}

#[test]
fn records_are_split_as_in_any_map() {
    let place = place();
    for (split, input, output) in [
        (
            "jsonl",
            "[-1, 5, 0.5, \"inf\"]\n[1, 18446744073709551615, 1e3, \"nan\"]\n",
            "[-1, 5, 0.5, \"inf\"]\n[1, -1, 1000, \"NaN\"]\n",
        ),
        ("csv", "a,b,c,d\n1, 2,\"3\",4\n\n-1,0,inf,-0\n", "1,2,3,4\n-1,0,inf,-0\n"),
        ("csv", "a;b;c;d\n1;\"2\";3;4\n", "1,2,3,4\n"),
    ] {
        place.write("in", input);
        place.run(&format!("calls.wat --invoke same -i in --split {split}")).gives(0, output);
    }
    for (name, words) in [("a", "1 2\n3 4\n"), ("b/c", "5 6 7 nan")] {
        place.write(&format!("folder/{name}"), words);
    }
    place.run("calls.wat --invoke same -i folder -o results").gives(0, "");
    assert_eq!((place.read("results/a"), place.read("results/b/c")), ("1 2 3 4\n".into(), "5 6 7 NaN\n".into()));
    place.write("in", "3\n-4\n");
    place.run("calls.wat --invoke square -i in").gives(0, "9\n16\n");
    place.run("calls.wat --invoke same -i in 7 {} 0.5 {}").gives(0, "7 3 0.5 3\n7 -4 0.5 -4\n");
    place.run("calls.wat --invoke nothing -i in").gives(0, "\n\n");
    place.write("in", "\n\n");
    place.run("calls.wat --invoke three -i in").gives(0, "3\n3\n");
}

#[test]
fn an_interrupted_map_goes_on_and_shards_are_put_together() {
    let place = place();
    let (input, output, _) = moody(3000);
    place.write("in", input);
    place
        .run("calls.wat --invoke moody -i in -o out --batch 600 --fail-fast")
        .gives(1, "")
        .says(&["at the first failure"]);
    let line = "calls.wat -i in -o out --resume";
    place.run(&format!("{line} --invoke count")).gives(2, "").says(&["--invoke has changed"]);
    place.run("echo.wat -i in -o out --resume").gives(2, "").says(&["the program has changed"]);
    place.run(&format!("{line} --invoke moody")).gives(1, "");
    assert_eq!(place.read("out"), output);
    for index in 0..3 {
        let ran = place.run(&format!("calls.wat --invoke moody -i in -o parts --shard {index}/3"));
        assert!(ran.code < Some(2), "{}", ran.stderr);
    }
    let mut merge = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
    merge.args(["merge", "parts"]).current_dir(place.0.path()).stdin(Stdio::null());
    Ran::from(merge.output().unwrap()).gives(1, "");
    assert_eq!(place.read("parts"), output);
}

#[test]
fn mistakes_are_named_with_the_way_out_of_them() {
    let place = place();
    place.write("in", "1\nx\n1 2\n\n");
    place.write("full.wat", r#"(module (memory 1 1) (func (export "f") (param i32) (result i32) (local.get 0)))"#);
    place
        .run("calls.wat --invoke halves -i in")
        .gives(2, "")
        .says(&["exports no function `halves`", "did you mean `halved`?"]);
    place
        .run("calls.wat --invoke vector -i in")
        .gives(2, "")
        .says(&["`vector` has type (v128) -> (v128): v128 is no number", "i32, i64, f32 and f64"]);
    place.run("calls.wat --invoke square -i in --tune").gives(2, "").says(&["--tune"]);
    place.run("calls.wat --invoke square -i in").gives(1, "1\n\n\n\n").says(&[
        "line 2 (record 1) has wrong arguments: argument 1 of `square`, `x`, is not i64: expected an integer",
        "line 3 (record 2) has wrong arguments: `square` takes 1 argument (i64), not 2",
        "line 4 (record 3) has wrong arguments: `square` takes 1 argument (i64), not 0",
    ]);
    place.write("in", "1\n2\n");
    place
        .run("full.wat --invoke f -i in")
        .gives(1, "\n\n")
        .says(&["1 more page(s) of memory, which the memory cannot have"]);
}
