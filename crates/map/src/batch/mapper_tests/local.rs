//! Guest memory in the thread's local memory: what does not fit there runs where there is more.

use super::*;

#[test]
fn a_speculative_build_stops_what_it_cannot_be_sure_of_wherever_memory_is() {
    let inputs = ["", "a", "ab", "abc", "abcd", "!", "abcde"];
    let (exact, _) = run(&mapper(wat!("careless"), 8, Layout::Interleaved), &inputs);
    let flat = checked_mapper(wat!("careless"), 8, Build::Speculative(Placement::Linear));
    for mapper in [local_mapper(wat!("careless"), 8, 64 << 10), flat] {
        let (done, stats) = run(&mapper, &inputs);
        assert_eq!(done, exact);
        assert!((1..7).contains(&stats.reruns), "{}", stats.reruns);
    }
}

#[test]
fn a_stack_deeper_than_local_memory_runs_again() {
    let inputs = ["0", "1", "2", "8", "1x", "9x"];
    let (exact, _) = run(&mapper(wat!("deep"), 8, Layout::Interleaved), &inputs);
    let own = local_mapper(wat!("deep"), 8, 256 << 10);
    let (done, stats) = run(&own, &inputs);
    assert_eq!(done, exact);
    // 16 KiB of stack have a place.
    assert_eq!(stats.reruns, 5);
}

#[test]
fn what_outgrows_local_memory_runs_where_there_is_more() {
    let inputs: Vec<&str> = (0..40).map(|i| if i == 7 { "9" } else { "1" }).collect();
    let (exact, _) = run(&mapper(wat!("growing"), 64, Layout::Linear), &inputs);
    assert_eq!((&exact[0].stdout[..], &exact[7].stdout[..]), (&b"x\0\0\0\x01\0\0\0"[..], &b"x\0\0\0\x01\0\0\0"[..]));
    let own = local_mapper(wat!("growing"), 64, 128 << 10);
    // What one instance left there, the next does not find.
    for _ in 0..3 {
        let (done, stats) = run(&own, &inputs);
        assert_eq!(done, exact);
        assert_eq!(stats.reruns, 1);
    }
}

#[test]
fn a_program_whose_instances_outgrow_their_threads_begins_where_there_is_more() {
    let inputs = ["1", "9", "9", "2", "9"];
    let (exact, _) = run(&mapper(wat!("growing"), 8, Layout::Linear), &inputs);
    let own = local_mapper(wat!("growing"), 8, 128 << 10);
    let again = [(); 2].map(|()| {
        let (done, stats) = run(&own, &inputs);
        assert_eq!(done, exact);
        stats.reruns
    });
    assert_eq!(again, [4, 0]);
}

/// `recursive.wat` with frames of so many bytes.
fn recursive(frame: u32) -> String {
    wat!("recursive").replace("(i32.const 4096)", &format!("(i32.const {frame})"))
}

#[test]
fn a_stack_deeper_than_a_threads_own_runs_where_there_is_more_of_it() {
    // 16 KiB and four frames have a place: 32 KiB, 8 calls.
    let (frame, rare): (u32, Vec<&str>) = (4096, (0..40).map(|i| if i == 7 { "8" } else { "7" }).collect());
    for (inputs, again, instead) in [(&rare[..], [1, 1], None), (&["7", "8", "9"], [2, 0], Some(Sibling::InSlots))] {
        let (exact, _) = run(&mapper(&recursive(frame), 64, Layout::Linear), inputs);
        let deepest = (1_048_576 - 8 * frame).to_le_bytes();
        assert_eq!(exact[0].stdout, deepest);
        let own = local_mapper(&recursive(frame), 64, 128 << 10);
        for again in again {
            let (done, stats) = run(&own, inputs);
            assert_eq!((done, stats.reruns), (exact.clone(), again));
        }
        assert_eq!(own.inner.plan.lock().unwrap().build, instead);
    }
}

#[test]
fn a_program_with_large_frames_has_room_for_some_of_them() {
    let own = local_mapper(&recursive(20_000), 8, 128 << 10);
    let (done, stats) = run(&own, &["0", "1", "2"]);
    assert_eq!(stats.reruns, 0);
    assert_eq!(done[2].stdout, 988_576u32.to_le_bytes());
}
