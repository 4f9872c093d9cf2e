//! The `cuda` device on a real GPU. Where there is none, every test is reported as ignored, and why is said once.
#![allow(clippy::unwrap_used)]

use gpu_run_device::cuda::{Assembler, Options, open, open_with, probe};
use gpu_run_device::{Arg, Buffer, CodeOptions, Device, Error, Grid, Module, Rows, Shared};
use libtest_mimic::{Arguments, Failed, Trial};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const HEADER: &str = ".version 7.8\n.target sm_75\n.address_size 64\n";

/// out[i] = i * factor + offset, by every thread.
const FILL: &str = "
.visible .entry fill (.param .u64 out, .param .u32 factor, .param .u64 offset)
{
    .reg .b32 %r<5>;
    .reg .b64 %d<6>;
    ld.param.u64 %d0, [out];
    ld.param.u32 %r0, [factor];
    ld.param.u64 %d1, [offset];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mad.wide.u32 %d2, %r4, 8, %d0;
    mad.wide.u32 %d3, %r4, %r0, %d1;
    st.global.u64 [%d2], %d3;
    ret;
}
";

/// out[thread] = fibonacci(n), by calling itself.
const FIBONACCI: &str = "
.func (.reg .b64 %out) fib (.reg .b64 %a0);
.func (.reg .b64 %out) fib (.reg .b64 %a0)
{
    .reg .b64 %d<4>;
    .reg .pred %p<1>;
    mov.b64 %out, %a0;
    setp.lt.u64 %p0, %a0, 2;
    @%p0 bra $L0;
    sub.u64 %d0, %a0, 1;
    call (%d1), fib, (%d0);
    sub.u64 %d2, %a0, 2;
    call (%d3), fib, (%d2);
    add.u64 %out, %d1, %d3;
$L0:
    ret;
}
.visible .entry fibonacci (.param .u64 out, .param .u64 n)
{
    .reg .b32 %r<1>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [out];
    ld.param.u64 %d1, [n];
    call (%d2), fib, (%d1);
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d3, %r0, 8, %d0;
    st.global.u64 [%d3], %d2;
    ret;
}
";

/// Asks `count` times: writes n to bus[0], waits for n in bus[64], adds up what lies in bus[72], and leaves the sum in out.
const ASK: &str = "
.visible .entry ask (.param .u64 bus, .param .u64 out, .param .u32 count)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<6>;
    .reg .pred %p<2>;
    ld.param.u64 %d0, [bus];
    ld.param.u64 %d1, [out];
    ld.param.u32 %r0, [count];
    mov.b32 %r1, 0;
    mov.b64 %d2, 0;
$L0:
    add.u32 %r1, %r1, 1;
    st.release.sys.global.u32 [%d0], %r1;
$L1:
    ld.acquire.sys.global.u32 %r2, [%d0+64];
    setp.ne.u32 %p0, %r2, %r1;
    @%p0 bra $L1;
    ld.global.u64 %d3, [%d0+72];
    add.u64 %d2, %d2, %d3;
    st.global.u64 [%d1], %d2;
    setp.lt.u32 %p1, %r1, %r0;
    @%p1 bra $L0;
    ret;
}
";

/// A word written to an address, whatever it is.
const POKE: &str = "
.visible .entry poke (.param .u64 at)
{
    .reg .b64 %d<1>;
    ld.param.u64 %d0, [at];
    st.global.u64 [%d0], %d0;
    ret;
}
";

fn main() {
    let args = Arguments::from_args();
    let ready = open(0);
    if let Err(error) = &ready {
        eprintln!("ignored: {error}");
    }
    let tests: [(&str, fn()); 19] = [
        ("probe::lists_what_opens", lists_what_opens),
        ("memory::is_zeroed_and_keeps_what_is_written", memory_round_trip),
        ("memory::rows_are_cleared_and_what_is_between_them_is_not", rows_are_cleared_and_what_is_between_them_is_not),
        ("memory::refuses_what_the_card_has_not", refuses_too_much_memory),
        ("memory::of_no_bytes", no_bytes),
        ("shared::is_zeroed_and_seen_from_both_sides", shared_from_both_sides),
        ("kernel::by_any_assembler", || fill(Assembler::Any)),
        ("kernel::by_the_drivers_assembler", || fill(Assembler::Driver)),
        ("kernel::of_code_that_was_kept", kept),
        ("kernel::recursion_has_its_stack", recursion),
        ("kernel::wrong_launches_are_refused", wrong_launches),
        ("kernel::more_stack_than_there_is", too_much_stack),
        ("ptx::errors_name_the_line", ptx_errors),
        ("fault::illegal_address", || apart("fault::illegal_address", &[], illegal)),
        ("fault::misaligned_address", || apart("fault::misaligned_address", &[], misaligned)),
        ("fault::on_purpose", || apart("fault::on_purpose", &[("GPU_RUN_TEST_FAULT", "launch:2")], lost_on_purpose)),
        ("service::loads_beside_a_kernel_that_asks", load_beside),
        ("service::answers_while_the_kernel_runs", service),
        ("service::two_kernels_at_once", two_at_once),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(name, move || -> Result<(), Failed> {
            test();
            Ok(())
        })
        .with_ignored_flag(ready.is_err())
    };
    let trials = tests.into_iter().map(trial).collect();
    libtest_mimic::run(&args, trials).exit();
}

fn device() -> Arc<dyn Device> {
    open(0).unwrap()
}

fn load(device: &Arc<dyn Device>, body: &str) -> Arc<dyn Module> {
    device.load(&format!("{HEADER}{body}")).unwrap_or_else(|e| panic!("{e}"))
}

fn grid(workgroups: u32, threads: u32) -> Grid {
    Grid { workgroups, threads, stack_bytes: 16 << 10 }
}

fn words(buffer: &Buffer, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; count * 8];
    buffer.read(0, &mut bytes).unwrap();
    bytes.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect()
}

/// What was compiled on one context is loaded on another, without compiling, as often as one likes; what it was not is refused.
fn kept() {
    let first = device();
    let target = first.code_target().unwrap();
    assert!(target.model == first.properties().name && target.details.contains("driver"), "{target:?}");
    let code = first.compile(&format!("{HEADER}{FILL}"), CodeOptions::default()).unwrap();
    drop(first);
    let second = device();
    assert_eq!(second.code_target().unwrap(), target);
    let compiled = gpu_run_device::compilations();
    let began = Instant::now();
    let modules = [second.load_code(&code).unwrap(), second.load_code(&code).unwrap()];
    println!("a cubin of {} bytes loads in {:?}", code.len(), began.elapsed() / 2);
    assert_eq!(gpu_run_device::compilations(), compiled);
    for module in modules {
        let buffer = second.allocate(64 * 8).unwrap();
        let args = [Arg::U64(buffer.address()), Arg::U32(3), Arg::U64(5)];
        module.run("fill", grid(2, 32), &args, &|| false).unwrap();
        assert!(words(&buffer, 64).into_iter().eq((0..64).map(|n| n * 3 + 5)));
    }
    for length in [0, 3, 20, code.len() - 1] {
        assert!(second.load_code(&code[..length]).is_err(), "{length} bytes");
    }
}

fn lists_what_opens() {
    let found = probe().unwrap();
    let device = device();
    let (first, own) = (&found[0], device.properties());
    assert_eq!((&first.id, first.target, &first.name), (&own.id, own.target, &own.name));
    assert_eq!(own.id, "cuda:0");
    assert!(
        own.target >= 70 && own.processors > 0 && own.memory_bytes > 1 << 30 && own.workgroup_threads == 1024,
        "{own:?}"
    );
    let error = open(found.len() + 100).unwrap_err().to_string();
    assert!(error.contains("cuda:0"), "{error}");
}

fn memory_round_trip() {
    let device = device();
    let buffer = device.allocate(1 << 20).unwrap();
    let mut bytes = vec![1; 1 << 20];
    buffer.read(0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|b| *b == 0));
    let pattern: Vec<u8> = (0..100_000u32).map(|n| (n * 7 + n / 256) as u8).collect();
    buffer.write(3, &pattern).unwrap();
    let mut back = vec![0; pattern.len()];
    buffer.read(3, &mut back).unwrap();
    assert!(back == pattern);
    buffer.zero(1000, 5000).unwrap();
    buffer.read(0, &mut bytes).unwrap();
    assert!(bytes[1000..6000].iter().all(|b| *b == 0));
    assert_eq!((bytes[999], bytes[6000]), (pattern[996], pattern[5997]));
}

fn rows_are_cleared_and_what_is_between_them_is_not() {
    let device = device();
    let buffer = device.allocate(1 << 20).unwrap();
    let mut bytes = vec![0; 1 << 20];
    for (at, len, pitch, count) in [(64, 4096, 65536, 16), (3, 5, 1000, 100), (0, 1 << 16, 1 << 16, 16), (8, 8, 8, 0)] {
        buffer.write(0, &vec![7; 1 << 20]).unwrap();
        buffer.zero_rows(Rows { at, len, pitch, count }).unwrap();
        buffer.read(0, &mut bytes).unwrap();
        let is_in_row = |i: u64| i >= at && (i - at) / pitch < count && (i - at) % pitch < len;
        let wrong = (0..1 << 20).find(|&i| bytes[i as usize] != if is_in_row(i) { 0 } else { 7 });
        assert_eq!(wrong, None, "{len} bytes every {pitch}");
    }
}

fn refuses_too_much_memory() {
    let device = device();
    let wanted = 1 << 46;
    assert!(matches!(device.allocate(wanted), Err(Error::OutOfMemory { wanted: w }) if w == wanted));
    device.allocate(64).unwrap(); // and the context still works
}

fn no_bytes() {
    let device = device();
    let (buffer, shared) = (device.allocate(0).unwrap(), device.share(0).unwrap());
    buffer.write(0, &[]).unwrap();
    buffer.read(0, &mut []).unwrap();
    buffer.zero(0, 0).unwrap();
    assert!(buffer.is_empty() && shared.is_empty());
}

fn shared_from_both_sides() {
    let device = device();
    let shared = device.share(1 << 16).unwrap();
    let mut bytes = vec![1; 1 << 16];
    shared.read(0, &mut bytes);
    assert!(bytes.iter().all(|b| *b == 0));
    let module = load(&device, FILL);
    module.run("fill", grid(2, 32), &[Arg::U64(shared.address()), Arg::U32(5), Arg::U64(1)], &|| false).unwrap();
    for i in 0..64 {
        assert_eq!(shared.load_u64(i * 8), i * 5 + 1);
    }
}

fn fill(assembler: Assembler) {
    fill_with(&open_with(0, Options { assembler }).unwrap());
}

fn fill_with(device: &Arc<dyn Device>) {
    let module = load(device, FILL);
    let buffer = device.allocate(1000 * 128 * 8).unwrap();
    for offset in [1 << 40, 7] {
        let args = [Arg::U64(buffer.address()), Arg::U32(3), Arg::U64(offset)];
        module.run("fill", grid(1000, 128), &args, &|| false).unwrap();
        let expected: Vec<u64> = (0..128_000).map(|i| i * 3 + offset).collect();
        assert!(words(&buffer, 128_000) == expected);
    }
}

fn recursion() {
    let device = device();
    let module = load(&device, FIBONACCI);
    let buffer = device.allocate(32 * 8).unwrap();
    for stack_bytes in [4 << 10, 64 << 10, 4 << 10] {
        buffer.zero(0, buffer.len()).unwrap();
        let args = [Arg::U64(buffer.address()), Arg::U64(15)];
        module.run("fibonacci", Grid { workgroups: 1, threads: 32, stack_bytes }, &args, &|| false).unwrap();
        assert_eq!(words(&buffer, 32), [610; 32]);
    }
}

fn wrong_launches() {
    let device = device();
    let module = load(&device, FILL);
    let run = |kernel: &str, grid: Grid, args: &[Arg]| module.run(kernel, grid, args, &|| false).unwrap_err();
    assert!(matches!(run("nothing", grid(1, 1), &[]), Error::NoKernel(name) if name == "nothing"));
    assert!(matches!(run("fill", grid(1, 1), &[Arg::U64(0)]), Error::Unavailable(_)));
    let args = [Arg::U64(0), Arg::U32(0), Arg::U64(0)];
    for wrong in [grid(0, 1), grid(1, 0), grid(1, 1025)] {
        assert!(matches!(run("fill", wrong, &args), Error::Unavailable(_)), "{wrong:?}");
    }
}

/// No card has 64 MiB for each of its threads: it gives what it can, or says what it cannot.
fn too_much_stack() {
    let device = device();
    let module = load(&device, FIBONACCI);
    let buffer = device.allocate(8).unwrap();
    let args = [Arg::U64(buffer.address()), Arg::U64(10)];
    let run = |stack_bytes| module.run("fibonacci", Grid { workgroups: 1, threads: 1, stack_bytes }, &args, &|| false);
    match run(64 << 20) {
        Ok(()) => assert_eq!(words(&buffer, 1), [55]),
        Err(error) => assert!(matches!(error, Error::OutOfMemory { .. }), "{error}"),
    }
    run(16 << 10).unwrap();
    assert_eq!(words(&buffer, 1), [55]);
}

fn ptx_errors() {
    let ptx = format!("{HEADER}.visible .entry k ()\n{{\n    nothing.like.this;\n    ret;\n}}\n");
    for assembler in [Assembler::Any, Assembler::Driver] {
        let device = open_with(0, Options { assembler }).unwrap();
        match device.load(&ptx) {
            Err(Error::Ptx { line: 6, text, .. }) => assert_eq!(text, "nothing.like.this;"),
            other => panic!("{assembler:?}: {other:?}"),
        }
    }
}

/// A fault is the process's: the driver refuses to make anything new there. So a test that provokes one runs in a process of its own, and
/// this one goes on with the card.
fn apart(test: &str, environment: &[(&str, &str)], body: fn()) {
    const CHILD: &str = "GPU_RUN_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env(CHILD, "1").envs(environment.iter().copied());
    let output = command.output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    fill_with(&device());
}

fn poke(device: &Arc<dyn Device>, address: u64) -> Result<(), Error> {
    load(device, POKE).run("poke", grid(1, 1), &[Arg::U64(address)], &|| false)
}

fn illegal() {
    let device = device();
    let buffer = device.allocate(64).unwrap();
    let result = poke(&device, 0x10);
    assert!(matches!(&result, Err(Error::Fault(message)) if message.contains("ILLEGAL_ADDRESS")), "{result:?}");
    // The context is lost and goes on saying so.
    assert!(matches!(buffer.write(0, &[1]), Err(Error::Fault(_))));
    assert!(device.allocate(8).is_err_and(|error| error.is_lost()));
}

fn misaligned() {
    let device = device();
    let buffer = device.allocate(64).unwrap();
    let result = poke(&device, buffer.address() + 4);
    assert!(matches!(&result, Err(Error::Fault(message)) if message.contains("MISALIGNED_ADDRESS")), "{result:?}");
}

fn lost_on_purpose() {
    let device = device();
    let buffer = device.allocate(8).unwrap();
    poke(&device, buffer.address()).unwrap();
    let error = poke(&device, buffer.address()).unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("ILLEGAL_ADDRESS"), "{error}");
    assert!(buffer.write(0, &[1]).is_err_and(|error| error.is_lost()));
    assert_eq!(gpu_run_device::planned_faults(), Some(("GPU_RUN_TEST_FAULT", String::new())));
}

/// A kernel that waits for the host, while others load modules and free memory: neither may wait for ever.
fn load_beside() {
    let device = device();
    let module = load(&device, ASK);
    let (bus, out) = (device.share(4096).unwrap(), device.allocate(8).unwrap());
    let (answered, started) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            while started.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            drop(device.allocate(1 << 20).unwrap());
            drop(device.share(1 << 20).unwrap());
            fill_with(&device);
        });
        let serve = || {
            started.store(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_micros(100));
            answer(&bus, &answered)
        };
        let args = [Arg::U64(bus.address()), Arg::U64(out.address()), Arg::U32(1000)];
        module.run("ask", grid(1, 1), &args, &serve).unwrap();
        other.join().unwrap();
    });
    assert_eq!(words(&out, 1), [3 * 1000 * 1001 / 2]);
}

/// Answers what `ASK` asks: three times the number.
fn answer(bus: &Shared, answered: &AtomicU32) -> bool {
    let asked = bus.load_u32(0);
    if asked == answered.load(Ordering::Relaxed) {
        return false;
    }
    bus.store_u64(72, u64::from(asked) * 3);
    bus.store_u32(64, asked);
    answered.store(asked, Ordering::Relaxed);
    true
}

fn service() {
    const COUNT: u32 = 5000;
    let device = device();
    let module = load(&device, ASK);
    let (bus, out) = (device.share(4096).unwrap(), device.allocate(8).unwrap());
    let (answered, start) = (AtomicU32::new(0), Instant::now());
    let so_far = AtomicU32::new(0);
    let serve = || {
        // Memory can be read while the kernel waits for an answer; now and then the host is slow.
        match bus.load_u32(0) {
            asked if asked == answered.load(Ordering::Relaxed) => {}
            1000 => so_far.store(words(&out, 1)[0] as u32, Ordering::Relaxed),
            2000 => std::thread::sleep(Duration::from_millis(3)),
            _ => {}
        }
        answer(&bus, &answered)
    };
    let args = [Arg::U64(bus.address()), Arg::U64(out.address()), Arg::U32(COUNT)];
    module.run("ask", grid(1, 1), &args, &serve).unwrap();
    eprintln!("{COUNT} questions answered, {:?} each", start.elapsed() / COUNT);
    assert_eq!(so_far.into_inner(), 3 * 999 * 1000 / 2);
    let count = u64::from(COUNT);
    assert_eq!(words(&out, 1), [3 * count * (count + 1) / 2]);
}

/// Each kernel is answered only while the other one runs.
fn two_at_once() {
    let device = device();
    let module = load(&device, ASK);
    let buses = [device.share(4096).unwrap(), device.share(4096).unwrap()];
    let outs = [device.allocate(8).unwrap(), device.allocate(8).unwrap()];
    let answered = [AtomicU32::new(0), AtomicU32::new(0)];
    let run = |own: usize| {
        let serve = || (buses[1 - own].load_u32(0) > 0) && answer(&buses[own], &answered[own]);
        let args = [Arg::U64(buses[own].address()), Arg::U64(outs[own].address()), Arg::U32(100)];
        module.run("ask", grid(1, 1), &args, &serve)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        run(0).unwrap();
        other.join().unwrap().unwrap();
    });
    for out in &outs {
        assert_eq!(words(out, 1), [3 * 100 * 101 / 2]);
    }
}
