//! Copies and fills. Bytes move a cell at a time wherever source and destination lie the same way in their cells; the rest goes byte by byte.

use crate::code::Code;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;
use gpu_run_abi::intrinsic::region;
use gpu_run_abi::layout::CELL;

/// One side of a copy.
#[derive(Clone, Copy)]
enum Side {
    /// Guest memory, by guest address (i32).
    Guest(Variable),
    /// Plain bytes, by device address (i64).
    Plain(Variable),
}

impl Side {
    fn variable(self) -> Variable {
        match self {
            Side::Guest(v) | Side::Plain(v) => v,
        }
    }
    /// The address as an i32 whose low bits tell the place in the cell.
    fn low_bits(self, code: &mut Code<'_>) -> Value {
        let value = code.b.use_var(self.variable());
        match self {
            Side::Guest(_) => value,
            Side::Plain(_) => code.ins().ireduce(types::I32, value),
        }
    }
    fn load(self, code: &mut Code<'_>, bytes: u64) -> Value {
        let at = code.b.use_var(self.variable());
        let (flags, address, offset) = self.access(code, at, bytes);
        if bytes == 1 {
            code.ins().uload8(types::I32, flags, address, offset)
        } else {
            code.ins().load(types::I64, flags, address, offset)
        }
    }
    fn store(self, code: &mut Code<'_>, value: Value, bytes: u64) {
        let at = code.b.use_var(self.variable());
        let (flags, address, offset) = self.access(code, at, bytes);
        if bytes == 1 {
            code.ins().istore8(flags, value, address, offset);
        } else {
            code.ins().store(flags, value, address, offset);
        }
    }
    /// Cells are only touched where they begin: no access here is misaligned, and none needs the check guest accesses get.
    fn access(self, code: &mut Code<'_>, at: Value, _bytes: u64) -> (cranelift_codegen::ir::MemFlagsData, Value, i32) {
        let flags = code.trusted(region::BUS);
        match self {
            Side::Guest(_) => {
                let (address, offset) = code.guest_address(at, 0);
                (flags, address, offset)
            }
            Side::Plain(_) => (flags, at, 0),
        }
    }
    fn advance(self, code: &mut Code<'_>, by: i64) {
        let at = code.b.use_var(self.variable());
        let at = code.ins().iadd_imm_s(at, by);
        code.b.def_var(self.variable(), at);
    }
}

pub(super) fn guest_write(code: &mut Code<'_>) {
    let (to, from) = (guest(code, 1), plain(code, 2));
    copy_forward(code, to, from, 3);
    code.ins().return_(&[]);
}

pub(super) fn guest_read(code: &mut Code<'_>) {
    let (to, from) = (plain(code, 1), guest(code, 2));
    copy_forward(code, to, from, 3);
    code.ins().return_(&[]);
}

pub(super) fn guest_copy(code: &mut Code<'_>) {
    // Going forward is right unless the destination begins inside the source: then every byte must be read before it is written.
    let (to, from, length) = (code.param(1), code.param(2), code.param(3));
    let distance = code.ins().isub(to, from);
    let inside = code.ins().icmp(IntCC::UnsignedLessThan, distance, length);
    let (backward, forward) = (code.b.create_block(), code.b.create_block());
    code.ins().brif(inside, backward, &[], forward, &[]);
    code.open(forward);
    let (to, from) = (guest(code, 1), guest(code, 2));
    copy_forward(code, to, from, 3);
    code.ins().return_(&[]);
    code.open(backward);
    copy_backward(code);
    code.ins().return_(&[]);
}

pub(super) fn guest_fill(code: &mut Code<'_>) {
    let to = guest(code, 1);
    let left = parameter(code, 3);
    let byte = code.param(2);
    let pattern = code.ins().band_imm_u(byte, 0xff);
    let pattern = code.ins().uextend(types::I64, pattern);
    let pattern = code.ins().imul_imm_s(pattern, 0x0101_0101_0101_0101);
    let step = move |code: &mut Code<'_>, bytes: u64| {
        to.store(code, if bytes == 1 { byte } else { pattern }, bytes);
        to.advance(code, bytes as i64);
        count_down(code, left, bytes);
    };
    bytes_to_cell(code, to, left, step);
    whole_cells(code, left, step);
    remaining_bytes(code, left, step);
    code.ins().return_(&[]);
}

pub(super) fn cells_copy(code: &mut Code<'_>) {
    let (to, from, count) = (code.param(1), code.param(2), code.param(3));
    let stride = code.layout.stride() as i64;
    let wide = code.ins().uextend(types::I64, count);
    let bytes = code.ins().ishl_imm_u(wide, i64::from(stride.trailing_zeros()));
    let distance = code.ins().isub(to, from);
    let inside = code.ins().icmp(IntCC::UnsignedLessThan, distance, bytes);
    // From the far end if the destination begins inside the source.
    let last = code.ins().iadd_imm_s(bytes, -stride);
    let zero = code.i64(0);
    let start = code.ins().select(inside, last, zero);
    let (back, forth) = (code.i64(-stride), code.i64(stride));
    let step = code.ins().select(inside, back, forth);
    let (to, from) = (code.ins().iadd(to, start), code.ins().iadd(from, start));
    cells(code, to, from, step, step);
}

pub(super) fn cells_fill(code: &mut Code<'_>) {
    let (to, value) = (code.param(1), code.param(2));
    let step = code.i64(code.layout.stride() as i64);
    let to = code.variable(types::I64, to);
    let left = parameter(code, 3);
    let flags = code.trusted(region::TABLE);
    code.while_loop(
        |code| code.b.use_var(left),
        |code| {
            let at = code.b.use_var(to);
            code.ins().store(flags, value, at, 0);
            let next = code.ins().iadd(at, step);
            code.b.def_var(to, next);
            count_down(code, left, 1);
        },
    );
    code.ins().return_(&[]);
}

pub(super) fn cells_init(code: &mut Code<'_>) {
    let (to, from) = (code.param(1), code.param(2));
    let (to_step, from_step) = (code.i64(code.layout.stride() as i64), code.i64(CELL as i64));
    cells(code, to, from, to_step, from_step);
}

/// Copies as many words as parameter 3 says, stepping both addresses, and returns.
fn cells(code: &mut Code<'_>, to: Value, from: Value, to_step: Value, from_step: Value) {
    let to = code.variable(types::I64, to);
    let from = code.variable(types::I64, from);
    let left = parameter(code, 3);
    let flags = code.trusted(region::TABLE);
    code.while_loop(
        |code| code.b.use_var(left),
        |code| {
            let (source, target) = (code.b.use_var(from), code.b.use_var(to));
            let value = code.ins().load(types::I64, flags, source, 0);
            code.ins().store(flags, value, target, 0);
            for (variable, at, step) in [(from, source, from_step), (to, target, to_step)] {
                let next = code.ins().iadd(at, step);
                code.b.def_var(variable, next);
            }
            count_down(code, left, 1);
        },
    );
    code.ins().return_(&[]);
}

fn guest(code: &mut Code<'_>, param: usize) -> Side {
    let value = code.param(param);
    Side::Guest(code.variable(types::I32, value))
}
fn plain(code: &mut Code<'_>, param: usize) -> Side {
    let value = code.param(param);
    Side::Plain(code.variable(types::I64, value))
}
fn parameter(code: &mut Code<'_>, param: usize) -> Variable {
    let value = code.param(param);
    code.variable(types::I32, value)
}

/// Copies upwards; `length` is the parameter that says how much.
fn copy_forward(code: &mut Code<'_>, to: Side, from: Side, length: usize) {
    let left = parameter(code, length);
    let step = move |code: &mut Code<'_>, bytes: u64| {
        let value = from.load(code, bytes);
        to.store(code, value, bytes);
        from.advance(code, bytes as i64);
        to.advance(code, bytes as i64);
        count_down(code, left, bytes);
    };
    copy_by(code, to, from, left, step);
}

/// Copies downwards, parameters as [`super::Helper::GuestCopy`]'s.
fn copy_backward(code: &mut Code<'_>) {
    let (to, from) = (guest(code, 1), guest(code, 2));
    let left = parameter(code, 3);
    let length = code.param(3);
    for side in [to, from] {
        let at = code.b.use_var(side.variable());
        let end = code.ins().iadd(at, length);
        code.b.def_var(side.variable(), end);
    }
    let step = move |code: &mut Code<'_>, bytes: u64| {
        from.advance(code, -(bytes as i64));
        to.advance(code, -(bytes as i64));
        let value = from.load(code, bytes);
        to.store(code, value, bytes);
        count_down(code, left, bytes);
    };
    copy_by(code, to, from, left, step);
}

/// Repeats `step` until nothing is left: by cells where both sides lie the same way in theirs, else by bytes.
fn copy_by(code: &mut Code<'_>, to: Side, from: Side, left: Variable, step: impl Fn(&mut Code<'_>, u64) + Copy) {
    let (a, b) = (to.low_bits(code), from.low_bits(code));
    let differ = code.ins().bxor(a, b);
    let differ = code.ins().band_imm_u(differ, CELL as i64 - 1);
    let alike = code.ins().icmp_imm_s(IntCC::Equal, differ, 0);
    code.if_then(alike, false, |code| {
        bytes_to_cell(code, to, left, step);
        whole_cells(code, left, step);
    });
    remaining_bytes(code, left, step);
}

/// Steps by bytes until `side` is at a cell's border.
fn bytes_to_cell(code: &mut Code<'_>, side: Side, left: Variable, step: impl FnOnce(&mut Code<'_>, u64)) {
    code.while_loop(
        |code| {
            let bits = side.low_bits(code);
            let inside = code.ins().band_imm_u(bits, CELL as i64 - 1);
            let inside = code.ins().icmp_imm_s(IntCC::NotEqual, inside, 0);
            let more = code.b.use_var(left);
            let more = code.ins().icmp_imm_s(IntCC::NotEqual, more, 0);
            code.ins().band(inside, more)
        },
        |code| step(code, 1),
    );
}

fn whole_cells(code: &mut Code<'_>, left: Variable, step: impl FnOnce(&mut Code<'_>, u64)) {
    code.while_loop(
        |code| {
            let more = code.b.use_var(left);
            code.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, more, CELL as i64)
        },
        |code| step(code, CELL),
    );
}

fn remaining_bytes(code: &mut Code<'_>, left: Variable, step: impl FnOnce(&mut Code<'_>, u64)) {
    code.while_loop(|code| code.b.use_var(left), |code| step(code, 1));
}

fn count_down(code: &mut Code<'_>, left: Variable, by: u64) {
    let value = code.b.use_var(left);
    let value = code.ins().iadd_imm_s(value, -(by as i64));
    code.b.def_var(left, value);
}
