//! Signatures of functions and kernels, as PTX writes them.
//!
//! One result is a register; two and more lie in a parameter of 8-byte cells.

use super::register::plain;
use super::text::push_unsigned;
use crate::{Error, Function, Kind};
use cranelift_codegen::ir::{AbiParam, ArgumentPurpose, SigRef, Signature, types};
use cranelift_entity::PrimaryMap;
use smallvec::SmallVec;

type Done = Result<(), Error>;

/// The space a result takes where there are several.
pub(crate) const RESULT_BYTES: u64 = 8;

/// `.b32`, `.f64`: the declarations of parameters or results. A vector is four.
pub(crate) fn declared(function: &Function, params: &[AbiParam]) -> Result<SmallVec<[&'static str; 8]>, Error> {
    let mut all = SmallVec::new();
    for param in params {
        match param.value_type {
            types::I32 | types::I64 | types::F32 | types::F64 if param.purpose == ArgumentPurpose::Normal => {
                all.push(plain(param.value_type));
            }
            types::I32X4 => all.extend([plain(types::I32); 4]),
            ty => return Err(Error::Signature { function: function.symbol.clone(), ty }),
        }
    }
    Ok(all)
}

/// `(.reg .b32 %out) name (.reg .b64 %a0, …)`, with `_` for the names in a prototype.
fn push_signature(out: &mut String, function: &Function, name: Option<&str>, signature: &Signature) -> Done {
    let result_name = if name.is_some() { "%out" } else { "_" };
    match declared(function, &signature.returns)?.as_slice() {
        [] => {}
        [result] => {
            out.push_str("(.reg ");
            out.push_str(result);
            out.push(' ');
            out.push_str(result_name);
            out.push_str(") ");
        }
        results => {
            out.push_str("(.param .align 8 .b8 ");
            out.push_str(result_name);
            out.push('[');
            push_unsigned(out, results.len() as u64 * RESULT_BYTES);
            out.push_str("]) ");
        }
    }
    out.push_str(name.unwrap_or("_"));
    out.push_str(" (");
    for (i, param) in declared(function, &signature.params)?.into_iter().enumerate() {
        out.push_str(if i == 0 { ".reg " } else { ", .reg " });
        out.push_str(param);
        if name.is_some() {
            out.push_str(" %a");
            push_unsigned(out, i as u64);
        } else {
            out.push_str(" _");
        }
    }
    out.push(')');
    Ok(())
}

/// What a function's declaration and definition begin with.
pub(crate) fn push_header(out: &mut String, function: &Function) -> Done {
    let signature = &function.clif.signature;
    if function.kind == Kind::Device {
        out.push_str(".func ");
        return push_signature(out, function, Some(&function.symbol), signature);
    }
    let error = || Error::KernelSignature { function: function.symbol.clone() };
    if !signature.returns.is_empty() {
        return Err(error());
    }
    out.push_str(".visible .entry ");
    out.push_str(&function.symbol);
    out.push_str(" (");
    for (i, param) in signature.params.iter().enumerate() {
        out.push_str(if i == 0 { ".param " } else { ", .param " });
        out.push_str(match param.value_type {
            types::I32 => ".u32 p",
            types::I64 => ".u64 p",
            _ => return Err(error()),
        });
        push_unsigned(out, i as u64);
    }
    out.push(')');
    Ok(())
}

/// The signatures of the function's indirect calls, each declared once.
#[derive(Debug, Default)]
pub(crate) struct Prototypes {
    signatures: Vec<SigRef>,
}

impl Prototypes {
    /// The number of a signature's declaration.
    pub(crate) fn number(&mut self, signature: SigRef, all: &PrimaryMap<SigRef, Signature>) -> u64 {
        let same = |s: &SigRef| {
            *s == signature || (all[*s].params == all[signature].params && all[*s].returns == all[signature].returns)
        };
        let number = self.signatures.iter().position(same).unwrap_or(self.signatures.len());
        if number == self.signatures.len() {
            self.signatures.push(signature);
        }
        number as u64
    }

    pub(crate) fn declare(&self, out: &mut String, function: &Function, all: &PrimaryMap<SigRef, Signature>) -> Done {
        for (i, &signature) in self.signatures.iter().enumerate() {
            out.push_str("$P");
            push_unsigned(out, i as u64);
            out.push_str(": .callprototype ");
            push_signature(out, function, None, &all[signature])?;
            out.push_str(";\n");
        }
        Ok(())
    }
}

/// `+8`: where result `i` lies.
pub(crate) fn push_cell(out: &mut String, i: usize) {
    if i > 0 {
        out.push('+');
        push_unsigned(out, i as u64 * RESULT_BYTES);
    }
}
