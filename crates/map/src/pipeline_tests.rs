//! The reader, the dealer and the threads of several devices; the devices are substitutes that can be slow, lost or broken.

use super::*;
use crate::batch::Results;
use crate::dealer::{Share, suspected_batches};
use crate::input::{ByteSource, Rule};
use crate::runner::{Jobs, Outcome, RanPart};
use gpu_run_compiler::Error as EngineError;
use gpu_run_device::Error as DeviceError;
use gpu_run_run::{End, Job, RunStats};
use gpu_run_wasi::Builder;
use parking_lot::{Condvar, Mutex};
use proptest::prelude::*;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Records of a batch, and of a part of one.
const BATCH: usize = 5;
const PART: usize = 2;

/// What happens to a device at its batch with this number, after so many parts of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Lost {
        batch: u64,
        parts: usize,
    },
    /// It cannot run the batch, but works.
    Broken {
        batch: u64,
        parts: usize,
    },
}

/// A device that gives each job's stdin back, two batches at a time, as a mapper does.
#[derive(Clone)]
struct Fake {
    fate: Option<Fate>,
    pause: Duration,
    begun: u64,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_lost: AtomicBool,
    under_way: Mutex<usize>,
    freed: Condvar,
    /// How many batches this and other devices have under way, and at most had.
    all: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    /// How far the begun batches are ahead of the records that are written.
    written: Arc<AtomicU64>,
    ahead: Arc<AtomicU64>,
}

struct Echo {
    jobs: Arc<Vec<Job>>,
    done: usize,
    parts: usize,
    fate: Option<Fate>,
    pause: Duration,
    shared: Arc<Shared>,
}

fn lost() -> EngineError {
    DeviceError::Fault("a fault".into()).into()
}

impl Engine for Fake {
    type Pending = Echo;

    fn begin(&mut self, jobs: Arc<Vec<Job>>) -> Result<Echo, EngineError> {
        let shared = self.shared.clone();
        shared.freed.wait_while(&mut shared.under_way.lock(), |under_way| *under_way == 2);
        *shared.under_way.lock() += 1;
        shared.most.fetch_max(shared.all.fetch_add(1, SeqCst) + 1, SeqCst);
        shared.ahead.fetch_max(jobs[0].number.saturating_sub(shared.written.load(SeqCst)), SeqCst);
        let number = self.begun;
        self.begun += 1;
        let fate = self.fate.filter(|(Fate::Lost { batch, .. } | Fate::Broken { batch, .. })| *batch == number);
        let echo = Echo { jobs, done: 0, parts: 0, fate, pause: self.pause, shared };
        echo.check().map(|()| echo)
    }
}

impl Echo {
    fn check(&self) -> Result<(), EngineError> {
        match self.fate {
            Some(Fate::Lost { parts, .. }) if parts == self.parts => self.shared.is_lost.store(true, SeqCst),
            Some(Fate::Broken { parts, .. }) if parts == self.parts => {
                return Err(EngineError::Limit("too little".into()));
            }
            _ => {}
        }
        if self.shared.is_lost.load(SeqCst) { Err(lost()) } else { Ok(()) }
    }
}

impl Finish for Echo {
    fn next_part(&mut self) -> Result<Option<Results>, EngineError> {
        thread::sleep(self.pause);
        self.check()?;
        self.parts += 1;
        let mut results = Results::default();
        for job in self.jobs[self.done..].iter().take(PART) {
            results.push(End::Returned, &job.stdin, b"", None);
        }
        self.done += results.len();
        if self.done == self.jobs.len() && !results.is_empty() {
            self.shared.all.fetch_sub(1, SeqCst);
        }
        Ok(Some(results).filter(|results| !results.is_empty()))
    }

    fn take_stats(&mut self) -> RunStats {
        RunStats { launches: 1, ..RunStats::default() }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        *self.shared.under_way.lock() -= 1;
        if self.done < self.jobs.len() {
            self.shared.all.fetch_sub(1, SeqCst);
        }
        self.shared.freed.notify_all();
    }
}

/// Devices with these fates and pauses between parts.
fn fakes(devices: &[(Option<Fate>, u64)]) -> Vec<Fake> {
    let first = Shared::default();
    let fake = |(fate, pause): &(Option<Fate>, u64)| {
        let (all, most) = (first.all.clone(), first.most.clone());
        let (written, ahead) = (first.written.clone(), first.ahead.clone());
        let shared = Arc::new(Shared { all, most, written, ahead, ..Shared::default() });
        Fake { fate: *fate, pause: Duration::from_micros(*pause), begun: 0, shared }
    };
    devices.iter().map(fake).collect()
}

struct Ran {
    output: String,
    end: Over,
    lost: Vec<String>,
    shares: Vec<Share>,
}

fn begin(source: impl Read + Send + 'static, fakes: &[Fake], suspects: u64) -> (Arc<Dealer>, Vec<JoinHandle<()>>) {
    let share = |device| Share { device: format!("fake:{device}"), ..Share::default() };
    let dealer = Arc::new(Dealer::new((0..fakes.len()).map(share).collect(), RunStats::default(), suspects));
    let reader = Reader::stream(ByteSource::Stream(Box::new(source)), Rule::Jsonl).unwrap();
    let jobs = Jobs::new(Builder::new(), &[]);
    let runners = fakes.iter().map(|fake| Runner::new(fake.clone(), jobs.clone())).collect();
    let threads = start(reader, runners, BATCH, &dealer).map_err(|stopping| stopping.1).unwrap();
    (dealer, threads)
}

/// The part's text; checks that it begins where the one before ended.
fn text(part: &RanPart, next: &mut u64) -> String {
    assert_eq!(part.first, *next, "a part is missing, twice, or out of order");
    *next += part.records.len() as u64;
    let text = |outcome: Outcome<'_>| match outcome {
        Outcome::Done(done) => String::from_utf8(done.stdout.to_vec()).unwrap(),
        Outcome::Flawed(_) => "-\n".to_owned(),
    };
    part.outcomes().map(|(_, outcome)| text(outcome)).collect()
}

fn run(input: &str, fakes: &[Fake], suspects: u64, pause: Duration) -> Ran {
    let (dealer, threads) = begin(io::Cursor::new(input.to_owned().into_bytes()), fakes, suspects);
    let (mut output, mut lost, mut next) = (String::new(), Vec::new(), 0);
    let end = loop {
        match dealer.next() {
            News::Ran(part) => output += &text(&part, &mut next),
            News::Lost(told) => lost.push(told.device),
            News::Over(over) => break over,
        }
        fakes[0].shared.written.store(next, SeqCst);
        thread::sleep(pause);
    };
    dealer.close();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    Ran { output, end, lost, shares: dealer.spent().1 }
}

/// Numbers, every eleventh of which is no JSON, and what becomes of them.
fn numbers(count: usize) -> (String, String) {
    let line = |i: usize, bad: &str| if i % 11 == 10 { bad.to_owned() } else { format!("{i}\n") };
    ((0..count).map(|i| line(i, "x\n")).collect(), (0..count).map(|i| line(i, "-\n")).collect())
}

fn fate() -> impl Strategy<Value = Option<Fate>> {
    prop_oneof![
        3 => Just(None),
        2 => (0..6u64, 0..=BATCH / PART).prop_map(|(batch, parts)| Some(Fate::Lost { batch, parts })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever devices are lost, and where, each record is written once and in order, up to where no device is left.
    #[test]
    fn nothing_is_lost_and_nothing_is_there_twice(
        count in 0..150usize,
        devices in prop::collection::vec((fate(), 0..300u64), 1..5),
        pause in 0..100u64,
    ) {
        let (input, expected) = numbers(count);
        let fakes = fakes(&devices);
        let ran = run(&input, &fakes, 0, Duration::from_micros(pause));
        prop_assert!(expected.starts_with(&ran.output), "{}", ran.output);
        let is_lost: Vec<_> = fakes.iter().map(|fake| fake.shared.is_lost.load(SeqCst)).collect();
        match ran.end {
            Over::Finished => {
                prop_assert_eq!(&ran.output, &expected);
                prop_assert_eq!(ran.shares.iter().map(|share| share.records).sum::<u64>(), count as u64);
            }
            // No device is left, or two were lost with one batch.
            Over::Lost(lost) => {
                prop_assert!(lost.first >= ran.output.lines().count() as u64);
                prop_assert!(is_lost.iter().filter(|is_lost| **is_lost).count() >= devices.len().min(2), "{:?}", is_lost);
            }
            Over::Hung | Over::Interrupted | Over::Failed(_) => prop_assert!(false, "none of them was planned"),
        }
        for (device, is_lost) in is_lost.iter().enumerate() {
            prop_assert_eq!(ran.shares[device].is_lost, *is_lost);
        }
        prop_assert!(ran.lost.len() < devices.len(), "the last one is not reported as one of several");
        let ahead = fakes[0].shared.ahead.load(SeqCst);
        prop_assert!(ahead <= suspected_batches(devices.len()) * BATCH as u64, "{} records ahead", ahead);
    }
}

#[test]
fn a_fast_device_does_more_but_does_not_run_away() {
    let (input, expected) = numbers(150);
    let fakes = fakes(&[(None, 40_000), (None, 50)]);
    let ran = run(&input, &fakes, 0, Duration::ZERO);
    assert_eq!(ran.output, expected);
    let [slow, fast] = &ran.shares[..] else { panic!("two devices") };
    assert!(slow.batches >= 2 && fast.batches > 2 * slow.batches, "{slow:?} {fast:?}");
    assert_eq!(slow.batches + fast.batches, 30, "all are full, although they waited");
    let ahead = fakes[0].shared.ahead.load(SeqCst);
    assert!(ahead > 2 * BATCH as u64 && ahead <= suspected_batches(2) * BATCH as u64, "{ahead} records ahead");
}

#[test]
fn no_device_gets_two_batches_before_another_has_one() {
    let (input, expected) = numbers(4 * BATCH);
    let fakes = fakes(&[(None, 30_000); 4]);
    let ran = run(&input, &fakes, 0, Duration::ZERO);
    assert_eq!(ran.output, expected);
    assert_eq!(ran.shares.iter().map(|share| share.batches).collect::<Vec<_>>(), [1; 4]);
}

#[test]
fn suspected_records_run_one_batch_at_a_time_and_the_others_together() {
    let (input, expected) = numbers(8 * BATCH);
    let suspects = 8 * BATCH as u64;
    let alone = fakes(&[(None, 200); 3]);
    assert_eq!(run(&input, &alone, suspects, Duration::ZERO).output, expected);
    assert_eq!(alone[0].shared.most.load(SeqCst), 1);
    let together = fakes(&[(None, 5000); 3]);
    assert_eq!(run(&input, &together, 2 * BATCH as u64, Duration::ZERO).output, expected);
    assert!(together[0].shared.most.load(SeqCst) >= 3);
}

/// Two batches that no device can run are one too many; the first one is what the map ends with.
#[test]
fn what_ran_before_a_batch_that_cannot_run_is_written() {
    let (input, expected) = numbers(20 * BATCH);
    for (batch, parts) in [(3, 0), (3, 1), (0, 0)] {
        let broken = fakes(&[(Some(Fate::Broken { batch, parts }), 100)]);
        let ran = run(&input, &broken, 0, Duration::from_micros(200));
        let Over::Failed(Error::Engine(EngineError::Limit(what))) = ran.end else { panic!("it did not fail") };
        let records = batch as usize * BATCH + parts * PART;
        assert_eq!((&*what, ran.output.lines().count()), ("too little", records));
        assert!(expected.starts_with(&ran.output));
    }
}

/// A fault may poison the whole process. What fails then on other devices is left to another process.
#[test]
fn an_error_after_a_loss_is_taken_for_another_loss() {
    let (input, expected) = numbers(20 * BATCH);
    let poisoned =
        fakes(&[(Some(Fate::Lost { batch: 0, parts: 0 }), 0), (Some(Fate::Broken { batch: 4, parts: 0 }), 100)]);
    let ran = run(&input, &poisoned, 0, Duration::ZERO);
    assert!(matches!(ran.end, Over::Lost(_)) && expected.starts_with(&ran.output));
    assert_eq!(ran.lost, ["fake:0"]);
    assert!(ran.shares.iter().all(|share| share.is_lost));
}

/// Gives what is sent, then waits for more.
struct Slow(mpsc::Receiver<&'static [u8]>, &'static [u8]);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.1.is_empty() {
            self.1 = self.0.recv().unwrap_or_default();
        }
        self.1.read(buffer)
    }
}

#[test]
fn a_lost_batch_runs_while_the_reader_waits_for_input() {
    let (send, receive) = mpsc::channel();
    let fakes = fakes(&[(Some(Fate::Lost { batch: 0, parts: 1 }), 0), (None, 0)]);
    let (dealer, _) = begin(Slow(receive, b""), &fakes, 0);
    send.send(&b"1\n2\n3\n4\n5\n"[..]).unwrap();
    let (mut output, mut next, mut is_told) = (String::new(), 0, false);
    while output.lines().count() < BATCH {
        match dealer.next() {
            News::Ran(part) => output += &text(&part, &mut next),
            News::Lost(lost) => is_told = lost.device == "fake:0" && lost.others == ["fake:1"],
            News::Over(_) => panic!("it is not over"),
        }
    }
    assert!(is_told && output == "1\n2\n3\n4\n5\n");
    drop(send);
    assert!(matches!(dealer.next(), News::Over(Over::Finished)));
}
