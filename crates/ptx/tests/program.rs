//! Properties of whole programs: edges move the right values, functions that no kernel reaches are left out, errors
//! name the function and the instruction, listings know the source of their lines, and the same program always gives
//! the same text.

use cranelift_codegen::ir::UserFuncName;
use gpu_run_abi::Layout;
use gpu_run_ptx::{Function, Kind, Program, Target, emit, emit_function};
use std::collections::HashMap;
use std::fmt::Write;

fn program(clif: &str) -> Program {
    let functions = cranelift_reader::parse_functions(clif).expect("the test's CLIF parses");
    let functions = functions.into_iter().map(|clif| {
        let UserFuncName::User(name) = clif.name.clone() else { panic!("name functions u0:n") };
        let kind = if name.namespace == 2 { Kind::Kernel } else { Kind::Device };
        let symbol = format!("{}{}", if name.namespace == 2 { "k" } else { "f" }, name.index);
        Function { symbol, trap_id: name.index, cycle: None, clif, kind, comment: "a\ncomment".to_string() }
    });
    Program {
        functions: functions.collect(),
        function_table: vec![Some(0), None],
        memory: gpu_run_ptx::Memory::default(),
        build: gpu_run_ptx::Build::Exact(Layout::Linear),
    }
}

fn message(clif: &str) -> String {
    emit(&program(clif), &Target::for_sm(75)).expect_err("this program has no PTX").to_string()
}

/// Runs the `mov` lines of a text on registers that hold their own names.
fn run_moves(text: &str) -> HashMap<&str, &str> {
    let mut registers = HashMap::new();
    for line in text.lines().map(str::trim).filter(|l| l.starts_with("mov.")) {
        let (to, from) = line[8..].trim_end_matches(';').split_once(", ").expect("mov has two operands");
        let value = *registers.get(from).unwrap_or(&from);
        registers.insert(to, value);
    }
    registers
}

#[test]
fn an_edge_moves_every_permutation_at_once() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..200 {
        let n = random.usize(2..22);
        let mut order: Vec<usize> = (0..n).collect();
        random.shuffle(&mut order);
        if random.u8(..3) == 0 {
            order[0] = order[n - 1]; // not a permutation any more: one value goes to two places
        }
        let mut clif = String::from("function u0:0(i64) {\nblock0(v0: i64):\n    jump block1(");
        let list = |ids: &mut dyn Iterator<Item = usize>| ids.map(|i| format!("v{i}")).collect::<Vec<_>>().join(", ");
        let params = (1..=n).map(|i| format!("v{i}: i64")).collect::<Vec<_>>().join(", ");
        writeln!(clif, "{})", list(&mut std::iter::repeat_n(0, n))).expect("a string");
        writeln!(clif, "block1({params}):\n    jump block1({})\n}}", list(&mut order.iter().map(|i| i + 1)))
            .expect("a string");
        let text = emit_function(&program(&clif), 0).expect("a loop").text;
        let edge = text.split("$B1:\n").nth(1).expect("the loop's block");
        let registers = run_moves(edge);
        for (i, &from) in order.iter().enumerate() {
            let (to, from) = (format!("%d{i}"), format!("%d{from}"));
            assert_eq!(*registers.get(to.as_str()).unwrap_or(&to.as_str()), from, "{order:?}\n{edge}");
        }
    }
}

#[test]
fn only_what_kernels_reach_is_printed() {
    let text = |body: &str| {
        let clif = format!(
            "function u2:0(i64) {{\n gv0 = symbol u3:0\n fn0 = u0:1(i64)\nblock0(v0: i64):\n{body}\n return\n}}
             function u0:0(i64) {{\nblock0(v0: i64): return }}
             function u0:1(i64) {{\nblock0(v0: i64): return }}"
        );
        emit(&program(&clif), &Target::for_sm(90)).expect("a small program")
    };
    let (nothing, called, tabled) = (text(""), text("call fn0(v0)"), text("v1 = symbol_value.i64 gv0"));
    assert!(!nothing.contains("f0") && !nothing.contains("f1") && !nothing.contains("function_table"));
    assert!(!called.contains(" f0 ") && called.contains(".func f1 ("));
    assert!(
        tabled.contains("function_table[2] = { f0, 0 };") && tabled.contains(".func f0 (") && !tabled.contains("f1")
    );
    assert!(called.contains("// a\n// comment\n"), "each line of a comment is one");
}

#[test]
fn errors_name_the_function_and_the_instruction() {
    let in_kernel = |body: &str| format!("function u2:3(i64) {{\n{body}\n return\n}}");
    let wide = message(&in_kernel("block0(v0: i64): v1 = uextend.i128 v0"));
    assert!(wide.contains("`k3`") && wide.contains("uextend.i128"), "{wide}");
    let unknown = message(&in_kernel("fn0 = u0:9(i64)\nblock0(v0: i64): call fn0(v0)"));
    assert!(unknown.contains("`k3`") && unknown.contains("function 9"), "{unknown}");
    let address = message(&in_kernel("block0(v0: i64): v1 = get_return_address.i64\n store v1, v0"));
    assert!(address.contains("get_return_address"), "{address}");
    let code = message(&in_kernel("block0(v0: i64): trapz v0, user99"));
    assert!(code.contains("user99"), "{code}");
    let signature = message("function u2:3(i64) -> i32 {\nblock0(v0: i64): v1 = iconst.i32 1\n return v1 }");
    assert!(signature.contains("return nothing"), "{signature}");
    let narrow = message(
        "function u2:3(i64) {\nfn0 = u0:0(i8)\nblock0(v0: i64): v1 = ireduce.i8 v0\n call fn0(v1)\n return }\nfunction u0:0(i8) {\nblock0(v0: i8): return }",
    );
    assert!(narrow.contains("`f0`") && narrow.contains("i8"), "{narrow}");
    let no_instance = message("function u2:3(i32) {\nblock0(v0: i32): trapz v0, user1\n return }");
    assert!(no_instance.contains("instance pointer"), "{no_instance}");
    let recursive_kernel = message("function u2:3(i64) {\nfn0 = u2:3(i64)\nblock0(v0: i64): call fn0(v0)\n return }");
    assert!(recursive_kernel.contains("only launched"), "{recursive_kernel}");
    let twice =
        message("function u2:3(i64) {\nblock0(v0: i64): return }\nfunction u2:3(i64) {\nblock0(v0: i64): return }");
    assert!(twice.contains("each once"), "{twice}");
}

#[test]
fn a_listing_knows_where_its_lines_come_from() {
    let program = program(
        "function u0:0(i64, i32) -> i32 {\nblock0(v0: i64, v1: i32):\n@10 v2 = iadd v1, v1\n@12 v3 = imul v2, v1\n@12 v4 = imul v3, v1\n@20 return v4\n}",
    );
    let listing = emit_function(&program, 0).expect("three instructions");
    let line = |n: usize| listing.text.lines().nth(n).unwrap_or_default().trim();
    let at = |offset: u32| listing.sources.iter().find(|s| s.1 == offset).map(|s| line(s.0)).unwrap_or_default();
    assert!(at(0x10).starts_with("add.u32"), "{}", listing.text);
    assert!(at(0x12).starts_with("mul.lo"), "{}", listing.text);
    assert!(at(0x20).starts_with("mov.b32 %out"), "{}", listing.text);
}

/// A program of 100,000 instructions, the size of a module of some 200 KB.
#[test]
fn a_large_program_is_always_the_same() {
    let mut clif = String::from(
        "function u2:0(i64) {\n gv0 = symbol u3:0\nblock0(v0: i64): v1 = symbol_value.i64 gv0\n return\n}\n",
    );
    for f in 0..500 {
        writeln!(clif, "function u0:{f}(i64, i32) -> i32 {{\n region0 = 1 \"guest\"\nblock0(v0: i64, v1: i32):")
            .expect("a string");
        for i in 0..40 {
            let v = 1 + 5 * i;
            writeln!(clif, "v{a} = iadd v{v}, v1\nv{b} = uextend.i64 v{a}\nv{c} = iadd v0, v{b}\nv{d} = icmp ult v{c}, v0\ntrapnz v{d}, user2\nv{e} = load.i32 aligned region0 v{c}+8", a = v + 1, b = v + 2, c = v + 3, d = v + 4, e = v + 5).expect("a string");
        }
        writeln!(clif, "return v201\n}}").expect("a string");
    }
    let mut program = program(&clif);
    program.function_table = (0..500).map(Some).collect();
    let first = emit(&program, &Target::for_sm(75)).expect("a large program");
    let second = emit(&program, &Target::for_sm(75)).expect("a large program");
    assert!(first == second, "two runs differ");
}
