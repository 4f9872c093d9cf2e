//! Batches that are under way together.

use super::*;

#[test]
fn what_is_begun_while_another_batch_runs_gives_its_own_results() {
    let mapper = mapper(wat!("echo"), 2, Layout::Linear);
    let batches = [&["a", "b"][..], &["c"], &["d", "e", "f", "g", "h", "i"], &["!j", "k"], &["l", "m", "n"]];
    let mut under_way = VecDeque::new();
    let mut seen = Vec::new();
    let mut finish = |pending: Pending| {
        let (results, _) = pending.finish().unwrap();
        seen.push(results.iter().map(|done| String::from_utf8(done.stdout.to_vec()).unwrap()).collect::<Vec<_>>());
    };
    for batch in batches {
        // The third would wait for the first, which this thread has to finish; a long one takes two launch slots.
        while under_way.len() > 1 || batch.len() > 2 && !under_way.is_empty() {
            finish(under_way.pop_front().unwrap());
        }
        under_way.push_back(mapper.begin(jobs(batch), None).unwrap());
        if batch.len() > 2 {
            finish(under_way.pop_front().unwrap());
        }
    }
    under_way.into_iter().for_each(finish);
    let expected = batches.map(|batch| batch.iter().map(|text| format!("1{text}")).collect::<Vec<_>>());
    assert_eq!(seen, expected);
}

#[test]
fn a_batch_is_made_ready_while_another_one_runs() {
    let mapper = mapper(wat!("endless_stderr"), 1, Layout::Linear);
    let (began, limit) = (Instant::now(), Duration::from_secs(2));
    let first = mapper.begin(jobs(&[""]), Some(limit)).unwrap();
    let second = mapper.begin(jobs(&[""]), Some(limit)).unwrap();
    assert!(began.elapsed() < limit, "the second waited for the first");
    first.finish().unwrap();
    let (_, stats) = second.finish().unwrap();
    // The time begins a little before the clock of the figures.
    let (least, took) = (limit * 9 / 10, began.elapsed());
    assert!(stats.run >= least && took >= limit + least, "each has its own time: {:?} of {took:?}", stats.run);
}

#[test]
fn a_third_batch_waits_until_another_thread_has_finished_one() {
    let mapper = mapper(wat!("echo"), 2, Layout::Linear);
    let (send, receive) = std::sync::mpsc::channel::<Pending>();
    let finisher = std::thread::spawn(move || receive.iter().map(|p| p.finish().unwrap().0.len()).sum::<usize>());
    for _ in 0..20 {
        send.send(mapper.begin(jobs(&["a", "b", "c"]), None).unwrap()).unwrap();
    }
    drop(send);
    mapper.settle();
    assert_eq!(finisher.join().unwrap(), 60);
}

#[test]
fn a_batch_that_nobody_finishes_leaves_room_for_others() {
    let mapper = mapper(wat!("echo"), 2, Layout::Linear);
    for _ in 0..5 {
        drop(mapper.begin(jobs(&["a", "b", "c"]), None).unwrap());
    }
    let pending = mapper.begin(jobs(&["a"]), None).unwrap();
    drop(mapper);
    assert_eq!(pending.finish().unwrap().0.get(0).unwrap().stdout, b"1a", "what was launched has run");
}
