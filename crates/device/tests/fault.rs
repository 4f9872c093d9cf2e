//! A device that is lost: what it refuses, and that another one takes its place. `GPU_RUN_TEST_FAULT` counts the launches of
//! a process, so each test runs in one of its own.
#![allow(clippy::unwrap_used)]

mod support;

use gpu_run_device::{Arg, Device, Error, Module, Result, open};
use std::process::Command;
use std::sync::Arc;
use support::{grid, load, run, strict};

const STORE: &str = "
.visible .entry store (.param .u64 at)
{
    .reg .b64 %d<1>;
    ld.param.u64 %d0, [at];
    st.global.u64 [%d0], %d0;
    ret;
}
";

/// In the environment asked for, does it; else starts the test of this name there.
#[track_caller]
fn with_plan(plan: &str, test: &str, body: impl FnOnce()) {
    const VARIABLE: &str = "GPU_RUN_TEST_FAULT";
    if std::env::var_os(VARIABLE).is_some() {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", test]).env(VARIABLE, plan).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_lost_device_refuses_everything_and_a_new_one_works() {
    with_plan("launch:2", "a_lost_device_refuses_everything_and_a_new_one_works", || {
        let device = strict();
        let (module, buffer) = (load(&device, STORE), device.allocate(64).unwrap());
        store(&device, &module).unwrap();
        let error = store(&device, &module).unwrap_err();
        assert!(error.is_lost() && error.to_string().contains("GPU_RUN_TEST_FAULT"), "{error}");
        let refused: [Result<()>; 6] = [
            device.allocate(8).map(drop),
            device.share(8).map(drop),
            device.load(support::HEADER).map(drop),
            buffer.write(0, &[1]),
            buffer.read(0, &mut [0]),
            run(&module, "store", grid(1, 1), &[Arg::U64(buffer.address())]),
        ];
        for result in refused {
            assert!(result.is_err_and(|error| error.is_lost()));
        }
        assert!(buffer.zero(0, 8).is_err_and(|error| error.is_lost()));
        let fresh = open(&device.properties().id).unwrap();
        store(&fresh, &load(&fresh, STORE)).unwrap();
    });
}

#[test]
fn a_plan_that_is_not_understood_changes_nothing() {
    with_plan("the second, please", "a_plan_that_is_not_understood_changes_nothing", || {
        let device = strict();
        let module = load(&device, STORE);
        (0..5).for_each(|_| store(&device, &module).unwrap());
    });
}

#[test]
fn devices_are_opened_by_their_id() {
    assert_eq!(open("cpu").unwrap().properties().id, "cpu");
    for id in ["", "gpu", "cuda", "cuda:", "cuda:x"] {
        assert!(matches!(open(id), Err(Error::Unavailable(message)) if message.contains(id)), "{id}");
    }
}

fn store(device: &Arc<dyn Device>, module: &Arc<dyn Module>) -> Result<()> {
    let buffer = device.allocate(8)?;
    run(module, "store", grid(1, 1), &[Arg::U64(buffer.address())])
}
