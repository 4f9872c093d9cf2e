//! A single result is a register; two or more results lie in one parameter, in cells of 8 bytes.

use super::register::plain;
use super::text::push_unsigned;
use crate::{Error, Function, Kind};
use cranelift_codegen::ir::{AbiParam, ArgumentPurpose, SigRef, Signature, types};
use cranelift_entity::PrimaryMap;
use smallvec::SmallVec;

type Done = Result<(), Error>;

/// The size in bytes of a result's cell, if there are several results.
pub(crate) const RESULT_BYTES: u64 = 8;

/// Returns the declared types of parameters or results, such as `.b32` and `.f64`. A vector counts as four.
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

/// Prints `(.reg .b32 %out) name (.reg .b64 %a0, …)`. Without a name it is a prototype, with `_` for all names.
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

/// Prints the header with which both the declaration and the definition of a function begin.
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
    /// Returns the number of a signature's declaration.
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

/// Prints the offset of result `i`, such as `+8`; nothing for the first.
pub(crate) fn push_cell(out: &mut String, i: usize) {
    if i > 0 {
        out.push('+');
        push_unsigned(out, i as u64 * RESULT_BYTES);
    }
}
