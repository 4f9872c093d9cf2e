//! `gpu-run bench`, from the command line to the table, the JSON and the picture. Built with the feature `bench` only.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use support::wat;
use tempfile::TempDir;

const TRAP: &str = r#"(module (memory (export "memory") 1) (func (export "_start") unreachable))"#;

/// A folder with programs, and what gpu-run makes of them there.
struct Place(TempDir);

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Place {
    fn with(programs: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("set")).unwrap();
        for (name, text) in programs {
            std::fs::write(folder.path().join("set").join(name), text).unwrap();
        }
        Self(folder)
    }

    fn bench(&self, line: &str) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
        command.arg("bench").args(line.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null());
        let output = command.env_remove("GPU_RUN_BENCHES").env("GPU_RUN_CACHE", "off").output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    fn read(&self, file: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.0.path().join(file)).unwrap()
    }
}

fn positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|value| value > 0.0)
}

#[test]
fn two_programs_give_a_table_json_and_a_picture() {
    let place = Place::with(&[
        ("number.wat", wat!("bench/number")),
        ("sum.wat", wat!("bench/sum")),
        ("notes.txt", "not a program"),
    ]);
    let ran = place.bench("--set set --device cpu --instances 40 --seconds 0.2 --json out.json");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stderr, "");

    let rows: Vec<&str> = ran.stdout.lines().filter(|line| line.contains('×')).collect();
    let [number, sum, mean] = rows.as_slice() else { panic!("{}", ran.stdout) };
    assert!(number.starts_with("number ") && sum.starts_with("sum ") && mean.starts_with("geometric mean "));
    assert!(ran.stdout.contains("40 instances"), "{}", ran.stdout);

    let json: Value = serde_json::from_str(&place.read("out.json")).unwrap();
    assert_eq!((&json["instances"], &json["device"]["id"]), (&40.into(), &"cpu".into()));
    assert!(positive(&json["geometric_mean"]) && positive(&json["host"]["threads"]), "{json}");
    let programs = json["programs"].as_array().unwrap();
    assert_eq!(programs.iter().map(|program| program["name"].as_str().unwrap()).collect::<Vec<_>>(), ["number", "sum"]);
    for program in programs {
        for field in ["wasm_bytes", "device_per_second", "wasmtime_per_second", "ratio", "device_latency_seconds"] {
            assert!(positive(&program[field]), "{field}: {program}");
        }
        for field in ["wasmtime_latency_seconds", "to_ptx_seconds", "load_seconds", "warm_start_seconds"] {
            assert!(positive(&program[field]), "{field}: {program}");
        }
        assert!(program["error"].is_null(), "{program}");
        assert!(program["handwritten_cuda_per_second"].is_null(), "{program}");
    }

    let svg = place.read("gpu-run-bench.svg");
    well_formed(&svg);
    assert!(svg.contains(">number</text>") && svg.contains(">sum</text>") && svg.contains("geometric mean"), "{svg}");
}

#[test]
fn a_program_that_differs_is_an_error_that_names_it_and_the_others_go_on() {
    let place =
        Place::with(&[("random.wat", wat!("bench/random")), ("sum.wat", wat!("bench/sum")), ("trap.wat", TRAP)]);
    let ran = place.bench("--set set --device cpu --instances 8 --seconds 0.1 --json - --svg picture.svg");
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    for part in [
        "error: random: instance 0 does not print the same as under Wasmtime",
        "error: trap: one instance alone: on the device, instance 0: unreachable",
        "geometric mean",
    ] {
        assert!(ran.stderr.contains(part), "{part:?} is not in:\n{}", ran.stderr);
    }
    // With JSON on stdout nothing else is there.
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let programs = json["programs"].as_array().unwrap();
    assert!(programs[0]["error"].as_str().unwrap().contains("instance 0"), "{json}");
    assert!(programs[1]["ratio"].as_f64().is_some(), "{json}");
    assert!(programs[2]["error"].as_str().unwrap().contains("unreachable"), "{json}");
    let svg = place.read("picture.svg");
    well_formed(&svg);
    assert_eq!(svg.matches(">failed</text>").count(), 2, "{svg}");
}

#[test]
fn files_can_be_named_and_filtered() {
    let place = Place::with(&[("sum.wat", wat!("bench/sum")), ("other.wat", wat!("bench/sum"))]);
    let ran = place.bench("set/sum.wat set/other.wat --filter um --device cpu --instances 2 --seconds 0.1");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("\nsum ") && !ran.stdout.contains("other"), "{}", ran.stdout);
}

#[test]
fn a_missing_set_says_how_to_build_it() {
    let place = Place::with(&[]);
    for (line, parts) in [
        ("", ["is not built", "scripts/build-benches"]),
        ("--set set", ["set contains no .wasm", ""]),
        ("--set nowhere", ["nowhere", "No such file"]),
    ] {
        let ran = place.bench(line);
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.stderr);
        assert!(parts.iter().all(|part| ran.stderr.contains(part)), "{line}: {}", ran.stderr);
    }
}

/// A program, and records for it.
fn with_records(program: &str, records: &str) -> Place {
    let place = Place::with(&[("app.wat", program)]);
    std::fs::write(place.0.path().join("records"), records).unwrap();
    place
}

#[test]
fn a_program_of_ones_own_with_records_of_ones_own_is_compared_and_judged() {
    let place = with_records(wat!("bench/echo"), "one\n3 ends with a code\n!traps\nfour\n");
    let ran = place.bench("set/app.wat -i records --batch 50 --device cpu --seconds 0.1 --json out.json");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    for part in ["records a second", "one record alone", "start, first run", "orth it", "4 records like these: about "]
    {
        assert!(ran.stdout.contains(part), "{part:?} is not in:\n{}", ran.stdout);
    }
    assert!(ran.stdout.contains("Outputs are the same for all "), "{}", ran.stdout);
    assert!(!place.0.path().join("gpu-run-bench.svg").exists());
    let json: Value = serde_json::from_str(&place.read("out.json")).unwrap();
    assert_eq!((&json["records"], &json["records_at_once"]), (&4.into(), &50.into()));
    let compared = json["compared"].as_u64().unwrap();
    assert!(compared > 0 && json["failed"].as_u64().unwrap() * 2 <= compared + 2, "{json}");
    for side in ["on_device", "under_wasmtime"] {
        for figure in ["per_second", "latency_seconds", "first_start_seconds"] {
            assert!(json[side][figure].as_f64().is_some_and(|value| value > 0.0), "{side} {figure}: {json}");
        }
    }
    assert_eq!(json["different"].as_array().unwrap().len(), 0);
    assert!(json["pays_from_records"].get("first_run").is_some(), "{json}");
}

#[test]
fn records_that_give_something_else_under_wasmtime_are_told() {
    let place = with_records(wat!("bench/random"), "a\nb\n");
    let ran = place.bench("set/app.wat -i records --batch 10 --device cpu --seconds 0.1 --json -");
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    for part in ["Outputs DIFFER for ", "first for record 0", "device:   \"", "Wasmtime: \""] {
        assert!(ran.stderr.contains(part), "{part:?} is not in:\n{}", ran.stderr);
    }
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["different"].as_array().unwrap().len() as u64, json["compared"].as_u64().unwrap());
}

#[test]
fn records_are_split_and_given_as_map_does() {
    // Prints its arguments: {} is the record; the header of a table is no record.
    let arguments =
        wat!("bench/number").replace("environ_sizes_get", "args_sizes_get").replace("environ_get", "args_get");
    let place = with_records(&arguments, "head\na\nb\n");
    let ran = place.bench("set/app.wat -i records --split csv --batch 4 --device cpu --seconds 0.1 --json out -- x={}");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let json: Value = serde_json::from_str(&place.read("out")).unwrap();
    assert_eq!((&json["records"], json["different"].as_array().unwrap().len()), (&2.into(), 0));
}

#[test]
fn mistakes_with_records_are_named() {
    let place = with_records(wat!("bench/echo"), "");
    for (line, part) in [
        ("set/app.wat -i records", "no record of the input can be run"),
        ("set/app.wat set/app.wat -i records", "--input needs exactly one program"),
        ("set/app.wat -i nowhere", "nowhere"),
        ("-i records", "required"),
        ("set/app.wat --split csv", "--input"),
        ("set/app.wat --dir .", "--dir only with --input"),
    ] {
        let ran = place.bench(&format!("{line} --device cpu"));
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{line}: {}", ran.stderr);
    }
}

/// Every element is closed in its turn, and nothing but entities begins with an ampersand.
#[track_caller]
fn well_formed(svg: &str) {
    let mut open = Vec::new();
    let mut rest = svg;
    while let Some(begin) = rest.find('<') {
        assert!(
            !rest[..begin].contains('>') || open.last() == Some(&"style"),
            "a stray > before {:.40}",
            &rest[begin..]
        );
        let end = begin + rest[begin..].find('>').unwrap();
        let tag = &rest[begin + 1..end];
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "in {svg}");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} is not closed");
    for (at, _) in svg.match_indices('&') {
        assert!(["&amp;", "&lt;", "&gt;"].iter().any(|entity| svg[at..].starts_with(entity)), "{:.20}", &svg[at..]);
    }
}

#[test]
fn host_calls_are_measured_alone() {
    let place = Place::with(&[]);
    let ran = place.bench("hostcalls --device cpu --instances 300 --json calls.json");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("host calls: ") && !ran.stdout.contains("Wasmtime"), "{}", ran.stdout);
    let value: Value = serde_json::from_str(&place.read("calls.json")).unwrap();
    let calls = &value["host_calls"];
    assert_eq!((&calls["instances"], &calls["round_trips_measured"]), (&300.into(), &319_968.into()));
    assert!(calls["per_second"].as_f64().unwrap() > 0.0);
    assert!(calls["round_trip_p50_seconds"].as_f64().unwrap() <= calls["round_trip_p99_seconds"].as_f64().unwrap());
}

#[test]
fn threads_of_both_sides_are_measured_and_compute_the_same() {
    let place = Place::with(&[]);
    let ran = place.bench("threads --device cpu --seconds 0.05 --json out.json");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    for part in ["spawn and join, std::thread, p50", "locks of one Mutex, 1024 threads", "Mandelbrot set, 63 and"] {
        assert!(ran.stdout.contains(part), "{part:?} is not in:\n{}", ran.stdout);
    }
    let json: Value = serde_json::from_str(&place.read("out.json")).unwrap();
    for key in [
        "spawn_p50_ns",
        "lock_ns",
        "contended_32_per_second",
        "contended_1024_per_second",
        "starved_ns",
        "wake_p99_ns",
        "oversleep_p50_ns",
        "mandelbrot_ns",
        "sha256_started_ns",
    ] {
        assert!(positive(&json[key]["device"]) && positive(&json[key]["host"]), "{key}: {json}");
    }
    for key in ["raw_spawn_p50_ns", "raw_wake_p99_ns"] {
        assert!(positive(&json[key]["device"]) && json[key]["host"].is_null(), "{key}: {json}");
    }
}

#[test]
fn options_of_bench_threads_are_refused_elsewhere() {
    let place = Place::with(&[]);
    for option in ["--threads 8", "--thread-placement warp"] {
        let ran = place.bench(&format!("machine {option}"));
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("only `gpu-run bench threads` takes --thread"), "{}", ran.stderr);
    }
}
