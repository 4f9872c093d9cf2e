//! `gpu-run map` over objects in S3: moto, a server from PyPI that behaves as S3 does, runs beside it, and a proxy between them that breaks
//! connections, answers with errors, and is slow.
//!
//! `scripts/s3-server` fetches the server; while it is not there, the tests are reported as ignored, with `CI` set they fail.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

#[path = "objects/folders.rs"]
mod folders;
#[path = "objects/google.rs"]
mod google;
#[path = "objects/proxy.rs"]
mod proxy;
#[path = "objects/server.rs"]
mod server;
#[path = "objects/shards.rs"]
mod shards;
#[path = "support/mod.rs"]
mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use proxy::{Faults, Proxy};
use server::Server;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use support::{Place, Ran, wat};

const SECRET: &str = "a-secret-that-nobody-may-see";

type Test = fn(&Server);

const TESTS: &[(&str, Test)] = &[
    ("an_object_is_mapped_to_an_object", an_object_is_mapped_to_an_object),
    ("an_empty_object_gives_an_empty_object", an_empty_object_gives_an_empty_object),
    ("an_object_is_mapped_to_a_file_and_a_file_to_an_object", between_objects_and_files),
    ("web_pages_are_read", web_pages_are_read),
    ("answers_of_another_length_are_not_taken", answers_of_another_length_are_not_taken),
    ("shards_of_an_object_give_what_the_whole_gives", shards_of_an_object_give_what_the_whole_gives),
    ("broken_connections_lose_nothing", |server| faults(server, Faults::Broken)),
    ("servers_that_are_too_busy_lose_nothing", |server| faults(server, Faults::Busy)),
    ("slow_answers_lose_nothing", |server| faults(server, Faults::Slow)),
    ("killed_it_goes_on_where_the_upload_was", killed_it_goes_on_where_the_upload_was),
    ("what_was_begun_is_not_begun_anew_unasked", what_was_begun_is_not_begun_anew_unasked),
    ("an_object_that_changes_is_not_mapped_to_its_end", an_object_that_changes_is_not_mapped_to_its_end),
    ("what_cannot_be_is_said", what_cannot_be_is_said),
    ("few_requests_are_made", few_requests_are_made),
    ("a_profile_is_not_passed_over", a_profile_is_not_passed_over),
    ("secrets_are_not_shown", secrets_are_not_shown),
    ("folders::they_give_what_folders_give", folders::they_give_what_folders_give),
    ("folders::long_lists_are_read_to_their_end", folders::long_lists_are_read_to_their_end),
    ("folders::faults_lose_nothing", folders::faults_lose_nothing),
    ("folders::killed_it_goes_on", folders::killed_it_goes_on),
    ("folders::what_changes_is_not_mapped", folders::what_changes_is_not_mapped),
    ("folders::what_cannot_be_is_said", folders::what_cannot_be_is_said),
    ("shards::they_give_what_the_whole_gives", shards::they_give_what_the_whole_gives),
    ("shards::those_of_folders_give_what_the_whole_gives", shards::those_of_folders_give_what_the_whole_gives),
    ("shards::what_is_missing_is_named", shards::what_is_missing_is_named),
    ("shards::killed_merges_go_on", shards::killed_merges_go_on),
    ("google::faults_lose_nothing", google::faults_lose_nothing),
    ("google::killed_it_goes_on_where_the_upload_was", google::killed_it_goes_on_where_the_upload_was),
];

fn main() {
    let args = Arguments::from_args();
    let server = Server::start();
    let ignored = server.is_none() && std::env::var_os("CI").is_none();
    // Never dropped: the server ends with this process.
    let server: Option<&'static Server> = server.map(|server| &*Box::leak(Box::new(server)));
    let trial = |(name, test): &(&str, Test)| {
        let test = *test;
        let run = move || match server {
            Some(server) => {
                test(server);
                Ok(())
            }
            None => Err(Failed::from("there is no server: run scripts/s3-server")),
        };
        Trial::test(format!("objects::{name}"), run).with_ignored_flag(ignored)
    };
    let conclusion = libtest_mimic::run(&args, TESTS.iter().map(trial).collect());
    if let Some(server) = server {
        server.stop();
    }
    conclusion.exit();
}

fn place() -> Place {
    Place::new().with("cat.wat", wat!("map/cat"))
}

/// A map that finds the server at `at`.
fn map(place: &Place, at: SocketAddr, line: &str) -> Command {
    with_keys(place.command(&format!("map cat.wat --device cpu {line}")), at)
}

/// A command that may ask the server at `at`.
fn with_keys(mut command: Command, at: SocketAddr) -> Command {
    command
        .env("AWS_ENDPOINT_URL", format!("http://{at}"))
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "somebody")
        .env("AWS_SECRET_ACCESS_KEY", SECRET);
    command
}

fn run(place: &Place, at: SocketAddr, line: &str) -> Ran {
    map(place, at, line).output().unwrap().into()
}

/// Lines of so many bytes together, about: none is like another.
fn lines(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + (16 << 10));
    let mut number = 0;
    while text.len() < bytes {
        writeln!(text, "{number} {}", format!("{:x}", number * 7919).repeat(number % 3000)).unwrap();
        number += 1;
    }
    text
}

/// Compared without printing megabytes.
#[track_caller]
fn is_same(found: &[u8], expected: &str) {
    let differ = found.iter().zip(expected.as_bytes()).position(|(a, b)| a != b);
    assert_eq!((found.len(), differ), (expected.len(), None));
}

fn an_object_is_mapped_to_an_object(server: &Server) {
    let (place, bucket, text) = (place(), server.bucket(), lines(20 << 20));
    server.put(&bucket, "in/a b.txt", &text);
    run(&place, server.address(), &format!("-i s3://{bucket}/in/a%20b.txt -o s3://{bucket}/out/c.txt")).gives(0, "");
    is_same(&server.get(&bucket, "out/c.txt").unwrap(), &text);
    assert_eq!(server.get(&bucket, "out/c.txt.gpu-run-map"), None);
    // One that is finished is overwritten, as a file is.
    server.put(&bucket, "in/a b.txt", "short\n");
    run(&place, server.address(), &format!("-i s3://{bucket}/in/a%20b.txt -o s3://{bucket}/out/c.txt")).gives(0, "");
    is_same(&server.get(&bucket, "out/c.txt").unwrap(), "short\n");
    assert_eq!(server.uploads(&bucket), 0);
}

fn an_empty_object_gives_an_empty_object(server: &Server) {
    let (place, bucket) = (place(), server.bucket());
    server.put(&bucket, "in", "");
    run(&place, server.address(), &format!("-i s3://{bucket}/in -o s3://{bucket}/out")).gives(0, "");
    assert_eq!(server.get(&bucket, "out").as_deref(), Some(&b""[..]));
}

fn between_objects_and_files(server: &Server) {
    let (place, bucket, text) = (place(), server.bucket(), lines(100_000));
    let place = place.with("in", &text);
    run(&place, server.address(), &format!("-i in -o s3://{bucket}/there")).gives(0, "");
    run(&place, server.address(), &format!("-i s3://{bucket}/there -o out")).gives(0, "");
    is_same(&std::fs::read(place.path().join("out")).unwrap(), &text);
    run(&place, server.address(), &format!("-i s3://{bucket}/there")).gives(0, &text);
}

fn web_pages_are_read(server: &Server) {
    let (place, bucket, text) = (place(), server.bucket(), lines(10 << 20));
    server.put(&bucket, "in.jsonl", &text);
    let at = server.address();
    run(&place, at, &format!("-i http://{at}/{bucket}/in.jsonl -o out")).gives(0, "");
    is_same(&std::fs::read(place.path().join("out")).unwrap(), &text);
}

/// Of a server that says how long an object is, and then gives nothing of it, or more.
fn answers_of_another_length_are_not_taken(_: &Server) {
    let place = place();
    for body in ["", "0123456789abcdefghij"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let (mut request, mut bytes) = (Vec::new(), [0; 1 << 10]);
                while !request.ends_with(b"\r\n\r\n") {
                    match client.read(&mut bytes) {
                        Ok(count) if count > 0 => request.extend_from_slice(&bytes[..count]),
                        _ => break,
                    }
                }
                let common = "Last-Modified: Thu, 19 Nov 2026 20:00:00 GMT\r\nETag: \"a\"\r\nConnection: close";
                let _ = match request.starts_with(b"HEAD") {
                    true => write!(client, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n{common}\r\n\r\n"),
                    false => write!(
                        client,
                        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/10\r\nContent-Length: {}\r\n{common}\r\n\r\n{body}",
                        body.len()
                    ),
                };
            }
        });
        let mut child = map(&place, at, &format!("-i http://{at}/in -o out"));
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Ran::from(child.wait_with_output().unwrap()).gives(75, "").says(&["not as long as its head says"]);
    }
}

fn shards_of_an_object_give_what_the_whole_gives(server: &Server) {
    let (place, bucket, text) = (place(), server.bucket(), lines(300_000));
    server.put(&bucket, "in", &text);
    for shard in 0..3 {
        run(&place, server.address(), &format!("-i s3://{bucket}/in -o out --shard {shard}/3")).gives(0, "");
    }
    place.run("merge out").gives(0, "");
    is_same(&std::fs::read(place.path().join("out")).unwrap(), &text);
}

fn faults(server: &Server, faults: Faults) {
    let (place, bucket, text) = (place(), server.bucket(), lines(20 << 20));
    server.put(&bucket, "in", &text);
    let proxy = Proxy::start(server.address(), faults);
    run(&place, proxy.address(), &format!("-i s3://{bucket}/in -o s3://{bucket}/out")).gives(0, "");
    is_same(&server.get(&bucket, "out").unwrap(), &text);
    assert!(proxy.faults() > 0, "the test shows nothing");
}

/// The option of a map that goes on after some were killed.
fn resume(kills: u32) -> &'static str {
    if kills > 0 { "--resume" } else { "" }
}

/// Runs commands that are killed, each when `done` says `by` more than when it began and at most `most` of them, until one ends with 0. A
/// command is given how many were killed before it; `look` looks at what each of these left.
fn killed_until_done(
    most: u32,
    command: impl Fn(u32) -> Command,
    done: impl Fn() -> usize,
    by: usize,
    look: impl Fn(),
) {
    let mut kills = 0;
    loop {
        let mut child = command(kills).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let before = done();
        while kills < most && child.try_wait().unwrap().is_none() && done() <= before + by {
            thread::sleep(Duration::from_millis(5));
        }
        if kills < most {
            child.kill().unwrap();
        }
        let ran = Ran::from(child.wait_with_output().unwrap());
        if ran.code == Some(0) {
            break;
        }
        assert_eq!(ran.code, None, "{ran:?}");
        look();
        kills += 1;
    }
    assert!(kills > 0, "too fast to be killed: the test shows nothing");
}

fn killed_it_goes_on_where_the_upload_was(server: &Server) {
    let (place, bucket, text) = (place(), server.bucket(), lines(40 << 20));
    server.put(&bucket, "in", &text);
    let line = format!("-i s3://{bucket}/in -o s3://{bucket}/out");
    let mut kills = 0;
    loop {
        let resume = if kills > 0 { "--resume" } else { "" };
        let mut child = map(&place, server.address(), &format!("{line} {resume}"));
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Until a part more is there, or it has ended.
        let before = server.parts(&bucket, "out");
        while kills < 4 && child.try_wait().unwrap().is_none() && server.parts(&bucket, "out") <= before {
            thread::sleep(Duration::from_millis(5));
        }
        if kills < 4 {
            thread::sleep(Duration::from_millis(fastrand::u64(..50)));
            child.kill().unwrap();
        }
        let ran = Ran::from(child.wait_with_output().unwrap());
        // Killed between the last step and the end of the process, all was done but for the exit code.
        if ran.code == Some(0) || ran.code == Some(2) && ran.stderr.contains("has no journal") {
            break;
        }
        assert_eq!(ran.code, None, "{ran:?}");
        if server.uploads(&bucket) > 0 {
            assert_eq!(server.get(&bucket, "out"), None, "an unfinished object is seen");
        }
        kills += 1;
    }
    assert!(kills > 0, "too fast to be killed: the test shows nothing");
    is_same(&server.get(&bucket, "out").unwrap(), &text);
    assert_eq!(server.get(&bucket, "out.gpu-run-map"), None);
    assert_eq!(server.uploads(&bucket), 0);
}

fn what_was_begun_is_not_begun_anew_unasked(server: &Server) {
    let (place, bucket) =
        (place().with("trap.wat", "(module (func (export \"_start\") unreachable))"), server.bucket());
    server.put(&bucket, "in", "1\n2\n");
    let line = format!("-i s3://{bucket}/in -o s3://{bucket}/out");
    let mut failing = place.command(&format!("map trap.wat --device cpu --fail-fast {line}"));
    let address = format!("http://{}", server.address());
    failing.env("AWS_ENDPOINT_URL", address).env("AWS_ACCESS_KEY_ID", "somebody").env("AWS_SECRET_ACCESS_KEY", SECRET);
    assert_eq!(Ran::from(failing.output().unwrap()).code, Some(1));
    run(&place, server.address(), &line).gives(2, "").says(&["is unfinished", "--resume", "--force"]);
    run(&place, server.address(), &format!("{line} --resume"))
        .gives(2, "")
        .says(&["the program has changed since the unfinished run"]);
    assert_eq!(server.uploads(&bucket), 1);
    run(&place, server.address(), &format!("{line} --force")).gives(0, "");
    assert_eq!(server.get(&bucket, "out").as_deref(), Some(&b"1\n2\n"[..]));
    assert_eq!(server.uploads(&bucket), 0, "the first upload was not given up");
    run(&place, server.address(), &format!("{line} --resume")).gives(2, "").says(&["has no journal"]);
}

fn an_object_that_changes_is_not_mapped_to_its_end(server: &Server) {
    let (place, bucket, text) = (place(), server.bucket(), lines(60 << 20));
    server.put(&bucket, "in", &text);
    // So slow that it is under way when the object changes.
    let proxy = Proxy::start(server.address(), Faults::Slow);
    let mut child = map(&place, proxy.address(), &format!("-i s3://{bucket}/in -o out"));
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while proxy.requests() < 3 {
        thread::sleep(Duration::from_millis(5));
    }
    server.put(&bucket, "in", &text[..text.len() - 2]);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.says(&["changed while it was read"]);
}

fn what_cannot_be_is_said(server: &Server) {
    let (place, bucket) = (place().with("in", "1\n"), server.bucket());
    server.put(&bucket, "in", "1\n");
    let cases = [
        (format!("-i s3://{bucket}/missing"), 1, "there is no s3://"),
        ("-i s3://no-such-bucket/in".into(), 1, "there is no s3://no-such-bucket/in"),
        ("-i s3://".into(), 2, "it names no"),
        ("-i ftp://host/in".into(), 2, "it must begin with s3://, gs://, https:// or http://"),
        ("-i https://me:pass@host/in".into(), 2, "it must not contain a name or a password"),
        ("-i https://host/in?X-Amz-Signature=abc".into(), 2, "it must not contain a question"),
        ("-i in -o https://host/out".into(), 1, "only objects of s3:// and gs:// can"),
        (format!("-i s3://{bucket}/in -o s3://{bucket}/in"), 2, "the input would be overwritten"),
        (format!("-i in -o s3://{bucket}/out/"), 2, "is a folder; only --split files writes one"),
    ];
    for (line, code, text) in cases {
        run(&place, server.address(), &line).gives(code, "").says(&[text]);
    }
    // Nobody listens there.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    run(&place, closed, &format!("-i s3://{bucket}/in")).gives(75, "").says(&["s3://"]);
}

/// Each costs time, and money.
fn few_requests_are_made(server: &Server) {
    let (place, bucket) = (place(), server.bucket());
    server.put(&bucket, "in", "1\n");
    let proxy = Proxy::start(server.address(), Faults::Slow);
    run(&place, proxy.address(), &format!("-i s3://{bucket}/in -o s3://{bucket}/out")).gives(0, "");
    // What the input is, and its bytes; whether there is a journal, and what the output is; the upload's beginning, its part and its
    // end; and the journal: written at the beginning, before the end, and removed.
    assert_eq!(proxy.requests(), 10);
}

fn a_profile_is_not_passed_over(server: &Server) {
    let place = place();
    let mut command = place.command("map cat.wat --device cpu -i s3://bucket/in");
    command.env("AWS_PROFILE", "work").env("AWS_ENDPOINT_URL", format!("http://{}", server.address()));
    let says =
        "profiles are not read; export its keys first: eval \"$(aws configure export-credentials --format env)\"";
    Ran::from(command.output().unwrap()).gives(2, "").says(&["s3://bucket/in: AWS_PROFILE is set", says]);
    // Keys are nearer than a profile.
    let bucket = server.bucket();
    server.put(&bucket, "in", "1\n");
    let mut command = map(&place, server.address(), &format!("-i s3://{bucket}/in"));
    Ran::from(command.env("AWS_PROFILE", "work").output().unwrap()).gives(0, "1\n");
}

fn secrets_are_not_shown(server: &Server) {
    let (place, bucket) = (place(), server.bucket());
    for line in
        [format!("-i s3://{bucket}/missing -v"), format!("-i s3://{bucket}/ -v"), "-i s3://b/k -o s3://b/l -v".into()]
    {
        let ran = run(&place, server.address(), &line);
        assert!(!ran.stderr.contains(SECRET) && !ran.stderr.contains("somebody"), "{ran:?}");
    }
    // Nor in a journal.
    server.put(&bucket, "in", "1\n");
    let trap = "(module (func (export \"_start\") unreachable))";
    let place = place.with("cat.wat", trap);
    run(&place, server.address(), &format!("-i s3://{bucket}/in -o s3://{bucket}/out --fail-fast"));
    let journal = server.get(&bucket, "out.gpu-run-map").unwrap();
    let journal = String::from_utf8(journal).unwrap();
    assert!(journal.contains("s3://") && !journal.contains(SECRET) && !journal.contains("somebody"), "{journal}");
}
