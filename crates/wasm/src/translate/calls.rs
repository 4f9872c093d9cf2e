//! Calls: direct, through a table, and through a reference; and tail calls.
//!
//! PTX has no tail calls. A function that tail-calls itself jumps to its beginning. A function that tail-calls another
//! writes the callee's index and arguments to the slot and returns; its caller then calls the callee
//! ([`crate::runtime::tail`]), so that a chain of tail calls takes no stack. If the callee makes no tail calls itself
//! there is no chain, and an ordinary call is used.

use super::{Translator, clif_signature, device, guest};
use crate::canonical::Canonical;
use crate::code::block_args;
use crate::error::Error;
use crate::provided::Imported;
use crate::types::{FuncType, ValType, places};
use crate::work::Callee;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{ExternalName, GlobalValueData, InstBuilder, SigRef, UserExternalName, Value, types};
use gpu_run_abi::TrapCode;
use gpu_run_abi::intrinsic::{namespace, region, symbol};
use wasmparser::{FunctionBody, Operator};

impl Translator<'_, '_> {
    pub(super) fn calls(&mut self, op: &Operator<'_>) -> bool {
        match *op {
            Operator::Call { function_index } => {
                let function = self.part.functions[function_index as usize];
                let results = self.call(function);
                self.after_call(self.env.module.traits.throws[function as usize]);
                self.stack.extend(results);
            }
            Operator::CallIndirect { type_index, table_index } => {
                let ty = self.part.types + type_index;
                let callee = self.table_function(ty, table_index);
                self.call_through(ty, callee);
            }
            Operator::CallRef { type_index } => {
                let callee = self.pop();
                self.code.trap_unless(callee, TrapCode::NullFunction);
                self.call_through(self.part.types + type_index, callee);
            }
            Operator::ReturnCall { function_index } => self.tail_call(self.part.functions[function_index as usize]),
            Operator::ReturnCallIndirect { type_index, table_index } => {
                let ty = self.part.types + type_index;
                let callee = self.table_function(ty, table_index);
                self.leave_to(ty, callee);
            }
            Operator::ReturnCallRef { type_index } => {
                let callee = self.pop();
                self.code.trap_unless(callee, TrapCode::NullFunction);
                self.leave_to(self.part.types + type_index, callee);
            }
            _ => return false,
        }
        true
    }

    fn call(&mut self, function: u32) -> Vec<Value> {
        let ty = self.env.module.function_type(function);
        if let Some(Imported::Device(call)) = self.env.module.imports.get(function as usize) {
            let args = self.pop_many(ty.params.len());
            return device::operation(&mut self.code, *call, &args).into_iter().collect();
        }
        if let Some(call) = self.env.guest_call(function) {
            let args = self.pop_many(ty.params.len());
            return guest::operation(&mut self.code, call, &args, self.env.is_speculative).into_iter().collect();
        }
        self.spend_call(Callee::Function(function));
        let callee = self.code.function(namespace::WASM, function, || clif_signature(ty));
        let args = self.call_args(ty.params.len());
        self.note_call();
        let call = self.code.ins().call(callee, &args);
        self.note_return();
        self.come_back(Callee::Function(function));
        self.code.b.inst_results(call).to_vec()
    }

    fn call_args(&mut self, count: usize) -> Vec<Value> {
        let mut args = vec![self.code.instance];
        args.extend(self.pop_many(count));
        args
    }

    /// Loads a function reference from a table, and checks that the function has the type.
    fn table_function(&mut self, ty: u32, table: u32) -> Value {
        let index = self.pop();
        let table = self.part.tables[table as usize];
        let index = self.table_index(table, index, TrapCode::UndefinedElement);
        let reference = self.table_element(table, index, TrapCode::UndefinedElement);
        self.code.trap_unless(reference, TrapCode::IndirectCallToNull);
        let signature = self.code.ins().ushr_imm_u(reference, 32);
        let module = self.env.module;
        let wrong = Canonical::subtypes(&module.supertypes, module.signatures[ty as usize])
            .into_iter()
            .map(|expected| self.code.ins().icmp_imm_s(IntCC::NotEqual, signature, i64::from(expected)))
            .collect::<Vec<_>>();
        let wrong = wrong.into_iter().reduce(|a, b| self.code.ins().band(a, b));
        if let Some(wrong) = wrong {
            self.code.trap_if(wrong, TrapCode::BadSignature);
        }
        reference
    }

    /// Calls the function that a non-null reference refers to.
    fn call_through(&mut self, ty: u32, reference: Value) {
        let module = self.env.module;
        self.spend_call(Callee::Type(ty));
        let callee = self.code_address(reference);
        let func_type = &module.types[ty as usize];
        let signature = self.signature(ty, func_type);
        let args = self.call_args(func_type.params.len());
        self.note_call();
        let call = self.code.ins().call_indirect(signature, callee, &args);
        self.note_return();
        let results = self.code.b.inst_results(call).to_vec();
        self.come_back(Callee::Type(ty));
        self.after_call(module.traits.throws_through[module.signatures[ty as usize] as usize]);
        self.stack.extend(results);
    }

    fn signature(&mut self, ty: u32, func_type: &FuncType) -> SigRef {
        if let Some(known) = self.signatures.get(&ty) {
            return *known;
        }
        let imported = self.code.b.import_signature(clif_signature(func_type));
        self.signatures.insert(ty, imported);
        imported
    }

    /// Returns the code address behind a non-null function reference: entry `index` of the module's table of addresses.
    fn code_address(&mut self, reference: Value) -> Value {
        let name = self.code.b.func.declare_imported_user_function(UserExternalName {
            namespace: namespace::DATA,
            index: symbol::FUNCTION_TABLE,
        });
        let data =
            GlobalValueData::Symbol { name: ExternalName::User(name), offset: 0.into(), colocated: true, tls: false };
        let symbol = self.code.b.create_global_value(data);
        let addresses = self.code.ins().symbol_value(types::I64, symbol);
        let index = self.code.ins().ireduce(types::I32, reference);
        let index = self.code.ins().uextend(types::I64, index);
        let offset = self.code.ins().ishl_imm_u(index, 3);
        let entry = self.code.ins().iadd(addresses, offset);
        let flags = self.code.trusted(region::CONSTANT).with_readonly();
        // References count from 1, because 0 is null.
        self.code.ins().load(types::I64, flags, entry, -8)
    }

    // Tail calls.

    /// Opens the block that a tail call of the function to itself jumps to: the arguments are new, and the other locals
    /// are 0 again.
    pub(super) fn begin_again(&mut self, ty: &FuncType, body: &FunctionBody<'_>) -> Result<(), Error> {
        let ticks = self.ticks();
        let again = self.code.b.create_block();
        let params = ty.params.iter().map(|ty| self.code.b.append_block_param(again, ty.clif())).collect::<Vec<_>>();
        let args: Vec<_> = (1..=ty.params.len()).map(|i| self.code.param(i)).collect();
        self.code.ins().jump(again, &block_args(&args));
        self.code.b.switch_to_block(again);
        self.reset_locals(&params, body)?;
        self.again = Some(again);
        // The whole function is a loop.
        self.loops += 1;
        self.tick(ticks);
        Ok(())
    }

    fn tail_call(&mut self, function: u32) {
        let module = self.env.module;
        let params = module.function_type(function).params.len();
        match self.again {
            Some(again) if function == self.index => {
                let args = self.pop_many(params);
                self.code.ins().jump(again, &block_args(&args));
            }
            _ if module.traits.tails[function as usize] => {
                self.spend_call(Callee::Function(function));
                let next = self.code.i32(i64::from(function) + 1);
                self.hand_over(&module.function_type(function).params, next);
            }
            _ => {
                // No catch clause of this function applies to what the callee throws: a tail call has left the
                // function. In a backtrace, the callee takes its place.
                let depth = self.depth.take();
                let results = self.call(function);
                self.depth = depth;
                self.code.ins().return_(&results);
            }
        }
        self.dead();
    }

    /// Tail-calls the function that a reference refers to.
    fn leave_to(&mut self, ty: u32, reference: Value) {
        self.spend_call(Callee::Type(ty));
        let next = self.code.ins().ireduce(types::I32, reference);
        self.hand_over(&self.env.module.types[ty as usize].params, next);
        self.dead();
    }

    /// Writes the next callee (its index plus one) and its arguments to the slot, and returns.
    fn hand_over(&mut self, params: &[ValType], next: Value) {
        let tail = self.env.slots.tail;
        for (value, (at, _)) in self.pop_many(params.len()).into_iter().zip(places(params)) {
            self.code.slot_store(value, region::HEADER, tail.arguments + at);
        }
        let next = self.code.ins().uextend(types::I64, next);
        self.code.slot_store(next, region::HEADER, tail.next);
        let out = *self.unwind.get_or_insert_with(|| self.code.b.create_block());
        self.code.ins().jump(out, &[]);
    }
}
