//! Output of many instances that waits for its turn, and where it ends up.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use std::fs;
use support::{Place, Ran, wat};

#[test]
fn output_that_waits_is_bounded_on_disk_and_says_so() {
    // 80 MiB, of which 64 may wait in memory. A folder that is not there is as good as a full disk.
    let place = Place::new().with("chatty.wat", wat!("chatty"));
    let run = |options: &str, tmp: &str| {
        let mut command = place.command(&format!("--device cpu --instances 40 {options} chatty.wat"));
        let path = place.path().join("out");
        command.env("TMPDIR", place.path().join(tmp)).stdout(fs::File::create(&path).unwrap());
        let ran = Ran::from(command.output().unwrap());
        (fs::metadata(path).unwrap().len(), ran)
    };
    let (length, ran) = run("", ".");
    ran.gives(0, "");
    assert_eq!(length, 80 << 20);
    let (length, ran) = run("--max-spill 4KiB", ".");
    assert!(ran.code.is_some_and(|code| code != 0) && (64 << 20..80 << 20).contains(&length), "{length} {ran:?}");
    ran.says(&["--max-spill allows no more than 4 KiB on disk", "is incomplete", "--unordered"]);
    let (_, ran) = run("", "nowhere");
    ran.says(&["it cannot be written to a temporary file", "is incomplete"]);
    let (length, ran) = run("--max-spill 0 --unordered", ".");
    ran.gives(0, "");
    assert_eq!(length, 80 << 20);
}

#[test]
fn a_full_disk_behind_stdout_is_told() {
    let place = Place::new().with("chatty.wat", wat!("chatty")).with("echo.wat", wat!("echo")).with("in", "a\nb\n");
    for line in ["--device cpu --instances 3 chatty.wat", "map echo.wat --device cpu -i in"] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let ran = Ran::from(place.command(line).stdout(full).output().unwrap());
        assert!(ran.code.is_some_and(|code| code != 0), "{ran:?}");
        assert!(line.starts_with("--") || ran.stderr.contains("No space left"), "{ran:?}");
    }
    let ran = place.run("map echo.wat --device cpu -i in -o /dev/full").gives(75, "");
    ran.says(&["cannot write the output", "No space left"]);
}
