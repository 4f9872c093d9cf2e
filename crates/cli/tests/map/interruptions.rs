//! Kills and Ctrl-C at any moment.

use super::*;
use rustix::process::{Pid, Signal, kill_process};

/// Starts, kills at a random moment, another one in every run of the test, goes on, until it finishes. Says how often it was killed. The first time it is killed soon after it has begun, or after it has written
/// something `first` times.
fn finish_with_kills(place: &Place, line: &str, input: Option<&str>, signal: Signal, first: u64) -> usize {
    let names = [
        "out.gpu-run-map",
        "out/.gpu-run-map",
        "out.shards/1-of-3.gpu-run-map",
        "out/.gpu-run-map.shards/1-of-3.gpu-run-map",
    ];
    let journal = || names.iter().find_map(|name| fs::read(place.path(name)).ok());
    for kills in 0..200 {
        let resume = if kills > 0 { "--resume" } else { "" };
        let stdin = input.map_or(Stdio::null(), |name| fs::File::open(place.path(name)).unwrap().into());
        let mut child = place.start(&format!("{line} {resume}"), stdin);
        // Later, after it has written a little more, or a lot.
        let (mut seen, mut steps) = (journal(), if kills == 0 { first } else { fastrand::u64(1..=8) });
        while steps > 0 && child.try_wait().unwrap().is_none() {
            let now = journal();
            steps -= u64::from(now != seen);
            seen = now;
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(fastrand::u64(..30)));
        let _ = kill_process(Pid::from_child(&child), signal);
        let ran = Ran::from(child.wait_with_output().unwrap());
        // Killed between the last step and the end of the process, all was done but for the exit code.
        if ran.code == Some(0) || ran.code == Some(2) && ran.stderr.contains("out has no journal") {
            return kills;
        }
        assert!(ran.code.is_none() || ran.code == Some(130), "{ran:?}");
        if ran.code == Some(130) {
            assert!(ran.stderr.contains("--resume continues at record"), "{ran:?}");
        }
    }
    panic!("200 runs did not finish it");
}

/// The same, until one was killed before it had finished: on a busy machine the signal may come late, or before anybody listens.
fn finish_after_kills(place: &Place, line: &str, signal: Signal) {
    let is_killed = |attempt: u64| {
        let _ = fs::remove_file(place.path("out"));
        finish_with_kills(place, line, None, signal, attempt % 2) > 0
    };
    assert!((0..100).any(is_killed), "too fast to be killed: the test shows nothing");
}

#[test]
fn killed_at_any_moment_it_goes_on_and_gives_the_same_bytes() {
    let place = Place::new();
    let text = lines(400);
    place.write("in", &text);
    finish_after_kills(&place, "slow.wat -i in -o out --batch 9", Signal::KILL);
    assert_eq!(place.read("out"), text);
    assert!(!place.has("out.gpu-run-map") && !place.has("out.gpu-run-map.new"));
}

#[test]
fn interrupted_it_leaves_whole_records_and_goes_on() {
    let place = Place::new();
    let text = lines(400);
    place.write("in", &text);
    finish_after_kills(&place, "slow.wat -i in -o out --batch 9", Signal::INT);
    assert_eq!(place.read("out"), text);
}

#[test]
fn stdin_can_be_gone_on_with_too_and_folders() {
    let place = Place::new();
    let text = format!("head,er\n{}", lines(150));
    place.write("in", &text);
    finish_with_kills(&place, "slow.wat -o out --batch 9 --split csv", Some("in"), Signal::KILL, 0);
    let expected: String = lines(150).lines().map(|line| format!("head,er\n{line}\n")).collect();
    assert_eq!(place.read("out"), expected);

    let place = Place::new();
    for i in 0..150 {
        place.write(&format!("in/{}/{i}", i % 7), format!("file {i}"));
    }
    finish_with_kills(&place, "slow.wat -i in -o out --batch 9", None, Signal::KILL, 0);
    for i in 0..150 {
        assert_eq!(place.read(&format!("out/{}/{i}", i % 7)), format!("file {i}"));
    }
}

#[test]
fn ctrl_c_leaves_whole_records_on_stdout() {
    let place = Place::new();
    // More than a pipe takes: it cannot finish before it is interrupted.
    let text = lines(30_000);
    place.write("in", &text);
    let mut child = place.start("slow.wat -i in --batch 9", Stdio::null());
    let (mut stdout, mut written) = (BufReader::new(child.stdout.take().unwrap()), String::new());
    stdout.read_line(&mut written).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    stdout.read_to_string(&mut written).unwrap();
    let ran = Ran { stdout: written, ..Ran::from(child.wait_with_output().unwrap()) };
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(whole_lines(&ran.stdout, &text));
    let ran = ran.says(&["interrupted: "]);
    let count = ran.stdout.lines().count();
    ran.says(&[&format!("{count} record")]);
}

#[test]
fn a_shard_killed_at_any_moment_goes_on_and_its_neighbours_do_not_notice() {
    let place = Place::new();
    let text = lines(300);
    place.write("in", &text);
    for i in 0..150 {
        place.write(&format!("folder/{}/{i}", i % 7), format!("file {i}"));
    }
    for input in ["in", "folder"] {
        let line = |index: u32| format!("slow.wat -i {input} -o out --shard {index}/3 --batch 9");
        place.run(&line(2)).gives(0, "");
        finish_with_kills(&place, &line(1), None, Signal::KILL, 0);
        place.run(&line(0)).gives(0, "");
        let mut merge = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
        let merged: Ran = merge.args(["merge", "out"]).current_dir(place.0.path()).output().unwrap().into();
        merged.gives(0, "").says(&["of 3 shards, 0 failed"]);
        if input == "in" {
            assert_eq!(place.read("out"), text);
            fs::remove_file(place.path("out")).unwrap();
            fs::remove_dir_all(place.path("out.shards")).unwrap();
        }
    }
    for i in 0..150 {
        assert_eq!(place.read(&format!("out/{}/{i}", i % 7)), format!("file {i}"));
    }
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 7, "nothing of ours is left");
}
