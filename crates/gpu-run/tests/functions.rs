//! Functions of the embedder: what goes in, what comes out, and what happens when they fail.

#![allow(clippy::unwrap_used)] // In a test, that is an assertion.

use gpu_run::{Caller, Command, Config, Engine, Error, Interrupt, Linker, Mapper, Module, Status, Store, Value, Words};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// `cpu`, or what `GPU_RUN_TEST_DEVICE` says, as `scripts/gpu-test` does.
static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let device = std::env::var("GPU_RUN_TEST_DEVICE").unwrap_or_else(|_| "cpu".into());
    Engine::new(&Config::new().device(device).no_cache()).unwrap()
});

fn module(wat: &str) -> Module {
    Module::new(&ENGINE, wat).unwrap()
}

macro_rules! wat {
    ($name:literal) => {
        module(include_str!(concat!("wat/", $name, ".wat")))
    };
}

#[test]
fn numbers_of_every_type_arrive_and_come_back() {
    let mut linker = Linker::new(&ENGINE);
    linker.function("host", "i32", |x: i32| x.wrapping_neg()).unwrap();
    linker.function("host", "i64", |x: u64| x.rotate_left(32)).unwrap();
    linker.function("host", "f32", |x: f32| x).unwrap();
    linker.function("host", "f64", |x: f64| -x).unwrap();
    let eight = |a: u32, b: i64, c: f32, d: f64, e: i32, f: i64, g: f32, h: f64| {
        a as f64 + b as f64 + c as f64 + d + e as f64 + f as f64 + g as f64 + h
    };
    linker.function("host", "eight", eight).unwrap();
    let mut store = Store::new(&ENGINE, ());
    let instance = linker.instantiate(&mut store, &wat!("numbers")).unwrap();
    let of_i32 = instance.typed::<i32, i32>(&store, "i32").unwrap();
    for x in [0, 1, -1, i32::MAX, i32::MIN] {
        assert_eq!(of_i32.call(&mut store, x).unwrap(), x.wrapping_neg());
    }
    let of_i64 = instance.typed::<u64, u64>(&store, "i64").unwrap();
    assert_eq!(of_i64.call(&mut store, 0x0123_4567_89ab_cdef).unwrap(), 0x89ab_cdef_0123_4567);
    let of_f32 = instance.typed::<f32, f32>(&store, "f32").unwrap();
    let bits = f32::from_bits(0x7fa0_0001);
    assert_eq!(of_f32.call(&mut store, bits).unwrap().to_bits(), bits.to_bits());
    let of_f64 = instance.typed::<f64, f64>(&store, "f64").unwrap();
    assert_eq!(of_f64.call(&mut store, f64::INFINITY).unwrap(), f64::NEG_INFINITY);
    let eight = instance.typed::<(u32, i64, f32, f64, i32, i64, f32, f64), f64>(&store, "eight").unwrap();
    assert_eq!(eight.call(&mut store, (1, 2, 3.0, 4.0, 5, 6, 7.0, 8.0)).unwrap(), 36.0);
}

fn strings() -> Linker<()> {
    let mut linker = Linker::new(&ENGINE);
    linker.function("host", "length", |bytes: Vec<u8>| bytes.len() as u64).unwrap();
    linker.function("host", "reversed", |bytes: Vec<u8>| bytes.into_iter().rev().collect::<Vec<u8>>()).unwrap();
    linker.function("host", "joined", |a: String, n: i64, b: String, f: f64| format!("{a} {n} {b} {f}")).unwrap();
    linker
}

#[test]
fn text_and_bytes_of_any_length_arrive_and_come_back() {
    let mut store = Store::new(&ENGINE, ());
    let instance = strings().instantiate(&mut store, &wat!("strings")).unwrap();
    let joined = instance.typed::<i32, u32>(&store, "joined").unwrap();
    let count = joined.call(&mut store, 1000).unwrap();
    let mut text = vec![0; count as usize];
    instance.read(&mut store, 1000, &mut text).unwrap();
    assert_eq!(text, b"gpu -7 run 1.5");

    let length = instance.typed::<(u32, u32), u64>(&store, "length").unwrap();
    let reversed = instance.typed::<(u32, u32, u32, u32), u32>(&store, "reversed").unwrap();
    // A port's payload has 64 KiB: longer input comes in several packets, longer output is fetched in several.
    for count in [0u32, 1, 7, 8, 511, 65_535, 65_536, 65_537, 300_001, (1 << 20) - 64] {
        let bytes: Vec<u8> = (0..count).map(|i| (i * 7 + i / 251) as u8).collect();
        instance.write(&mut store, 4096, &bytes).unwrap();
        assert_eq!(length.call(&mut store, (4096, count)).unwrap(), u64::from(count));
        let to = 4096 + (1 << 20);
        assert_eq!(reversed.call(&mut store, (4096, count, to, count)).unwrap(), count);
        let mut back = vec![0; count as usize];
        instance.read(&mut store, to.into(), &mut back).unwrap();
        assert!(back.iter().eq(bytes.iter().rev()), "{count} bytes");
    }
}

#[test]
fn a_guest_that_has_little_room_gets_the_first_bytes_and_their_number() {
    let mut store = Store::new(&ENGINE, ());
    let instance = strings().instantiate(&mut store, &wat!("strings")).unwrap();
    let reversed = instance.typed::<(u32, u32, u32, u32), u32>(&store, "reversed").unwrap();
    instance.write(&mut store, 500, b"abcdef").unwrap();
    instance.write(&mut store, 600, b"......").unwrap();
    assert_eq!(reversed.call(&mut store, (500, 6, 600, 2)).unwrap(), 6);
    let mut bytes = [0; 6];
    instance.read(&mut store, 600, &mut bytes).unwrap();
    assert_eq!(&bytes, b"fe....");
}

#[test]
fn pointers_outside_of_the_memory_trap() {
    let module = wat!("strings");
    let mut store = Store::new(&ENGINE, ());
    let instance = strings().instantiate(&mut store, &module).unwrap();
    let length = instance.typed::<(u32, u32), u64>(&store, "length").unwrap();
    let reversed = instance.typed::<(u32, u32, u32, u32), u32>(&store, "reversed").unwrap();
    let end = 40 << 16;
    for (at, count) in [(end, 1), (end - 1, 2), (u32::MAX, 1), (0, 1 << 20), (0, u32::MAX)] {
        assert!(matches!(length.call(&mut store, (at, count)), Err(Error::Trap(_))), "{count} bytes at {at}");
    }
    assert!(matches!(reversed.call(&mut store, (0, 8, end - 4, 8)), Err(Error::Trap(_))));
    assert!(matches!(reversed.call(&mut store, (0, 8, u32::MAX - 2, u32::MAX)), Err(Error::Trap(_))));
    // The instance is as before.
    assert_eq!(length.call(&mut store, (end - 1, 1)).unwrap(), 1);
}

fn ends() -> Linker<u32> {
    let mut linker = Linker::new(&ENGINE);
    linker.function("host", "fail", || Err::<(), _>("no more of that")).unwrap();
    let panic = |caller: Caller<'_, u32>| assert_eq!(*caller.data(), 1, "not one");
    linker.function("host", "panic", panic).unwrap();
    linker
}

#[test]
fn every_end_of_a_call_is_its_own_error() {
    let mut store = Store::new(&ENGINE, 0);
    let instance = ends().instantiate(&mut store, &wat!("ends")).unwrap();
    let calls = |store: &mut Store<u32>| instance.global(store, "calls").unwrap().unwrap();
    instance.call(&mut store, "returns", &[]).unwrap();
    let trapped = instance.call(&mut store, "traps", &[]).unwrap_err();
    assert!(matches!(&trapped, Error::Trap(trap) if trap.code.message() == "unreachable"), "{trapped}");
    let failed = instance.call(&mut store, "fails", &[]).unwrap_err();
    assert_eq!(failed.to_string(), "`host.fail` failed: no more of that");
    assert_eq!(calls(&mut store), Value::I32(3), "a function that fails ends the call");
    let panicked = instance.call(&mut store, "panics", &[]).unwrap_err().to_string();
    assert!(panicked.starts_with("`host.panic` failed: it panicked: ") && panicked.contains("not one"), "{panicked}");
    *store.data_mut() = 1;
    instance.call(&mut store, "panics", &[]).unwrap();
    store.set_timeout(Some(Duration::from_millis(50)));
    let late = instance.call(&mut store, "never", &[]).unwrap_err();
    assert!(matches!(late, Error::Timeout(_)), "{late}");
    store.set_timeout(None);
    for function in ["exits", "returns"] {
        let exited = instance.call(&mut store, function, &[]).unwrap_err();
        assert!(matches!(exited, Error::Exit(7)), "{exited}");
    }
}

#[test]
fn calls_that_do_not_fit_are_refused_before_anything_runs() {
    let mut store = Store::new(&ENGINE, 0);
    let instance = ends().instantiate(&mut store, &wat!("ends")).unwrap();
    let missing = instance.call(&mut store, "return", &[]).unwrap_err();
    assert!(matches!(missing, Error::MissingExport(_)), "{missing}");
    let wrong = instance.call(&mut store, "returns", &[Value::I32(1)]).unwrap_err();
    assert_eq!(wrong.to_string(), "`returns` has type () -> (), but was called as (i32) -> ()");
    let wrong = instance.typed::<(), i64>(&store, "returns").unwrap_err();
    assert_eq!(wrong.to_string(), "`returns` has type () -> (), but was called as () -> (i64)");
    let mut other = Store::new(&ENGINE, 0);
    assert!(matches!(instance.call(&mut other, "returns", &[]), Err(Error::OtherStore)));
}

#[test]
fn imports_that_nobody_provides_are_named() {
    let mut store = Store::new(&ENGINE, ());
    let mut linker = Linker::new(&ENGINE);
    linker.function("host", "i32", |x: i32| x).unwrap();
    let twice = linker.function("host", "i32", |x: i32| x).unwrap_err();
    assert_eq!(twice.to_string(), "`host.i32` is provided already");
    let text = r#"(module (import "host" "i64" (func (param i64) (result i64))))"#;
    let unknown = linker.instantiate(&mut store, &module(text)).unwrap_err();
    let found = matches!(&unknown, Error::UnknownImport { module, import, .. } if module == "host" && import == "i64");
    assert!(found, "{unknown:?}");
    let text = r#"(module (import "host" "i32" (func (param i64) (result i32))))"#;
    let mismatch = linker.instantiate(&mut store, &module(text)).unwrap_err();
    assert!(matches!(&mismatch, Error::ImportType { wanted, .. } if wanted == "(i64) -> (i32)"), "{mismatch:?}");
}

#[test]
fn an_engine_of_its_own_takes_no_modules_of_others() {
    let other = Engine::new(&Config::new().device("cpu").no_cache()).unwrap();
    let mut store = Store::new(&other, ());
    let linker = Linker::new(&other);
    assert!(matches!(linker.instantiate(&mut store, &module("(module)")), Err(Error::OtherStore)));
}

/// Each record is changed by the host, with the record's number.
fn changing() -> Linker<u64> {
    let mut linker = Linker::new(&ENGINE);
    let changed = |caller: Caller<'_, u64>, text: String| {
        assert_eq!(caller.instance(), *caller.data());
        match text.contains("bad") {
            true => Err(format!("record {} is bad", caller.instance())),
            false => Ok(format!("{}: {}", caller.instance(), text.to_uppercase())),
        }
    };
    linker.function("host", "changed", changed).unwrap();
    linker
}

#[test]
fn every_instance_of_a_command_has_data_of_its_own() {
    let command = Command::new(&wat!("program")).stdin(*b"abc").functions(&changing(), |number| number);
    let outputs = command.outputs(100).unwrap();
    for (number, output) in outputs.iter().enumerate() {
        assert!(output.status.success(), "{}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{number}: ABC"));
    }
}

#[test]
fn a_record_whose_function_fails_does_not_disturb_the_others() {
    let mut mapper =
        Mapper::builder(&wat!("program")).batch(64).functions(&changing(), |number| number).build().unwrap();
    for _ in 0..2 {
        let records = (0..1000).map(|i| if i % 100 == 37 { format!("bad {i}") } else { format!("record {i}") });
        let outputs: Vec<_> = mapper.map(records).map(Result::unwrap).collect();
        assert_eq!(outputs.len(), 1000);
        for (i, output) in outputs.iter().enumerate() {
            match &output.status {
                Status::Failed { function, source } if i % 100 == 37 => {
                    assert_eq!((&function[..], source.to_string()), ("host.changed", format!("record {i} is bad")));
                }
                status => {
                    assert!(status.success() && i % 100 != 37, "record {i}: {status}");
                    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{i}: RECORD {i}"));
                }
            }
        }
    }
}

#[test]
fn outputs_that_nobody_waits_for_are_given_up() {
    let mut mapper =
        Mapper::builder(&wat!("program")).batch(16).functions(&changing(), |number| number).build().unwrap();
    for taken in [0, 1, 20] {
        let records = (0..200).map(|i| format!("record {i}"));
        assert!(mapper.map(records).take(taken).all(|output| output.unwrap().status.success()));
    }
    assert_eq!(mapper.map(["one"]).count(), 1);
    assert_eq!(mapper.map([""; 0]).count(), 0);
}

#[test]
fn functions_that_block_run_side_by_side() {
    static AT_ONCE: AtomicU64 = AtomicU64::new(0);
    let most = Arc::new(AtomicU64::new(0));
    let mut linker = Linker::new(&ENGINE);
    let seen = most.clone();
    let changed = move |text: String| {
        seen.fetch_max(AT_ONCE.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(30));
        AT_ONCE.fetch_sub(1, Ordering::SeqCst);
        text.to_uppercase()
    };
    linker.blocking_function("host", "changed", changed).unwrap();
    let mut mapper = Mapper::builder(&wat!("program")).batch(32).functions(&linker, |_| ()).build().unwrap();
    let outputs: Vec<_> = mapper.map((0..64).map(|i| format!("record {i}"))).map(Result::unwrap).collect();
    for (i, output) in outputs.iter().enumerate() {
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("RECORD {i}"), "{}", output.status);
    }
    let most = most.load(Ordering::SeqCst);
    assert!(most > 8, "only {most} ran at once");
}

#[test]
fn a_function_is_called_for_each_row() {
    let text = r#"
        (module
            (memory 1)
            (global $calls (mut i32) (i32.const 0))
            (func (export "_initialize") (global.set $calls (i32.const 100)))
            (func (export "divmod") (param i32 i64) (result i32 i64)
                (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
                (i32.div_s (local.get 0) (i32.wrap_i64 (local.get 1)))
                (i64.rem_s (i64.extend_i32_s (local.get 0)) (local.get 1)))
            (func (export "calls") (result i32)
                (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
                (global.get $calls))
            (func (export "nothing") (param f32)))"#;
    let module = module(text);
    let mut divmod = Mapper::builder(&module).function::<(i32, i64), (i32, i64)>("divmod").unwrap();
    // 64 rows are a group: fewer, as many, one more, and several batches.
    for count in [0, 1, 63, 64, 65, 1000, 100_000] {
        let rows: Vec<(i32, i64)> = (0..count).map(|i| (i * 7 - 500, i64::from(i % 9) + 1)).collect();
        let results: Vec<_> = divmod.map(rows.clone()).map(|row| row.unwrap().unwrap()).collect();
        let expected: Vec<_> = rows.iter().map(|(a, b)| (a / *b as i32, i64::from(*a) % b)).collect();
        assert_eq!(results, expected);
    }
    let mut calls = Mapper::builder(&module).function::<(), i32>("calls").unwrap();
    let results: Vec<i32> = calls.map(vec![(); 100]).map(|row| row.unwrap().unwrap()).collect();
    assert!(results.iter().zip(0..).all(|(calls, row)| *calls == 101 + row % 64), "{results:?}");
    let mut nothing = Mapper::builder(&module).function::<f32, ()>("nothing").unwrap();
    assert_eq!(nothing.map([1.0; 70]).filter(|row| matches!(row, Ok(Ok(())))).count(), 70);
}

#[test]
fn a_row_that_traps_fails_alone() {
    let text =
        r#"(module (func (export "divide") (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1))))"#;
    let mut divide = Mapper::builder(&module(text)).function::<(i32, i32), i32>("divide").unwrap();
    let rows: Vec<(i32, i32)> = (0..1000).map(|i| (i, i % 10)).collect();
    for (row, (a, b)) in divide.map(rows.clone()).zip(rows) {
        match row.unwrap() {
            Ok(result) => assert_eq!(Some(result), a.checked_div(b)),
            Err(Status::Trapped(trap)) => {
                assert_eq!((b, trap.code), (0, gpu_run::TrapCode::IntegerDivisionByZero));
                assert_eq!(trap.name.as_deref(), Some("divide"), "places are the module's own");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn functions_that_cannot_be_called_for_rows_are_refused() {
    let builder = Mapper::builder(&module(r#"(module (func (export "one\"\\") (result i32) (i32.const 1)))"#));
    assert!(matches!(builder.clone().function::<(), i32>("two"), Err(Error::MissingExport(_))));
    assert!(matches!(builder.clone().function::<i32, i32>("one\"\\"), Err(Error::Signature { .. })));
    let mut odd = builder.function::<(), i32>("one\"\\").unwrap();
    assert_eq!(odd.map([()]).next().unwrap().unwrap().unwrap(), 1);
    let shared = module(r#"(module (memory i64 1) (func (export "f")))"#);
    assert!(matches!(Mapper::builder(&shared).function::<(), ()>("f"), Err(Error::Limit(_))));
}

#[test]
fn what_a_function_prints_is_not_taken_for_results() {
    let text = r#"
        (module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 0) "\08\00\00\00\08\00\00\00printed\n")
            (func (export "f") (param i32) (result i32)
                (if (i32.eq (local.get 0) (i32.const 5))
                    (then (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 100)))))
                (local.get 0)))"#;
    let mut f = Mapper::builder(&module(text)).function::<i32, i32>("f").unwrap();
    for (i, row) in f.map(0..10).enumerate() {
        match row.unwrap() {
            Ok(result) => assert!(result == i as i32 && i != 5),
            Err(status) => assert!(i == 5 && status.to_string().contains("printed"), "{i}: {status}"),
        }
    }
}

#[test]
fn a_service_answers_whoever_asks_and_ends_with_the_last() {
    let build = || Mapper::builder(&wat!("program")).batch(16).functions(&changing(), |number| number).build().unwrap();
    let service = build().serve().unwrap();
    let ask = |thread: u32| {
        let service = service.clone();
        std::thread::spawn(move || {
            for i in 0..50 {
                let output = futures_executor::block_on(service.run(format!("{thread}.{i}"))).unwrap();
                let text = String::from_utf8(output.stdout).unwrap();
                assert!(text.ends_with(&format!(": {thread}.{i}")), "{text}");
            }
        })
    };
    (0..4).map(ask).collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    // A request that nobody waits for does not disturb the others.
    drop(service.run("dropped"));
    let failed = futures_executor::block_on(service.run("bad")).unwrap();
    assert!(matches!(failed.status, Status::Failed { .. }), "{}", failed.status);

    use futures_util::stream::{self, StreamExt};
    let records = stream::iter((0..100).map(|i| format!("record {i}")));
    let outputs = futures_executor::block_on(build().stream(records).unwrap().collect::<Vec<_>>());
    for (i, output) in outputs.into_iter().enumerate() {
        assert_eq!(String::from_utf8_lossy(&output.unwrap().stdout), format!("{i}: RECORD {i}"));
    }
}

#[test]
fn an_interrupt_ends_what_runs_and_what_would_begin() {
    let text = r#"(module (func $f (export "_start") (loop $l (br $l))) (func (export "f") (param i32) (call $f)))"#;
    let endless = module(text);
    let interrupted = |raise: &dyn Fn(&Interrupt) -> Vec<Status>| {
        let interrupt = Interrupt::new();
        let raised = interrupt.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            raised.raise();
        });
        let statuses = raise(&interrupt);
        assert!(
            !statuses.is_empty() && statuses.iter().all(|status| matches!(status, Status::Interrupted)),
            "{statuses:?}"
        );
        thread.join().unwrap();
    };
    interrupted(&|interrupt| {
        let outputs = Command::new(&endless).interrupt(interrupt).outputs(3).unwrap();
        outputs.into_iter().map(|output| output.status).collect()
    });
    interrupted(&|interrupt| {
        // More records than two batches have.
        let mut mapper = Mapper::builder(&endless).batch(4).interrupt(interrupt).build().unwrap();
        mapper.map(vec![""; 20]).map(|output| output.unwrap().status).collect()
    });
    interrupted(&|interrupt| {
        let mut function = Mapper::builder(&endless).interrupt(interrupt).function_of_words("f").unwrap();
        function.map([Words::from([1]), Words::from([2])]).map(|row| row.unwrap().unwrap_err()).collect()
    });
    let command = Command::new(&endless).interrupt(&Interrupt::new()).timeout(Duration::from_millis(50));
    assert!(matches!(command.output().unwrap().status, Status::TimedOut), "one that is not raised does nothing");
}

#[test]
fn words_are_what_typed_functions_take_and_give() {
    let text = r#"(module (func (export "swap") (param i32 f64) (result f64 i32) (local.get 1) (local.get 0)))"#;
    let mut swap = Mapper::builder(&module(text)).function_of_words("swap").unwrap();
    let rows = (0..100u32).map(|i| Words::from([u64::from(i.wrapping_neg()), f64::from(i).to_bits()]));
    for (i, swapped) in (0u32..).zip(swap.map(rows)) {
        let expected = [f64::from(i).to_bits(), u64::from(i.wrapping_neg())];
        assert_eq!(*swapped.unwrap().unwrap(), expected);
    }
    let text = r#"(module (func (export "f") (param funcref)))"#;
    let refused = Mapper::builder(&module(text)).function_of_words("f").unwrap_err();
    assert_eq!(refused.to_string(), "`f` has type (funcref) -> (): funcref is no number");
}
