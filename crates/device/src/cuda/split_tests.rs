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
fn shared_memory_whose_size_is_part_of_the_launch_is_in_every_part() {
    let text = PROGRAM
        .replace("// What", ".shared .align 8 .b8 warp_state[16];\n// What")
        .replace("    add.u32 %out, %a1, 1;\n", "    ld.shared.u32 %out, [warp_state+8];\n");
    assert!(split(&text, 4).is_none(), "its size is part of the text");
    let (text, bytes) = launched(&text).unwrap_or_default();
    assert_eq!(bytes, 16);
    let parts = split(&text, 4).unwrap_or_default();
    let line = ".extern .shared .align 8 .b8 warp_state[];\n";
    assert_eq!(parts.iter().map(|part| part.matches(line).count()).collect::<Vec<_>>(), [1; 4]);
    assert_eq!(launched(PROGRAM), None);
}

/// A kernel `k`, and of each function its name, the length of its body and what it calls. The table has the last.
fn program(kernel_calls: &[&str], functions: &[(&str, usize, &[&str])]) -> String {
    let calls = |names: &[&str]| names.iter().map(|name| format!("    call {name}, ();\n")).collect::<String>();
    let head = ".version 7.8\n.target sm_75\n.address_size 64\n".to_owned();
    let declared = functions.iter().map(|(name, ..)| format!(".func {name} ();\n"));
    let table = functions.last().map(|(name, ..)| format!(".global .align 8 .u64 table[1] = {{ {name} }};\n"));
    let body = |(name, adds, callees): &(&str, usize, &[&str])| {
        let adds = "    add.u32 %r1, %r1, 1;\n".repeat(*adds);
        format!(
            ".func {name} ()\n{{\n    .reg .b32 %r<2>;\n    mov.u32 %r1, 0;\n{adds}{}    ret;\n}}\n",
            calls(callees)
        )
    };
    let kernel = format!(".visible .entry k ()\n{{\n{}    ret;\n}}\n", calls(kernel_calls));
    [head].into_iter().chain(declared).chain(table).chain(functions.iter().map(body)).chain([kernel]).collect()
}

/// The functions that each part defines, in its order.
fn defined(parts: &[String]) -> Vec<Vec<&str>> {
    let defines = |line: &&str| line.starts_with(".visible .") && line.ends_with(')');
    let names = |part| str::lines(part).filter(defines).filter_map(|line| name(&line[".visible ".len()..])).collect();
    parts.iter().map(|part| names(part)).collect()
}

#[test]
fn every_function_is_in_a_part_however_many_there_are() {
    let ptx = program(
        &["a"],
        &[("a", 9, &["b", "a"]), ("b", 9, &["c"]), ("c", 9, &["a"]), ("d", 9, &["e"]), ("e", 9, &["d"]), ("t", 9, &[])],
    );
    for count in 0..20 {
        let parts = split(&ptx, count).unwrap_or_default();
        let mut each = defined(&parts).concat();
        assert_eq!(each[0], "k", "kernels are in the first");
        each.sort_unstable();
        assert_eq!(each, ["a", "b", "c", "d", "e", "k", "t"], "{count}");
    }
}

#[test]
fn parts_are_about_equal_and_what_is_larger_is_alone() {
    let small: Vec<_> = (0..60).map(|n| format!("f{n}")).collect();
    let mut functions: Vec<(&str, usize, &[&str])> = small.iter().map(|name| (name.as_str(), 10, &[][..])).collect();
    functions.insert(30, ("large", 2_000, &[]));
    let parts = split(&program(&[], &functions), 9).unwrap_or_default();
    assert!(defined(&parts).contains(&vec!["large"]) && parts.len() == 9, "{:?}", defined(&parts));
    let equal: Vec<_> = (0..64).map(|n| format!("f{n}")).collect();
    let functions: Vec<(&str, usize, &[&str])> = equal.iter().map(|name| (name.as_str(), 10, &[][..])).collect();
    let parts = split(&program(&[], &functions), 9).unwrap_or_default();
    let counts: Vec<_> = defined(&parts)[1..].iter().map(Vec::len).collect();
    assert!(counts.iter().all(|n| (6..=10).contains(n)), "{counts:?}");
}

#[test]
fn equal_texts_become_equal_parts() {
    let functions: Vec<_> = (0..100).map(|n| format!("f{n}")).collect();
    let callees: Vec<_> = (0..100).map(|n| [functions[n * 7 % 100].as_str(), &functions[n * 31 % 100]]).collect();
    let functions: Vec<_> =
        functions.iter().zip(&callees).map(|(name, callees)| (name.as_str(), 5, &callees[..])).collect();
    let ptx = program(&["f0", "f50"], &functions);
    let first = split(&ptx, 8);
    assert!((0..10).all(|_| split(&ptx, 8) == first));
}

#[test]
fn there_are_no_more_parts_than_functions() {
    assert_eq!(split(PROGRAM, 100).map(|parts| parts.len()), Some(4));
    assert_eq!(split(PROGRAM, 0).map(|parts| parts.len()), Some(1));
}
