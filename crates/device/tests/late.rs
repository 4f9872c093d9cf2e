//! Functions that are compiled when they are first called: they do the same, whoever calls them first, and are not compiled twice.

#![allow(clippy::unwrap_used)]

mod support;

use gpu_run_device::cpu::{Options, open_with};
use gpu_run_device::{Arg, CodeOptions, Device, Module};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{HEADER, buffer_of, grid, run, words};

const FUNCTIONS: u32 = 40;

/// Everything late, on four workers.
fn device() -> Arc<dyn Device> {
    open_with(Options { workers: 4, late_from: Some(0), ..Options::default() })
}

/// `f0(x) = x + 1`, `fn(x) = f(n-1)(x) + n`; a table of all of them, a function that recurses, and one nobody calls. Thread i calls function i mod the number through the table, and
/// the last one directly.
fn ptx() -> String {
    let mut text = format!(
        "{HEADER}.visible .func (.reg .b64 %d1) f0 (.reg .b64 %d0)\n{{\n    add.u64 %d1, %d0, 1;\n    ret;\n}}\n"
    );
    for n in 1..FUNCTIONS {
        _ = write!(
            text,
            ".visible .func (.reg .b64 %d1) f{n} (.reg .b64 %d0)
{{
    .reg .b64 %d2;
    call (%d2), f{}, (%d0);
    add.u64 %d1, %d2, {n};
    ret;
}}
",
            n - 1
        );
    }
    let names: Vec<_> = (0..FUNCTIONS).map(|n| format!("f{n}")).collect();
    _ = write!(
        text,
        ".visible .global .align 8 .u64 table[{FUNCTIONS}] = {{{}}};
.visible .func (.reg .b64 %d1) sum (.reg .b64 %d0)
{{
    .reg .b64 %x<4>;
    .reg .pred %p0;
    mov.u64 %d1, 0;
    setp.eq.u64 %p0, %d0, 0;
    @%p0 bra $end;
    sub.u64 %x2, %d0, 1;
    call (%x3), sum, (%x2);
    add.u64 %d1, %x3, %d0;
$end:
    ret;
}}
.visible .func (.reg .b64 %d1) unused (.reg .b64 %d0)
{{
    mov.u64 %d1, %d0;
    ret;
}}
.visible .entry k (.param .u64 p0)
{{
    .reg .b32 %r<9>;
    .reg .b64 %d<20>;
    ld.param.u64 %d0, [p0];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r0, %r1, %r2;
    cvt.u64.u32 %d1, %r3;
    rem.u64 %d2, %d1, {FUNCTIONS};
    shl.b64 %d3, %d2, 3;
    mov.u64 %d4, table;
    add.u64 %d4, %d4, %d3;
    ld.global.u64 %d5, [%d4];
    $type: .callprototype (.reg .b64 _) _ (.reg .b64 _);
    call (%d6), %d5, (%d1), $type;
    call (%d7), f{}, (%d1);
    call (%d8), sum, (%d2);
    mov.u64 %d10, f1;
    call (%d11), %d10, (%d1), $type;
    add.u64 %d6, %d6, %d7;
    add.u64 %d6, %d6, %d8;
    add.u64 %d6, %d6, %d11;
    shl.b64 %d9, %d1, 3;
    add.u64 %d9, %d0, %d9;
    st.global.u64 [%d9], %d6;
    ret;
}}
",
        names.join(", "),
        FUNCTIONS - 1
    );
    text
}

fn expected(i: u64) -> u64 {
    let f = |n: u64| i + 1 + n * (n + 1) / 2;
    let which = i % u64::from(FUNCTIONS);
    f(which) + f(u64::from(FUNCTIONS) - 1) + which * (which + 1) / 2 + f(1)
}

fn check(device: &Arc<dyn Device>, module: &Arc<dyn Module>) {
    const COUNT: u32 = 64 * 32;
    let buffer = device.allocate(u64::from(COUNT) * 8).unwrap();
    run(module, "k", grid(64, 32), &[Arg::U64(buffer.address())]).unwrap();
    let got = words(&buffer, COUNT as usize);
    for (i, got) in got.into_iter().enumerate() {
        assert_eq!(got, expected(i as u64), "thread {i}");
    }
}

#[test]
fn many_threads_that_call_first_get_what_one_would() {
    let device = device();
    for _ in 0..20 {
        let module = device.load(&ptx()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| check(&device, &module));
            }
        });
        check(&device, &module);
    }
}

#[test]
fn what_was_compiled_is_kept_and_not_compiled_again() {
    let device = device();
    let code = device.compile(&ptx(), CodeOptions::default()).unwrap();
    let module = device.load_code(&code).unwrap();
    assert!(module.grown().is_none(), "nothing was called yet");
    check(&device, &module);
    let grown = module.grown().unwrap();
    assert!(grown.len() > code.len());
    let again = device.load_code(&grown).unwrap();
    check(&device, &again);
    assert!(again.grown().is_none(), "all that is called was there");
}

/// `k` calls `first`, which calls `second` where it is given more than five.
const SELDOM: &str = ".visible .func (.reg .b64 %d1) second (.reg .b64 %d0)
{
    add.u64 %d1, %d0, 100;
    ret;
}
.visible .func (.reg .b64 %d1) first (.reg .b64 %d0)
{
    .reg .pred %p0;
    add.u64 %d1, %d0, 10;
    setp.le.u64 %p0, %d0, 5;
    @%p0 ret;
    call (%d1), second, (%d0);
    ret;
}
.visible .entry k (.param .u64 p0)
{
    .reg .b64 %d<3>;
    ld.param.u64 %d0, [p0];
    ld.global.u64 %d1, [%d0];
    call (%d2), first, (%d1);
    st.global.u64 [%d0], %d2;
    ret;
}
";

#[test]
fn idle_cores_compile_what_may_be_called_next() {
    if std::thread::available_parallelism().map_or(1, |n| n.get()) == 1 {
        return; // None is idle.
    }
    let device = device();
    let module = device.load(&format!("{HEADER}{SELDOM}")).unwrap();
    let called_with = |module: &Arc<dyn Module>, x: u64| {
        let buffer = buffer_of(&device, &[x]);
        run(module, "k", grid(1, 1), &[Arg::U64(buffer.address())]).unwrap();
        words(&buffer, 1)[0]
    };
    assert_eq!(called_with(&module, 1), 11);
    let end = Instant::now() + Duration::from_secs(300);
    let complete = |code: Vec<u8>| {
        let again = device.load_code(&code).unwrap();
        assert_eq!(called_with(&again, 9), 109);
        again.grown().is_none()
    };
    while !complete(module.grown().unwrap()) {
        assert!(Instant::now() < end, "`second` is not compiled ahead");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(called_with(&module, 9), 109);
}

#[test]
fn a_program_with_both_kinds_does_the_same() {
    let eager = open_with(Options { workers: 4, ..Options::default() });
    let module = eager.load(&ptx()).unwrap();
    check(&eager, &module);
    assert!(module.grown().is_none());
}

#[test]
fn a_function_that_cannot_be_compiled_ends_the_launch_that_calls_it() {
    let device = device();
    let text = ptx().replace("    sub.u64 %x2, %d0, 1;\n", "    nothing.like.this %x2;\n");
    let module = device.load(&text).unwrap();
    let buffer = device.allocate(64 * 8).unwrap();
    for _ in 0..2 {
        let error = run(&module, "k", grid(2, 32), &[Arg::U64(buffer.address())]).unwrap_err();
        assert!(error.to_string().contains("nothing.like.this"), "{error}");
        assert!(!error.is_lost());
    }
}

#[test]
fn kept_code_that_is_cut_is_refused() {
    let device = device();
    let module = device.load(&ptx()).unwrap();
    check(&device, &module);
    let grown = module.grown().unwrap();
    for length in (0..grown.len()).step_by(97) {
        assert!(device.load_code(&grown[..length]).is_err(), "{length} bytes");
    }
}
