//! Unfinished outputs: what `--resume` continues, and what it refuses.

use super::*;

/// Waits until the journal of `out` says that some of it is safe.
fn wait_for_progress(place: &Place) {
    let safe = || -> Option<u64> {
        let journal = fs::read_to_string(place.path("out.gpu-run-map")).ok()?;
        let journal: serde_json::Value = serde_json::from_str(journal.lines().next()?).ok()?;
        journal["progress"]["output"].as_u64()
    };
    let began = Instant::now();
    while safe().is_none_or(|bytes| bytes == 0) {
        assert!(began.elapsed() < Duration::from_secs(300), "no record was finished");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An output that was killed in the middle, with its journal.
fn unfinished(place: &Place) -> String {
    let text = lines(3000);
    place.write("in", &text);
    let mut child = place.start("slow.wat -i in -o out --batch 5", Stdio::null());
    wait_for_progress(place);
    child.kill().unwrap();
    child.wait().unwrap();
    let output = place.read("out");
    assert!(text.starts_with(&output) && output.len() < text.len());
    text
}

#[test]
fn an_unfinished_output_is_not_destroyed_unless_that_is_asked_for() {
    let place = Place::new();
    unfinished(&place);
    let before = place.read("out");
    place.run("slow.wat -i in -o out").gives(2, "").says(&["out is unfinished", "--resume", "--force"]);
    assert_eq!(place.read("out"), before);
    place.write("in", lines(5));
    place.run("slow.wat -i in -o out --force").gives(0, "");
    assert_eq!(place.read("out"), lines(5));
    place.write("in", lines(6));
    place.run("echo.wat -i in -o out").gives(0, "");
    assert_eq!(place.read("out"), lines(6), "a finished output is overwritten, as by other programs");
}

#[test]
fn what_has_changed_since_is_named_and_nothing_is_written() {
    let place = Place::new();
    let text = unfinished(&place);
    let before = place.read("out");
    for (line, what) in [
        ("echo.wat -i in -o out --resume", "the program has changed"),
        ("slow.wat -i in -o out --resume --split jsonl", "--split has changed"),
        ("slow.wat -i in -o out --resume --env A=1", "--env has changed"),
        ("slow.wat -i in -o out --resume arg", "ARGS have changed"),
    ] {
        place.run(line).gives(2, "").says(&[what, "--force"]);
    }
    place.write("in", format!("{text}more\n"));
    place.run("slow.wat -i in -o out --resume").gives(2, "").says(&["the input has changed"]);
    assert_eq!(place.read("out"), before);
    assert!(place.has("out.gpu-run-map"));
}

#[test]
fn another_stdin_is_not_taken_for_the_same() {
    let place = Place::new();
    let text = lines(3000);
    let mut child = place.start("slow.wat -o out --batch 5", Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    let feed = text.clone();
    let feeder = std::thread::spawn(move || drop(stdin.write_all(feed.as_bytes())));
    wait_for_progress(&place);
    child.kill().unwrap();
    child.wait().unwrap();
    feeder.join().unwrap();
    let other = text.replacen("line 0", "LINE 0", 1);
    let ran = place.run_with_input("slow.wat -o out --resume", other.as_bytes());
    ran.gives(2, "").says(&["the input is not the one"]);
    let ran = place.run_with_input("slow.wat -o out --resume", b"line 0 \n");
    ran.gives(2, "").says(&["the input is not the one"]);
}

#[test]
fn there_must_be_something_to_resume_or_nothing_at_all() {
    let place = Place::new();
    place.write("in", lines(3));
    place.run("echo.wat -i in -o out --resume").gives(0, "");
    assert_eq!(place.read("out"), lines(3), "nothing was there: it begins");
    place.run("echo.wat -i in -o out --resume").gives(2, "").says(&["out has no journal"]);
    unfinished(&place);
    fs::write(place.path("out"), "").unwrap();
    place
        .run("slow.wat -i in -o out --resume")
        .gives(2, "")
        .says(&["out was changed since the unfinished run: it is shorter"]);
    fs::write(place.path("out.gpu-run-map"), "{").unwrap();
    place.run("slow.wat -i in -o out --resume").gives(2, "").says(&["is not a journal"]);
}

#[test]
fn a_full_disk_leaves_whole_records_and_can_be_gone_on_with() {
    let place = Place::new();
    let text = lines(3000);
    place.write("in", &text);
    // A limit on file sizes, in blocks of 512 bytes, says `no more` as a full disk does.
    let limited = "trap '' XFSZ; ulimit -f 64; exec \"$0\" map echo.wat --device cpu -i in -o out --batch 50";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_gpu-run")]).current_dir(place.0.path());
    command.env("GPU_RUN_CACHE", "off");
    let ran = Ran::from(command.output().unwrap()).gives(75, "");
    ran.says(&["cannot write out", "cannot write any more", "--resume continues at record"]);
    let output = place.read("out");
    assert!(whole_lines(&output, &text) && output.len() <= 64 * 512, "{}", output.len());
    place.run("echo.wat -i in -o out --resume").gives(0, "").says(&["3000 records", "by earlier runs"]);
    assert_eq!(place.read("out"), text);
}

#[test]
fn two_runs_do_not_write_the_same_output() {
    let place = Place::new();
    place.write("in", lines(3000));
    let mut child = place.start("slow.wat -i in -o out --batch 5", Stdio::null());
    while !place.has("out.gpu-run-map") {
        std::thread::sleep(Duration::from_millis(5));
    }
    place.run("slow.wat -i in -o out --force").gives(75, "").says(&["another gpu-run is writing to out"]);
    child.kill().unwrap();
    child.wait().unwrap();
}
