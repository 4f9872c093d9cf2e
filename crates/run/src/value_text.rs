//! Values as text: the arguments of a function that is called from a command line or for a record, and its results.

use gpu_run_compiler::{Value, ValueType, printable};

/// Characters of an argument that a message shows.
const MAX_SHOWN: usize = 60;

/// Reads one argument for each parameter of `function`. The error says which argument is wrong, and why.
pub fn arguments(function: &str, params: &[ValueType], texts: &[impl AsRef<str>]) -> Result<Vec<Value>, String> {
    let function = printable::name(function);
    if params.len() != texts.len() {
        let types: Vec<_> = params.iter().map(ValueType::to_string).collect();
        let (count, types) = (params.len(), types.join(", "));
        let arguments = if count == 1 { "argument" } else { "arguments" };
        return Err(format!("`{function}` takes {count} {arguments} ({types}), not {}", texts.len()));
    }
    let read = |(at, (ty, text)): (usize, (&ValueType, &_))| {
        let text = AsRef::<str>::as_ref(text);
        argument(*ty, text).map_err(|expected| {
            format!("argument {} of `{function}`, `{}`, is not {ty}: {expected}", at + 1, short(text))
        })
    };
    params.iter().zip(texts).enumerate().map(read).collect()
}

/// Returns the beginning of a text, as a message shows it.
fn short(text: &str) -> String {
    let mut shown = printable::name(&text.chars().take(MAX_SHOWN).collect::<String>()).into_owned();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Reads an argument of this type. The error says what is expected.
fn argument(ty: ValueType, text: &str) -> Result<Value, &'static str> {
    const FLOAT: &str = "expected a number as in `1.5`, `-2e9`, `inf` or `nan`";
    match ty {
        ValueType::I32 => integer(text, 32).map(|bits| Value::I32(bits as i32)),
        ValueType::I64 => integer(text, 64).map(|bits| Value::I64(bits as i64)),
        ValueType::F32 => text.parse::<f32>().map(|v| Value::F32(v.to_bits())).map_err(|_| FLOAT),
        ValueType::F64 => text.parse::<f64>().map(|v| Value::F64(v.to_bits())).map_err(|_| FLOAT),
        ValueType::V128 => vector(text).map(Value::V128),
        ValueType::FuncRef if text == "null" => Ok(Value::FuncRef(None)),
        ValueType::ExnRef if text == "null" => Ok(Value::ExnRef(None)),
        ValueType::AnyRef if text == "null" => Ok(Value::AnyRef),
        ValueType::FuncRef | ValueType::ExnRef | ValueType::AnyRef => Err("only `null` can be passed"),
        ValueType::ExternRef if text == "null" => Ok(Value::ExternRef(None)),
        ValueType::ExternRef => {
            text.parse().map(|v| Value::ExternRef(Some(v))).map_err(|_| "expected `null` or the host's number")
        }
    }
}

/// Reads a vector: lanes as in `i32x4:1,2,3,4`, lane 0 first, or all 128 bits as one hexadecimal number.
fn vector(text: &str) -> Result<u128, &'static str> {
    const EXPECTED: &str = "expected lanes as in `i32x4:1,2,3,4` or `f64x2:0.5,-1`, or hexadecimal digits as in `0x2a`";
    let Some((shape, lanes)) = text.split_once(':') else {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).ok_or(EXPECTED)?;
        let is_number = digits.starts_with(|c: char| c.is_ascii_hexdigit());
        return match is_number {
            true => u128::from_str_radix(&digits.replace('_', ""), 16).map_err(|_| EXPECTED),
            false => Err(EXPECTED),
        };
    };
    let (ty, count) = shape.split_once('x').ok_or(EXPECTED)?;
    let bits = match (ty, count) {
        ("i8", "16") => 8,
        ("i16", "8") => 16,
        ("i32" | "f32", "4") => 32,
        ("i64" | "f64", "2") => 64,
        _ => return Err(EXPECTED),
    };
    let lane = |text: &str| match ty {
        "f32" => text.parse::<f32>().map(|v| u64::from(v.to_bits())).map_err(|_| EXPECTED),
        "f64" => text.parse::<f64>().map(f64::to_bits).map_err(|_| EXPECTED),
        _ => integer(text, bits).map(|v| v & (u64::MAX >> (64 - bits))),
    };
    let lanes = lanes.split(',').map(|text| lane(text.trim())).collect::<Result<Vec<_>, _>>()?;
    if lanes.len() as u32 != 128 / bits {
        return Err(EXPECTED);
    }
    Ok((0..).zip(lanes).fold(0, |all, (i, lane)| all | u128::from(lane) << (i * bits)))
}

/// Returns the low `bits` bits of an integer, decimal or hexadecimal; accepts everything that fits as a signed or as an
/// unsigned number.
fn integer(text: &str, bits: u32) -> Result<u64, &'static str> {
    const RANGE: &str = "it does not fit";
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (digits, 10),
    };
    // `from_str_radix` would accept a second sign.
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return Err("expected an integer, as in `42`, `-1` or `0xff`");
    }
    let magnitude = u128::from_str_radix(&digits.replace('_', ""), radix).map_err(|error| match error.kind() {
        std::num::IntErrorKind::PosOverflow => RANGE,
        _ => "expected an integer, as in `42`, `-1` or `0xff`",
    })?;
    let limit = if negative { 1u128 << (bits - 1) } else { (1u128 << bits) - 1 };
    match magnitude {
        m if m > limit => Err(RANGE),
        m if negative => Ok((m as u64).wrapping_neg()),
        m => Ok(m as u64),
    }
}

/// Prints integers as signed, floats as Rust does, and vectors as one hexadecimal number.
pub fn show(value: &Value) -> String {
    match *value {
        Value::I32(v) => v.to_string(),
        Value::I64(v) => v.to_string(),
        Value::F32(bits) => f32::from_bits(bits).to_string(),
        Value::F64(bits) => f64::from_bits(bits).to_string(),
        Value::V128(bits) => format!("{bits:#034x}"),
        Value::FuncRef(None) | Value::ExternRef(None) | Value::ExnRef(None) | Value::AnyRef => "null".into(),
        Value::FuncRef(Some(_)) | Value::ExternRef(Some(_)) | Value::ExnRef(Some(_)) => "ref".into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // in a test, that is an assertion
    use super::*;

    #[test]
    fn integers_signed_unsigned_and_hexadecimal() {
        for (text, expected) in [
            ("42", 42),
            ("-1", -1),
            ("+7", 7),
            ("0xff", 255),
            ("-0x10", -16),
            ("4294967295", -1),
            ("0xFFFFFFFF", -1),
            ("-2147483648", i32::MIN),
            ("1_000", 1000),
        ] {
            assert_eq!(argument(ValueType::I32, text), Ok(Value::I32(expected)), "{text}");
        }
        assert_eq!(argument(ValueType::I64, "18446744073709551615"), Ok(Value::I64(-1)));
        assert_eq!(argument(ValueType::I64, "-9223372036854775808"), Ok(Value::I64(i64::MIN)));
    }

    #[test]
    fn integers_that_do_not_fit_are_refused() {
        for text in
            ["", "-", "0x", "--1", "-+1", "1.5", "a", "_", "4294967296", "-2147483649", "0x1ffffffff", "1e3", "٣"]
        {
            assert!(argument(ValueType::I32, text).is_err(), "{text}");
        }
        let long = "9".repeat(60);
        assert_eq!(argument(ValueType::I64, &long), Err("it does not fit"));
    }

    #[test]
    fn floats_and_references() {
        assert_eq!(argument(ValueType::F32, "-0"), Ok(Value::F32(0x8000_0000)));
        assert_eq!(argument(ValueType::F64, "1e300"), Ok(Value::F64(1e300f64.to_bits())));
        assert!(argument(ValueType::F64, "one").is_err());
        assert_eq!(argument(ValueType::FuncRef, "null"), Ok(Value::FuncRef(None)));
        assert!(argument(ValueType::FuncRef, "3").is_err());
        assert_eq!(argument(ValueType::ExternRef, "3"), Ok(Value::ExternRef(Some(3))));
    }

    #[test]
    fn vectors_lane_by_lane_or_as_one_number() {
        let lanes = 0x0000_0004_0000_0003_0000_0002_ffff_ffff;
        assert_eq!(argument(ValueType::V128, "i32x4:-1,2,3, 4"), Ok(Value::V128(lanes)));
        assert_eq!(argument(ValueType::V128, "0x4_00000003_00000002_ffffffff"), Ok(Value::V128(lanes)));
        let one = u128::from(1.0f64.to_bits());
        assert_eq!(argument(ValueType::V128, "f64x2:1,1"), Ok(Value::V128(one | one << 64)));
        let bytes = format!("i8x16:{}", ["255"; 16].join(","));
        assert_eq!(argument(ValueType::V128, &bytes), Ok(Value::V128(u128::MAX)));
        for text in
            ["", "1", "i32x4", "i32x4:1,2,3", "i32x4:1,2,3,4,5", "i8x4:1,2,3,4", "0x", "i16x8:65536,0,0,0,0,0,0,0"]
        {
            assert!(argument(ValueType::V128, text).is_err(), "{text}");
        }
        assert_eq!(show(&Value::V128(0x2a)), "0x0000000000000000000000000000002a");
    }

    #[test]
    fn results_print_as_rust_prints_them() {
        for (value, text) in [
            (Value::I32(-1), "-1"),
            (Value::F32(1.0f32.to_bits()), "1"),
            (Value::F32(0.1f32.to_bits()), "0.1"),
            (Value::F64(f64::NAN.to_bits()), "NaN"),
            (Value::F64(f64::NEG_INFINITY.to_bits()), "-inf"),
            (Value::FuncRef(None), "null"),
            (Value::ExternRef(Some(1)), "ref"),
        ] {
            assert_eq!(show(&value), text);
        }
    }

    #[test]
    fn the_argument_that_is_wrong_is_named() {
        let texts = ["1".to_owned(), "x".to_owned()];
        let error = arguments("add", &[ValueType::I32, ValueType::I64], &texts).unwrap_err();
        assert!(error.contains("argument 2 of `add`, `x`, is not i64"), "{error}");
        let error = arguments("add", &[ValueType::I32], &texts).unwrap_err();
        assert_eq!(error, "`add` takes 1 argument (i32), not 2");
        let long = arguments("f", &[ValueType::I32], &["9\n".repeat(100)]).unwrap_err();
        assert!(long.len() < 500 && long.contains("…") && !long.contains('\n'), "{long}");
    }
}
