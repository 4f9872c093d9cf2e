use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::encode::Stop;
use crate::net::{MAX_LOOK_UPS, Net};

/// A resolver that finds every name at once, except those that begin with `slow`: these once the gate is open.
fn resolver(gate: &Arc<Mutex<()>>, begun: &Arc<AtomicUsize>) -> Arc<Resolver> {
    let (gate, begun) = (gate.clone(), begun.clone());
    Resolver::new(move |name, port| {
        begun.fetch_add(1, Ordering::SeqCst);
        if name.starts_with("slow") {
            drop(gate.lock());
        }
        Ok(vec![SocketAddr::from(([10, 0, 0, 1], port))])
    })
}

fn instance(resolver: &Arc<Resolver>) -> Net {
    Net { resolver: resolver.clone(), ..Net::new(&["connect=*:*".parse().unwrap()], 1) }
}

/// One caller's question.
struct Question(String, Option<Instant>);

impl Question {
    fn new(name: impl Into<String>) -> Self {
        Self(name.into(), None)
    }

    /// Returns whether it was answered.
    fn ask(&mut self, net: &mut Net) -> bool {
        let Self(name, since) = self;
        match net.look_up((name.clone().as_bytes(), name, 80), since) {
            Ok(_) => true,
            Err(Stop::Again(None)) => false,
            Err(other) => panic!("{name}: {other:?}"),
        }
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn slow_names_of_one_instance_do_not_keep_another_waiting() {
    let (gate, begun) = (Arc::new(Mutex::new(())), Arc::default());
    let closed = gate.lock();
    let resolver = resolver(&gate, &begun);
    let (mut greedy, mut other) = (instance(&resolver), instance(&resolver));
    let mut slow: Vec<_> = (0..100).map(|number| Question::new(format!("slow{number}"))).collect();
    for question in &mut slow {
        assert!(!question.ask(&mut greedy));
    }
    until("as many as an instance may have", || begun.load(Ordering::SeqCst) == MAX_LOOK_UPS);
    let mut fast = Question::new("fast");
    until("the other instance's name is found meanwhile", || fast.ask(&mut other));
    // The instance's own other names wait for their turn.
    let mut own = Question::new("own");
    for _ in 0..20 {
        assert!(!slow.iter_mut().any(|question| question.ask(&mut greedy)) && !own.ask(&mut greedy));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(begun.load(Ordering::SeqCst), MAX_LOOK_UPS + 1);
    drop(closed);
    until("all names are found in the end", || {
        slow.retain_mut(|question| !question.ask(&mut greedy));
        slow.is_empty()
    });
    until("and the last one", || own.ask(&mut greedy));
}

#[test]
fn the_same_name_twice_takes_two_turns() {
    let (gate, begun) = (Arc::new(Mutex::new(())), Arc::default());
    let mut net = instance(&resolver(&gate, &begun));
    let mut questions: Vec<_> = (0..3 * MAX_LOOK_UPS).map(|_| Question::new("slow")).collect();
    until("each caller has an answer", || {
        questions.retain_mut(|question| !question.ask(&mut net));
        questions.is_empty()
    });
    assert_eq!(begun.load(Ordering::SeqCst), 3 * MAX_LOOK_UPS);
}

#[test]
fn when_all_threads_are_busy_others_wait_in_order() {
    let (gate, begun) = (Arc::new(Mutex::new(())), Arc::default());
    let closed = gate.lock();
    let resolver = resolver(&gate, &begun);
    let mut busy: Vec<_> = (0..MAX_THREADS).map(|_| resolver.start("slow", 1).unwrap()).collect();
    let (given_up, waiting) = (resolver.start("given up", 2).unwrap(), resolver.start("waiting", 3).unwrap());
    until("the threads are there", || begun.load(Ordering::SeqCst) == MAX_THREADS);
    assert!(waiting.poll().unwrap().is_none());
    drop(given_up);
    drop(closed);
    until("a thread was free", || waiting.poll().unwrap().is_some());
    until("the others were answered", || {
        busy.retain(|own| own.poll().unwrap().is_none());
        busy.is_empty()
    });
    assert_eq!(begun.load(Ordering::SeqCst), MAX_THREADS + 1, "nobody looks up what nobody waits for");
    until("the threads have ended", || resolver.threads.lock().running == 0);
}
