//! Moves and calls.

use super::host;
use super::translate::Translator;
use crate::Result;
use crate::cpu::ast::{Call, CallResult, Callee, Operand, Returns, Signature, Type};
use cranelift_codegen::ir::{
    ExtFuncData, ExternalName, FuncRef, InstBuilder, StackSlot, StackSlotData, StackSlotKind, UserExternalName, Value,
    types,
};

impl<'u> Translator<'u, '_> {
    /// Reads the value that a `mov` to `to` moves.
    pub(super) fn moved(&mut self, ty: Type, to: Operand<'u>, from: Operand<'u>) -> Result<Value> {
        let Operand::Register(register) = to else { return Err(self.error("a `mov` goes to a register")) };
        let has = self.type_of(register);
        if !super::translate::agrees(has, ty) {
            return Err(self.error(format!("`mov` of {ty:?} to a register of type {has:?}")));
        }
        match from {
            Operand::Symbol(name) if ty.bytes() == 8 && !ty.is_float() => self.symbol(name),
            Operand::Special(special) => self.special(special, ty),
            // Between registers of one type the value moves unchanged: without a bitcast between integer and float.
            Operand::Register(source) if self.type_of(source) == has => self.read(from, has),
            _ => self.read(from, ty),
        }
    }

    pub(super) fn callee(&mut self, index: u32) -> FuncRef {
        if let Some(&known) = self.callees.get(&index) {
            return known;
        }
        let function = &self.unit.module.functions[index as usize];
        let signature = self.unit.function_signature(function);
        let signature = self.b.import_signature(signature);
        let name = self.b.func.declare_imported_user_function(UserExternalName { namespace: super::FUNCTION, index });
        let name = ExternalName::user(name);
        let reference = self.b.import_function(ExtFuncData {
            name,
            signature,
            colocated: self.unit.late.is_none(),
            patchable: false,
        });
        self.callees.insert(index, reference);
        reference
    }

    pub(super) fn call(&mut self, call: &'u Call<'u>) -> Result<()> {
        let unit = self.unit;
        let (signature, direct) = match call.callee {
            Callee::Direct(name) => match unit.functions.get(name) {
                Some(&index) if !unit.module.functions[index as usize].entry => {
                    (&unit.module.functions[index as usize].signature, Some(index))
                }
                Some(_) => return Err(self.error(format!("`{name}` is a kernel: it cannot be called"))),
                None => return Err(self.error(format!("there is no function `{name}` with a body"))),
            },
            Callee::Indirect(_, prototype) => (&self.body.prototypes[prototype as usize], None),
        };
        let mut arguments = self.arguments(call, signature)?;
        if let Callee::Direct(name) = call.callee
            && super::is_cold(name)
        {
            let room = self.room_for_result();
            if let Returns::Register(_) = signature.result {
                arguments.insert(0, self.b.ins().stack_addr(types::I64, room, 0));
            }
            let callee = self.callee(direct.unwrap_or_default());
            self.b.ins().call(callee, &arguments);
            if let (CallResult::Register(register), Returns::Register(ty)) = (call.result, signature.result) {
                let value = self.b.ins().stack_load(types::I64, super::clif_type(ty), room, 0);
                self.write(Operand::Register(register), ty, value)?;
            }
            // Only now, because a block is in the layout only once it has an instruction.
            if let Some(block) = self.b.current_block() {
                self.b.set_cold_block(block);
            }
            return Ok(());
        }
        if let Callee::Direct(name) = call.callee
            && host::is_left_out(name)
        {
            if let (CallResult::Register(register), Returns::Register(ty)) = (call.result, signature.result) {
                let zero = self.int(super::clif_type(ty), 0);
                self.write(Operand::Register(register), ty, zero)?;
            }
            return Ok(());
        }
        if let Callee::Direct(name) = call.callee
            && let Some(host) = host::in_place_of(name)
        {
            let result = match signature.result {
                Returns::Register(ty) => Some(ty),
                _ => None,
            };
            let value = self.host(host, &arguments, result.map(super::clif_type));
            if let (CallResult::Register(register), Some(ty)) = (call.result, result) {
                self.write(Operand::Register(register), ty, value)?;
            }
            return Ok(());
        }
        let inst = match (direct, call.callee) {
            (None, Callee::Indirect(register, _)) => {
                let address = self.read(Operand::Register(register), Type::B64)?;
                let signature = self.b.import_signature(unit.signature(signature));
                self.b.ins().call_indirect(signature, address, &arguments)
            }
            (Some(index), _) if unit.is_late(index) => {
                let address = self.late_address(index);
                let signature = self.b.import_signature(unit.signature(signature));
                self.b.ins().call_indirect(signature, address, &arguments)
            }
            (index, _) => {
                let callee = self.callee(index.unwrap_or_default());
                self.b.ins().call(callee, &arguments)
            }
        };
        if let (CallResult::Register(register), Returns::Register(ty)) = (call.result, signature.result) {
            let value = self.b.inst_results(inst)[0];
            self.write(Operand::Register(register), ty, value)?;
        }
        Ok(())
    }

    /// The stack slot for the results of cold functions; all of them share it.
    fn room_for_result(&mut self) -> StackSlot {
        let b = &mut self.b;
        *self
            .slots
            .entry((usize::MAX, 8))
            .or_insert_with(|| b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3)))
    }

    /// Returns the values to pass. If the result is in cells, the first is the address of the cells.
    fn arguments(&mut self, call: &'u Call<'u>, signature: &Signature) -> Result<Vec<Value>> {
        let given = &self.body.operands[call.arguments.start as usize..call.arguments.end as usize];
        if given.len() != signature.parameters.len() {
            let wanted = signature.parameters.len();
            return Err(self.error(format!("{} arguments for a function that takes {wanted}", given.len())));
        }
        let mut values = Vec::with_capacity(given.len() + 1);
        match (call.result, signature.result) {
            (CallResult::Param(name), Returns::Cells(bytes)) => {
                match self.params.iter().rev().find(|p| p.0 == name && p.1 == bytes) {
                    Some(&(_, _, slot)) => values.push(self.b.ins().stack_addr(types::I64, slot, 0)),
                    None => return Err(self.error(format!("there is no `.param` `{name}` of {bytes} bytes here"))),
                }
            }
            (CallResult::None, Returns::Nothing) | (CallResult::Register(_), Returns::Register(_)) => {}
            (_, result) => return Err(self.error(format!("the function gives {result:?}; the call expects otherwise"))),
        }
        for (operand, ty) in given.iter().zip(&signature.parameters) {
            values.push(self.read(*operand, *ty)?);
        }
        Ok(values)
    }
}
