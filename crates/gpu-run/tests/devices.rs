//! An engine with several devices. `GPU_RUN_TEST_FAULT` counts the launches of a process, so tests that lose devices run in one of their
//! own.

#![allow(clippy::unwrap_used)] // In a test, that is an assertion.

use gpu_run::{Config, Engine, Error, Mapper, Module};
use std::process::Command;

const VARIABLE: &str = "GPU_RUN_TEST_FAULT";

/// Prints its stdin.
const ECHO: &str = r#"
    (module
        (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 0) "\40\00\00\00\00\04\00\00")
        (func (export "_start")
            (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 4)))
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))
"#;

/// Maps so many records with batches of seven; returns the outputs before the first error, and the error.
fn echo(devices: &str, records: usize) -> (Vec<String>, Option<Error>) {
    let engine = Engine::new(&Config::new().device(devices).no_cache()).unwrap();
    let module = Module::new(&engine, ECHO).unwrap();
    let mut mapper = Mapper::builder(&module).batch(7).build().unwrap();
    let (mut outputs, mut failed) = (Vec::new(), None);
    let mut all = mapper.map((0..records).map(|i| format!("record {i}")));
    while let Some(output) = all.next() {
        match output {
            Ok(output) => outputs.push(String::from_utf8(output.stdout).unwrap()),
            Err(error) => {
                failed = Some(error);
                assert!(all.next().is_none(), "an error is the last item");
            }
        }
    }
    (outputs, failed)
}

fn expected(records: usize) -> Vec<String> {
    (0..records).map(|i| format!("record {i}")).collect()
}

#[test]
fn outputs_of_several_devices_are_in_the_order_of_the_records() {
    for devices in ["cpu", "cpu:0,1", "cpu:3,1,2"] {
        let (outputs, failed) = echo(devices, 200);
        assert!(outputs == expected(200) && failed.is_none(), "{devices}: {failed:?}");
    }
    let engine = Engine::new(&Config::new().device("cpu:3,1").no_cache()).unwrap();
    assert_eq!((engine.device(), engine.devices().collect::<Vec<_>>()), ("cpu:3", vec!["cpu:3", "cpu:1"]));
}

#[test]
fn a_list_that_makes_no_sense_is_refused() {
    for (devices, part) in [("cpu:0,0", "twice"), ("cuda:0,cpu", "mixes"), ("gpu", "there is no device `gpu`")] {
        let error = Engine::new(&Config::new().device(devices).no_cache()).unwrap_err().to_string();
        assert!(error.contains(devices) && error.contains(part), "{error}");
    }
}

/// Runs this test again with each of the plans, in a process of its own.
#[track_caller]
fn with_plans(plans: impl IntoIterator<Item = String>, test: &str, body: impl FnOnce()) {
    if std::env::var_os(VARIABLE).is_some() {
        return body();
    }
    for plan in plans {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", test]).env(VARIABLE, &plan).output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("1 passed"), "{plan}: {text}");
    }
}

#[test]
fn a_device_lost_anywhere_leaves_its_records_to_the_others() {
    let plans = (1..=16).map(|launch| format!("launch:{launch}"));
    with_plans(plans, "a_device_lost_anywhere_leaves_its_records_to_the_others", || {
        let (outputs, failed) = echo("cpu:0,1,2", 60);
        assert!(outputs == expected(60) && failed.is_none(), "{failed:?}");
    });
}

#[test]
fn where_no_device_is_left_the_outputs_end_with_an_error() {
    let plans = ["launch:1,2", "launch:5,8"].map(str::to_owned);
    with_plans(plans, "where_no_device_is_left_the_outputs_end_with_an_error", || {
        let (outputs, failed) = echo("cpu:0,1", 200);
        assert!(outputs.len() < 200 && expected(200).starts_with(&outputs), "{} outputs", outputs.len());
        let Some(Error::Device(what)) = failed else { panic!("{failed:?}") };
        assert!(what.contains("GPU_RUN_TEST_FAULT"), "{what}");
    });
}
