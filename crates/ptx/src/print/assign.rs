//! Assigns an operand to each CLIF value: a register, or a constant that is folded into the instructions that use it.

use super::body::Body;
use super::register::{Class, Operand, Reg};
use super::vector;
use crate::analysis::Analysis;
use crate::analysis::values::sign_extend;
use crate::{Error, Function, Kind};
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value};
use cranelift_entity::SecondaryMap;
use std::collections::HashMap;

/// Operands by value. Aliases have no operand: resolve them first.
#[derive(Debug)]
pub(crate) struct Operands {
    pub(crate) scalars: SecondaryMap<Value, Operand>,
    /// The registers of vectors. A vector that is made of other operands has no entry.
    pub(crate) vectors: HashMap<Value, [Reg; 4]>,
}

/// Gives every value of a function its operand.
pub(crate) fn operands(function: &Function, analysis: &Analysis, body: &mut Body) -> Result<Operands, Error> {
    let func = &function.clif;
    let mut operands = Operands { scalars: SecondaryMap::with_default(Operand::Int(0)), vectors: HashMap::new() };
    operands.scalars.resize(func.dfg.num_values());
    for block in func.layout.blocks() {
        let is_entry = func.layout.entry_block() == Some(block);
        let mut arguments = 0;
        let mut register = |body: &mut Body, class| match function.kind {
            Kind::Device if is_entry => {
                arguments += 1;
                Reg { class: Class::Argument, index: arguments - 1 }
            }
            _ => body.temp(class),
        };
        for &param in func.dfg.block_params(block) {
            let ty = func.dfg.value_type(param);
            if ty.is_vector() {
                operands.vectors.insert(param, [(); 4].map(|()| register(body, Class::B32)));
                continue;
            }
            let error = || Error::Type { function: function.symbol.clone(), value: param, ty };
            let class = Class::of(ty).ok_or_else(error)?;
            operands.scalars[param] = register(body, class).into();
        }
        for inst in func.layout.block_insts(block) {
            results(function, analysis, body, &mut operands, inst)?;
        }
    }
    vector::name_lanes(function, &mut operands)?;
    Ok(operands)
}

fn results(
    function: &Function,
    analysis: &Analysis,
    body: &mut Body,
    operands: &mut Operands,
    inst: Inst,
) -> Result<(), Error> {
    let func = &function.clif;
    for &result in func.dfg.inst_results(inst) {
        let ty = func.dfg.value_type(result);
        if ty.is_vector() {
            if vector::needs_registers(function, inst, result)? {
                operands.vectors.insert(result, [(); 4].map(|()| body.temp(Class::B32)));
            }
            continue;
        }
        let class = Class::of(ty).ok_or_else(|| Error::unsupported(function, inst))?;
        operands.scalars[result] = match func.dfg.insts[inst] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => sign_extend(imm.bits(), ty).into(),
            InstructionData::UnaryIeee32 { imm, .. } => Operand::F32(imm.bits()),
            InstructionData::UnaryIeee64 { imm, .. } => Operand::F64(imm.bits()),
            _ if analysis.predicates.contains(result) => body.temp(Class::Pred).into(),
            _ => body.temp(class).into(),
        };
    }
    Ok(())
}
