//! Instructions that ask for a thread's numbers, or make it wait.

use super::Unit;
use super::host::Host;
use super::translate::Translator;
use crate::Result;
use crate::cpu::ast::{Operand, Shuffle, Special, Type, Vote};
use crate::cpu::context::{Context, Fault, WarpOperation};
use crate::cpu::stack::{COLOUR_STEP, COLOURS, CONTEXT_AT, SLOT, SLOT_BITS};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, InstBuilder, MemFlagsData, Signature, UserExternalName, Value, types,
};
use cranelift_frontend::FunctionBuilder;
use std::mem::offset_of;

/// Declares a host function in the function that is being built.
pub(super) fn host_function(
    b: &mut FunctionBuilder<'_>,
    unit: &Unit<'_>,
    host: Host,
    arguments: &[types::Type],
    result: Option<types::Type>,
) -> FuncRef {
    let mut signature = Signature::new(unit.call_conv());
    signature.params.extend(arguments.iter().copied().map(AbiParam::new));
    signature.returns.extend(result.map(AbiParam::new));
    let signature = b.import_signature(signature);
    let name = UserExternalName { namespace: super::HOST, index: host.number() };
    let name = ExternalName::user(b.func.declare_imported_user_function(name));
    // Not colocated: the full address is filled in when the code is placed.
    b.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
}

/// The context's fields that compiled code reads do not change while the thread runs.
const FIXED: MemFlagsData = MemFlagsData::trusted().with_readonly().with_can_move();

impl<'u> Translator<'u, '_> {
    /// Loads a field of the thread's context, found from the stack pointer as in `stack::context_of`.
    pub(super) fn context_field(&mut self, ty: types::Type, offset: usize) -> Value {
        let pointer = self.b.ins().get_stack_pointer(types::I64);
        let mask = self.int(types::I64, !(SLOT as i64 - 1));
        let slot = self.b.ins().band(pointer, mask);
        let bits = self.int(types::I64, SLOT_BITS as i64);
        let number = self.b.ins().ushr(pointer, bits);
        let colours = self.int(types::I64, COLOURS as i64 - 1);
        let colour = self.b.ins().band(number, colours);
        let step = self.int(types::I64, COLOUR_STEP as i64);
        let down = self.b.ins().imul(colour, step);
        let base = self.b.ins().isub(slot, down);
        self.b.ins().load(ty, FIXED, base, (CONTEXT_AT + offset) as i32)
    }

    pub(super) fn special(&mut self, special: Special, ty: Type) -> Result<Value> {
        let wide = matches!(special, Special::Clock | Special::GlobalTimer);
        if ty.is_float() || ty.bytes() != if wide { 8 } else { 4 } {
            return Err(self.error(format!("{special:?} has {} bits", if wide { 64 } else { 32 })));
        }
        Ok(match special {
            Special::Tid => self.context_field(types::I32, offset_of!(Context, thread)),
            Special::Ntid => self.context_field(types::I32, offset_of!(Context, threads)),
            Special::Ctaid => self.context_field(types::I32, offset_of!(Context, workgroup)),
            Special::Nctaid => self.context_field(types::I32, offset_of!(Context, workgroups)),
            Special::Zero => self.int(types::I32, 0),
            Special::One => self.int(types::I32, 1),
            Special::Lane => self.lane(),
            Special::Warp => {
                let thread = self.context_field(types::I32, offset_of!(Context, thread));
                let five = self.int(types::I32, 5);
                self.b.ins().ushr(thread, five)
            }
            Special::LanesBelow => {
                let bit = self.lane_bit();
                let ones = self.int(types::I32, -1);
                self.b.ins().iadd(bit, ones)
            }
            Special::Clock => self.host(Host::Clock, &[], Some(types::I64)),
            Special::GlobalTimer => self.host(Host::Timer, &[], Some(types::I64)),
        })
    }

    fn lane(&mut self) -> Value {
        let thread = self.context_field(types::I32, offset_of!(Context, thread));
        let mask = self.int(types::I32, 31);
        self.b.ins().band(thread, mask)
    }

    fn lane_bit(&mut self) -> Value {
        let lane = self.lane();
        let one = self.int(types::I32, 1);
        self.b.ins().ishl(one, lane)
    }

    /// Calls a host function. Returns its result; without one, a constant that means nothing.
    pub(super) fn host(&mut self, host: Host, arguments: &[Value], result: Option<types::Type>) -> Value {
        let function = match self.hosts.get(&host) {
            Some(&known) => known,
            None => {
                let types: Vec<_> = arguments.iter().map(|v| self.b.func.dfg.value_type(*v)).collect();
                let function = host_function(&mut self.b, self.unit, host, &types, result);
                self.hosts.insert(host, function);
                function
            }
        };
        let inst = self.b.ins().call(function, arguments);
        match self.b.inst_results(inst).first() {
            Some(&value) => value,
            None => self.int(types::I32, 0),
        }
    }

    pub(super) fn exit(&mut self) {
        self.host(Host::Exit, &[], None);
        self.unreachable();
    }

    /// Stops the whole launch.
    pub(super) fn fault(&mut self, kind: Fault) {
        let kind = self.int(types::I32, kind as i64);
        let line = self.int(types::I32, self.line as i64);
        self.host(Host::Fault, &[kind, line], None);
        self.unreachable();
    }

    pub(super) fn sleep(&mut self, o: &[Operand<'u>]) -> Result<()> {
        let nanoseconds = self.read(o[0], Type::U32)?;
        self.host(Host::Sleep, &[nanoseconds], None);
        Ok(())
    }

    pub(super) fn stack_save(&mut self, o: &[Operand<'u>]) -> Result<()> {
        let pointer = self.b.ins().get_stack_pointer(types::I64);
        let low = self.b.ins().ireduce(types::I32, pointer);
        self.write(o[0], Type::U32, low)
    }

    pub(super) fn barrier(&mut self, o: &[Operand<'u>]) -> Result<()> {
        if o[0] != Operand::Int(0) {
            return Err(self.error("there is one barrier, `bar.sync 0`"));
        }
        let line = self.int(types::I32, self.line as i64);
        self.host(Host::Barrier, &[line], None);
        Ok(())
    }

    /// Calls a warp operation. The low half of the result is the value, bit 32 the predicate.
    fn warp(&mut self, operation: WarpOperation, mask: Value, operands: [Value; 3]) -> Value {
        let operation = self.int(types::I32, operation.number() as i64);
        let line = self.int(types::I32, self.line as i64);
        let [a, b, c] = operands;
        self.host(Host::Warp, &[operation, line, mask, a, b, c], Some(types::I64))
    }

    /// Like [`Self::warp`], but a thread that names only its own lane waits for nobody: its answer is `alone`. Such are the lanes
    /// of `activemask` here, also in launches where threads cannot wait for a warp.
    fn warp_unless_alone(
        &mut self,
        operation: WarpOperation,
        (mask, lanes): (Operand<'u>, Value),
        operands: [Value; 3],
        alone: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        if matches!(mask, Operand::Int(_)) {
            return self.warp(operation, lanes, operands);
        }
        let own = self.lane_bit();
        let is_alone = self.b.ins().icmp(IntCC::Equal, lanes, own);
        let [here, there, join] = [(); 3].map(|()| self.b.create_block());
        let answer = self.b.append_block_param(join, types::I64);
        self.b.ins().brif(is_alone, here, &[], there, &[]);
        self.b.switch_to_block(here);
        self.b.seal_block(here);
        let value = alone(self);
        let value = self.b.ins().uextend(types::I64, value);
        self.b.ins().jump(join, &[value.into()]);
        self.b.switch_to_block(there);
        self.b.seal_block(there);
        let value = self.warp(operation, lanes, operands);
        self.b.ins().jump(join, &[value.into()]);
        self.b.switch_to_block(join);
        self.b.seal_block(join);
        answer
    }

    pub(super) fn warp_barrier(&mut self, o: &[Operand<'u>]) -> Result<()> {
        let mask = self.read(o[0], Type::B32)?;
        let none = self.int(types::I32, 0);
        self.warp(WarpOperation::Barrier, mask, [none; 3]);
        Ok(())
    }

    /// `shfl.sync.mode.b32 d[|p], a, b, c, mask`
    pub(super) fn shuffle(&mut self, mode: Shuffle, o: &[Operand<'u>]) -> Result<()> {
        let inputs = &o[o.len() - 4..];
        let a = self.read(inputs[0], Type::B32)?;
        let b = self.read(inputs[1], Type::B32)?;
        let c = self.read(inputs[2], Type::B32)?;
        let mask = self.read(inputs[3], Type::B32)?;
        let operation = WarpOperation::Shuffle(mode);
        let answer = match o.len() {
            6 => self.warp(operation, mask, [a, b, c]),
            _ => self.warp_unless_alone(operation, (inputs[3], mask), [a, b, c], |_| a),
        };
        let value = self.b.ins().ireduce(types::I32, answer);
        self.write(o[0], Type::B32, value)?;
        if o.len() == 6 {
            let predicate = self.predicate(answer);
            self.write(o[1], Type::Pred, predicate)?;
        }
        Ok(())
    }

    /// `vote.sync.mode.pred d, [!]a, mask`
    pub(super) fn vote(&mut self, mode: Vote, o: &[Operand<'u>]) -> Result<()> {
        let (operand, negated) = match o[1] {
            Operand::Not(register) => (Operand::Register(register), true),
            other => (other, false),
        };
        let predicate = self.read(operand, Type::Pred)?;
        let mut a = self.b.ins().uextend(types::I32, predicate);
        if negated {
            let one = self.int(types::I32, 1);
            a = self.b.ins().bxor(a, one);
        }
        let mask = self.read(o[2], Type::B32)?;
        let none = self.int(types::I32, 0);
        let (operation, operands) = (WarpOperation::Vote(mode), [a, none, none]);
        if mode == Vote::Ballot {
            let answer = self.warp_unless_alone(operation, (o[2], mask), operands, |t| t.b.ins().select(a, mask, none));
            let value = self.b.ins().ireduce(types::I32, answer);
            return self.write(o[0], Type::B32, value);
        }
        let answer = self.warp(operation, mask, operands);
        let predicate = self.predicate(answer);
        self.write(o[0], Type::Pred, predicate)
    }

    fn predicate(&mut self, answer: Value) -> Value {
        let half = self.int(types::I64, 32);
        let high = self.b.ins().ushr(answer, half);
        self.b.ins().ireduce(types::I8, high)
    }

    /// Threads of this device run one by one, so only the thread itself is surely active.
    pub(super) fn active_mask(&mut self, o: &[Operand<'u>]) -> Result<()> {
        let bit = self.lane_bit();
        self.write(o[0], Type::B32, bit)
    }
}
