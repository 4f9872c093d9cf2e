//! A lost device, and a launch that never ends: another process continues.

use super::*;

impl Place {
    /// Runs where launches fault as the plan says: the device is lost, and another process has to go on. A batch is two launches.
    fn run_losing(&self, plan: &str, line: &str, input: Option<&[u8]>) -> Ran {
        self.run_losing_on("cpu", plan, line, input)
    }

    pub(super) fn run_losing_on(&self, devices: &str, plan: &str, line: &str, input: Option<&[u8]>) -> Ran {
        let mut command = self.command_on(devices, line);
        command.env("GPU_RUN_TEST_FAULT", plan).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() }).spawn().unwrap();
        let (stdin, input) = (child.stdin.take(), input.unwrap_or_default().to_vec());
        let feeder = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
        let ran = child.wait_with_output().unwrap().into();
        feeder.join().unwrap().map_or(Ok(()), |fed| fed).unwrap();
        ran
    }
}

/// Lines, every so many of which exits with 3 or traps, and what they give.
pub(super) fn mixed(count: usize) -> (String, String, usize) {
    let mut failed = 0;
    let (mut input, mut output) = (String::new(), String::new());
    for (i, line) in lines(count).lines().enumerate() {
        let (given, kept) = match i % 50 {
            7 => ("exit", "exit"),
            31 => ("trap", ""),
            _ => (line, line),
        };
        failed += usize::from(given != line);
        writeln!(input, "{given}").unwrap();
        writeln!(output, "{kept}").unwrap();
    }
    (input, output, failed)
}

#[test]
fn a_device_lost_on_the_way_changes_nothing_but_stderr() {
    let place = Place::new();
    let (input, output, failed) = mixed(300);
    place.write("in", &input);
    let summary = format!("300 records, {failed} failed");
    for (plan, losses) in
        [("launch:1", 1), ("launch:2", 1), ("launch:7", 1), ("launch:4,9,14,19", 4), ("launch:1,2,20", 3)]
    {
        let ran = place.run_losing(plan, "echo.wat -i in --batch 16", None).gives(1, &output).says(&[&summary]);
        assert_eq!(ran.stderr.matches("continuing in a new process").count(), losses, "{plan}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("trapped").count() + ran.stderr.matches("exited with").count(), 10, "told once");
        let ran = place.run_losing(plan, "echo.wat -i in -o out --batch 16", None).gives(1, "").says(&[&summary]);
        assert_eq!(
            (place.read("out"), place.has("out.gpu-run-map")),
            (output.clone(), false),
            "{plan}: {}",
            ran.stderr
        );
    }
    let ran = place.run_losing("launch:5", "echo.wat -i in --batch 16 --stats=json", None).gives(1, &output);
    let object: serde_json::Value = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
    assert_eq!((&object["instances"], &object["trapped"], &object["exits"]["3"]), (&300.into(), &6.into(), &6.into()));
}

#[test]
fn what_was_read_from_a_pipe_is_not_lost_with_the_device() {
    let place = Place::new();
    // More than a pipe holds, than is read at once, and than the hash has in a block.
    let text = lines(80_000);
    assert!(text.len() > 2 << 20);
    for plan in ["launch:1", "launch:3,60", "launch:100,101"] {
        let ran = place.run_losing(plan, "echo.wat", Some(text.as_bytes())).gives(0, &text);
        ran.says(&["80000 records, 0 failed", "continuing in a new process"]);
    }
    let csv = format!("he,ad\n{}", lines(3000));
    let expected: String = lines(3000).lines().map(|line| format!("he,ad\n{line}\n")).collect();
    for plan in ["launch:1", "launch:5,12"] {
        place.run_losing(plan, "echo.wat --split csv --batch 100", Some(csv.as_bytes())).gives(0, &expected);
    }
    // A pipe with a name stays open in the next process, and the journal speaks of the same input.
    let status = Command::new("mkfifo").arg(place.path("fifo")).status().unwrap();
    assert!(status.success());
    let (path, bytes) = (place.path("fifo"), text.clone());
    let feeder = std::thread::spawn(move || fs::write(path, bytes));
    place.run_losing("launch:20,30", "echo.wat -i fifo -o out", None).gives(0, "").says(&["80000 records, 0 failed"]);
    feeder.join().unwrap().unwrap();
    assert!(place.read("out") == text);
}

#[test]
fn an_input_that_comes_slowly_is_gone_on_with_while_it_is_open() {
    let place = Place::new();
    let mut command = place.command("echo.wat");
    command.env("GPU_RUN_TEST_FAULT", "launch:1,4").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    // The reader waits for more when the device is lost: it must not take what comes then.
    let feeder = std::thread::spawn(move || {
        for i in 0..40 {
            stdin.write_all(format!("{i}\n").as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(25));
        }
    });
    let seen: Vec<String> = stdout.lines().map(|line| line.unwrap()).collect();
    assert_eq!(seen, (0..40).map(|i| i.to_string()).collect::<Vec<_>>());
    feeder.join().unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_folder_and_a_program_from_stdin_survive_a_lost_device() {
    let place = Place::new();
    for i in 0..60 {
        place.write(&format!("in/{}/{i}", i % 7), format!("file {i}"));
    }
    let ran = place.run_losing("launch:3,8", "echo.wat -i in -o out --batch 9", None);
    ran.gives(0, "").says(&["60 records, 0 failed"]);
    for i in 0..60 {
        assert_eq!(place.read(&format!("out/{}/{i}", i % 7)), format!("file {i}"));
    }
    place.write("lines", lines(40));
    place.run_losing("launch:3", "- -i lines --batch 9", Some(wat!("map/echo").as_bytes())).gives(0, &lines(40));
}

#[test]
fn a_device_that_is_lost_again_and_again_ends_the_run_and_says_where() {
    let place = Place::new();
    let text = lines(100);
    place.write("in", &text);
    let ran = place.run_losing("launch:5,6,7,8,9,10", "echo.wat -i in -o out --batch 20", None).gives(75, "");
    let ran = ran.says(&["echo.wat: the device was lost 3 times in a row", "smaller --batch", "cannot continue: "]);
    // What was under way with the one that faulted is lost with it.
    let safe = place.read("out").lines().count();
    assert!(matches!(safe, 20 | 40), "{}", ran.stderr);
    let again = format!("continuing in a new process at record {safe}");
    assert_eq!(ran.stderr.matches(&again).count(), 2, "{}", ran.stderr);
    ran.says(&[&format!("--resume continues at record {safe}")]);
    assert!(whole_lines(&place.read("out"), &text));
    // Resumed, and lost then: the count of earlier runs stays.
    let resumed = format!("100 records ({safe} by earlier runs), 0 failed");
    place.run_losing("launch:3", "echo.wat -i in -o out --batch 20 --resume", None).gives(0, "").says(&[&resumed]);
    assert_eq!(place.read("out"), text);
}

/// The last record of the batch is rerun, and each rerun loses the device: by then the other records are in the output, which is cut back.
#[test]
fn a_device_that_each_rerun_loses_ends_the_run_too() {
    let place = Place::new();
    place.write("in", format!("{}g\n", lines(19)));
    for output in ["-o out", ""] {
        let line = format!("long.wat -i in {output} --batch 20");
        let ran = place.run_losing("launch:3,6,9,12,15,18,21,24", &line, None);
        assert_eq!(ran.code, Some(75), "{}", ran.stderr);
        let ran = ran.says(&["the device was lost 3 times in a row"]);
        assert_eq!(ran.stderr.matches("continuing in a new process").count(), 2, "{}", ran.stderr);
    }
}

/// `hang:N`: the N-th launch never ends. Each batch is two launches; what is left of the plan goes to the next process.
#[test]
fn a_record_that_cannot_be_ended_fails_alone() {
    let place = Place::new();
    let text = lines(40);
    // All 40 at once hang, then record 2, alone, does: the first process launches once, the next ones twice for each record.
    place.write("in", &text);
    let output: String =
        text.lines().enumerate().map(|(i, line)| if i == 2 { "\n".into() } else { format!("{line}\n") }).collect();
    for to_pipe in [false, true] {
        let line = if to_pipe {
            "echo.wat -i in --timeout 1s --batch 40"
        } else {
            "echo.wat -i in -o out --timeout 1s --batch 40"
        };
        let ran = place.run_losing("hang:1,6", line, None);
        let ran = ran.gives(1, if to_pipe { &output } else { "" });
        ran.says(&[
            "looking for it in a new process",
            "continuing without it",
            "line 3 (record 2) did not finish in time",
            "40 records, 1 failed",
        ]);
        if !to_pipe {
            assert_eq!(place.read("out"), output);
        }
    }
}
