//! That no function is kept from NVIDIA's assembler that could be refused: `support::functions`.

use crate::support::functions::{Seen, Share};
use libtest_mimic::{Failed, Trial};

pub(crate) fn trials() -> [Trial; 3] {
    [
        Trial::test("shapes::what_differs_in_names_and_values_is_left_out", repeated),
        Trial::test("shapes::a_share_has_every_form_of_instruction", shared),
        Trial::test("shapes::kernels_are_always_there", kernels),
    ]
}

fn module(functions: &[&str]) -> String {
    let define = |(i, body): (usize, &&str)| format!(".func f{i}_x (.reg .b64 %a0)\n{{\n    {body}\n}}\n");
    let all: String = functions.iter().enumerate().map(define).collect();
    format!(".version 7.8\n.func f1_a (.reg .b64 %a0);\n\n{all}")
}

fn expect(holds: bool, what: &str) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn repeated() -> Result<(), Failed> {
    let mut seen = Seen::default();
    let first = module(&["call f2_b, (%a0, 17);"]);
    expect(seen.thin(&first, Share::All) == first, "the first of its shape is left out")?;
    let again = seen.thin(&module(&["call f9_d, (%a0, 4096); // elsewhere"]), Share::All);
    expect(again.ends_with("f0_x (.reg .b64 %a0)\n{\nret;\n}\n"), &again)?;
    for other in ["call f9_d, (%a0, 4096000000);", "call f9_d, (%a1, 17);", "add.u32 %r0, %r1, 17;"] {
        let other = module(&[other]);
        expect(seen.thin(&other, Share::All) == other, &other)?;
    }
    Ok(())
}

fn shared() -> Result<(), Failed> {
    let mut seen = Seen::default();
    let text =
        module(&["add.u32 %r0, %r1, 1;", "add.u32 %r2, %r3, 2;", "add.u32 %r4, %r5, 3;", "sub.u32 %r2, %r3, 2;"]);
    let even = seen.thin(&text, Share::Even);
    let has = |text: &str, parts: &[&str]| parts.iter().all(|part| text.contains(part));
    expect(has(&even, &["add.u32 %r0", "add.u32 %r4", "sub.u32"]) && !even.contains("add.u32 %r2"), &even)?;
    let odd = seen.thin(&text, Share::Odd);
    expect(odd.contains("add.u32 %r2") && odd.matches("ret;").count() == 3, &odd)
}

fn kernels() -> Result<(), Failed> {
    let mut seen = Seen::default();
    let kernel = ".visible .entry batch (.param .u64 p)\n{\n    exit;\n}\n";
    for share in [Share::All, Share::Odd] {
        expect(seen.thin(kernel, share) == kernel, "a kernel is left out")?;
    }
    Ok(())
}
