#![allow(clippy::unwrap_used)]

use super::run;
use cranelift_codegen::ir::Function;
use cranelift_codegen::{settings, verify_function};

fn unrolled(text: &str) -> (String, Function) {
    let mut func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    run(&mut func);
    let flags = settings::Flags::new(settings::builder());
    verify_function(&func, &flags).map_err(|e| format!("{e}\n{func}")).unwrap();
    (func.display().to_string(), func)
}

/// A loop that adds what it loads, with these lines at its end.
fn sum(first: i32, step: i32, test: &str) -> String {
    format!(
        "function u0:0(i64, i32) -> i32 {{
            region0 = 1 \"guest\"
        block0(v0: i64, v1: i32):
            v2 = iconst.i32 {first}
            v3 = iconst.i32 0
            jump block1(v2, v3, v3, v3, v3)
        block1(v4: i32, v5: i32, v30: i32, v31: i32, v32: i32):
            v6 = iadd v1, v4
            v7 = uextend.i64 v6
            v8 = load.i32 aligned region0 v7
            v9 = iadd v5, v8
            v10 = iconst.i32 {step}
            v11 = iadd v4, v10
            {test}
        block2:
            v19 = iadd v9, v4
            v20 = iadd v19, v32
            return v20
        }}"
    )
}

fn loads(text: &str) -> usize {
    text.matches("load.i32").count()
}

#[test]
fn a_loop_that_ends_after_64_rounds_has_eight_in_a_row() {
    let (text, func) = unrolled(&sum(
        0,
        4,
        "v12 = iconst.i32 256\nv13 = icmp ne v11, v12\nbrif v13, block1(v11, v9, v5, v30, v31), block2",
    ));
    assert_eq!(loads(&text), 8, "{text}");
    // Places are a constant further than the first copy's.
    assert!(text.contains("iadd v6, "), "{text}");
    // It goes on from the counter itself, by eight steps.
    let last = func.layout.blocks().nth(1).and_then(|block| func.layout.last_inst(block)).unwrap();
    assert!(func.dfg.display_inst(last).to_string().starts_with("brif"), "{text}");
    assert!(text.contains("iconst.i32 32"), "{text}");
}

#[test]
fn a_short_loop_is_none_any_more() {
    let (text, _) = unrolled(&sum(5, -1, "brif v11, block1(v11, v9, v5, v30, v31), block2"));
    assert_eq!((loads(&text), text.matches("brif").count()), (5, 0), "{text}");
}

#[test]
fn what_comes_after_sees_the_last_round() {
    let (text, _) = unrolled(&sum(
        0,
        1,
        "v12 = iconst.i32 2\nv13 = icmp ult v11, v12\nbrif v13, block1(v11, v9, v5, v30, v31), block2",
    ));
    let after = text.split("block2").last().unwrap();
    assert!(!after.contains("v9,") && !after.contains(" v4"), "{text}");
}

#[test]
fn a_test_before_the_step_and_a_branch_the_other_way_are_counted_alike() {
    let until = |test: &str| loads(&unrolled(&sum(0, 1, test)).0);
    // The body runs for 0, 1, 2 and 3.
    assert_eq!(until("v12 = iconst.i32 3\nv13 = icmp eq v4, v12\nbrif v13, block2, block1(v11, v9, v5, v30, v31)"), 4);
    assert_eq!(until("v12 = iconst.i32 3\nv13 = icmp slt v4, v12\nbrif v13, block1(v11, v9, v5, v30, v31), block2"), 4);
    assert_eq!(
        until("v12 = iconst.i32 4\nv13 = icmp uge v11, v12\nbrif v13, block2, block1(v11, v9, v5, v30, v31)"),
        4
    );
}

#[test]
fn loops_whose_rounds_are_unknown_odd_or_many_stay_as_they_are() {
    let stays = |text: &str| assert_eq!(loads(&unrolled(text).0), 1, "{text}");
    stays(&sum(0, 4, "v13 = icmp ne v11, v1\nbrif v13, block1(v11, v9, v5, v30, v31), block2"));
    // 13 rounds, and no end at all.
    stays(&sum(0, 1, "v12 = iconst.i32 13\nv13 = icmp ne v11, v12\nbrif v13, block1(v11, v9, v5, v30, v31), block2"));
    stays(&sum(0, 2, "v12 = iconst.i32 13\nv13 = icmp ne v11, v12\nbrif v13, block1(v11, v9, v5, v30, v31), block2"));
}
