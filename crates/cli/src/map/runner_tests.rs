use super::super::reader::Reader;
use super::super::split::{Rule, Source};
use super::*;
use gpu_run_engine::End;
use std::sync::mpsc;

/// Gives each job's stdin back; is lost as often as `faults` says, once for each call.
struct Echo {
    faults: usize,
    runs: usize,
    reopened: usize,
}

impl Engine for Echo {
    fn run(&mut self, jobs: &[Job]) -> Result<(Vec<Done>, RunStats), EngineError> {
        self.runs += 1;
        if self.faults > 0 {
            self.faults -= 1;
            return Err(DeviceError::Fault("illegal address".into()).into());
        }
        let done = |job: &Job| Done { end: End::Returned, stdout: job.stdin.to_vec(), stderr: Vec::new(), cut: false };
        let stats = RunStats { instances: jobs.len() as u64, ..RunStats::default() };
        Ok((jobs.iter().map(done).collect(), stats))
    }
    fn reopen(&mut self) -> Result<()> {
        self.reopened += 1;
        Ok(())
    }
}

fn runner(faults: usize, args: &[&str]) -> Runner<Echo> {
    let guest = Guest::new(&["app".into()], &[], &[]).unwrap();
    let args = args.iter().map(OsString::from).collect();
    Runner::new(Echo { faults, runs: 0, reopened: 0 }, guest, args, "app.wasm".into())
}

fn batch(text: &str, rule: Rule) -> Batch {
    let (send, receive) = mpsc::sync_channel(1);
    let source = Source::Stream(Box::new(io::Cursor::new(text.to_owned().into_bytes())));
    Reader::stream(source, rule).unwrap().run(100, &send).unwrap();
    receive.recv().unwrap()
}

fn outputs(ran: &Ran) -> Vec<String> {
    let text = |(_, outcome): &(Place, Outcome)| match outcome {
        Outcome::Done(done) => String::from_utf8(done.stdout.clone()).unwrap(),
        Outcome::Flawed(flaw) => flaw.clone(),
    };
    ran.records.iter().map(text).collect()
}

#[test]
fn a_device_lost_in_a_batch_is_opened_again_and_the_batch_run_again() {
    let mut runner = runner(1, &[]);
    let ran = runner.run(batch("a\nb\n", Rule::Lines)).unwrap();
    assert_eq!(outputs(&ran), ["a\n", "b\n"]);
    assert_eq!((runner.engine.runs, runner.engine.reopened, runner.stats.instances), (2, 1, 2));
    runner.engine.faults = 1;
    assert_eq!(outputs(&runner.run(batch("c\n", Rule::Lines)).unwrap()), ["c\n"], "another batch, another try");
}

#[test]
fn a_device_lost_twice_in_a_batch_ends_the_run_and_says_where() {
    let error = runner(2, &[]).run(batch("a\nb\n", Rule::Lines)).unwrap_err().to_string();
    for part in ["app.wasm", "lost twice", "illegal address", "2 records from record 0"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_record_that_cannot_run_keeps_its_place() {
    let ran = runner(0, &[]).run(batch("1\nx\n2\n", Rule::Jsonl)).unwrap();
    let outputs = outputs(&ran);
    assert_eq!((&*outputs[0], &*outputs[2]), ("1\n", "2\n"));
    assert!(outputs[1].contains("is not JSON"), "{outputs:?}");
    let ran = runner(0, &["{}"]).run(batch("a\nb\0c\nd\n", Rule::Lines)).unwrap();
    assert!(matches!(&ran.records[1].1, Outcome::Flawed(flaw) if flaw.contains("NUL")), "{ran:?}");
    assert!(matches!(&ran.records[2].1, Outcome::Done(_)));
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
