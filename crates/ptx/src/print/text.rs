//! Writes text without small allocations: one `String` for each function, numbers converted by hand.

use super::register::{Class, Operand, Reg};

/// The start of every line of a body.
pub(crate) const INDENT: &str = "    ";

/// Prints a global array of 64-bit words; `push` prints each word.
pub(crate) fn push_array<T>(out: &mut String, name: &str, words: &[T], push: impl Fn(&mut String, &T)) {
    out.push_str(".global .align 8 .u64 ");
    out.push_str(name);
    out.push('[');
    push_unsigned(out, words.len() as u64);
    out.push_str("] = { ");
    for (i, word) in words.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        push(out, word);
    }
    out.push_str(" };\n");
}

/// Prints a comment, which may have several lines.
pub(crate) fn push_comment(out: &mut String, comment: &str) {
    for line in comment.lines() {
        out.push_str("// ");
        out.push_str(line);
        out.push('\n');
    }
}

pub(crate) fn push_unsigned(out: &mut String, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

pub(crate) fn push_signed(out: &mut String, n: i64) {
    if n == i64::MIN {
        out.push_str("0x8000000000000000"); // ptxas reads the digits first and then applies the sign
    } else {
        if n < 0 {
            out.push('-');
        }
        push_unsigned(out, n.unsigned_abs());
    }
}

/// Prints `digits` hexadecimal digits, in upper case as in PTX's float immediates.
pub(crate) fn push_hex(out: &mut String, n: u64, digits: u32) {
    for i in (0..digits).rev() {
        out.push(b"0123456789ABCDEF"[(n >> (4 * i)) as usize & 15] as char);
    }
}

pub(crate) fn push_reg(out: &mut String, reg: Reg) {
    out.push_str(match reg.class {
        Class::B32 => "%r",
        Class::B64 => "%d",
        Class::F32 => "%f",
        Class::F64 => "%g",
        Class::Pred => "%p",
        Class::Argument => "%a",
    });
    push_unsigned(out, u64::from(reg.index));
}

pub(crate) fn push_operand(out: &mut String, operand: Operand) {
    match operand {
        Operand::Reg(reg) => push_reg(out, reg),
        Operand::Int(n) => push_signed(out, n),
        Operand::F32(bits) => {
            out.push_str("0f");
            push_hex(out, u64::from(bits), 8);
        }
        Operand::F64(bits) => {
            out.push_str("0d");
            push_hex(out, bits, 16);
        }
        Operand::Name(name) => out.push_str(name),
    }
}

/// `name suffix a, b, c;` on its own line.
pub(crate) fn push_line(out: &mut String, name: &str, suffix: &str, operands: &[Operand]) {
    out.push_str(INDENT);
    out.push_str(name);
    out.push_str(suffix);
    for (i, &operand) in operands.iter().enumerate() {
        out.push_str(if i == 0 { " " } else { ", " });
        push_operand(out, operand);
    }
    out.push_str(";\n");
}

/// `[base+offset]`
pub(crate) fn push_address(out: &mut String, base: Reg, offset: i64) {
    out.push('[');
    push_reg(out, base);
    if offset != 0 {
        out.push('+');
        push_signed(out, offset);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(operand: Operand) -> String {
        let mut out = String::new();
        push_operand(&mut out, operand);
        out
    }

    #[test]
    fn numbers_at_their_limits() {
        assert_eq!(text(Operand::Int(0)), "0");
        assert_eq!(text(Operand::Int(-1)), "-1");
        assert_eq!(text(Operand::Int(i64::MAX)), "9223372036854775807");
        assert_eq!(text(Operand::Int(i64::MIN)), "0x8000000000000000");
        assert_eq!(text(Operand::F32(1.0f32.to_bits())), "0f3F800000");
        assert_eq!(text(Operand::F64((-0.0f64).to_bits())), "0d8000000000000000");
    }

    #[test]
    fn a_negative_offset_keeps_its_plus() {
        let mut out = String::new();
        push_address(&mut out, Reg { class: Class::B64, index: 3 }, -8);
        assert_eq!(out, "[%d3+-8]");
    }
}
