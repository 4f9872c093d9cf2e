//! What a script says of values and traps, against what came out.

use crate::value::Value;
use gpu_run_abi::TrapCode;
use wast::core::{AbstractHeapType as Abstract, HeapType, NanPattern, WastArgCore, WastRetCore};
use wast::{WastArg, WastRet};

pub(super) fn argument(arg: &WastArg<'_>) -> Result<Value, String> {
    let WastArg::Core(arg) = arg else { return Err("component values".into()) };
    Ok(match arg {
        WastArgCore::I32(v) => Value::I32(*v),
        WastArgCore::I64(v) => Value::I64(*v),
        WastArgCore::F32(v) => Value::F32(v.bits),
        WastArgCore::F64(v) => Value::F64(v.bits),
        WastArgCore::RefExtern(n) => Value::ExternRef(Some(*n)),
        WastArgCore::RefNull(heap) if is(heap, Abstract::Extern) || is(heap, Abstract::NoExtern) => {
            Value::ExternRef(None)
        }
        WastArgCore::RefNull(heap) if is(heap, Abstract::Exn) || is(heap, Abstract::NoExn) => Value::ExnRef(None),
        WastArgCore::RefNull(heap) if ANY.iter().any(|any| is(heap, *any)) => Value::AnyRef,
        WastArgCore::RefNull(_) => Value::FuncRef(None),
        other => return Err(format!("argument {other:?} is not supported")),
    })
}

/// What garbage collection knows.
const ANY: [Abstract; 6] =
    [Abstract::Any, Abstract::Eq, Abstract::I31, Abstract::Struct, Abstract::Array, Abstract::None];

fn is(heap: &HeapType<'_>, wanted: Abstract) -> bool {
    matches!(heap, HeapType::Abstract { ty, .. } if *ty == wanted)
}

pub(super) fn compare(values: &[Value], expected: &[WastRet<'_>]) -> Result<(), String> {
    let fits = |(value, expected): (&Value, &WastRet<'_>)| matches!(expected, WastRet::Core(core) if matches_core(*value, core));
    match values.len() == expected.len() && values.iter().zip(expected).all(fits) {
        true => Ok(()),
        false => Err(format!("expected {expected:?}, got {values:?}")),
    }
}

fn matches_core(value: Value, expected: &WastRetCore<'_>) -> bool {
    match (value, expected) {
        (Value::I32(v), WastRetCore::I32(e)) => v == *e,
        (Value::I64(v), WastRetCore::I64(e)) => v == *e,
        (Value::F32(v), WastRetCore::F32(e)) => match e {
            NanPattern::CanonicalNan => v & 0x7fff_ffff == 0x7fc0_0000,
            NanPattern::ArithmeticNan => v & 0x7fc0_0000 == 0x7fc0_0000,
            NanPattern::Value(e) => v == e.bits,
        },
        (Value::F64(v), WastRetCore::F64(e)) => match e {
            NanPattern::CanonicalNan => v & 0x7fff_ffff_ffff_ffff == 0x7ff8_0000_0000_0000,
            NanPattern::ArithmeticNan => v & 0x7ff8_0000_0000_0000 == 0x7ff8_0000_0000_0000,
            NanPattern::Value(e) => v == e.bits,
        },
        (
            Value::FuncRef(None) | Value::ExternRef(None) | Value::ExnRef(None) | Value::AnyRef,
            WastRetCore::RefNull(_),
        ) => true,
        (Value::ExternRef(Some(v)), WastRetCore::RefExtern(e)) => e.is_none_or(|e| v == e),
        (Value::FuncRef(Some(_)), WastRetCore::RefFunc(None)) => true,
        (value, WastRetCore::Either(all)) => all.iter().any(|one| matches_core(value, one)),
        _ => false,
    }
}

/// The suite's words for a trap begin with ours, or ours with theirs ("uninitialized element 7").
pub(super) fn same_trap(code: TrapCode, message: &str) -> Result<(), String> {
    let ours = code.message();
    match message.starts_with(ours) || ours.starts_with(message) {
        true => Ok(()),
        false => Err(format!("expected the trap `{message}`, got `{ours}`")),
    }
}
