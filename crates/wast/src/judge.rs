//! Compares values and traps with a script's assertions.

use gpu_run_abi::TrapCode;
use gpu_run_compiler::Value;
use wast::core::{AbstractHeapType as Abstract, HeapType, NanPattern, V128Pattern, WastArgCore, WastRetCore};
use wast::token::{F32, F64};
use wast::{WastArg, WastRet};

pub(super) fn argument(arg: &WastArg<'_>) -> Result<Value, String> {
    let WastArg::Core(arg) = arg else { return Err("component values".into()) };
    Ok(match arg {
        WastArgCore::I32(v) => Value::I32(*v),
        WastArgCore::I64(v) => Value::I64(*v),
        WastArgCore::F32(v) => Value::F32(v.bits),
        WastArgCore::F64(v) => Value::F64(v.bits),
        WastArgCore::V128(v) => Value::V128(u128::from_le_bytes(v.to_le_bytes())),
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

/// The heap types of the garbage collection proposal.
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
        (Value::F32(v), WastRetCore::F32(e)) => matches_f32(v, e),
        (Value::F64(v), WastRetCore::F64(e)) => matches_f64(v, e),
        (Value::V128(v), WastRetCore::V128(e)) => matches_v128(v.to_le_bytes(), e),
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

fn matches_f32(bits: u32, expected: &NanPattern<F32>) -> bool {
    match expected {
        NanPattern::CanonicalNan => bits & 0x7fff_ffff == 0x7fc0_0000,
        NanPattern::ArithmeticNan => bits & 0x7fc0_0000 == 0x7fc0_0000,
        NanPattern::Value(e) => bits == e.bits,
    }
}

fn matches_f64(bits: u64, expected: &NanPattern<F64>) -> bool {
    match expected {
        NanPattern::CanonicalNan => bits & 0x7fff_ffff_ffff_ffff == 0x7ff8_0000_0000_0000,
        NanPattern::ArithmeticNan => bits & 0x7ff8_0000_0000_0000 == 0x7ff8_0000_0000_0000,
        NanPattern::Value(e) => bits == e.bits,
    }
}

fn matches_v128(bytes: [u8; 16], expected: &V128Pattern) -> bool {
    let halves = bytes.as_chunks::<2>().0.iter().map(|b| i16::from_le_bytes(*b));
    let words = bytes.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b));
    let longs = bytes.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b));
    match expected {
        V128Pattern::I8x16(e) => bytes.map(|b| b as i8) == *e,
        V128Pattern::I16x8(e) => halves.eq(e.iter().copied()),
        V128Pattern::I32x4(e) => words.eq(e.iter().copied()),
        V128Pattern::I64x2(e) => longs.eq(e.iter().copied()),
        V128Pattern::F32x4(e) => words.zip(e).all(|(v, e)| matches_f32(v as u32, e)),
        V128Pattern::F64x2(e) => longs.zip(e).all(|(v, e)| matches_f64(v as u64, e)),
    }
}

/// Compares a trap with the suite's message: one must begin with the other, as in "uninitialized element 7".
pub(super) fn same_trap(code: TrapCode, message: &str) -> Result<(), String> {
    let ours = code.message();
    match message.starts_with(ours) || ours.starts_with(message) {
        true => Ok(()),
        false => Err(format!("expected the trap `{message}`, got `{ours}`")),
    }
}
