//! Texts that are whole, cut short, and spoilt.
#![allow(clippy::unwrap_used)]

use super::parse as headers;
use crate::cpu::ast::{Action, Body, Initial, Module, Opcode, Operand, Order, Register, Returns, Type};
use crate::{Error, Result};

/// A bit of everything the dialect has.
const SAMPLE: &str = include_str!("sample.ptx");

/// Everything, as if it were to be compiled.
fn parse(ptx: &str) -> Result<(Module<'_>, Vec<Body<'_>>)> {
    let (module, texts) = headers(ptx)?;
    let bodies =
        texts.iter().zip(&module.functions).map(|(text, function)| text.read(function)).collect::<Result<_>>()?;
    Ok((module, bodies))
}

#[test]
fn a_module_is_what_its_text_says() {
    let (module, _) = parse(SAMPLE).unwrap();
    let names: Vec<_> = module.functions.iter().map(|f| (f.name, f.entry, f.line)).collect();
    assert_eq!(names, [("f12", false, 14), ("f13", false, 30), ("f14", false, 38), ("batch", true, 46)]);
    assert_eq!(module.functions[0].signature.parameters, [Type::B64, Type::B32]);
    assert_eq!(module.functions[0].signature.result, Returns::Register(Type::B32));
    assert_eq!(module.functions[2].signature.result, Returns::Cells(16));
    assert_eq!(module.globals[0].initial, [Initial::Symbol("f12"), Initial::Bits(0), Initial::Symbol("f14")]);
    assert_eq!(module.globals[1].bytes, 4);
    assert_eq!((module.shared[0].name, module.shared[0].bytes), ("scratch", 1024));
}

#[test]
fn statements_keep_their_lines_and_operands() {
    let (_, bodies) = parse(SAMPLE).unwrap();
    let body = &bodies[0];
    // Parameters, the result, then the families in order.
    assert_eq!(body.registers[..4], [Type::B64, Type::B32, Type::B32, Type::B32]);
    let Action::Do { opcode, first, count } = body.statements[0].action else { panic!() };
    assert_eq!((opcode, body.statements[0].line), (Opcode::Load(Order::Weak, Type::U32), 17));
    let operands = &body.operands[first as usize..][..count as usize];
    assert_eq!(operands, [Operand::Register(Register(3)), Operand::Address(Register(0), -8)]);
    let guard = body.statements[2].guard.unwrap();
    assert!(guard.negated);
    assert_eq!(body.labels.iter().map(|l| (l.name, l.uses)).collect::<Vec<_>>(), [("$L1", 2), ("$L2", 1)]);
}

#[test]
fn a_text_cut_anywhere_is_an_error_or_a_shorter_module() {
    let whole = parse(SAMPLE).unwrap().1.len();
    for (cut, _) in SAMPLE.trim_end().char_indices() {
        match parse(&SAMPLE[..cut]) {
            Ok((_, bodies)) => assert!(bodies.len() < whole, "cut at {cut}"),
            Err(Error::Ptx { line, .. }) => assert!(line <= SAMPLE.lines().count() + 1),
            Err(other) => panic!("cut at {cut}: {other}"),
        }
    }
}

#[test]
fn spoilt_texts_never_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut next = move |below: usize| random.usize(..below);
    let pieces: Vec<&str> = SAMPLE.split_inclusive([' ', '\n', ',', ';']).collect();
    let odd = [
        "{",
        "}",
        "[",
        "@",
        "%",
        "-",
        "0x",
        "0f",
        "ü",
        "<",
        "99999999999",
        ".reg .b32 %q<4194305>;",
        "(",
        "\0",
        "//",
        "|",
    ];
    for round in 0..20_000 {
        let mut text = pieces.clone();
        for _ in 0..=round % 4 {
            let at = next(text.len());
            match next(4) {
                0 => drop(text.remove(at)),
                1 => text.insert(at, odd[next(odd.len())]),
                2 => text[at] = odd[next(odd.len())],
                _ => {
                    let other = next(text.len());
                    text.swap(at, other);
                }
            }
        }
        // What still parses must translate or be refused, too.
        let _ = crate::cpu::compile::compile_only(&text.concat());
    }
}

#[test]
fn an_error_shows_its_line() {
    let spoilt = SAMPLE.replace("setp.lt.u32", "setp.lt.u13");
    let Err(Error::Ptx { line, message, text }) = parse(&spoilt) else { panic!("not refused") };
    assert_eq!((line, text.as_str()), (18, "setp.lt.u13 %p0, %r0, 5; // a comment with { and }"));
    assert!(message.contains("setp.lt.u13"));
}
