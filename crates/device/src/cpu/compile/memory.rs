//! Loads, stores, atomics and parameters.
//!
//! Device addresses are host addresses, for global and shared memory alike. `volatile` and `acquire` become atomic
//! loads, which Cranelift neither merges nor forwards; on x86-64 a plain store already releases.

use super::clif_type;
use super::translate::{Translator, agrees};
use crate::Result;
use crate::cpu::ast::{Atomic, Operand, Order, Type};
use crate::cpu::context::{Context, Fault};
use cranelift_codegen::ir::{
    AtomicRmwOp, ExternalName, GlobalValueData, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind,
    UserExternalName, Value, types,
};
use std::mem::offset_of;

/// Flags of the kernel's accesses: they do not trap, and nothing is known about their alignment.
const PLAIN: MemFlagsData = MemFlagsData::new().with_notrap();

impl<'u> Translator<'u, '_> {
    /// Returns the address of an access of type `ty`, as a base and an offset.
    fn address(&mut self, operand: Operand<'u>, ty: Type) -> Result<(Value, i32)> {
        let (base, offset) = match operand {
            Operand::Address(register, offset) => (self.read(Operand::Register(register), Type::B64)?, offset),
            Operand::SymbolAddress(name, offset) => (self.symbol(name)?, offset),
            _ => return Err(self.error("expected an address in brackets")),
        };
        if self.unit.options.strict && ty.bytes() > 1 {
            self.check_alignment(base, offset, ty);
        }
        Ok((base, offset))
    }

    fn check_alignment(&mut self, base: Value, offset: i32, ty: Type) {
        let offset = self.int(types::I64, offset as i64);
        let address = self.b.ins().iadd(base, offset);
        let mask = self.int(types::I64, ty.bytes() as i64 - 1);
        let rest = self.b.ins().band(address, mask);
        let (bad, good) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(rest, bad, &[], good, &[]);
        self.b.switch_to_block(bad);
        self.b.seal_block(bad);
        self.fault(Fault::Misaligned);
        self.b.switch_to_block(good);
        self.b.seal_block(good);
        self.live = true;
    }

    /// Returns the address of data, of a function, or of an array in this function's frame.
    pub(super) fn symbol(&mut self, name: &str) -> Result<Value> {
        if let Some(at) = self.body.locals.iter().position(|local| local.name == name) {
            return Ok(self.b.ins().stack_addr(types::I64, self.locals[at], 0));
        }
        if let Some(&offset) = self.unit.data.get(name) {
            return Ok(self.data(offset));
        }
        if let Some(&at) = self.unit.shared.get(name) {
            let base = self.context_field(types::I64, offset_of!(Context, shared));
            let at = self.int(types::I64, at as i64);
            return Ok(self.b.ins().iadd(base, at));
        }
        if let Some(&index) = self.unit.functions.get(name) {
            if self.unit.is_late(index) {
                return Ok(self.late_address(index));
            }
            let function = self.callee(index);
            return Ok(self.b.ins().func_addr(types::I64, function));
        }
        Err(self.error(format!("`{name}` is not defined in this module")))
    }

    /// Loads the current address of a function that is compiled when it is first called: its code, or its stub.
    pub(super) fn late_address(&mut self, index: u32) -> Value {
        let slot = self.data(self.unit.slot(index));
        self.b.ins().load(types::I64, MemFlagsData::trusted(), slot, 0)
    }

    /// Returns an address in the module's data, filled in when the code is placed.
    fn data(&mut self, offset: u32) -> Value {
        let value = match self.data.get(&offset) {
            Some(&known) => known,
            None => {
                let name = UserExternalName { namespace: super::DATA, index: offset };
                let name = ExternalName::user(self.b.func.declare_imported_user_function(name));
                let symbol = GlobalValueData::Symbol { name, offset: 0.into(), colocated: false, tls: false };
                let value = self.b.create_global_value(symbol);
                self.data.insert(offset, value);
                value
            }
        };
        self.b.ins().symbol_value(types::I64, value)
    }

    pub(super) fn load(&mut self, order: Order, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let held = self.held_as(o[0], ty)?;
        let (base, offset) = self.address(o[1], ty)?;
        let value = if order == Order::Weak {
            self.plain_load(ty, held, base, offset)
        } else {
            let address = self.at(base, offset);
            let value = self.b.ins().atomic_load(bits_type(ty), PLAIN, address);
            self.extend(value, ty, integer(held))
        };
        self.set(o[0], value)
    }

    fn plain_load(&mut self, ty: Type, held: types::Type, base: Value, offset: i32) -> Value {
        if held.bytes() == ty.bytes() {
            return self.b.ins().load(held, PLAIN, base, offset);
        }
        match (ty.bytes(), ty.is_signed()) {
            (1, true) => self.b.ins().sload8(held, PLAIN, base, offset),
            (1, false) => self.b.ins().uload8(held, PLAIN, base, offset),
            (2, true) => self.b.ins().sload16(held, PLAIN, base, offset),
            (2, false) => self.b.ins().uload16(held, PLAIN, base, offset),
            (_, true) => self.b.ins().sload32(PLAIN, base, offset),
            (_, false) => self.b.ins().uload32(PLAIN, base, offset),
        }
    }

    pub(super) fn store(&mut self, order: Order, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let mut value = match o[1] {
            Operand::Register(register) => {
                self.held_as(o[1], ty)?;
                self.held_by(register)
            }
            other => self.read(other, ty)?,
        };
        let has = self.b.func.dfg.value_type(value);
        if has.bytes() > ty.bytes() {
            value = self.b.ins().ireduce(bits_type(ty), value);
        }
        let (base, offset) = self.address(o[0], ty)?;
        if order == Order::Weak || cfg!(target_arch = "x86_64") {
            self.b.ins().store(PLAIN, value, base, offset);
        } else {
            let address = self.at(base, offset);
            let bits = match self.b.func.dfg.value_type(value) {
                types::F32 => self.b.ins().bitcast(types::I32, MemFlagsData::new(), value),
                types::F64 => self.b.ins().bitcast(types::I64, MemFlagsData::new(), value),
                _ => value,
            };
            self.b.ins().atomic_store(PLAIN, bits, address);
        }
        Ok(())
    }

    /// Loads 16 bytes in one access, which current processors make atomic if it is aligned.
    pub(super) fn load_pair(&mut self, o: &[Operand<'u>]) -> Result<()> {
        let (base, offset) = self.address(o[2], Type::U64)?;
        let both = self.b.ins().load(types::I64X2, PLAIN, base, offset);
        for (lane, to) in (0u8..).zip(&o[..2]) {
            let value = self.b.ins().extractlane(both, lane);
            self.write(*to, Type::U64, value)?;
        }
        Ok(())
    }

    pub(super) fn store_pair(&mut self, o: &[Operand<'u>]) -> Result<()> {
        let (first, second) = (self.read(o[1], Type::U64)?, self.read(o[2], Type::U64)?);
        let (base, offset) = self.address(o[0], Type::U64)?;
        let low = self.b.ins().scalar_to_vector(types::I64X2, first);
        let both = self.b.ins().insertlane(low, second, 1);
        self.b.ins().store(PLAIN, both, base, offset);
        Ok(())
    }

    /// The CLIF type of a register that is loaded or stored as `ty`; an integer may be held in a wider register.
    fn held_as(&mut self, operand: Operand<'u>, ty: Type) -> Result<types::Type> {
        let Operand::Register(register) = operand else {
            return Err(self.error("expected a register"));
        };
        let has = self.type_of(register);
        let fits = agrees(has, ty) || (has.is_bits() && ty.is_integer() && has.bytes() > ty.bytes());
        match fits {
            true => Ok(clif_type(has)),
            false => Err(self.error(format!("a register of type {has:?} does not hold a {ty:?} in memory"))),
        }
    }

    /// Adds base and offset.
    fn at(&mut self, base: Value, offset: i32) -> Value {
        if offset == 0 {
            return base;
        }
        let offset = self.int(types::I64, offset as i64);
        self.b.ins().iadd(base, offset)
    }

    pub(super) fn atomic(&mut self, op: Atomic, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let op = match (op, ty.is_signed()) {
            (Atomic::Add, _) => AtomicRmwOp::Add,
            (Atomic::Exchange, _) => AtomicRmwOp::Xchg,
            (Atomic::And, _) => AtomicRmwOp::And,
            (Atomic::Or, _) => AtomicRmwOp::Or,
            (Atomic::Xor, _) => AtomicRmwOp::Xor,
            (Atomic::Min, true) => AtomicRmwOp::Smin,
            (Atomic::Min, false) => AtomicRmwOp::Umin,
            (Atomic::Max, true) => AtomicRmwOp::Smax,
            (Atomic::Max, false) => AtomicRmwOp::Umax,
        };
        let operand = self.read(o[2], ty)?;
        let (base, offset) = self.address(o[1], ty)?;
        let address = self.at(base, offset);
        let old = self.b.ins().atomic_rmw(clif_type(ty), PLAIN, op, address, operand);
        self.write(o[0], ty, old)
    }

    pub(super) fn compare_exchange(&mut self, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let expected = self.read(o[2], ty)?;
        let new = self.read(o[3], ty)?;
        let (base, offset) = self.address(o[1], ty)?;
        let address = self.at(base, offset);
        let old = self.b.ins().atomic_cas(PLAIN, address, expected, new);
        self.write(o[0], ty, old)
    }

    // Parameters: of a kernel, a function's result cells, and the cells of a call.

    pub(super) fn declare_param(&mut self, name: &'u str, bytes: u32) {
        let key = (self.params.len(), bytes);
        let b = &mut self.b;
        let slot = *self
            .slots
            .entry(key)
            .or_insert_with(|| b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3)));
        self.params.push((name, bytes, slot));
    }

    pub(super) fn load_param(&mut self, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let held = self.held_as(o[0], ty)?;
        let (base, offset) = self.param(o[1], ty)?;
        let value = self.plain_load(ty, held, base, offset);
        self.set(o[0], value)
    }

    pub(super) fn store_param(&mut self, ty: Type, o: &[Operand<'u>]) -> Result<()> {
        let value = self.read(o[1], ty)?;
        let (base, offset) = self.param(o[0], ty)?;
        self.b.ins().store(PLAIN, value, base, offset);
        Ok(())
    }

    fn param(&mut self, operand: Operand<'u>, ty: Type) -> Result<(Value, i32)> {
        let Operand::SymbolAddress(name, offset) = operand else {
            return Err(self.error("expected a parameter's name in brackets"));
        };
        let inside = |bytes: u32| {
            offset >= 0 && (offset as u32).is_multiple_of(ty.bytes()) && offset as u32 + ty.bytes() <= bytes
        };
        let call = self.params.iter().rev().find(|p| p.0 == name).copied();
        let (base, start, bytes) = if let Some((_, bytes, slot)) = call {
            (self.b.ins().stack_addr(types::I64, slot, 0), 0, bytes)
        } else if let (Some(pointer), Some((start, bytes))) = (self.param_pointer, self.own_param(name)) {
            (pointer, start, bytes)
        } else {
            return Err(self.error(format!("there is no parameter `{name}` here")));
        };
        match inside(bytes) {
            true => Ok((base, start + offset)),
            false => {
                Err(self.error(format!("`{name}` has {bytes} bytes: {ty:?} at {offset} is outside or misaligned")))
            }
        }
    }

    /// Offset of this function's parameter from `param_pointer`, and its bytes.
    fn own_param(&self, name: &str) -> Option<(i32, u32)> {
        if !self.function.entry {
            let crate::cpu::ast::Returns::Cells(bytes) = self.function.signature.result else { return None };
            return (name == self.function.result_name).then_some((0, bytes));
        }
        let n = self.function.parameter_names.iter().position(|p| *p == name)?;
        Some((n as i32 * 8, self.function.signature.parameters[n].bytes()))
    }
}

/// The integer type with as many bytes as `ty` has in memory.
fn bits_type(ty: Type) -> types::Type {
    match ty.bytes() {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}

/// The integer type as wide as `ty`.
fn integer(ty: types::Type) -> types::Type {
    if ty.bytes() == 8 { types::I64 } else { types::I32 }
}
