//! What a guest with `--dir` can do to the files of its own map: links, FIFOs and folders in the place of others. Nothing outside is read or written.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use support::{Place, Ran, wat};

const SECRET: &str = "the user's own\n";

fn place() -> Place {
    Place::new().with("plant.wat", wat!("plant")).with("outside/secret", SECRET).with("box/x", "")
}

/// Maps with `box` given to the guest. A record at a time: what one plants, the next ones meet.
fn map(place: &Place, line: &str) -> Ran {
    place.run(&format!("map plant.wat --device cpu --batch 1 --dir box {line}"))
}

/// Records that keep the reader busy: it is some batches ahead of the first that runs.
fn with_fillers(place: Place, folder: &str) -> Place {
    (0..12).fold(place, |place, i| place.with(&format!("{folder}/a{i:02}"), ""))
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path().join(name)).unwrap_or_else(|error| format!("{name}: {error}"))
}

#[track_caller]
fn untouched(place: &Place) {
    assert_eq!(read(place, "outside/secret"), SECRET);
    assert_eq!(fs::read_dir(place.path().join("outside")).unwrap().count(), 1, "nothing new outside");
}

/// What a guest's link, named from `box` on, has to lead to for `outside/NAME`: an absolute target it may not have.
fn outside(link: &str, name: &str) -> String {
    format!("{}outside/{name}", "../".repeat(link.split('/').count()))
}

#[test]
fn temporary_files_of_the_output_are_not_written_through_planted_links() {
    for link in ["out/.gpu-run-map.file", "out/.gpu-run-map", "out/.gpu-run-map.new", "out/b"] {
        let place = place().with("in/a", "a\n").with("in/b", "b\n").with("in/c", "c\n");
        let ran = map(&place, &format!("-i in -o box/out {link} {}", outside(link, "secret")));
        untouched(&place);
        ran.gives(0, "");
        assert_eq!(read(&place, "box/out/c"), "c\nchosen by the guest\n", "{link}");
    }
}

#[test]
fn the_journal_of_a_file_is_not_written_through_planted_links() {
    for link in ["out.gpu-run-map.new", "out.gpu-run-map"] {
        let place = place().with("in", "a\nb\nc\n");
        let ran = map(&place, &format!("-i in -o box/out {link} {}", outside(link, "new")));
        untouched(&place);
        ran.gives(0, "");
        assert_eq!(read(&place, "box/out").lines().count(), 6, "{link}");
    }
}

#[test]
fn a_folder_of_the_output_that_becomes_a_link_is_not_written_through() {
    let place = place().with("in/a", "a\n").with("in/sub/secret", "b\n");
    let ran = map(&place, &format!("-i in -o box/out out/sub {}", outside("out/sub", "")));
    untouched(&place);
    ran.gives(1, "").says(&["cannot write box/out/sub/secret", "map does not write through links"]);
}

#[test]
fn an_output_that_was_replaced_is_not_taken_for_the_output() {
    let place = place().with("in", "a\nb\n");
    let ran = map(&place, &format!("-i in -o box/out out {}", outside("out", "secret")));
    untouched(&place);
    ran.gives(1, "").says(&["box/out was replaced while the map was writing to it"]);
    // The link is there before the next run, but a guest can have made it, and has.
    let ran = map(&place, "-i in -o box/out --force x y");
    untouched(&place);
    ran.gives(2, "").says(&["leads through the link", "--follow-links"]);
}

#[test]
fn a_planted_link_gives_nothing_from_outside_to_a_later_record() {
    // `sub` is not listed yet when the first record runs; `box/in/b` and the folder `c` are.
    for (link, target) in [("in/sub/b", "secret"), ("in/b", "secret"), ("in/c", ""), ("in/sub", "")] {
        for follow in ["", "--follow-links "] {
            let place = with_fillers(place(), "box/in").with("box/in/a", "a\n").with("box/in/b", "b\n");
            let place = place.with("box/in/c/secret", "c\n").with("box/in/sub/x/y", "s\n");
            let ran = map(&place, &format!("-i box/in {follow}{link} {}", outside(link, target)));
            assert!(place.path().join("box").join(link).is_symlink(), "{link}: {ran:?}");
            assert!(ran.stdout.starts_with("a\nchosen"), "{link}: {ran:?}");
            assert!(!ran.stdout.contains("own"), "{link}: {ran:?}");
        }
    }
}

#[test]
fn links_lead_within_the_input_and_out_of_it_only_when_asked() {
    let place = place().with("box/in/a", "a\n").with("box/in/sub/b", "b\n");
    let folder = place.path().join("box/in");
    symlink("sub/b", folder.join("l1")).unwrap();
    symlink("../a", folder.join("sub/l2")).unwrap();
    symlink(folder.join("a"), folder.join("l3")).unwrap();
    symlink(place.path().join("outside/secret"), folder.join("l4")).unwrap();
    symlink("../../outside/secret", folder.join("l5")).unwrap();
    symlink("sub", folder.join("l6-folder")).unwrap();
    let cat = "map cat.wat --device cpu -i box/in";
    let place = place.with("cat.wat", wat!("cat"));
    let ran = place.run(cat).gives(1, "a\nb\na\nb\na\n");
    ran.says(&[
        "l4 (record 3) is a link out of the input folder",
        "--follow-links",
        "l5 (record 4)",
        "7 records, 2 failed",
    ]);
    place.run(&format!("{cat} --follow-links")).gives(0, &format!("a\nb\na\n{SECRET}{SECRET}b\na\n"));
}

#[test]
fn a_link_that_was_there_leads_where_it_led_before_the_run() {
    // `z` leads to a file that the guest replaces by a link to another.
    let place = with_fillers(place(), "in").with("box/data", "data\n");
    symlink("../box/data", place.path().join("in/z")).unwrap();
    let ran = map(&place, &format!("-i in --follow-links data {}", outside("data", "secret")));
    assert!(place.path().join("box/data").is_symlink() && !ran.stdout.contains("own"), "{ran:?}");
    ran.says(&["z (record 12) cannot be read", "13 records, 1 failed"]);
}

#[test]
fn what_is_no_regular_file_is_told_and_not_waited_for() {
    let place = place().with("in/a", "a\n").with("cat.wat", wat!("cat"));
    let fifo = place.path().join("in/fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.path().join("in/socket")).unwrap();
    symlink("fifo", place.path().join("in/to-fifo")).unwrap();
    symlink("/dev/zero", place.path().join("in/to-zero")).unwrap();
    let ran = place.run("map cat.wat --device cpu -i in --follow-links --timeout 100s").gives(1, "a\n");
    let told = ["fifo (record 1) cannot be read: it is not a regular file", "socket (record 2)", "to-zero (record 4)"];
    ran.says(&told).says(&["5 records, 4 failed"]);
}

#[test]
fn the_users_own_link_to_the_output_is_followed_once() {
    let place = place().with("in", "a\n").with("cat.wat", wat!("cat"));
    fs::create_dir(place.path().join("real")).unwrap();
    symlink("real/out", place.path().join("link")).unwrap();
    place.run("map cat.wat --device cpu -i in -o link").gives(0, "");
    assert_eq!(read(&place, "real/out"), "a\n");
    assert!(place.path().join("link").is_symlink());
    assert_eq!(fs::read_dir(place.path().join("real")).unwrap().count(), 1);
    place.run("map cat.wat --device cpu -i in -o nothing/").gives(2, "").says(&["nothing/", "--split files"]);
}

#[test]
fn names_that_are_no_text_go_on_where_they_were() {
    use std::os::unix::ffi::OsStrExt;
    let place = place().with("in/a", "a\n").with("cat.wat", wat!("cat"));
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::rename(place.path().join("in"), place.path().join(name)).unwrap();
    fs::write(place.path().join(name).join(name), "b\n").unwrap();
    let run = |arg: &str| {
        let mut command = place.command("map cat.wat --device cpu --batch 1 -o out");
        Ran::from(command.arg(arg).arg("-i").arg(name).output().unwrap())
    };
    run("--force").gives(0, "");
    assert_eq!(fs::read_to_string(place.path().join("out").join(name)).unwrap(), "b\n");
}

#[test]
fn after_a_lost_device_nothing_is_opened_that_a_guest_has_put_in_its_place() {
    for (line, link) in [("-i in -o box/out", "out"), ("-i box/lines", "lines"), ("-i box/files", "files")] {
        let place = place().with("in", "a\nb\nc\nd\n").with("box/lines", "a\nb\nc\nd\n").with("box/files/a", "a");
        for name in ["b", "c", "secret"] {
            fs::write(place.path().join("box/files").join(name), "x").unwrap();
        }
        let target = outside(link, if link == "files" { "" } else { "secret" });
        let line = format!("map plant.wat --device cpu --batch 1 --dir box --follow-links {line} {link} {target}");
        let mut command = place.command(&line);
        let ran = Ran::from(command.env("GPU_RUN_TEST_FAULT", "launch:3").output().unwrap());
        untouched(&place);
        assert!(!ran.stdout.contains("own"), "{ran:?}");
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran.says(&["continuing in a new process", "was replaced while the map ran"]);
    }
}
