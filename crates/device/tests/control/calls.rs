//! Calls: direct, through a table, recursive; their arguments and results.

use super::*;

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
