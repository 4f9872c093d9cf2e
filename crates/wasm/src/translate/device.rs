//! The device operations that a gang's module imports: each is an intrinsic, with its addresses checked first.

use crate::code::Code;
use crate::decode::Module;
use crate::error::Error;
use crate::provided::Imported;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{DataFlowGraph, InstBuilder, InstructionData, Opcode, Value, ValueDef, types};
use gpu_run_abi::gang::{DeviceCall, WORKGROUP_BYTES, offset};
use gpu_run_abi::intrinsic::Intrinsic;
use gpu_run_abi::{Build, TrapCode};

/// Returns whether an imported function is an operation of the device, which is not called but emitted in place.
pub(crate) fn is_device(module: &Module<'_>, function: u32) -> bool {
    matches!(module.imports.get(function as usize), Some(Imported::Device(_)))
}

/// Checks that a gang imports no host call, and that no other program imports operations of a gang.
pub(crate) fn check_imports(module: &Module<'_>, build: &Build) -> Result<(), Error> {
    let fits = |import: &Imported| match import {
        Imported::Device(_) => build.is_gang(),
        Imported::Host(_) | Imported::Embedder(_) => !build.is_gang(),
        Imported::Spawn => build.is_threads(),
    };
    match module.imports.iter().find(|import| !fits(import)) {
        None => Ok(()),
        Some(import) => {
            let why = match import {
                Imported::Device(_) => "is for the threads of a gang, but this program is not a gang",
                Imported::Host(_) | Imported::Embedder(_) => "calls the host, which a gang cannot do",
                Imported::Spawn => "starts threads, but this program was compiled without threads",
            };
            Err(Error::Limit(format!(
                "it imports `{}.{}`, which {why}",
                import.module(&module.embedder),
                import.name(&module.embedder)
            )))
        }
    }
}

/// Builds a function that contains the operation, for indirect calls.
pub(crate) fn stub(code: &mut Code<'_>, call: DeviceCall) {
    let count = call.signature().0.len();
    let args: Vec<_> = (1..=count).map(|i| code.param(i)).collect();
    let result = operation(code, call, &args);
    code.ins().return_(result.as_slice());
}

pub(crate) fn operation(code: &mut Code<'_>, call: DeviceCall, args: &[Value]) -> Option<Value> {
    use DeviceCall as Call;
    let which = match call {
        Call::thread => Intrinsic::ThreadInWorkgroup,
        Call::threads => Intrinsic::WorkgroupThreads,
        Call::group => Intrinsic::Workgroup,
        Call::groups => Intrinsic::GridWorkgroups,
        Call::lane => Intrinsic::Lane,
        Call::processor => Intrinsic::Processor,
        Call::barrier => Intrinsic::GangBarrier,
        Call::ballot => Intrinsic::Ballot,
        Call::shuffle => Intrinsic::ShuffleIndex,
        Call::shuffle_up => Intrinsic::ShuffleUp,
        Call::shuffle_xor => Intrinsic::ShuffleXor,
        Call::clock => Intrinsic::GlobalTimer,
        Call::cycles => Intrinsic::Cycles,
        Call::fence => Intrinsic::FenceDevice,
        Call::fence_system => Intrinsic::FenceHost,
        Call::sleep => {
            let stop = code.stop_address();
            return code.intrinsic(Intrinsic::GangSleep, &[args[0], stop]);
        }
        Call::local_load | Call::local_store | Call::local_add => {
            check_offset(code, args[0], 4, WORKGROUP_BYTES);
            match call {
                Call::local_load => Intrinsic::LocalLoad,
                Call::local_store => Intrinsic::LocalStore,
                _ => Intrinsic::LocalAdd,
            }
        }
        Call::bus_load => return on_bus(code, Intrinsic::BusLoad, 8, args),
        Call::bus_store => return on_bus(code, Intrinsic::BusStore, 8, args),
        Call::bus_put => return on_bus(code, Intrinsic::BusPut, 8, args),
        Call::bus_put2 => return on_bus(code, Intrinsic::BusPut2, 16, args),
        Call::bus_load2 => {
            let address = bus_address(code, args[0], 16);
            let values = code.intrinsics(Intrinsic::BusLoad2, &[address]);
            let flags = code.guest_flags(true);
            let to = code.ins().uextend(types::I64, args[1]);
            for (value, at) in values.into_iter().zip([0, 8]) {
                code.ins().store(flags, value, to, at);
            }
            return None;
        }
    };
    code.intrinsic(which, args)
}

fn on_bus(code: &mut Code<'_>, which: Intrinsic, size: u64, args: &[Value]) -> Option<Value> {
    let mut passed = vec![bus_address(code, args[0], size)];
    passed.extend(&args[1..]);
    code.intrinsic(which, &passed)
}

/// Returns the device address of an offset in the bus, after checking the offset.
fn bus_address(code: &mut Code<'_>, at: Value, size: u64) -> Value {
    let place = code.gang.expect("checked: only a gang's module has these imports");
    check_offset(code, at, size, place.sizes.bus_bytes);
    let bus = code.common(&place, offset::BUS);
    let wide = code.ins().uextend(types::I64, at);
    code.ins().iadd(bus, wide)
}

/// Traps unless the offset is a multiple of `size` (a power of two) and below `bytes`. Rotated right, a misaligned
/// offset becomes huge, so one comparison checks both.
fn check_offset(code: &mut Code<'_>, at: Value, size: u64, bytes: u64) {
    let possible = u64::from(possible_bits(&code.b.func.dfg, at, 4));
    if possible & (size - 1) == 0 && possible + size <= bytes {
        return;
    }
    let turned = code.ins().rotr_imm_u(at, i64::from(size.trailing_zeros()));
    let outside = code.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, turned, (bytes / size) as i64);
    code.trap_if(outside, TrapCode::MemoryOutOfBounds);
}

/// The bits that a 32-bit value can have, as far as `depth` instructions before it tell. Such as `(x & 255) << 2 | 4096`, an offset in a
/// table.
fn possible_bits(dfg: &DataFlowGraph, value: Value, depth: u32) -> u32 {
    let ValueDef::Result(inst, _) = dfg.value_def(dfg.resolve_aliases(value)) else { return u32::MAX };
    let of = |value: Value| if depth == 0 { u32::MAX } else { possible_bits(dfg, value, depth - 1) };
    match dfg.insts[inst] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => imm.bits() as u32,
        InstructionData::Binary { opcode: Opcode::Band, args: [a, b] } => of(a) & of(b),
        InstructionData::Binary { opcode: Opcode::Bor, args: [a, b] } => of(a) | of(b),
        InstructionData::Binary { opcode: Opcode::Ishl, args: [a, by] } => match dfg.value_def(dfg.resolve_aliases(by))
        {
            ValueDef::Result(by, _) => match dfg.insts[by] {
                InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => of(a) << (imm.bits() & 31),
                _ => u32::MAX,
            },
            _ => u32::MAX,
        },
        _ => u32::MAX,
    }
}
