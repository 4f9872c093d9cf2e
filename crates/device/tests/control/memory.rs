//! Loads, stores, atomics and globals.

use super::*;

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
