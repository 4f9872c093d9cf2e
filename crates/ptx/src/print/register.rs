//! PTX has any number of virtual registers, in classes named by their declarations; ptxas assigns real registers. A
//! CLIF value keeps one register of its class for its whole life.

use super::text::{INDENT, push_unsigned};
use cranelift_codegen::ir::{Type, types};

/// The class of a register. The first letter of its name shows the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// i8 and i16 live here too; bits above the type's width are undefined.
    B32,
    B64,
    F32,
    F64,
    /// The result of a comparison: a CLIF i8 that is 0 or 1.
    Pred,
    /// A parameter of a `.func`; its type is in the signature.
    Argument,
}

impl Class {
    /// Returns the class for values of a type that do not live in predicates.
    pub(crate) fn of(ty: Type) -> Option<Class> {
        match ty {
            types::I8 | types::I16 | types::I32 => Some(Class::B32),
            types::I64 => Some(Class::B64),
            types::F32 => Some(Class::F32),
            types::F64 => Some(Class::F64),
            _ => None,
        }
    }
}

impl Class {
    /// Returns the type with which registers of the class are declared.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Class::B32 | Class::Argument => ".b32",
            Class::B64 => ".b64",
            Class::F32 => ".f32",
            Class::F64 => ".f64",
            Class::Pred => ".pred",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reg {
    pub(crate) class: Class,
    pub(crate) index: u32,
}

/// Returns the register of a `.func`'s parameter.
pub(crate) const fn argument(index: u32) -> Reg {
    Reg { class: Class::Argument, index }
}

/// An operand of a PTX instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Reg(Reg),
    /// An integer, sign-extended from its CLIF type.
    Int(i64),
    F32(u32),
    F64(u64),
    /// A special register, a symbol, or the result `%out`.
    Name(&'static str),
}

impl Operand {
    pub(crate) fn register(self) -> Option<Reg> {
        match self {
            Operand::Reg(reg) => Some(reg),
            _ => None,
        }
    }
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Self {
        Operand::Reg(reg)
    }
}

impl From<i64> for Operand {
    fn from(n: i64) -> Self {
        Operand::Int(n)
    }
}

/// How many registers of each class a function uses.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    counts: [u32; 5],
}

impl Registers {
    /// Returns a new register.
    pub(crate) fn fresh(&mut self, class: Class) -> Reg {
        let count = &mut self.counts[class as usize];
        let index = *count;
        *count += 1;
        Reg { class, index }
    }

    /// Prints the declarations, on one line.
    pub(crate) fn declare(&self, out: &mut String) {
        const NAMES: [&str; 5] = [".b32 %r", ".b64 %d", ".f32 %f", ".f64 %g", ".pred %p"];
        let mut lead = INDENT;
        for (name, &count) in NAMES.iter().zip(&self.counts) {
            if count > 0 {
                out.push_str(lead);
                lead = "  ";
                out.push_str(".reg ");
                out.push_str(name);
                out.push('<');
                push_unsigned(out, u64::from(count));
                out.push_str(">;");
            }
        }
        if lead == "  " {
            out.push('\n');
        }
    }
}

/// The suffixes of a type where only the size matters (`bits`), or the sign as well.
pub(crate) fn bits(ty: Type) -> &'static str {
    if ty == types::I64 { ".b64" } else { ".b32" }
}
pub(crate) fn unsigned(ty: Type) -> &'static str {
    if ty == types::I64 { ".u64" } else { ".u32" }
}
pub(crate) fn signed(ty: Type) -> &'static str {
    if ty == types::I64 { ".s64" } else { ".s32" }
}
pub(crate) fn float(ty: Type) -> &'static str {
    if ty == types::F64 { ".f64" } else { ".f32" }
}
/// The suffix for a conversion of a float to its own type.
pub(crate) fn float_to_itself(ty: Type) -> &'static str {
    if ty == types::F64 { ".f64.f64" } else { ".f32.f32" }
}
/// The suffixes of a type of any size, for a conversion that reads no more of the register than the type has.
pub(crate) fn own_unsigned(ty: Type) -> &'static str {
    match ty {
        types::I8 => ".u8",
        types::I16 => ".u16",
        _ => unsigned(ty),
    }
}
pub(crate) fn own_signed(ty: Type) -> &'static str {
    match ty {
        types::I8 => ".s8",
        types::I16 => ".s16",
        _ => signed(ty),
    }
}
/// The suffix of a type's size, for integers and floats.
pub(crate) fn size(ty: Type) -> &'static str {
    if ty.bits() == 64 { ".b64" } else { ".b32" }
}
/// The suffix of `mov`, `selp` and parameters: the type with which the value's register is declared.
pub(crate) fn plain(ty: Type) -> &'static str {
    if ty.is_float() { float(ty) } else { bits(ty) }
}
