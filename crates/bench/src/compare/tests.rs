//! What is made of figures, without measuring any.

use super::hostcalls::HostCalls;
use super::set::{Report, Row};
use super::*;
use gpu_run_console::units::show_count;
use measure::Figures;

pub(super) fn figures(device_rate: f64, wasmtime_rate: f64, handwritten_rate: Option<f64>) -> Figures {
    Figures {
        device_rate,
        wasmtime_rate,
        handwritten_rate,
        device_latency: Duration::from_millis(37),
        wasmtime_latency: Duration::from_micros(950),
        to_ptx: Duration::from_millis(31),
        load: Duration::from_secs(2),
        warm_start: None,
        build: None,
    }
}

pub(super) fn row(name: &str, figures: Result<Figures, String>) -> Row {
    Row { name: name.into(), wasm_bytes: 70_000, figures }
}

pub(super) fn report() -> Report {
    let setting = Setting {
        device: "cuda:0".into(),
        device_name: "NVIDIA <Card> & Co".into(),
        driver: Some("580.159.04".into()),
        host: "A Processor".into(),
        threads: 16,
        instances: 65_536,
    };
    let rows = vec![
        row("fast", Ok(figures(1e6, 1e3, Some(5e6)))),
        row("slow", Ok(figures(500.0, 5e4, None))),
        row("broken", Err("on the device, instance 3: unreachable\n  in f (function 1), at offset 0x2".into())),
    ];
    let calls = HostCalls {
        one: Duration::from_nanos(2_900),
        p50: Duration::from_nanos(3_200),
        p99: Duration::from_micros(9),
        measured: 319_968,
        per_second: 5.1e6,
        instances: 65_536,
        idle: Some(0.021),
    };
    Report { setting, rows, host_calls: Some(Ok(calls)) }
}

#[test]
fn the_mean_is_geometric_and_leaves_failures_out() {
    let mean = report().geometric_mean().unwrap();
    assert!((mean - 10f64.sqrt()).abs() < 1e-9, "{mean}"); // of 1000 and 1/100
    assert_eq!(Report { rows: Vec::new(), ..report() }.geometric_mean(), None);
}

#[test]
fn columns_of_the_table_line_up() {
    let report = report();
    let names: Vec<&str> = report.rows.iter().map(|row| row.name.as_str()).collect();
    let table = table::Table::new(&report.setting, &names, true);
    let heading = table.heading();
    let titles = heading.lines().last().unwrap();
    let [fast, slow, broken] = [0, 1, 2].map(|at| table.row(&report.rows[at]));
    let column = |line: &str, text: &str| line[..line.find(text).unwrap() + text.len()].chars().count();
    assert_eq!(column(titles, "Wasmtime/s"), column(&fast, "1.00 k"));
    assert_eq!(column(titles, "ratio"), column(&fast, "1000×"));
    assert_eq!(column(titles, "ratio"), column(&slow, "0.010×"));
    assert_eq!(column(titles, "of it"), column(&fast, "20 %"));
    assert_eq!(broken, "broken          failed: on the device, instance 3: unreachable\n");
    assert!(table.footing(&report).contains("3.16×"));
}

#[test]
fn the_picture_shows_every_program_and_is_xml() {
    let svg = chart::svg(&report());
    for part in
        ["fast", "slow", "broken", "failed", "1000×", "0.010×", "1/100×", "3.16×", "NVIDIA &lt;Card&gt; &amp; Co"]
    {
        assert!(svg.contains(part), "{part} is not in:\n{svg}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn a_picture_of_nothing_can_still_be_drawn() {
    let rows = vec![row("a\u{1}b", Err("no".into())), row(&"long".repeat(9), Err("no".into()))];
    let svg = chart::svg(&Report { rows, ..report() });
    assert!(
        svg.contains("a?b") && svg.contains("longlonglonglon…<") && svg.contains("10×") && !svg.contains("NaN"),
        "{svg}"
    );
}

#[test]
fn json_has_null_for_what_was_not_measured() {
    let value: serde_json::Value = json::value(&report());
    let [fast, _, broken] = value["programs"].as_array().unwrap().as_slice() else { panic!("{value}") };
    assert_eq!(fast["ratio"], 1000.0);
    assert_eq!(fast["handwritten_cuda_per_second"], 5e6);
    assert_eq!(fast["error"], serde_json::Value::Null);
    assert_eq!(fast["warm_start_seconds"], serde_json::Value::Null);
    assert_eq!(broken["ratio"], serde_json::Value::Null);
    assert!(broken["error"].as_str().unwrap().contains("unreachable"));
    assert_eq!(value["device"]["driver"], "580.159.04");
    assert_eq!(
        (&value["host_calls"]["per_second"], &value["host_calls"]["error"]),
        (&5.1e6.into(), &serde_json::Value::Null)
    );
}

#[test]
fn host_calls_are_told_in_three_lines() {
    let calls = report().host_calls.unwrap();
    let expected = "host calls: 2.90 µs p50 round trip for one instance; 3.20 µs p50, 9.00 µs p99 for one warp (319,968 calls)\n            \
                    5.10 M a second from 65,536 instances\n            2.1 % of a core while guests only compute\n";
    assert_eq!(hostcalls::text(&calls), expected);
    assert_eq!(hostcalls::text(&Err("no\nmore".into())), "host calls: failed: no\n");
}

#[test]
fn numbers_have_three_digits_that_matter() {
    assert_eq!(
        [0.4, 12.34, 999.4, 999.6, 887_123.0, 1.234e6, 2e9].map(show_count),
        ["0.40", "12.3", "999", "1.00 k", "887 k", "1.23 M", "2.00 G"]
    );
    assert_eq!([0.0754, 0.42, 6.54, 215.4, 1234.0].map(show_ratio), ["0.075×", "0.42×", "6.54×", "215×", "1234×"]);
    assert_eq!([1, 999, 1000, 65_536, 1_000_000].map(show_grouped), ["1", "999", "1,000", "65,536", "1,000,000"]);
}

#[test]
fn the_version_of_wasmtime_is_the_one_that_is_built_in() {
    let manifest = include_str!("../../../../Cargo.toml");
    let wanted = format!("\nwasmtime = {{ version = \"={}\"", on_wasmtime::VERSION);
    assert!(manifest.contains(&wanted), "{wanted:?} is not in Cargo.toml");
}

#[test]
fn the_drivers_version_is_found_in_both_kinds_of_module() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("version");
    for line in [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Jan 1 2026",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build",
    ] {
        std::fs::write(&file, line).unwrap();
        assert_eq!(driver_version(file.to_str().unwrap()).as_deref(), Some("580.159.04"));
    }
    assert_eq!(driver_version("/no/such/file"), None);
}
