//! Measures the `cpu` device: reading and compiling PTX, launching, switching between threads, calls to the host.
//!
//! `cargo bench -p gpu-run-bench --bench cpu [-- FILE.ptx]`

use gpu_run_device::{Arg, Grid, cpu};
use std::fmt::Write;
use std::time::{Duration, Instant};

const KERNELS: &str = ".version 7.8
.target sm_75
.address_size 64
.visible .entry nothing (.param .u64 p0)
{
    ret;
}
.visible .entry turns (.param .u64 p0)
{
    .reg .b32 %r<4>; .reg .pred %p<2>;
    mov.b32 %r0, 0;
$again:
    bar.sync 0;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p0, %r0, 1000;
    @%p0 bra $again;
    ret;
}
.visible .entry ask (.param .u64 p0)
{
    .reg .b64 %d<6>; .reg .pred %p<2>;
    ld.param.u64 %d0, [p0];
    mov.b64 %d2, 0;
$ask:
    add.u64 %d2, %d2, 1;
    st.release.sys.global.u64 [%d0], %d2;
$look:
    nanosleep.u32 100;
    ld.acquire.sys.global.u64 %d4, [%d0+8];
    setp.ne.u64 %p1, %d4, %d2;
    @%p1 bra $look;
    setp.lt.u64 %p1, %d2, 100000;
    @%p1 bra $ask;
    ret;
}
.visible .entry primes (.param .u64 p0)
{
    .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>;
    ld.param.u64 %d0, [p0];
    mov.b32 %r0, 2;
    mov.b32 %r1, 0;
$number:
    mov.b32 %r2, 2;
$divisor:
    mul.lo.u32 %r3, %r2, %r2;
    setp.gt.u32 %p0, %r3, %r0;
    @%p0 bra $prime;
    rem.u32 %r4, %r0, %r2;
    setp.eq.u32 %p1, %r4, 0;
    @%p1 bra $next;
    add.u32 %r2, %r2, 1;
    bra $divisor;
$prime:
    add.u32 %r1, %r1, 1;
$next:
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p2, %r0, 2000000;
    @%p2 bra $number;
    st.global.u32 [%d0], %r1;
    ret;
}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = cpu::open();
    println!("{:?}", device.properties());

    // Cargo says `--bench`. Of our own, there is more to read than anybody wants to wait for to be compiled.
    let (read, compiled) = match std::env::args().skip(1).find(|argument| !argument.starts_with("--")) {
        Some(file) => std::fs::read_to_string(file).map(|ptx| (ptx.clone(), ptx))?,
        None => (synthetic(2000, 120), synthetic(50, 120)),
    };
    // Functions that are compiled when they are first called are only read when they are loaded.
    for (what, ptx, late_from) in [("read", &read, 0), ("compile", &compiled, u64::MAX)] {
        let device = cpu::open_with(cpu::Options { late_from: Some(late_from), ..cpu::Options::default() });
        let start = Instant::now();
        let loaded = device.load(ptx)?;
        let time = start.elapsed();
        let megabytes = ptx.len() as f64 / 1e6;
        let rate = megabytes / time.as_secs_f64();
        println!("{what} {megabytes:.1} MB of PTX, {} lines: {time:.1?}, {rate:.1} MB/s", ptx.lines().count());
        drop(loaded);
    }

    let module = device.load(KERNELS)?;
    let buffer = device.allocate(64)?;
    let args = [Arg::U64(buffer.address())];
    let one = Grid { workgroups: 1, threads: 1, stack_bytes: 64 << 10 };
    let run = |kernel: &str, grid: Grid| -> Result<Duration, gpu_run_device::Error> {
        let start = Instant::now();
        module.run(kernel, grid, &args, &|| false)?;
        Ok(start.elapsed())
    };
    let launches = 20_000;
    let start = Instant::now();
    for _ in 0..launches {
        run("nothing", one)?;
    }
    println!("launch of one thread: {:?}", start.elapsed() / launches);
    let start = Instant::now();
    for _ in 0..1000 {
        run("nothing", Grid { workgroups: 2, ..one })?;
    }
    println!("launch of two blocks: {:?}", start.elapsed() / 1000);
    let threads = 1 << 20;
    let time = run("nothing", Grid { workgroups: threads / 256, threads: 256, ..one })?;
    println!("a thread that does nothing: {:?}", time / threads);
    for threads in [2, 32, 256, 1024] {
        let time = run("turns", Grid { threads, ..one })?;
        println!("turn at a barrier of {threads}: {:?}", time / (threads * 1000));
    }
    println!("primes below 2 million: {:?}; in Rust: {:?}", run("primes", one)?, primes());

    let bus = device.share(64)?;
    let service = || {
        let asked = bus.load_u64(0);
        let served = bus.load_u64(8) != asked;
        bus.store_u64(8, asked);
        served
    };
    let start = Instant::now();
    module.run("ask", one, &[Arg::U64(bus.address())], &service)?;
    println!("question and answer: {:?}", start.elapsed() / 100_000);
    Ok(())
}

fn primes() -> Duration {
    let start = Instant::now();
    let is_prime = |n: &u32| (2..).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    let count = (2..std::hint::black_box(2_000_000u32)).filter(is_prime).count();
    assert_eq!(std::hint::black_box(count), 148_933);
    start.elapsed()
}

/// Makes a module of `functions` functions, each with `groups` groups of arithmetic, loads, branches and calls or
/// stores.
fn synthetic(functions: usize, groups: usize) -> String {
    let mut ptx = String::from(".version 7.8\n.target sm_75\n.address_size 64\n");
    for f in 0..functions {
        writeln!(ptx, ".func (.reg .b32 %out) f{f} (.reg .b64 %a0, .reg .b32 %a1);").ok();
    }
    for f in 0..functions {
        writeln!(ptx, ".func (.reg .b32 %out) f{f} (.reg .b64 %a0, .reg .b32 %a1)\n{{").ok();
        let registers = groups * 8 + 8;
        writeln!(ptx, "    .reg .b32 %r<{registers}>;  .reg .b64 %d<{registers}>;  .reg .pred %p<{registers}>;").ok();
        writeln!(ptx, "    mov.b32 %r0, %a1;").ok();
        for g in 0..groups {
            let n = g * 4;
            writeln!(ptx, "    add.u32 %r{}, %r{n}, {g};", n + 1).ok();
            writeln!(ptx, "    and.b32 %r{}, %r{}, 1023;", n + 2, n + 1).ok();
            writeln!(ptx, "    mad.wide.u32 %d{n}, %r{}, 8, %a0;", n + 2).ok();
            writeln!(ptx, "    ld.global.u32 %r{}, [%d{n}+{}];", n + 3, g * 8).ok();
            writeln!(ptx, "    setp.lt.u32 %p{g}, %r{}, %r{};", n + 3, n + 1).ok();
            writeln!(ptx, "    @%p{g} bra $L{g};").ok();
            if g % 8 == 0 {
                writeln!(ptx, "    call (%r{}), f{}, (%a0, %r{});", n + 3, (f + 1) % functions, n + 2).ok();
            } else {
                writeln!(ptx, "    st.global.u32 [%d{n}+4], %r{};", n + 1).ok();
            }
            writeln!(ptx, "$L{g}:\n    xor.b32 %r{}, %r{}, %r{};", n + 4, n + 3, n + 1).ok();
        }
        writeln!(ptx, "    mov.b32 %out, %r{};\n    ret;\n}}", groups * 4).ok();
    }
    ptx
}
