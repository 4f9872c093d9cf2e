//! What an instance is refused for good, and instances with contexts of their own.

use super::rule::{grows, run_with};
use super::*;
use gpu_run_compiler::Value;
use gpu_run_run::RunOptions;
use gpu_run_wasi::Stdio;

#[test]
fn what_a_record_is_refused_for_good_is_said() {
    let program = program(wat!("worker"), Build::Exact(Layout::Linear));
    let records = [grows(10), grows(250)];
    let exited = |code: u32| format!("{:?}", End::Exited(code));
    let limits = Limits { device_bytes: Some(8 << 20), ..Limits::default() };
    let ((seen, _), _) = run_with(&program, Extent { capacity: 2, limits, ..Extent::default() }, &records, 1);
    assert_eq!(seen[0].2, None);
    assert!(seen[1].0 == exited(7) && matches!(seen[1].2, Some(Denied::DeviceMemory(_))), "{seen:?}");
    let extent = Extent { capacity: 2, max_memory: Some(4 << 20), ..Extent::default() };
    let ((seen, _), _) = run_with(&program, extent, &records, 1);
    assert_eq!((&seen[1].0, seen[1].2), (&exited(7), Some(Denied::MaxMemory(4 << 20))));
    let bounded =
        program_with(&wat!("worker").replace(r#"(memory (export "memory") 1)"#, r#"(memory (export "memory") 1 100)"#));
    let ((seen, _), _) = run_with(&bounded, Extent { capacity: 2, ..Extent::default() }, &records, 1);
    assert_eq!((&seen[1].0, seen[1].2), (&exited(7), Some(Denied::ModuleMaximum(100 << 16))));
}

fn program_with(wat: &str) -> Arc<Program> {
    program(wat, Build::Exact(Layout::Linear))
}

#[test]
fn all_memories_and_tables_of_an_instance_share_what_is_allowed() {
    let options = CompileOptions::new(Build::Exact(Layout::Linear), Entry::Exports);
    let compiled = Compiled::new(&wat::parse_str(wat!("two_memories_and_a_table")).unwrap(), &options).unwrap();
    let program = loaded(compiled);
    let call = |a: i32, b: i32, t: i32, pages: u64| {
        let args = [a, b, t].map(Value::I32);
        let options = RunOptions { max_memory: Some(pages << 16), ..RunOptions::default() };
        let contexts = vec![Builder::new().build(Stdio::null())];
        gpu_run_run::run(&program, "f", &args, contexts, &options).map(|(outcomes, _)| outcomes[0].results[0])
    };
    assert_eq!(call(3, 3, 0, 9).unwrap(), Value::I32(0));
    assert_eq!(call(3, 4, 0, 9).unwrap(), Value::I32(2), "the second memory has no room any more");
    assert_eq!(call(6, 0, 9000, 9).unwrap(), Value::I32(4), "nor has the table");
    assert!(matches!(call(0, 0, 0, 2), Err(Error::Limit(what)) if what.contains("memories and tables begin with")));
}

#[test]
fn instances_with_contexts_run_again_with_more_and_act_once() {
    let program = program(wat!("worker"), Build::Exact(Layout::Linear));
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("log"), "").unwrap();
    let mut builder = Builder::new();
    builder.preopen(place.path(), "/").unwrap();
    let printed = Arc::new(Mutex::new(Vec::new()));
    let context = |_| {
        // Asks, grows, asks again, goes deep, prints.
        let stdin = Box::new(std::io::Cursor::new(b"a\x05g\x40a\x03r\xffp\x01".to_vec()));
        let stdio =
            Stdio { stdin: Box::new(Reader(stdin)), stdout: Box::new(Printer(printed.clone())), ..Stdio::null() };
        builder.clone().build(stdio)
    };
    let limits =
        Limits { device_bytes: Some(24 << 20), first_stack: Some(4 << 10), answer_bytes: 256, ..Limits::default() };
    let contexts = (0..8).map(context).collect();
    let options = RunOptions { limits, ..RunOptions::default() };
    let (outcomes, stats) = gpu_run_run::run(&program, "_start", &[], contexts, &options).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.end == End::Returned), "{outcomes:?}");
    assert!(stats.reruns >= 8, "{stats:?}");
    assert_eq!(std::fs::read(place.path().join("log")).unwrap().len(), 8 * 8);
    assert_eq!(printed.lock().len(), 8 * (1024 + 4));
}

#[derive(Debug)]
struct Reader(Box<std::io::Cursor<Vec<u8>>>);

impl gpu_run_wasi::stdio::Input for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        std::io::Read::read(&mut self.0, buffer)
    }
}

#[derive(Debug)]
struct Printer(Arc<Mutex<Vec<u8>>>);

impl gpu_run_wasi::stdio::Output for Printer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
}
