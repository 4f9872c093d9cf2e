//! `--shard` and `gpu-run merge`: what a scheduler of many machines starts, and what it is told.

use super::*;

impl Place {
    fn merge(&self, line: &str) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
        command.arg("merge").args(line.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null());
        command.output().unwrap().into()
    }
}

#[test]
fn shards_are_put_together_and_say_what_failed() {
    let place = Place::new();
    let text: String = lines(100).lines().enumerate().fold(String::new(), |mut text, (i, line)| {
        writeln!(text, "{}", if i == 70 { "trap" } else { line }).unwrap();
        text
    });
    place.write("in", &text);
    place.run("echo.wat -i in -o whole --batch 9").gives(1, "").says(&["line 71 (record 70) trapped"]);
    let ran = |index: u32| place.run(&format!("echo.wat -i in -o out --shard {index}/3 --resume --batch 9"));
    ran(0).gives(0, "").says(&["records, 0 failed"]);
    place.merge("out").gives(2, "").says(&["of the 3 shards in out.shards, 2 are missing (1, 2)", "--shard 1/3"]);
    ran(1).gives(0, "");
    ran(2).gives(1, "").says(&["line 71 (record 70) trapped", "records, 1 failed"]);
    ran(2).gives(1, "").says(&["shard 2/3 is finished: ", "1 failed"]);
    place.merge("out").gives(1, "").says(&["out has 100 records of 3 shards, 1 failed"]);
    assert_eq!(place.read("out"), place.read("whole"));
    place.merge("out").gives(2, "").says(&["out exists", "--force"]);
    place.merge("out --force --remove-shards").gives(1, "");
    assert!(!place.has("out.shards") && place.has("out"));
    place.merge("out --force").gives(2, "").says(&["there are no shards of out: out.shards is not there"]);
}

#[test]
fn numbers_count_from_the_inputs_beginning() {
    let place = Place::new();
    place.write("in", lines(20));
    place.run("number.wat -i in -o whole").gives(0, "");
    for index in 0..4 {
        place.run(&format!("number.wat -i in -o out --shard {index}/4")).gives(0, "");
    }
    place.merge("out").gives(0, "");
    assert_eq!(place.read("out"), place.read("whole"));
    assert!(place.read("out").contains("GPU_RUN_INSTANCE=19"));
}

#[test]
fn mistakes_are_named_with_the_way_out() {
    let place = Place::new();
    place.write("in", lines(3));
    for (line, what) in [
        ("echo.wat -i in --shard 0/2", "--output"),
        ("echo.wat -i in -o - --shard 0/2", "--shard needs --output"),
        ("echo.wat -o out --shard 0/2", "write the stream to a file first"),
        ("echo.wat -i in -o out --shard 2/2", "the last of 2 shards is 1/2"),
        ("echo.wat -i in -o out --shard 2", "a shard is two numbers, I/N"),
        ("echo.wat -i in -o out --shard 0/0", "there can be 1 to 1000000 shards"),
        (
            "echo.wat -i in -o /dev/null --shard 0/2",
            "shards need a file, a folder or an object, but --output /dev/null is none",
        ),
    ] {
        place.run(line).gives(2, "").says(&[what]);
    }
    assert!(!place.has("out.shards"));
    place.run("echo.wat -i in -o out --shard 0/2").gives(0, "");
    place.run("echo.wat -i in -o out --shard 1/2 --env A=1").gives(0, "");
    place
        .merge("out")
        .gives(2, "")
        .says(&["out.shards/0-of-2 and out.shards/1-of-2 are not shards of one map: --env has changed", "--force"]);
    place.run("echo.wat -i in -o out --shard 1/2 --resume").gives(2, "").says(&["--env has changed", "--force"]);
    place.run("echo.wat -i in -o out --shard 0/3").gives(0, "");
    place.merge("out").gives(2, "").says(&["shards of several maps: 0-of-2, and 0-of-3"]);
    assert!(!place.has("out"));
}

#[test]
fn a_shard_survives_a_lost_device() {
    let place = Place::new();
    let text = lines(300);
    place.write("in", &text);
    for (index, plan) in [(0, "launch:3"), (1, "launch:1,7"), (2, "launch:4,9")] {
        let mut command = place.command(&format!("echo.wat -i in -o out --shard {index}/3 --batch 16"));
        let ran: Ran = command.env("GPU_RUN_TEST_FAULT", plan).output().unwrap().into();
        ran.gives(0, "").says(&["continuing in a new process at record", "records, 0 failed"]);
    }
    place.merge("out").gives(0, "");
    assert_eq!(place.read("out"), text);
    // Lost again and again, it is worth trying on another machine.
    let mut command = place.command("echo.wat -i in -o again --shard 1/3 --batch 16");
    let ran: Ran = command.env("GPU_RUN_TEST_FAULT", "launch:1,2,3,4,5,6").output().unwrap().into();
    ran.gives(75, "").says(&["the device was lost 3 times in a row", "--resume continues at record"]);
    place.run("echo.wat -i in -o again --shard 1/3 --batch 16 --resume").gives(0, "");
}

#[test]
fn a_shard_is_not_written_twice_at_once_nor_put_together_meanwhile() {
    let place = Place::new();
    place.write("in", lines(3000));
    let mut child = place.start("slow.wat -i in -o out --shard 0/1 --batch 5", Stdio::null());
    while !place.has("out.shards/0-of-1.gpu-run-map") {
        std::thread::sleep(Duration::from_millis(5));
    }
    let ran = place.run("slow.wat -i in -o out --shard 0/1 --force").gives(75, "");
    ran.says(&["another gpu-run is writing to out.shards/0-of-1"]);
    place.merge("out").gives(2, "").says(&["1 is unfinished (0)"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_full_disk_leaves_the_shards_as_they_are_and_no_output() {
    let place = Place::new();
    let text = lines(3000);
    place.write("in", &text);
    for index in 0..2 {
        place.run(&format!("echo.wat -i in -o out --shard {index}/2")).gives(0, "");
    }
    // A limit on file sizes, in blocks of 512 bytes, says `no more` as a full disk does.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" merge out", env!("CARGO_BIN_EXE_gpu-run")]);
    let ran = Ran::from(command.current_dir(place.0.path()).output().unwrap()).gives(75, "");
    ran.says(&["cannot write out from out.shards/0-of-2: File too large"]);
    let left = fs::read_dir(place.0.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("out"));
    assert_eq!(left.count(), 1, "only out.shards");
    place.merge("out").gives(0, "").says(&["out has 3000 records of 2 shards, 0 failed"]);
    assert_eq!(place.read("out"), text);
}
