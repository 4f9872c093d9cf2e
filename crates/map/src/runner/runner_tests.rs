use super::jobs::replace;
use super::*;
use crate::dealer::{Dealer, Dealt, Share};
use crate::input::reader::Reader;
use crate::input::{ByteSource, Rule};
use gpu_run_device::Error as DeviceError;
use gpu_run_run::End;
use gpu_run_wasi::Builder;
use std::ffi::OsString;
use std::{io, thread};

/// Gives each job's stdin back, unless the device is lost.
struct Echo {
    lost: bool,
}

impl Engine for Echo {
    type Pending = (Vec<Job>, bool);
    fn begin(&mut self, jobs: Arc<Vec<Job>>) -> Result<Self::Pending, EngineError> {
        Ok((jobs.to_vec(), self.lost))
    }
}

/// Two jobs at a time.
impl Finish for (Vec<Job>, bool) {
    fn next_part(&mut self) -> Result<Option<Results>, EngineError> {
        let (jobs, lost) = self;
        if *lost {
            return Err(DeviceError::Fault("illegal address".into()).into());
        }
        let mut results = Results::default();
        jobs.drain(..jobs.len().min(2)).for_each(|job| results.push(End::Returned, &job.stdin, b"", None));
        Ok(Some(results).filter(|results| !results.is_empty()))
    }
    fn take_stats(&mut self) -> RunStats {
        RunStats::default()
    }
}

fn runner(lost: bool, args: &[&str]) -> Runner<Echo> {
    let args: Vec<_> = args.iter().map(OsString::from).collect();
    Runner::new(Echo { lost }, Jobs::new(Builder::new(), &args))
}

fn begin(runner: &mut Runner<Echo>, text: &str, rule: Rule) -> Result<Running<(Vec<Job>, bool)>, Error> {
    let dealer = Dealer::new(vec![Share::default()], RunStats::default(), 0);
    let source = ByteSource::Stream(Box::new(io::Cursor::new(text.to_owned().into_bytes())));
    let reader = Reader::stream(source, rule).unwrap();
    let batch = thread::scope(|scope| {
        scope.spawn(|| reader.run(100, &dealer));
        dealer.take(0)
    });
    let Some(Dealt::New(number, batch)) = batch else { panic!("no batch") };
    let work = runner.work(number, batch);
    runner.begin(work).map_err(|lost| lost.1)
}

fn run(mut runner: Runner<Echo>, text: &str, rule: Rule) -> Result<Vec<RanPart>, Error> {
    let mut running = begin(&mut runner, text, rule)?;
    let (mut all, mut marks) = (Vec::new(), Vec::new());
    while let Some((ran, _)) = running.next_part()? {
        marks.push(ran.mark.is_some());
        assert_eq!(ran.first as usize, all.iter().map(|ran: &RanPart| ran.records.len()).sum::<usize>());
        all.push(ran);
    }
    // Only the last part says how far the batch goes.
    assert!(marks.pop() == Some(true) && !marks.contains(&true));
    Ok(all)
}

fn outputs(ran: &[RanPart]) -> Vec<String> {
    let text = |(_, outcome): (&Location, Outcome<'_>)| match outcome {
        Outcome::Done(done) => String::from_utf8(done.stdout.to_vec()).unwrap(),
        Outcome::Flawed(flaw) => flaw.to_string(),
    };
    ran.iter().flat_map(RanPart::outcomes).map(text).collect()
}

#[test]
fn a_lost_device_is_told_from_other_errors_and_says_where() {
    let error = run(runner(true, &[]), "a\nb\n", Rule::Lines).unwrap_err();
    let Error::DeviceLost(lost) = error else { panic!("{error}") };
    assert_eq!((lost.first, lost.count), (0, 2));
    assert!(lost.to_string().contains("illegal address"), "{lost}");
    let work = runner(false, &[]).work(0, Batch { first: 0, records: Vec::new(), mark: Mark::default() });
    assert!(matches!(work.failed(EngineError::Limit("x".into())), Error::Engine(_)));
}

#[test]
fn a_record_that_cannot_run_keeps_its_place() {
    let ran = run(runner(false, &[]), "1\nx\n2\n", Rule::Jsonl).unwrap();
    let texts = outputs(&ran);
    assert_eq!((&*texts[0], &*texts[2]), ("1\n", "2\n"));
    assert!(texts[1].contains("is not JSON"), "{texts:?}");
    let ran = run(runner(false, &["{}"]), "a\nb\0c\nd\n", Rule::Lines).unwrap();
    let outcomes: Vec<_> = ran.iter().flat_map(RanPart::outcomes).map(|(_, outcome)| outcome).collect();
    assert!(matches!(outcomes[1], Outcome::Flawed(flaw) if flaw.to_string().contains("NUL")), "{ran:?}");
    assert!(matches!(outcomes[2], Outcome::Done(_)));
    let ran = run(runner(false, &[]), "x\ny\n", Rule::Jsonl).unwrap();
    assert_eq!((ran[0].results.len(), outputs(&ran).len()), (0, 2), "a batch of nothing that can run");
}

#[test]
fn every_pair_of_braces_is_replaced() {
    for (arg, expected) in [("{}", "x"), ("--a={}", "--a=x"), ("{}{}", "xx"), ("{ }", "{ }"), ("{{}}", "{x}"), ("", "")]
    {
        assert_eq!(replace(arg.as_bytes(), b"x"), expected.as_bytes(), "{arg}");
    }
    assert_eq!(replace(b"a{}b", b"{}"), b"a{}b", "what was put in is not looked at again");
    assert!(differ(&["a".into(), "b{}".into()]) && !differ(&["{".into(), "}".into()]));
}

#[test]
fn what_a_lost_device_leaves_of_a_batch_begins_behind_what_it_returned() {
    let mut runner = runner(false, &[]);
    let mut running = begin(&mut runner, "1\n2\nx\n3\nx\n4\n5\n", Rule::Jsonl).unwrap();
    let (part, _) = running.next_part().unwrap().unwrap();
    assert_eq!((part.records.len(), part.results.len()), (3, 2), "what cannot run goes with the record before it");
    let mut rest = runner.begin(running.rest()).unwrap_or_else(|lost| panic!("{}", lost.1));
    let mut parts = Vec::new();
    while let Some((part, _)) = rest.next_part().unwrap() {
        parts.push(part);
    }
    assert_eq!((parts[0].first, outputs(&parts).len()), (3, 4));
    assert_eq!([&outputs(&parts)[0], &outputs(&parts)[2]], ["3\n", "4\n"]);
    assert_eq!(parts.last().and_then(|part| part.mark.clone()).map(|mark| mark.records), Some(7));
}
