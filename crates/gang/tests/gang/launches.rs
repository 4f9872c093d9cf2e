//! Launches that follow each other, talk with the host, and continue with other code.

use super::*;
use gpu_run_gang::Successor;
use std::time::{Duration, Instant};

#[test]
fn host_and_threads_talk_over_the_bus_while_a_launch_runs() {
    let mut gang = gang(wat!("bus"), &GangOptions { threads: 32, ..WIDE });
    let running = gang.launch("echo").unwrap();
    let deadline = Instant::now() + Duration::from_secs(300);
    for number in 1..200u64 {
        gang.bus().store_u64(0, number);
        while gang.bus().load_u64(64) != number * 3 {
            assert!(Instant::now() < deadline && !running.is_done().unwrap(), "no answer to {number}");
        }
    }
    gang.bus().store_u64(0, u64::MAX);
    running.wait().unwrap().unwrap();
    gang.bus().store_u64(128, 11);
    gang.bus().store_u64(136, 22);
    run(&mut gang, "pairs");
    assert_eq!([144, 152, 160].map(|at| gang.bus().load_u64(at)), [22, 11, 7]);
    for entry in ["outside", "skewed"] {
        let trap = gang.launch(entry).unwrap().wait().unwrap().unwrap_err();
        assert_eq!(trap.trap.code, TrapCode::MemoryOutOfBounds);
        gang.recover().unwrap();
    }
}

#[test]
fn launches_queue_up_and_go_on_with_the_image() {
    let mut gang = gang(wat!("tick"), &WIDE);
    let launched: Vec<_> = (0..5).map(|_| gang.launch("tick").unwrap()).collect();
    for running in &launched {
        running.wait().unwrap().unwrap();
    }
    assert_eq!(words(&gang, 100, 1), [5 + 5 * 1024]);
    assert_eq!(words(&gang, 4096, 1024), (0..1024).map(|t| 5 * t).collect::<Vec<_>>());
    let image = gang.read_image().unwrap();
    run(&mut gang, "tick");
    gang.write_image(&image).unwrap();
    assert_eq!(gang.read_image().unwrap(), image);
    assert!(gang.write_image(&image[1..]).is_err());
}

/// `adding.wat` with another number, text, and length of the table.
fn adding(number: u32, text: &str, table: u32) -> String {
    let module = wat!("adding").replace("first", text).replace("1 (; number ;)", &number.to_string());
    module.replace("1 (; table ;)", &table.to_string()).replace("0 (; last ;)", &(table - 1).to_string())
}

#[test]
fn a_successor_goes_on_with_the_image_and_brings_its_own_data_and_slots() {
    let compiler = Compiler::new(Cache::off("a test"));
    let mut old = gang(&adding(1, "first", 1), &WIDE);
    let (mut spare, carried) = (None, 1024..WIDE.image_bytes - 1024);
    for (number, text, table) in [(10, "other", 1), (100, "wider", 600), (1000, "again", 1)] {
        old.bus().store_u64(0, 1);
        let running = old.launch("add").unwrap();
        // It is made ready while the other runs, and would wait for ever if it waited for that.
        let next = wasm(&adding(number, text, table));
        let next =
            Successor::prepare(&compiler, &old.seat(), next, &WIDE, "test", carried.clone(), &mut spare).unwrap();
        assert!(spare.is_none() && !running.is_done().unwrap());
        old.bus().store_u64(0, 0);
        running.wait().unwrap().unwrap();
        let new = next.take_over(&old).unwrap();
        spare = Some(std::mem::replace(&mut old, new));
        let mut data = [1; 1024];
        old.read(0, &mut data).unwrap();
        assert_eq!(std::str::from_utf8(&data[16..21]).unwrap(), text);
        // What another left there is gone.
        assert!(data[..16].iter().chain(&data[21..]).all(|byte| *byte == 0), "{data:?}");
        old.write(512, &[7; 64]).unwrap();
        old.read(WIDE.image_bytes - 1024, &mut data).unwrap();
        assert_eq!(data, [0; 1024]);
        old.write(WIDE.image_bytes - 8, &[7; 8]).unwrap();
    }
    run(&mut old, "add");
    assert_eq!(words(&old, 4096, 1024), [1111; 1024]);
    // What cannot be compiled leaves everything as it is.
    let wrong = Arc::new(wat::parse_str("(module)").unwrap());
    assert!(Successor::prepare(&compiler, &old.seat(), wrong, &WIDE, "test", carried, &mut spare).is_err());
    assert!(spare.is_some());
    run(&mut old, "add");
    assert_eq!(words(&old, 4096, 1), [2111]);
}
