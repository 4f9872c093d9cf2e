//! Several devices: one output in order, one journal, and what happens when some of them are lost.

use super::lost_device::mixed;
use super::*;

fn devices(count: usize) -> String {
    let numbers: Vec<_> = (0..count).map(|number| number.to_string()).collect();
    format!("cpu:{}", numbers.join(","))
}

#[test]
fn several_devices_write_what_one_writes() {
    let place = Place::new();
    let (input, output, failed) = mixed(500);
    place.write("in", &input);
    for count in 1..=4 {
        let ran: Ran = place.command_on(&devices(count), "echo.wat -i in --batch 16").output().unwrap().into();
        ran.gives(1, &output).says(&[&format!("500 records, {failed} failed")]);
    }
    for i in 0..60 {
        place.write(&format!("folder/{}/{i}", i % 7), format!("file {i}"));
    }
    let ran: Ran = place.command_on("cpu:0,1", "echo.wat -i folder -o to --batch 9").output().unwrap().into();
    ran.gives(0, "").says(&["60 records, 0 failed"]);
    for i in 0..60 {
        assert_eq!(place.read(&format!("to/{}/{i}", i % 7)), format!("file {i}"));
    }
}

#[test]
fn a_record_has_its_number_whatever_device_it_runs_on() {
    let place = Place::new();
    place.write("in", lines(200));
    let one: Ran = place.command("number.wat -i in --batch 7").output().unwrap().into();
    let ran: Ran = place.command_on("cpu:2,0,1", "number.wat -i in --batch 7").output().unwrap().into();
    ran.gives(0, &one.stdout);
}

#[test]
fn a_program_with_threads_runs_on_several_devices() {
    let place = Place::new();
    let threaded =
        wat!("map/echo").replace("(memory (export \"memory\") 3)", r#"(import "env" "memory" (memory 3 4 shared))"#);
    assert!(threaded.contains("shared"));
    // An import comes before all functions; the memory of a program with threads is exported, too.
    place.write(
        "threaded.wat",
        threaded.replace("(data (i32.const 512)", "(export \"memory\" (memory 0))\n  (data (i32.const 512)"),
    );
    let text = lines(60);
    place.write("in", &text);
    let ran: Ran = place.command_on("cpu:0,1", "threaded.wat -i in --batch 8 --stats=json").output().unwrap().into();
    let ran = ran.gives(0, &text);
    assert_eq!(shares(&ran).iter().map(|share| share.1).sum::<u64>(), 60, "{}", ran.stderr);
}

/// Of each device in `--stats=json`: its name, its records, and whether it was lost.
fn shares(ran: &Ran) -> Vec<(String, u64, bool)> {
    let object: serde_json::Value = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
    let share = |share: &serde_json::Value| {
        let name = share["device"].as_str().unwrap().to_owned();
        (name, share["records"].as_u64().unwrap(), share["lost"].as_bool().unwrap())
    };
    object["devices"].as_array().unwrap().iter().map(share).collect()
}

#[test]
fn statistics_say_what_each_device_did() {
    let place = Place::new();
    place.write("in", lines(400));
    let ran: Ran = place.command_on("cpu:0,3", "echo.wat -i in -o out --batch 8 --stats=json").output().unwrap().into();
    let ran = ran.gives(0, "");
    let [(first, some, false), (second, others, false)] = &shares(&ran)[..] else { panic!("{}", ran.stderr) };
    assert_eq!([&first[..], second], ["cpu:0", "cpu:3"]);
    assert!(some + others == 400 && *some > 0 && *others > 0, "{}", ran.stderr);
    let ran: Ran = place.command_on("cpu:0,3", "echo.wat -i in -o out --batch 8 --stats").output().unwrap().into();
    ran.gives(0, "").says(&["share    cpu:0 (", "share    cpu:3 (", " records (", " batches, "]);
    let ran: Ran = place.command_on("cpu", "echo.wat -i in -o out --stats=json").output().unwrap().into();
    assert_eq!(shares(&ran.gives(0, "")), [], "one device has it all");
}

/// One of two is lost, at every launch that there is: the other one goes on in the same process, even with what can be read only once.
#[test]
fn a_device_lost_anywhere_leaves_its_batches_to_the_other() {
    let place = Place::new();
    let (input, output, failed) = mixed(120);
    place.write("in", &input);
    let mut lost = 0;
    for launch in 1..=36 {
        let line =
            if launch % 2 == 0 { "echo.wat -i in --batch 8 --stats=json" } else { "echo.wat --batch 8 --stats=json" };
        let input = (launch % 2 == 1).then_some(input.as_bytes());
        let ran = place.run_losing_on("cpu:0,1", &format!("launch:{launch}"), line, input);
        let ran = ran.gives(1, &output).says(&[&format!("120 records, {failed} failed")]);
        assert!(!ran.stderr.contains("new process"), "{}", ran.stderr);
        let told = ran.stderr.matches(" was lost: ").count();
        let shares = shares(&ran);
        assert_eq!(shares.iter().filter(|share| share.2).count(), told, "{}", ran.stderr);
        assert_eq!(shares.iter().map(|share| share.1).sum::<u64>(), 120, "nothing runs twice that was handed on");
        assert_eq!(ran.stderr.matches(" (record ").count(), failed, "each failure is told once");
        lost += told;
    }
    // 15 batches are two launches each. The last numbers are not reached, unless the pipe gives more batches.
    assert!(lost >= 30, "{lost} of 36 plans lost a device");
}

#[test]
fn where_the_last_device_is_lost_a_new_process_continues_with_all() {
    let place = Place::new();
    let (input, output, failed) = mixed(200);
    place.write("in", &input);
    for plan in ["launch:1,2", "launch:3,8", "launch:5,6,20,21"] {
        let ran = place.run_losing_on("cpu:0,1", plan, "echo.wat -i in -o out --batch 8 --stats=json", None);
        let ran = ran.gives(1, "").says(&[
            &format!("200 records, {failed} failed"),
            "continuing in a new process",
            " was lost: ",
        ]);
        assert_eq!((place.read("out"), place.has("out.gpu-run-map")), (output.clone(), false), "{plan}");
        let shares = shares(&ran);
        assert!(shares.len() == 2 && shares.iter().all(|share| share.1 > 0), "{}", ran.stderr);
    }
}

/// A number that a test can repeat, from 0 to `below`.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }
}

/// Whatever is lost, and wherever: nothing is lost of the output, nothing is there twice, and a run that gave up is resumed.
#[test]
fn losses_anywhere_change_nothing_but_stderr() {
    let cases = if std::env::var_os("GPU_RUN_TEST_ALL").is_some() { 400 } else { 25 };
    for case in 0..cases {
        let (place, mut random) = (Place::new(), Random(case));
        (0..3).for_each(|_| _ = random.next(1));
        let (input, output, failed) = mixed(random.next(300));
        let (batch, devices) = (3 + random.next(30), devices(2 + random.next(3)));
        let launches = 2 * input.lines().count() / batch + 4;
        let mut faults: Vec<_> = (0..1 + random.next(5)).map(|_| 1 + random.next(launches)).collect();
        faults.sort_unstable();
        faults.dedup();
        let plan: Vec<_> = faults.iter().map(usize::to_string).collect();
        let plan = format!("launch:{}", plan.join(","));
        place.write("in", &input);
        let line = format!("echo.wat -i in -o out --batch {batch}");
        let mut ran = place.run_losing_on(&devices, &plan, &line, None);
        let what = format!("case {case}: {plan} on {devices}, {line}");
        if ran.code == Some(75) {
            assert!(whole_lines(&place.read("out"), &output), "{what}: {}", ran.stderr);
            ran = place.run_losing_on("cpu:0,1", "launch:3", &format!("{line} --resume"), None);
        }
        assert_eq!(ran.code, Some(i32::from(failed > 0)), "{what}: {}", ran.stderr);
        assert!(place.read("out") == output && !place.has("out.gpu-run-map"), "{what}: {}", ran.stderr);
        let records = match input.lines().count() {
            1 => "1 record".to_owned(),
            count => format!("{count} records"),
        };
        ran.says(&[&records, &format!(", {failed} failed")]);
    }
}

#[test]
fn a_map_on_several_devices_is_resumed_on_any() {
    let place = Place::new();
    let line = |i: usize| if i == 777 { "trap\n".to_owned() } else { format!("line {i}\n") };
    place.write("in", (0..1000).map(line).collect::<String>());
    let output: String = (0..1000).map(|i| line(i).replace("trap", "")).collect();
    for (first, second) in [("cpu:0,1", "cpu"), ("cpu", "cpu:0,1"), ("cpu:0,1", "cpu:0,1,2")] {
        let stopped = "echo.wat -i in -o out --batch 16 --fail-fast --force";
        let ran: Ran = place.command_on(first, stopped).output().unwrap().into();
        ran.gives(1, "").says(&["stopped at the first failure", "--resume continues at record"]);
        assert!(place.has("out.gpu-run-map") && output.starts_with(&place.read("out")));
        let ran: Ran = place.command_on(second, "echo.wat -i in -o out --resume").output().unwrap().into();
        ran.gives(1, "").says(&["1000 records (", " by earlier runs), 1 failed"]);
        assert!(place.read("out") == output, "{first}, then {second}");
    }
}

/// As on one device: the launch that hangs takes the process with it, and the next one finds the record.
#[test]
fn a_record_that_cannot_be_ended_fails_alone_on_several_devices() {
    let place = Place::new();
    let text = lines(40);
    place.write("in", &text);
    let output: String =
        text.lines().enumerate().map(|(i, line)| if i == 2 { "\n".into() } else { format!("{line}\n") }).collect();
    let ran = place.run_losing_on("cpu:0,1", "hang:1,6", "echo.wat -i in -o out --timeout 1s --batch 40", None);
    ran.gives(1, "").says(&["looking for it in a new process", "line 3 (record 2) did not finish in time", "1 failed"]);
    assert_eq!(place.read("out"), output);
    // Others are in the middle of their batches when one hangs. Which record it is, the plan does not say.
    let ran = place.run_losing_on("cpu:0,1,2", "hang:7,30", "echo.wat -i in -o out --timeout 1s --batch 4", None);
    let ran = ran.gives(1, "").says(&["looking for it in a new process", "40 records, 1 failed"]);
    let written = place.read("out");
    let differing = text.lines().zip(written.lines()).filter(|(record, line)| record != line).count();
    assert_eq!((written.lines().count(), differing), (40, 1), "{}", ran.stderr);
}

#[test]
fn lists_of_devices_that_make_no_sense_are_refused() {
    let place = Place::new();
    for (devices, part) in [
        ("cpu:0,0", "names cpu:0 twice"),
        ("cuda:", "`cuda:` lacks a number"),
        ("cuda:0,cpu", "`cuda:0,cpu` mixes devices"),
        ("cpu,cuda:0", "mixes devices"),
        ("cuda:0,x", "`x` is not the number of a device"),
        ("cpu:64", "the last one is `cpu:63`"),
    ] {
        let ran: Ran = place.command_on(devices, "echo.wat").output().unwrap().into();
        ran.gives(2, "").says(&[part, "--device <DEVICE>"]);
    }
    // One device of the list is enough for these.
    for line in ["echo.wat", "tune echo.wat", "bench desktop", "cache preload echo.wat"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
        let (before, after) = if line == "echo.wat" { ("", line) } else { (line, "") };
        command.args(before.split_whitespace()).args(["--device", "cpu:0,1"]).args(after.split_whitespace());
        let ran: Ran = command.current_dir(place.0.path()).stdin(Stdio::null()).output().unwrap().into();
        ran.gives(2, "").says(&["--device cpu:0,1: only `gpu-run map` runs on several devices", "--device cuda:0"]);
    }
    let ran: Ran = place.command_on("cpu:1", "echo.wat -i echo.wat").output().unwrap().into();
    ran.gives(0, wat!("map/echo"));
}
