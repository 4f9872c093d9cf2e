//! A record that succeeds alone succeeds in any batch, whatever its neighbours take. The records are those of `worker.wat`.

use super::*;
use proptest::prelude::*;

/// What records gave, and what is in the log.
pub(super) type Seen = (Vec<(String, Vec<u8>, Option<Denied>)>, usize);

pub(super) fn run_with(program: &Arc<Program>, extent: Extent, records: &[Vec<u8>], batches: usize) -> (Seen, u64) {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("log"), "").unwrap();
    let mut builder = Builder::new();
    builder.preopen(place.path(), "/").unwrap();
    let context = Arc::new(builder);
    let mapper = Mapper::new(program.clone(), extent, None).unwrap();
    let (mut seen, mut again) = (Vec::new(), 0);
    for (batch, part) in records.chunks(records.len().div_ceil(batches).max(1)).enumerate() {
        let number = |i: usize| (batch * records.len() + i) as u64;
        let job = |(i, stdin): (usize, &Vec<u8>)| Job {
            context: context.clone(),
            number: number(i),
            stdin: stdin.clone().into(),
        };
        let (done, stats) = mapper.run(part.iter().enumerate().map(job).collect(), None).unwrap();
        assert_eq!(done.len(), part.len());
        seen.extend(done.iter().map(|done| (format!("{:?}", done.end), done.stdout.to_vec(), done.denied)));
        again += stats.reruns;
    }
    let log = std::fs::read(place.path().join("log")).unwrap().len();
    ((seen, log), again)
}

/// The same one by one, where there is no limit: on `cpu`, whichever device is tested. A GPU would take a third of a second for each record that needs another stack.
pub(super) fn alone(records: &[Vec<u8>]) -> Seen {
    static WORKER: OnceLock<Arc<Program>> = OnceLock::new();
    let load = || {
        let cpu = gpu_run_device::open("cpu").unwrap();
        Arc::new(Program::load(cpu, Arc::new(compiled(wat!("worker"), Build::Exact(Layout::Linear)))).unwrap())
    };
    let extent = Extent { capacity: 1, ..Extent::default() };
    run_with(WORKER.get_or_init(load), extent, records, records.len()).0
}

fn step() -> impl Strategy<Value = [u8; 2]> {
    prop_oneof![
        (0u8..60).prop_map(|pages| [b'g', pages]),
        any::<u8>().prop_map(|depth| [b'r', depth]),
        (0u8..80).prop_map(|kib| [b'p', kib]),
        (0u8..40).prop_map(|times| [b'a', times]),
    ]
}

pub(super) fn records() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let record = prop::collection::vec(step(), 0..5).prop_map(|steps| steps.concat());
    prop::collection::vec(record, 1..40)
}

fn small_limits() -> impl Strategy<Value = Limits> {
    let output = (0usize..300, 0u64..64, 0u64..2000);
    (20u64..200, 1u32..64, output, 0usize..30).prop_map(|(device, stack, (output, outboxes, annexes), answers)| {
        Limits {
            device_bytes: Some(device << 20),
            first_stack: Some(stack << 10),
            output_bytes: (output + 300) << 10,
            outbox_bytes: outboxes << 10,
            annex_bytes: Some(annexes << 10),
            answer_bytes: answers << 8,
        }
    })
}

/// The worker, built in every way; once for all tests, for a GPU's driver takes a second for each.
pub(super) fn builds() -> &'static [Arc<Program>; 4] {
    static BUILDS: OnceLock<[Arc<Program>; 4]> = OnceLock::new();
    BUILDS.get_or_init(|| {
        [
            program(wat!("worker"), Build::Exact(Layout::Linear)),
            program(wat!("worker"), Build::Exact(Layout::Interleaved)),
            program(wat!("worker"), Build::Speculative(Placement::Interleaved)),
            program(wat!("worker"), Build::speculative(Layout::Interleaved, 192 << 10)),
        ]
    })
}

pub(super) fn cases() -> u32 {
    let is_set = |name| std::env::var_os(name).is_some();
    match (is_set("GPU_RUN_TEST_ALL"), is_set("GPU_RUN_TEST_DEVICE")) {
        (true, _) => 400,
        // Other stacks take a GPU a third of a second, and each case has several.
        (false, true) => 4,
        (false, false) => 24,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn any_batch_gives_what_each_record_gives_alone(
        records in records(),
        limits in small_limits(),
        capacity in 1usize..50,
        batches in 1usize..4,
        build in 0usize..4,
    ) {
        let expected = alone(&records);
        let extent = Extent { capacity, limits, ..Extent::default() };
        let (seen, _) = run_with(&builds()[build], extent, &records, batches);
        prop_assert_eq!(seen, expected);
    }
}

pub(super) fn grows(pages: u8) -> Vec<u8> {
    vec![b'g', pages]
}

#[test]
fn records_that_need_more_than_their_share_of_the_device_run_fewer_at_a_time() {
    let limits = Limits { device_bytes: Some(64 << 20), ..Limits::default() };
    for program in builds() {
        // Each needs 8 MiB where 64 have one each.
        let records = vec![grows(127); 64];
        let (seen, again) = run_with(program, Extent { capacity: 64, limits, ..Extent::default() }, &records, 1);
        assert_eq!(seen, alone(&records));
        assert!(again >= 64, "{again}");
    }
}

/// Prints 1 KiB at a time, with a question after the first part.
pub(super) fn prints(kib: u8, kib_after: u8) -> Vec<u8> {
    vec![b'p', kib, b'a', 1, b'p', kib_after]
}

#[test]
fn output_is_in_order_whichever_way_it_took() {
    // Of 512 bytes, 4 KiB and more: some writes fit the outbox, some the annex, and some are sent.
    for (outboxes, annexes) in [(0, 0), (0, 12 << 12), (1 << 20, 0), (1 << 20, 12 << 13)] {
        let limits = Limits { outbox_bytes: outboxes, annex_bytes: Some(annexes), ..Limits::default() };
        let learned = Some(Allowance { output: annexes / 12, ..Allowance::default() });
        let records: Vec<_> = (0..12).map(|i| prints(i % 7, i % 5)).collect();
        for program in builds() {
            let extent = Extent { capacity: 12, limits, learned, ..Extent::default() };
            assert_eq!(run_with(program, extent, &records, 1).0, alone(&records));
        }
    }
}

#[test]
fn what_was_printed_before_a_rerun_is_no_answer_it_waits_for() {
    // A KiB does not fit the outbox of one of 64, and does where few run again.
    let limits = Limits { device_bytes: Some(64 << 20), outbox_bytes: 64 << 10, ..Limits::default() };
    let records: Vec<_> = (0..64).map(|_| [prints(2, 3), grows(127), prints(1, 1)].concat()).collect();
    for program in builds() {
        let (seen, again) = run_with(program, Extent { capacity: 64, limits, ..Extent::default() }, &records, 1);
        assert!(again >= 64, "{again}");
        assert_eq!(seen, alone(&records));
    }
}
