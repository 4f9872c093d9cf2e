//! Operations that a program asks for by exported functions, see [`gpu_run_abi::guest`]: a call of such a function is the
//! operation itself. The function, too, consists of it, for calls through a reference and from outside.

use crate::code::Code;
use crate::decode::{ExportKind, Module};
use crate::types::{FuncType, ValType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, MemFlagsData, Type, Value, types};
use gpu_run_abi::TrapCode;
use gpu_run_abi::guest::{GuestCall, PICTURE_HEAD, PIXEL, picture};
use gpu_run_abi::intrinsic::{self, Intrinsic, region};
use gpu_run_abi::launch::offset;
use gpu_run_abi::layout::{WARP, WORD, field};
use std::collections::HashMap;

/// All lanes of a warp.
const ALL_LANES: i64 = u32::MAX as i64;

/// Returns the functions of a program that stand for an operation.
pub(crate) fn calls(module: &Module<'_>) -> HashMap<u32, GuestCall> {
    let found = module.exports.iter().filter_map(|export| match export.kind {
        ExportKind::Function(index) => Some((index, GuestCall::find(export.name)?)),
        _ => None,
    });
    let is_own = |index: u32| index as usize >= module.imports.len();
    found.filter(|(index, call)| is_own(*index) && *module.function_type(*index) == ty(*call)).collect()
}

fn ty(call: GuestCall) -> FuncType {
    let list = |types: &[intrinsic::Type]| types.iter().map(|ty| ValType::from(*ty)).collect();
    let (params, results) = call.signature();
    FuncType { params: list(params), results: list(results) }
}

/// Builds the function's own body.
pub(super) fn body(code: &mut Code<'_>, call: GuestCall, is_speculative: bool) {
    let args: Vec<_> = (1..=call.signature().0.len()).map(|i| code.param(i)).collect();
    let result = operation(code, call, &args, is_speculative);
    code.ins().return_(result.as_slice());
}

/// A speculative build stops before it changes the shared buffer: the instance is rerun, and would change it twice.
pub(super) fn operation(code: &mut Code<'_>, call: GuestCall, args: &[Value], is_speculative: bool) -> Option<Value> {
    use GuestCall as Call;
    let which = match call {
        Call::instance => return Some(instance(code)),
        Call::instances => return Some(common(code, offset::INSTANCES)),
        Call::thread => match code.is_shared {
            true => return Some(code.header(types::I32, field::INDEX)),
            false => return Some(code.i32(0)),
        },
        Call::threads => match code.is_shared {
            true => {
                let most = common(code, offset::MOST_THREADS);
                return Some(code.ins().ireduce(types::I32, most));
            }
            false => return Some(code.i32(1)),
        },
        Call::lane => Intrinsic::Lane,
        Call::active => Intrinsic::ActiveMask,
        Call::device_time => Intrinsic::GlobalTimer,
        Call::ballot => {
            let lanes = active(code);
            return code.intrinsic(Intrinsic::BallotAmong, &[args[0], lanes]);
        }
        Call::shuffle => return Some(shuffle(code, args[0], args[1])),
        Call::reduce_add => return Some(reduce(code, args[0], |code, a, b| code.ins().iadd(a, b))),
        Call::reduce_min => return Some(reduce(code, args[0], |code, a, b| code.ins().umin(a, b))),
        Call::reduce_max => return Some(reduce(code, args[0], |code, a, b| code.ins().umax(a, b))),
        Call::reduce_and => return Some(reduce(code, args[0], |code, a, b| code.ins().band(a, b))),
        Call::reduce_or => return Some(reduce(code, args[0], |code, a, b| code.ins().bor(a, b))),
        Call::reduce_xor => return Some(reduce(code, args[0], |code, a, b| code.ins().bxor(a, b))),
        Call::fence => Intrinsic::FenceDevice,
        Call::sin => Intrinsic::Sin,
        Call::cos => Intrinsic::Cos,
        Call::exp2 => Intrinsic::Exp2,
        Call::log2 => Intrinsic::Log2,
        Call::rsqrt => Intrinsic::InverseRoot,
        Call::shared_bytes => {
            let bytes = common(code, offset::SHARED_BYTES);
            return Some(code.ins().ireduce(types::I32, bytes));
        }
        Call::picture => return Some(begin_picture(code, args)),
        Call::picture_size => return Some(picture_size(code)),
        Call::pixel => {
            set_pixel(code, args);
            return None;
        }
        Call::time => {
            let bits = common(code, offset::TIME);
            return Some(code.ins().bitcast(types::F64, MemFlagsData::new(), bits));
        }
        _ => return on_shared(code, call, args, is_speculative),
    };
    code.intrinsic(which, args)
}

/// Returns the device address of what all instances of the launch have in common.
fn launch(code: &mut Code<'_>) -> Value {
    code.constant_field(field::LAUNCH)
}

/// Loads a word of the launch's description.
fn common(code: &mut Code<'_>, at: u64) -> Value {
    let (launch, flags) = (launch(code), constant(code));
    code.ins().load(types::I64, flags, launch, at as i32)
}

fn constant(code: &mut Code<'_>) -> MemFlagsData {
    code.trusted(region::CONSTANT).with_readonly()
}

fn instance(code: &mut Code<'_>) -> Value {
    let (first, numbers) = (common(code, offset::FIRST), common(code, offset::NUMBERS));
    if code.is_shared {
        return first; // its slots are threads of one instance
    }
    let index = code.header(types::I64, field::INDEX);
    let number = code.ins().iadd(first, index);
    let number = code.variable(types::I64, number);
    code.if_then(numbers, false, |code| {
        let (at, flags) = (code.ins().imul_imm_u(index, WORD as i64), constant(code));
        let at = code.ins().iadd(numbers, at);
        let own = code.ins().load(types::I64, flags, at, 0);
        code.b.def_var(number, own);
    });
    code.b.use_var(number)
}

// Lanes that make a call together. None of this branches but on what is the same for all of them, so they stay together.

fn active(code: &mut Code<'_>) -> Value {
    code.intrinsic(Intrinsic::ActiveMask, &[]).expect("it has a result")
}

fn shuffle(code: &mut Code<'_>, value: Value, lane: Value) -> Value {
    let lanes = active(code);
    let own = code.intrinsic(Intrinsic::Lane, &[]).expect("it has a result");
    let bit = code.ins().ushr(lanes, lane);
    let bit = code.ins().band_imm_u(bit, 1);
    let exists = code.ins().icmp_imm_u(IntCC::UnsignedLessThan, lane, WARP as i64);
    let zero = code.i32(0);
    let is_here = code.ins().select(exists, bit, zero);
    let from = code.ins().select(is_here, lane, own);
    code.intrinsic(Intrinsic::ShuffleAmong, &[value, from, lanes]).expect("it has a result")
}

/// Five steps if the whole warp is here; otherwise one lane after the other.
fn reduce(code: &mut Code<'_>, value: Value, combine: impl Fn(&mut Code<'_>, Value, Value) -> Value) -> Value {
    let lanes = active(code);
    let (whole, part, join) = (code.b.create_block(), code.b.create_block(), code.b.create_block());
    let result = code.variable(types::I32, value);
    let is_whole = code.ins().icmp_imm_u(IntCC::Equal, lanes, ALL_LANES);
    code.ins().brif(is_whole, whole, &[], part, &[]);
    code.open(whole);
    let mut all = value;
    for step in [16, 8, 4, 2, 1] {
        let step = code.i32(step);
        let other = code.intrinsic(Intrinsic::ShuffleXor, &[all, step]).expect("it has a result");
        all = combine(code, all, other);
    }
    code.b.def_var(result, all);
    code.ins().jump(join, &[]);
    code.open(part);
    let first = code.ins().ctz(lanes);
    let first = code.intrinsic(Intrinsic::ShuffleAmong, &[value, first, lanes]).expect("it has a result");
    code.b.def_var(result, first);
    let rest = without_lowest(code, lanes);
    let left = code.variable(types::I32, rest);
    code.while_loop(
        |code| code.b.use_var(left),
        |code| {
            let rest = code.b.use_var(left);
            let lane = code.ins().ctz(rest);
            let other = code.intrinsic(Intrinsic::ShuffleAmong, &[value, lane, lanes]).expect("it has a result");
            let sum = code.b.use_var(result);
            let sum = combine(code, sum, other);
            code.b.def_var(result, sum);
            let rest = without_lowest(code, rest);
            code.b.def_var(left, rest);
        },
    );
    code.ins().jump(join, &[]);
    code.open(join);
    code.b.use_var(result)
}

fn without_lowest(code: &mut Code<'_>, bits: Value) -> Value {
    let less = code.ins().iadd_imm_s(bits, -1);
    code.ins().band(bits, less)
}

// The shared buffer.

#[rustfmt::skip]
fn on_shared(code: &mut Code<'_>, call: GuestCall, args: &[Value], is_speculative: bool) -> Option<Value> {
    use AtomicRmwOp::{Add, And, Or, Umax, Umin, Xchg, Xor};
    use GuestCall as Call;
    use types::{I32, I64};
    let (ty, op) = match call {
        Call::shared_load_32             => return Some(load(code, args, I32)),
        Call::shared_load_64             => return Some(load(code, args, I64)),
        Call::shared_store_32            => (I32, None),
        Call::shared_store_64            => (I64, None),
        Call::shared_add_32              => (I32, Some(Add)),
        Call::shared_min_32              => (I32, Some(Umin)),
        Call::shared_max_32              => (I32, Some(Umax)),
        Call::shared_and_32              => (I32, Some(And)),
        Call::shared_or_32               => (I32, Some(Or)),
        Call::shared_xor_32              => (I32, Some(Xor)),
        Call::shared_exchange_32         => (I32, Some(Xchg)),
        Call::shared_add_64              => (I64, Some(Add)),
        Call::shared_min_64              => (I64, Some(Umin)),
        Call::shared_max_64              => (I64, Some(Umax)),
        Call::shared_and_64              => (I64, Some(And)),
        Call::shared_or_64               => (I64, Some(Or)),
        Call::shared_xor_64              => (I64, Some(Xor)),
        Call::shared_exchange_64         => (I64, Some(Xchg)),
        Call::shared_compare_exchange_32 => (I32, None),
        _                                => (I64, None),
    };
    if is_speculative {
        let always = code.i32(1);
        code.trap_if(always, TrapCode::Inexact);
    }
    let at = address(code, args[0], ty);
    let flags = code.trusted(region::SHARED);
    match (op, args) {
        (Some(op), [_, value]) => Some(code.ins().atomic_rmw(ty, flags, op, at, *value)),
        (None, [_, value]) => {
            code.ins().atomic_store(flags, *value, at);
            None
        }
        (_, [_, expected, new]) => Some(code.ins().atomic_cas(flags, at, *expected, *new)),
        _ => None,
    }
}

fn load(code: &mut Code<'_>, args: &[Value], ty: Type) -> Value {
    let at = address(code, args[0], ty);
    let flags = code.trusted(region::SHARED);
    code.ins().atomic_load(ty, flags, at)
}

/// Returns the device address of a value in the shared buffer. Rotated right, a misaligned offset becomes huge, so one
/// comparison checks whether the value is aligned and inside.
fn address(code: &mut Code<'_>, at: Value, ty: Type) -> Value {
    let shift = i64::from(ty.bytes().trailing_zeros());
    let (buffer, bytes) = (common(code, offset::SHARED), common(code, offset::SHARED_BYTES));
    let bytes = code.ins().ireduce(types::I32, bytes);
    let (number, count) = (code.ins().rotr_imm_u(at, shift), code.ins().ushr_imm_u(bytes, shift));
    let outside = code.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, number, count);
    code.trap_if(outside, TrapCode::MemoryOutOfBounds);
    let at = code.ins().uextend(types::I64, at);
    code.ins().iadd(buffer, at)
}

// The picture.

/// The first who begins it says how large it is.
fn begin_picture(code: &mut Code<'_>, args: &[Value]) -> Value {
    let (memory, most) = (common(code, offset::PICTURE), common(code, offset::PICTURE_PIXELS));
    let unwanted = code.i32(picture::UNWANTED.into());
    let answer = code.variable(types::I32, unwanted);
    let (width, height) = (args[0], args[1]);
    code.if_then(memory, false, |code| {
        let wide = [width, height].map(|side| code.ins().uextend(types::I64, side));
        let pixels = code.ins().imul(wide[0], wide[1]);
        let few = code.ins().icmp(IntCC::UnsignedLessThanOrEqual, pixels, most);
        // A side of 0 becomes the largest.
        let [less_wide, less_high] = [width, height].map(|side| code.ins().iadd_imm_s(side, -1));
        let sides = code.ins().bor(less_wide, less_high);
        let short = code.ins().icmp_imm_u(IntCC::UnsignedLessThan, sides, i64::from(picture::MAX_SIDE));
        let fits = code.ins().band(few, short);
        let too_large = code.i32(picture::TOO_LARGE.into());
        code.b.def_var(answer, too_large);
        code.if_then(fits, false, |code| {
            let flags = code.trusted(region::SHARED);
            let high = code.ins().ishl_imm_u(wide[1], 32);
            let both = code.ins().bor(wide[0], high);
            let none = code.i64(0);
            let before = code.ins().atomic_cas(flags, memory, none, both);
            let others = code.ins().icmp(IntCC::NotEqual, before, both);
            let exists = code.ins().icmp_imm_u(IntCC::NotEqual, before, 0);
            let differs = code.ins().band(others, exists);
            let (wanted, another) = (code.i32(picture::WANTED.into()), code.i32(picture::ANOTHER.into()));
            let is = code.ins().select(differs, another, wanted);
            code.b.def_var(answer, is);
        });
    });
    code.b.use_var(answer)
}

fn picture_size(code: &mut Code<'_>) -> Value {
    let memory = common(code, offset::PICTURE);
    let none = code.i64(0);
    let size = code.variable(types::I64, none);
    code.if_then(memory, false, |code| {
        let flags = code.trusted(region::SHARED);
        let both = code.ins().atomic_load(types::I64, flags, memory);
        code.b.def_var(size, both);
    });
    code.b.use_var(size)
}

fn set_pixel(code: &mut Code<'_>, args: &[Value]) {
    let (memory, most) = (common(code, offset::PICTURE), common(code, offset::PICTURE_PIXELS));
    let index = code.ins().uextend(types::I64, args[0]);
    // Without a picture, it has no pixels.
    let exists = code.ins().icmp(IntCC::UnsignedLessThan, index, most);
    code.if_then(exists, false, |code| {
        let offset = code.ins().imul_imm_u(index, PIXEL as i64);
        let at = code.ins().iadd(memory, offset);
        let flags = code.trusted(region::BUS);
        code.ins().store(flags, args[1], at, PICTURE_HEAD as i32);
    });
}
