use super::*;

/// Three functions, a table of two of them, and a kernel that calls by the table and by name.
pub(in crate::cuda) const PROGRAM: &str = ".version 7.8
.target sm_75
.address_size 64
.func (.reg .b32 %out) f1_one (.reg .b64 %a0, .reg .b32 %a1);
.func (.reg .b32 %out) f2_two (.reg .b64 %a0, .reg .b32 %a1);
.func cold_store_4 (.reg .b64 %a0, .reg .b32 %a1);
.global .align 8 .u64 function_table[3] = { 0, f1_one, f2_two };
// What follows is code.
.func (.reg .b32 %out) f1_one (.reg .b64 %a0, .reg .b32 %a1)
{
    add.u32 %out, %a1, 1;
    ret;
}
.func (.reg .b32 %out) f2_two (.reg .b64 %a0, .reg .b32 %a1)
{
    call (%out), f1_one, (%a0, %a1);
    ret;
}
.func cold_store_4 (.reg .b64 %a0, .reg .b32 %a1)
{
    st.global.u32 [%a0], %a1;
    ret;
}
.visible .entry batch (.param .u64 p0)
{
    .reg .b64 %d<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %d0, [p0];
    mov.u64 %d1, function_table;
    ld.global.u64 %d2, [%d1+16];
    $type: .callprototype (.reg .b32 _) _ (.reg .b64 _, .reg .b32 _);
    call (%r1), %d2, (%d0, 7), $type;
    call cold_store_4, (%d0, %r1);
    ret;
}
";

#[test]
fn every_function_is_in_one_part_and_what_it_names_is_declared() {
    let parts = split(PROGRAM, 4).unwrap_or_default();
    assert_eq!(parts.len(), 4);
    for body in [".func (.reg .b32 %out) f1_one (", ".func cold_store_4 (", ".entry batch ("] {
        let defined = |part: &&String| part.lines().any(|line| line.contains(body) && !line.ends_with(';'));
        assert_eq!(parts.iter().filter(defined).count(), 1, "{body}");
    }
    let of = |body: &str| parts.iter().find(|part| part.contains(&format!("{body})\n{{"))).cloned().unwrap_or_default();
    let two = of("f2_two (.reg .b64 %a0, .reg .b32 %a1");
    assert!(two.contains(".extern .func (.reg .b32 %out) f1_one (.reg .b64 %a0, .reg .b32 %a1);"), "{two}");
    assert!(two.contains(".visible .func (.reg .b32 %out) f2_two (.reg .b64 %a0, .reg .b32 %a1);"), "{two}");
    assert!(!two.contains("cold_store_4"), "nothing there names it: {two}");
    let kernels = of(".entry batch (.param .u64 p0");
    assert!(
        kernels.starts_with(".version 7.8\n.target sm_75\n.address_size 64\n")
            && kernels.contains("\n.visible .entry batch")
    );
    let tables =
        parts.iter().filter(|part| part.contains(".visible .global .align 8 .u64 function_table[3] = {")).count();
    let declared =
        parts.iter().filter(|part| part.contains(".extern .global .align 8 .u64 function_table[3];")).count();
    assert_eq!((tables, declared), (1, 3));
}

#[test]
fn what_is_of_another_kind_is_not_split() {
    assert!(split(&PROGRAM.replace("// What", ".shared .b8 room[16];\n// What"), 2).is_none());
    assert!(split(&PROGRAM[..PROGRAM.len() - 3], 2).is_none(), "a function without an end");
    assert!(split(&PROGRAM.replace("f1_one, f2_two };", "f1_one,\nf2_two };"), 2).is_none(), "data of several lines");
}

#[test]
fn there_are_no_more_parts_than_functions() {
    assert_eq!(split(PROGRAM, 100).map(|parts| parts.len()), Some(4));
    assert_eq!(split(PROGRAM, 0).map(|parts| parts.len()), Some(1));
}
