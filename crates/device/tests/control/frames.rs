//! Stacks, frames, and registers that do not fit a processor's.

use super::*;

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
