//! Calls, branches, memory and what is refused.

#![allow(clippy::unwrap_used)]

mod support;

use gpu_run_device::{Arg, Error};
use support::{HEADER, buffer_of, grid, load, run, strict, words};

/// Runs a kernel with one thread on `cells` of memory, passed as `p0`, and gives what is in them afterwards.
fn on_memory(ptx: &str, cells: &[u64]) -> Vec<u64> {
    let device = strict();
    let module = load(&device, ptx);
    let buffer = buffer_of(&device, cells);
    run(&module, "k", grid(1, 1), &[Arg::U64(buffer.address())]).unwrap();
    words(&buffer, cells.len())
}

/// A kernel around statements that find the memory's address in `%d0`.
fn kernel(statements: &str) -> String {
    format!(
        ".visible .entry k (.param .u64 p0)
{{
    .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .f32 %f<9>; .reg .f64 %g<9>; .reg .pred %p<9>;
    ld.param.u64 %d0, [p0];
    {statements}
    ret;
}}
"
    )
}

fn refused(body: &str) -> (usize, String, String) {
    match strict().load(&format!("{HEADER}{body}")) {
        Err(Error::Ptx { line, message, text }) => (line, message, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn recursion_keeps_its_registers() {
    let fib = ".func (.reg .b32 %out) fib (.reg .b32 %a0);
.func (.reg .b32 %out) fib (.reg .b32 %a0)
{
    .reg .b32 %r<4>; .reg .pred %p<1>;
    mov.b32 %out, %a0;
    setp.lt.u32 %p0, %a0, 2;
    @%p0 bra $done;
    sub.u32 %r0, %a0, 1;
    call (%r1), fib, (%r0);
    sub.u32 %a0, %a0, 2;
    call (%r2), fib, (%a0);
    add.u32 %out, %r1, %r2;
$done:
    ret;
}
";
    let body = kernel("ld.global.u32 %r1, [%d0];\ncall (%r2), fib, (%r1);\nst.global.u32 [%d0+8], %r2;");
    assert_eq!(on_memory(&format!("{fib}{body}"), &[20, 0])[1], 6765);
}

#[test]
fn indirect_calls_find_their_functions_in_a_table() {
    let functions = ".func (.reg .b32 %out) twice (.reg .b64 %a0, .reg .b32 %a1);
.func (.reg .b32 %out) square (.reg .b64 %a0, .reg .b32 %a1);
.func (.param .align 8 .b8 %out[24]) three (.reg .b64 %a0, .reg .f32 %a1);
.func nothing (.reg .b64 %a0);
.global .align 8 .u64 table[5] = { twice, 0, square, three, nothing };
.func (.reg .b32 %out) twice (.reg .b64 %a0, .reg .b32 %a1)
{
    shl.b32 %out, %a1, 1;
    ret;
}
.func (.reg .b32 %out) square (.reg .b64 %a0, .reg .b32 %a1)
{
    mul.lo.u32 %out, %a1, %a1;
    ret;
}
.func (.param .align 8 .b8 %out[24]) three (.reg .b64 %a0, .reg .f32 %a1)
{
    .reg .b32 %r<2>; .reg .f32 %f<1>;
    add.rn.f32 %f0, %a1, %a1;
    st.param.f32 [%out+0], %f0;
    st.param.b64 [%out+8], %a0;
    mov.b32 %r0, 77;
    st.param.b32 [%out+16], %r0;
    ret;
}
.func nothing (.reg .b64 %a0)
{
    .reg .b64 %d<1>;
    mov.b64 %d0, 99;
    st.global.u64 [%a0+48], %d0;
    ret;
}
";
    let body = kernel(
        "mov.u64 %d1, table;
    ld.global.u64 %d2, [%d1+16];
    $P0: .callprototype (.reg .b32 _) _ (.reg .b64 _, .reg .b32 _);
    call (%r1), %d2, (%d0, 9), $P0;
    st.global.u32 [%d0], %r1;
    ld.global.u64 %d3, [table];
    call (%r1), %d3, (%d0, 9), $P0;
    st.global.u32 [%d0+8], %r1;
    ld.global.u64 %d4, [table+24];
    mov.f32 %f1, 0f40200000;
    {
    .param .align 8 .b8 %ret[24];
    $P1: .callprototype (.param .align 8 .b8 _[24]) _ (.reg .b64 _, .reg .f32 _);
    call (%ret), %d4, (%d0, %f1), $P1;
    ld.param.f32 %f2, [%ret+0];
    ld.param.b64 %d5, [%ret+8];
    ld.param.b32 %r2, [%ret+16];
    }
    st.global.f32 [%d0+16], %f2;
    st.global.u64 [%d0+24], %d5;
    st.global.u32 [%d0+32], %r2;
    {
    .param .align 8 .b8 %ret[24];
    call (%ret), three, (%d0, 0f3F800000);
    ld.param.f32 %f2, [%ret+0];
    }
    st.global.f32 [%d0+40], %f2;
    ld.global.u64 %d6, [%d1+32];
    $P2: .callprototype _ (.reg .b64 _);
    call %d6, (%d0), $P2;
    ld.global.u64 %d7, [table+8];
    st.global.u64 [%d0+56], %d7;
    mov.u64 %d8, square;
    ld.global.u64 %d9, [%d1+16];
    sub.u64 %d8, %d8, %d9;
    st.global.u64 [%d0+64], %d8;",
    );
    let cells = on_memory(&format!("{functions}{body}"), &[1; 9]);
    let f32s = |n: f32| (n.to_bits() as u64) | (cells[2] >> 32 << 32);
    assert_eq!(cells[0] as u32, 81);
    assert_eq!(cells[1] as u32, 18);
    assert_eq!(cells[2], f32s(5.0));
    assert_ne!(cells[3], 1, "the instance pointer came back");
    assert_eq!(cells[4] as u32, 77);
    assert_eq!(cells[5] as u32, 2f32.to_bits());
    assert_eq!(cells[6], 99);
    assert_eq!(cells[7], 0, "no function there");
    assert_eq!(cells[8], 0, "a function has one address");
}

#[test]
fn two_results_come_back_through_a_recursive_call() {
    // (n, fact(n)) by recursion.
    let function = ".func (.param .align 8 .b8 %out[16]) f (.reg .b64 %a0);
.func (.param .align 8 .b8 %out[16]) f (.reg .b64 %a0)
{
    .reg .b64 %d<5>; .reg .pred %p<1>;
    setp.ne.u64 %p0, %a0, 0;
    @%p0 bra $more;
    mov.b64 %d0, 0;
    st.param.b64 [%out+0], %d0;
    mov.b64 %d0, 1;
    st.param.b64 [%out+8], %d0;
    ret;
$more:
    sub.u64 %d0, %a0, 1;
    {
    .param .align 8 .b8 %ret[16];
    call (%ret), f, (%d0);
    ld.param.b64 %d1, [%ret+0];
    ld.param.b64 %d2, [%ret+8];
    }
    add.u64 %d1, %d1, 1;
    mul.lo.u64 %d2, %d2, %a0;
    st.param.b64 [%out+0], %d1;
    st.param.b64 [%out+8], %d2;
    ret;
}
";
    let body = kernel(
        "{\n.param .align 8 .b8 %ret[16];\ncall (%ret), f, (10);\nld.param.b64 %d1, [%ret+0];\nld.param.b64 %d2, [%ret+8];\n}
    st.global.u64 [%d0], %d1;\nst.global.u64 [%d0+8], %d2;",
    );
    assert_eq!(on_memory(&format!("{function}{body}"), &[0, 0]), [10, 3628800]);
}

#[test]
fn many_arguments_of_all_kinds_arrive() {
    let kinds = ["b32", "b64", "f32", "f64"];
    let parameters: Vec<String> = (0..24).map(|n| format!(".reg .{} %a{n}", kinds[n % 4])).collect();
    let parameters = parameters.join(", ");
    let mut body = String::from(".reg .f64 %g<3>; .reg .b64 %d<2>;\nmov.f64 %out, 0d0000000000000000;\n");
    for n in 0..24 {
        body.push_str(&match n % 4 {
            0 => format!("cvt.rn.f64.u32 %g0, %a{n};\n"),
            1 => format!("cvt.rn.f64.u64 %g0, %a{n};\n"),
            2 => format!("cvt.f64.f32 %g0, %a{n};\n"),
            _ => format!("mov.f64 %g0, %a{n};\n"),
        });
        // Horner's scheme: the order of the arguments shows.
        body.push_str("fma.rn.f64 %out, %out, 0d3FF8000000000000, %g0;\n");
    }
    let function = format!(
        ".func (.reg .f64 %out) f ({parameters});\n.func (.reg .f64 %out) f ({parameters})\n{{\n{body}ret;\n}}\n"
    );
    let arguments: Vec<String> = (0..24u32)
        .map(|n| match n % 4 {
            0 | 1 => n.to_string(),
            2 => format!("0f{:08X}", (n as f32).to_bits()),
            _ => format!("0d{:016X}", (n as f64).to_bits()),
        })
        .collect();
    let call = kernel(&format!("call (%g1), f, ({});\nst.global.f64 [%d0], %g1;", arguments.join(", ")));
    let expected = (0..24).fold(0.0f64, |sum, n| sum.mul_add(1.5, n as f64));
    assert_eq!(on_memory(&format!("{function}{call}"), &[0]), [expected.to_bits()]);
}

#[test]
fn branch_tables_go_to_their_targets() {
    let body = kernel(
        "mov.b32 %r1, 0;
    mov.b64 %d1, %d0;
$next:
    setp.ge.u32 %p1, %r1, 4;
    @%p1 bra $out;
    $T1: .branchtargets $a, $b, $a, $c;
    brx.idx %r1, $T1;
$a:
    mov.b32 %r2, 10;
    bra $join;
$b:
    mov.b32 %r2, 20;
    bra $join;
$c:
    mov.b32 %r2, 30;
$join:
    st.global.u32 [%d1], %r2;
    add.u64 %d1, %d1, 8;
    add.u32 %r1, %r1, 1;
    bra $next;
$out:",
    );
    assert_eq!(on_memory(&body, &[0; 4]), [10, 20, 10, 30]);
}

#[test]
fn loops_carry_values_and_predicates() {
    // The sum of the odd numbers below 1000, the parity kept in a predicate.
    let body = kernel(
        "mov.b32 %r1, 0;
    mov.b32 %r2, 0;
    setp.ne.u32 %p1, %r1, 0;
$loop:
    @%p1 add.u32 %r2, %r2, %r1;
    not.pred %p1, %p1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, 1000;
    @%p2 bra $loop;
    st.global.u32 [%d0], %r2;",
    );
    assert_eq!(on_memory(&body, &[0]), [250000]);
}

#[test]
fn every_width_is_loaded_and_stored_as_its_type_says() {
    let body = kernel(
        "ld.global.u8 %r1, [%d0];      st.global.u32 [%d0+8], %r1;
    ld.global.s8 %r1, [%d0];      st.global.u32 [%d0+16], %r1;
    ld.global.u16 %r1, [%d0];     st.global.u32 [%d0+24], %r1;
    ld.global.s16 %r1, [%d0];     st.global.u32 [%d0+32], %r1;
    ld.global.s8 %d1, [%d0];      st.global.u64 [%d0+40], %d1;
    ld.global.u16 %d1, [%d0];     st.global.u64 [%d0+48], %d1;
    ld.global.b32 %f1, [%d0];     st.global.b32 [%d0+56], %f1;
    ld.volatile.global.u64 %d1, [%d0]; st.volatile.global.u64 [%d0+64], %d1;
    ld.acquire.sys.global.u32 %r1, [%d0+4]; st.release.sys.global.u32 [%d0+72], %r1;
    mov.b32 %r1, 0x1234abcd;
    st.global.u8 [%d0+80], %r1;   st.global.u16 [%d0+90], %r1;
    cvt.u64.u32 %d1, %r1;
    st.global.u8 [%d0+87], %d1;
    ld.volatile.global.s16 %d2, [%d0]; st.global.u64 [%d0+96], %d2;",
    );
    let word = 0x0123_4567_89ab_f0f1u64;
    let cells = on_memory(&body, &[word, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let expected = [
        word,
        0xf1,
        0xffff_fff1,
        0xf0f1,
        0xffff_f0f1,
        0xffff_ffff_ffff_fff1,
        0xf0f1,
        0x89ab_f0f1,
        word,
        0x0123_4567,
        0xcd00_0000_0000_00cd,
        0xabcd_0000,
        0xffff_ffff_ffff_f0f1,
    ];
    assert_eq!(cells, expected);
}

#[test]
fn atomics_give_the_old_value_and_store_the_new() {
    let rows = [
        ("add.u32", 5u64, 7u64, 12u64),
        ("exch.b32", 5, 7, 7),
        ("and.b32", 6, 3, 2),
        ("or.b32", 6, 3, 7),
        ("xor.b32", 6, 3, 5),
        ("min.u32", 6, 0xffff_ffff, 6),
        ("max.u32", 6, 0xffff_ffff, 0xffff_ffff),
        ("min.s32", 6, 0xffff_ffff, 0xffff_ffff),
        ("max.s32", 6, 0xffff_ffff, 6),
        ("add.u64", u64::MAX, 2, 1),
        ("exch.b64", 5, u64::MAX, u64::MAX),
        ("and.b64", 6 << 40, 3 << 40, 2 << 40),
        ("or.b64", 6 << 40, 3 << 40, 7 << 40),
        ("xor.b64", 6 << 40, 3 << 40, 5 << 40),
        ("min.u64", 6, u64::MAX, 6),
        ("max.s64", 6, u64::MAX, 6),
    ];
    for (operation, old, operand, new) in rows {
        let r = if operation.ends_with("64") { 'd' } else { 'r' };
        let size = &operation[operation.len() - 2..];
        let body = kernel(&format!(
            "ld.global.b{size} %{r}1, [%d0+8];
    atom.acq_rel.gpu.global.{operation} %{r}2, [%d0], %{r}1;
    st.global.b{size} [%d0+16], %{r}2;"
        ));
        assert_eq!(on_memory(&body, &[old, operand, 0]), [new, operand, old], "{operation}");
    }
    let body = kernel(
        "atom.relaxed.sys.global.cas.b32 %r1, [%d0], 5, 6;
    atom.acquire.gpu.global.cas.b32 %r2, [%d0], 5, 7;
    st.global.b32 [%d0+8], %r1;
    st.global.b32 [%d0+16], %r2;
    mov.b64 %d1, 1;
    atom.release.gpu.global.cas.b64 %d2, [%d0+24], 0, %d1;
    membar.sys;
    membar.gl;
    membar.cta;
    fence.acq_rel.gpu;
    fence.sc.sys;",
    );
    assert_eq!(on_memory(&body, &[5, 0, 0, 0]), [6, 5, 6, 1]);
}

#[test]
fn globals_hold_their_initial_values() {
    let data = ".global .align 8 .b8 bytes[5] = { 1, 2, 255, 4 };
.global .align 4 .u32 words[2] = { 0x80000000, 7 };
.global .align 8 .u64 empty[4];
";
    let body = kernel(
        "ld.global.u8 %r1, [bytes+2];  st.global.u32 [%d0], %r1;
    ld.global.u8 %r1, [bytes+4];  st.global.u32 [%d0+8], %r1;
    ld.global.u32 %r1, [words];   st.global.u32 [%d0+16], %r1;
    mov.u64 %d1, words;
    ld.global.u32 %r1, [%d1+4];   st.global.u32 [%d0+24], %r1;
    ld.global.u64 %d2, [empty+24]; st.global.u64 [%d0+32], %d2;",
    );
    assert_eq!(
        on_memory(&format!("{data}{body}"), &[9; 5]),
        [9 << 32 >> 32 << 32 | 255, 0, 0x8000_0000, 7, 0].map(|n| n & 0xffff_ffff)
    );
}

#[test]
fn stacksave_goes_down_with_calls() {
    let function = ".func (.reg .b32 %out) deeper (.reg .b32 %a0);
.func (.reg .b32 %out) deeper (.reg .b32 %a0)
{
    .reg .b32 %r<3>; .reg .pred %p<1>;
    setp.eq.u32 %p0, %a0, 0;
    @%p0 bra $here;
    sub.u32 %r0, %a0, 1;
    call (%r1), deeper, (%r0);
    add.u32 %out, %r1, 0;
    ret;
$here:
    stacksave.u32 %out;
    ret;
}
";
    let body = kernel(
        "stacksave.u32 %r1;\ncall (%r2), deeper, (0);\ncall (%r3), deeper, (50);
    sub.u32 %r4, %r1, %r2;\nsub.u32 %r5, %r1, %r3;\nst.global.u32 [%d0], %r4;\nst.global.u32 [%d0+8], %r5;",
    );
    // `stacksave` needs a newer target than the others.
    let device = strict();
    let module = device.load(&format!(".version 7.8\n.target sm_75\n.address_size 64\n{function}{body}")).unwrap();
    let buffer = buffer_of(&device, &[0, 0]);
    run(&module, "k", grid(1, 1), &[Arg::U64(buffer.address())]).unwrap();
    let depth = words(&buffer, 2);
    assert!(depth[0] > 0 && depth[1] >= depth[0] + 50 * 8 && depth[1] < 16384, "{depth:?}");
}

#[test]
fn misaligned_access_ends_the_launch_and_names_the_line() {
    let device = strict();
    let module =
        load(&device, &kernel("add.u64 %d0, %d0, 2;\nld.global.u32 %r1, [%d0+4];\nst.global.u32 [%d0+6], %r1;"));
    let buffer = device.allocate(64).unwrap();
    let error = run(&module, "k", grid(1, 1), &[Arg::U64(buffer.address())]).unwrap_err();
    assert!(
        matches!(&error, Error::Fault(message) if message.contains("misaligned") && message.contains("line 9")),
        "{error}"
    );
}

#[test]
fn trap_ends_the_launch() {
    let device = strict();
    let module = load(&device, &kernel("trap;"));
    let error = run(&module, "k", grid(3, 2), &[Arg::U64(0)]).unwrap_err();
    assert!(matches!(&error, Error::Fault(message) if message.contains("trap")), "{error}");
}

#[test]
fn what_is_not_in_the_dialect_is_refused_with_its_line() {
    let (line, message, text) = refused(&kernel("mov.b32 %r1, 1;\nsin.approx.f32 %f1, %f2;"));
    assert_eq!((line, text.as_str()), (9, "sin.approx.f32 %f1, %f2;"));
    assert!(message.contains("sin.approx.f32"), "{message}");
    for (statement, expected) in [
        ("mov.b32 %r99, 1;", "%r99"),
        ("add.u32 %r1, %r2;", "3 operands"),
        ("add.u32 %r1, %r2, %f1;", "F32"),
        ("add.u32 %d1, %d2, %d3;", "B64"),
        ("ld.global.u64 %r1, [%d0];", "B32"),
        ("bra $nowhere;", "$nowhere"),
        ("call missing, (%d0);", "missing"),
        ("ld.global.u32 %r1, [missing];", "missing"),
        ("brx.idx %r1, $T9;", "$T9"),
        ("bar.sync 1;", "bar.sync 0"),
        (".local .b8 x[4];", ".align"),
        (".local .align 16 .b8 x[0];", "own memory"),
        ("add.u32 %r1, %r2, 0f3F80;", "hexadecimal"),
        ("mov.u64 %d1, %tid.x;", "32 bits"),
        ("add.u32 %r1, %r2, 99999999999999999999999;", "integer"),
    ] {
        let (line, message, text) = refused(&kernel(statement));
        assert!(message.contains(expected), "{statement}: {message}");
        assert!(line >= 8 && !text.is_empty(), "{statement}: {line} {text:?}");
    }
}

#[test]
fn kernels_are_checked_before_they_run() {
    let device = strict();
    let module = load(&device, &kernel(""));
    assert!(matches!(run(&module, "other", grid(1, 1), &[Arg::U64(0)]), Err(Error::NoKernel(_))));
    assert!(matches!(run(&module, "k", grid(1, 1), &[]), Err(Error::Unavailable(_))));
    assert!(matches!(run(&module, "k", grid(1, 1), &[Arg::U32(0)]), Err(Error::Unavailable(_))));
    assert!(matches!(run(&module, "k", grid(1, 1025), &[Arg::U64(0)]), Err(Error::Unavailable(_))));
    let deep = gpu_run_device::Grid { blocks: 1, threads: 1, stack_bytes: u32::MAX };
    assert!(matches!(run(&module, "k", deep, &[Arg::U64(0)]), Err(Error::Unavailable(_))));
}

/// A function with so many registers and labels that those assigned once are values, and those assigned often, of every type, in the frame: also those that are assigned on one of two ways and read where only that one
/// leads, and one that is read further up than it is assigned.
#[test]
fn a_large_function_keeps_its_registers() {
    const PARTS: u64 = 1000;
    let (mut hot, mut cold) = (String::new(), String::new());
    for i in 0..PARTS {
        hot += &format!(
            "and.b64 %d2, %d1, {};\nsetp.ne.u64 %q{i}, %d2, 0;\n@%q{i} bra $cold{i};\nadd.u64 %v{i}, %d1, {i};\nadd.u64 %d3, %d3, %v{i};\n\
             $join{i}:\n@%q{i} bra $over{i};\nadd.u64 %d3, %d3, %v{i};\n$over{i}:\nsetp.gt.u64 %often, %d1, {i};\n@%often add.u64 %d3, %d3, 1;\n\
             @%often add.rn.f64 %sum, %sum, 0d3ff0000000000000;\n",
            1u64 << (i % 8)
        );
        cold += &format!("$cold{i}:\nadd.u64 %d3, %d3, 1;\nbra $join{i};\n");
    }
    let body = kernel(&format!(
        ".reg .b64 %v<{PARTS}>; .reg .pred %q<{PARTS}>; .reg .b64 %late; .reg .pred %often; .reg .f64 %sum;
    ld.global.u64 %d1, [%d0];
    mov.b64 %d3, 0;
    mov.b64 %d4, 0;
    mov.f64 %sum, 0d0000000000000000;
$again:
    setp.eq.u64 %p0, %d4, 0;
    @%p0 bra $first;
    add.u64 %d3, %d3, %late;
$first:
    {hot}
    mov.b64 %late, 5;
    add.u64 %d4, %d4, 1;
    setp.lt.u64 %p1, %d4, 2;
    @%p1 bra $again;
    st.global.u64 [%d0+8], %d3;
    st.global.f64 [%d0+16], %sum;
    ret;
    {cold}"
    ));
    let input = 0b1010_0110;
    let part = |i: u64| u64::from(input > i) + if input & (1 << (i % 8)) == 0 { 2 * (input + i) } else { 1 };
    let expected = 2 * (0..PARTS).map(part).sum::<u64>() + 5;
    let sum = (2 * input) as f64;
    assert_eq!(on_memory(&body, &[input, 0, 0])[1..], [expected, sum.to_bits()]);
}

/// A function with so many megabytes in its frame, of which it uses a byte each, and that says where its frame ends.
fn large_frame(megabytes: usize) -> String {
    let arrays: String = (0..megabytes).map(|n| format!(".local .align 16 .b8 a{n}[1048576];\n")).collect();
    let uses: String = (0..megabytes).map(|n| format!("mov.u64 %x0, a{n};\nst.local.u32 [%x0], 1;\n")).collect();
    let main = kernel("stacksave.u32 %r1;\ncall (%r2), large, ();\nsub.u32 %r1, %r1, %r2;\nst.global.u32 [%d0], %r1;");
    format!(
        ".func (.reg .b32 %out) large ()\n{{\n.reg .b64 %x<1>;\n{arrays}stacksave.u32 %out;\n{uses}ret;\n}}\n{main}"
    )
}

#[test]
fn a_frame_larger_than_the_stack_is_there_to_be_found_too_large() {
    // What a guest compares with its floor can only be read in the frame: it must not be fatal to have entered it.
    let device = strict();
    let module = device.load(&format!("{HEADER}{}", large_frame(6))).unwrap();
    let buffer = buffer_of(&device, &[0]);
    run(&module, "k", grid(1, 1), &[Arg::U64(buffer.address())]).unwrap();
    let bytes = words(&buffer, 1)[0];
    assert!((6 << 20..7 << 20).contains(&bytes), "{bytes}");
}

#[test]
fn a_frame_that_no_stack_has_room_for_is_refused() {
    let error = strict().load(&format!("{HEADER}{}", large_frame(9))).unwrap_err();
    assert!(error.to_string().contains("`large`") && error.to_string().contains("bytes of stack"), "{error}");
}
