//! Copies and fills.
//!
//! Bytes are moved one by one until the destination is at a cell boundary, then cell by cell, then the rest one by one.
//! Where source and destination have different positions in their cells, each cell that is written is shifted together
//! from two cells that are read.

use crate::code::{Code, block_args};
use crate::translate::Env;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::Variable;
use gpu_run_abi::intrinsic::region;
use gpu_run_abi::layout::WORD;

/// Cells moved per iteration of a long copy: that many loads are in flight at once.
const CELLS_PER_ROUND: i64 = 4;
/// The most bytes, and the most words of a table, between two checks of the stop word.
const BYTES_BETWEEN_LOOKS: i64 = 64 << 10;
const STRETCH_WORDS: i64 = 16 << 10;

/// One side of a copy: an address that moves.
#[derive(Clone, Copy)]
pub(super) enum Side {
    /// Guest memory: a guest address (i32), and the device address of the memory.
    Guest(Variable, Value),
    /// Plain bytes: a device address (i64).
    Plain(Variable),
}

impl Side {
    /// Begins at a guest address in memory 0.
    fn guest(code: &mut Code<'_>, env: &Env<'_>, at: Value) -> Self {
        let memory = code.memory_address(env.slots);
        Side::guest_in(code, at, memory)
    }
    /// Begins at a guest address in the memory with this device address.
    pub(super) fn guest_in(code: &mut Code<'_>, at: Value, memory: Value) -> Self {
        Side::Guest(code.variable(types::I32, at), memory)
    }
    pub(super) fn plain(code: &mut Code<'_>, at: Value) -> Self {
        Side::Plain(code.variable(types::I64, at))
    }
    fn variable(self) -> Variable {
        match self {
            Side::Guest(at, _) | Side::Plain(at) => at,
        }
    }
    /// Returns the byte position in the cell (i32).
    fn in_cell(self, code: &mut Code<'_>) -> Value {
        let value = code.b.use_var(self.variable());
        let low = match self {
            Side::Guest(..) => value,
            Side::Plain(_) => code.ins().ireduce(types::I32, value),
        };
        let cell = code.layout.cell() as i64;
        code.ins().band_imm_u(low, cell - 1)
    }
    /// Returns the device address.
    fn device(self, code: &mut Code<'_>) -> Value {
        let at = code.b.use_var(self.variable());
        match self {
            Side::Guest(_, memory) => code.guest_address(at, memory),
            Side::Plain(_) => at,
        }
    }
    /// Returns the bytes on the device from one cell to the next.
    fn stride(self, code: &Code<'_>) -> i64 {
        match self {
            Side::Guest(..) if !code.is_local => code.layout.stride() as i64,
            _ => code.layout.cell() as i64,
        }
    }
    /// Returns the flags of its accesses.
    fn flags(self, code: &mut Code<'_>) -> MemFlagsData {
        code.trusted(match self {
            Side::Guest(..) => region::CELLS,
            Side::Plain(_) => region::BUS,
        })
    }
    fn load_byte(self, code: &mut Code<'_>) -> Value {
        let (address, flags) = (self.device(code), self.flags(code));
        code.ins().uload8(types::I32, flags, address, 0)
    }
    fn store_byte(self, code: &mut Code<'_>, value: Value) {
        let (address, flags) = (self.device(code), self.flags(code));
        code.ins().istore8(flags, value, address, 0);
    }
    fn advance(self, code: &mut Code<'_>, by: i64) {
        add(code, self.variable(), by);
    }
    fn advance_by(self, code: &mut Code<'_>, by: Value) {
        let at = code.b.use_var(self.variable());
        let by = match self {
            Side::Guest(..) => by,
            Side::Plain(_) => code.ins().uextend(types::I64, by),
        };
        let at = code.ins().iadd(at, by);
        code.b.def_var(self.variable(), at);
    }
}

/// Returns the type of a cell's content.
fn cell_type(code: &Code<'_>) -> Type {
    if code.layout.cell() == 8 { types::I64 } else { types::I32 }
}

pub(super) fn guest_write(code: &mut Code<'_>, env: &Env<'_>) {
    copy_apart(code, |code, to, from| (Side::guest(code, env, to), Side::plain(code, from)));
}

pub(super) fn guest_read(code: &mut Code<'_>, env: &Env<'_>) {
    copy_apart(code, |code, to, from| (Side::plain(code, to), Side::guest(code, env, from)));
}

pub(super) fn guest_copy(code: &mut Code<'_>, env: &Env<'_>) {
    copy(code, |code, to, from| (Side::guest(code, env, to), Side::guest(code, env, from)));
}

/// Copies as memcpy does, and returns. Parameters 1 and 2 are destination and source, 3 is the number of bytes.
pub(super) fn copy_apart(code: &mut Code<'_>, sides: impl Fn(&mut Code<'_>, Value, Value) -> (Side, Side)) {
    let addresses = [code.param(1), code.param(2)];
    in_stretches(code, addresses, None, |code, [to, from], length| {
        let (to, from) = sides(code, to, from);
        copy_forward(code, to, from, length);
    });
}

/// Copies as memmove does, and returns, with the same parameters. Between two memories, either direction is right.
pub(super) fn copy(code: &mut Code<'_>, sides: impl Fn(&mut Code<'_>, Value, Value) -> (Side, Side)) {
    // Copying forward is right unless the destination begins inside the source: then every byte must be read before it
    // is overwritten.
    let is_inside = |code: &mut Code<'_>, [to, from]: [Value; 2], length: Value| {
        let distance = code.ins().isub(to, from);
        code.ins().icmp(IntCC::UnsignedLessThan, distance, length)
    };
    let addresses = [code.param(1), code.param(2)];
    in_stretches(code, addresses, Some(&is_inside), |code, [to, from], length| {
        let inside = is_inside(code, [to, from], length);
        let (backward, forward, done) = (code.b.create_block(), code.b.create_block(), code.b.create_block());
        code.ins().brif(inside, backward, &[], forward, &[]);
        for (block, copy) in
            [(forward, copy_forward as fn(&mut Code<'_>, Side, Side, Value)), (backward, copy_backward)]
        {
            code.open(block);
            let (to, from) = sides(code, to, from);
            copy(code, to, from, length);
            code.ins().jump(done, &[]);
        }
        code.open(done);
    });
}

/// Decides whether to begin at the far end, given the addresses and a length.
type FromEnd<'a, const N: usize> = Option<&'a dyn Fn(&mut Code<'_>, [Value; N], Value) -> Value>;

/// Emits code that processes as many bytes as parameter 3 says, and returns. `part` processes at most
/// [`BYTES_BETWEEN_LOOKS`] of them, with a check of the stop word between parts. Nearly always one part is enough; for
/// that case there is no loop, only a branch before it, so the code of a part is emitted twice.
fn in_stretches<const N: usize>(
    code: &mut Code<'_>,
    addresses: [Value; N],
    from_end: FromEnd<'_, N>,
    part: impl Fn(&mut Code<'_>, [Value; N], Value),
) {
    let length = code.param(3);
    let [short, long, next, done] = [(); 4].map(|()| code.b.create_block());
    let is_long = code.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, length, BYTES_BETWEEN_LOOKS);
    code.ins().brif(is_long, long, &[], short, &[]);
    code.open(short);
    part(code, addresses, length);
    code.ins().return_(&[]);

    code.b.set_cold_block(long);
    code.open(long);
    let types = addresses.map(|address| code.b.func.dfg.value_type(address));
    let step = |code: &mut Code<'_>, addresses: [Value; N], by: Value| {
        std::array::from_fn(|i| {
            let by = if types[i] == types::I64 { code.ins().sextend(types::I64, by) } else { by };
            code.ins().iadd(addresses[i], by)
        })
    };
    let go = |code: &mut Code<'_>, addresses: [Value; N], bytes: Value, rest: Value| {
        code.ins().jump(next, &block_args(&[&addresses[..], &[bytes, rest]].concat()));
    };
    let (none, stretch) = (code.i32(0), code.i32(BYTES_BETWEEN_LOOKS));
    let rest = code.ins().isub(length, stretch);
    let is_back = from_end.map(|from_end| from_end(code, addresses, length));
    let begin = is_back.map_or(none, |is_back| code.ins().select(is_back, rest, none));
    let begin = step(code, addresses, begin);
    go(code, begin, stretch, rest);

    let now = types.map(|ty| code.b.append_block_param(next, ty));
    let [bytes, rest] = [(); 2].map(|()| code.b.append_block_param(next, types::I32));
    code.b.switch_to_block(next);
    part(code, now, bytes);
    let again = code.b.create_block();
    code.ins().brif(rest, again, &[], done, &[]);
    code.open(again);
    code.check_stop_of_slot();
    let more = code.ins().umin(rest, stretch);
    let left = code.ins().isub(rest, more);
    let by = is_back.map_or(stretch, |is_back| {
        let down = code.ins().ineg(more);
        code.ins().select(is_back, down, stretch)
    });
    let begin = step(code, now, by);
    go(code, begin, more, left);
    code.b.seal_block(next);
    code.open(done);
    code.ins().return_(&[]);
}

/// Copies upwards.
fn copy_forward(code: &mut Code<'_>, to: Side, from: Side, length: Value) {
    let left = code.variable(types::I32, length);
    let byte = move |code: &mut Code<'_>| {
        let value = from.load_byte(code);
        to.store_byte(code, value);
        from.advance(code, 1);
        to.advance(code, 1);
        add(code, left, -1);
    };
    bytes_to_cell(code, to, left, byte);
    let many = at_least(code, left, code.layout.cell() as i64);
    code.if_then(many, false, |code| {
        // Whole cells; then both sides advance by as many bytes.
        let bytes = whole_cells(code, left);
        let (target, source, skip) = (to.device(code), from.device(code), from.in_cell(code));
        let (target, source) = (code.variable(types::I64, target), code.variable(types::I64, source));
        let rest = code.variable(types::I32, bytes);
        let (alike, differ, done) = (code.b.create_block(), code.b.create_block(), code.b.create_block());
        let target = Cells { at: target, stride: to.stride(code), flags: to.flags(code) };
        let source = Cells { at: source, stride: from.stride(code), flags: from.flags(code) };
        code.ins().brif(skip, differ, &[], alike, &[]);
        code.open(alike);
        cells_forward(code, target, source, rest);
        code.ins().jump(done, &[]);
        code.open(differ);
        shifted_cells(code, target, source, skip, rest);
        code.ins().jump(done, &[]);
        code.open(done);
        to.advance_by(code, bytes);
        from.advance_by(code, bytes);
        let all = code.b.use_var(left);
        let none = code.ins().isub(all, bytes);
        code.b.def_var(left, none);
    });
    while_any(code, left, byte);
}

/// Cells at a device address that moves: the address, the bytes from one cell to the next, and the access flags.
#[derive(Clone, Copy)]
struct Cells {
    at: Variable,
    stride: i64,
    flags: MemFlagsData,
}

/// Copies `left` bytes: whole cells, between addresses of cells.
fn cells_forward(code: &mut Code<'_>, to: Cells, from: Cells, left: Variable) {
    let (ty, cell) = (cell_type(code), code.layout.cell() as i64);
    for count in [CELLS_PER_ROUND, 1] {
        let whole = |code: &mut Code<'_>| at_least(code, left, count * cell);
        code.while_loop(whole, |code| {
            let (target, source) = (code.b.use_var(to.at), code.b.use_var(from.at));
            let values: Vec<_> =
                (0..count).map(|i| code.ins().load(ty, from.flags, source, (i * from.stride) as i32)).collect();
            for (i, value) in (0..count).zip(values) {
                code.ins().store(to.flags, value, target, (i * to.stride) as i32);
            }
            add(code, to.at, count * to.stride);
            add(code, from.at, count * from.stride);
            add(code, left, -count * cell);
        });
    }
}

/// Like [`cells_forward`], where the source begins `skip` (i32, not 0) bytes into its cell: each cell is made of parts
/// of two. Every cell that is read holds a byte that is needed.
fn shifted_cells(code: &mut Code<'_>, to: Cells, from: Cells, skip: Value, left: Variable) {
    let (ty, cell) = (cell_type(code), code.layout.cell() as i64);
    let inside = code.b.use_var(from.at);
    let first = code.ins().band_imm_s(inside, -cell);
    code.b.def_var(from.at, first);
    let value = code.ins().load(ty, from.flags, first, 0);
    let before = code.variable(ty, value);
    let down = code.ins().imul_imm_s(skip, 8);
    let full = code.i32(cell * 8);
    let up = code.ins().isub(full, down);
    let more = |code: &mut Code<'_>| code.b.use_var(left);
    code.while_loop(more, |code| {
        add(code, from.at, from.stride);
        let (source, target, low) = (code.b.use_var(from.at), code.b.use_var(to.at), code.b.use_var(before));
        let high = code.ins().load(ty, from.flags, source, 0);
        code.b.def_var(before, high);
        let (low, high) = (code.ins().ushr(low, down), code.ins().ishl(high, up));
        let value = code.ins().bor(low, high);
        code.ins().store(to.flags, value, target, 0);
        add(code, to.at, to.stride);
        add(code, left, -cell);
    });
}

/// Copies downwards: by cells where both sides have the same position in their cells, else by bytes.
fn copy_backward(code: &mut Code<'_>, to: Side, from: Side, length: Value) {
    let (ty, cell) = (cell_type(code), code.layout.cell() as i64);
    let left = code.variable(types::I32, length);
    for side in [to, from] {
        side.advance_by(code, length);
    }
    let byte = move |code: &mut Code<'_>| {
        from.advance(code, -1);
        to.advance(code, -1);
        let value = from.load_byte(code);
        to.store_byte(code, value);
        add(code, left, -1);
    };
    let (a, b) = (to.in_cell(code), from.in_cell(code));
    let alike = code.ins().icmp(IntCC::Equal, a, b);
    code.if_then(alike, false, |code| {
        bytes_to_cell(code, to, left, byte);
        let whole = |code: &mut Code<'_>| at_least(code, left, cell);
        code.while_loop(whole, |code| {
            from.advance(code, -cell);
            to.advance(code, -cell);
            let (load, store) = (from.flags(code), to.flags(code));
            let (source, target) = (from.device(code), to.device(code));
            let value = code.ins().load(ty, load, source, 0);
            code.ins().store(store, value, target, 0);
            add(code, left, -cell);
        });
    });
    while_any(code, left, byte);
}

pub(super) fn guest_fill(code: &mut Code<'_>, env: &Env<'_>) {
    fill(code, |code, to| Side::guest(code, env, to));
}

/// Sets as many bytes as parameter 3 says, from the address in parameter 1 on, to the byte in parameter 2, and returns.
pub(super) fn fill(code: &mut Code<'_>, side: impl Fn(&mut Code<'_>, Value) -> Side) {
    let addresses = [code.param(1)];
    in_stretches(code, addresses, None, |code, [to], length| {
        let to = side(code, to);
        fill_part(code, to, length);
    });
}

fn fill_part(code: &mut Code<'_>, to: Side, length: Value) {
    let (ty, cell) = (cell_type(code), code.layout.cell() as i64);
    let left = code.variable(types::I32, length);
    let value = code.param(2);
    let byte = move |code: &mut Code<'_>| {
        to.store_byte(code, value);
        to.advance(code, 1);
        add(code, left, -1);
    };
    bytes_to_cell(code, to, left, byte);
    let pattern = code.ins().band_imm_u(value, 0xff);
    let pattern = if ty == types::I64 { code.ins().uextend(ty, pattern) } else { pattern };
    let ones = if ty == types::I64 { 0x0101_0101_0101_0101 } else { 0x0101_0101 };
    let pattern = code.ins().imul_imm_s(pattern, ones);
    let many = at_least(code, left, cell);
    code.if_then(many, false, |code| {
        let bytes = whole_cells(code, left);
        let target = to.device(code);
        let (target, rest) = (code.variable(types::I64, target), code.variable(types::I32, bytes));
        let stride = to.stride(code);
        for count in [CELLS_PER_ROUND, 1] {
            let whole = |code: &mut Code<'_>| at_least(code, rest, count * cell);
            code.while_loop(whole, |code| {
                let (flags, at) = (to.flags(code), code.b.use_var(target));
                for i in 0..count {
                    code.ins().store(flags, pattern, at, (i * stride) as i32);
                }
                add(code, target, count * stride);
                add(code, rest, -count * cell);
            });
        }
        to.advance_by(code, bytes);
        let all = code.b.use_var(left);
        let none = code.ins().isub(all, bytes);
        code.b.def_var(left, none);
    });
    while_any(code, left, byte);
}

pub(super) fn words_copy(code: &mut Code<'_>, _: &Env<'_>) {
    let (to, from, count) = (code.param(1), code.param(2), code.param(3));
    let step = word_step(code);
    let wide = code.ins().uextend(types::I64, count);
    let bytes = code.ins().imul_imm_u(wide, step);
    let distance = code.ins().isub(to, from);
    let inside = code.ins().icmp(IntCC::UnsignedLessThan, distance, bytes);
    // From the far end if the destination begins inside the source.
    let last = code.ins().iadd_imm_s(bytes, -step);
    let zero = code.i64(0);
    let start = code.ins().select(inside, last, zero);
    let (back, forth) = (code.i64(-step), code.i64(step));
    let step = code.ins().select(inside, back, forth);
    let (to, from) = (code.ins().iadd(to, start), code.ins().iadd(from, start));
    let flags = code.trusted(region::TABLE);
    words(code, (to, step), (from, step), |code, from| code.word_load(types::I64, flags, from, 0));
}

pub(super) fn words_fill(code: &mut Code<'_>, _: &Env<'_>) {
    let (to, value) = (code.param(1), code.param(2));
    let step = word_step(code);
    let step = code.i64(step);
    words(code, (to, step), (to, step), |_, _| value);
}

pub(super) fn words_init(code: &mut Code<'_>, _: &Env<'_>) {
    let (to, from) = (code.param(1), code.param(2));
    let step = word_step(code);
    let (to_step, from_step) = (code.i64(step), code.i64(WORD as i64));
    let flags = code.trusted(region::CONSTANT);
    words(code, (to, to_step), (from, from_step), |code, from| code.ins().load(types::I64, flags, from, 0));
}

/// Returns the bytes on the device from one word of a slot to the next.
fn word_step(code: &Code<'_>) -> i64 {
    (WORD * code.layout.spread()) as i64
}

/// Writes as many words as parameter 3 says, stepping both addresses, and returns.
fn words(
    code: &mut Code<'_>,
    (to, to_step): (Value, Value),
    (from, from_step): (Value, Value),
    mut value: impl FnMut(&mut Code<'_>, Value) -> Value,
) {
    let (to, from) = (code.variable(types::I64, to), code.variable(types::I64, from));
    let left = code.param(3);
    let left = code.variable(types::I32, left);
    let flags = code.trusted(region::TABLE);
    let more = |code: &mut Code<'_>| code.b.use_var(left);
    code.while_loop(more, |code| {
        let (all, stretch) = (code.b.use_var(left), code.i32(STRETCH_WORDS));
        let now = code.ins().umin(all, stretch);
        let end = code.ins().isub(all, now);
        let is_more = |code: &mut Code<'_>| {
            let left = code.b.use_var(left);
            code.ins().icmp(IntCC::NotEqual, left, end)
        };
        code.while_loop(is_more, |code| {
            let (source, target) = (code.b.use_var(from), code.b.use_var(to));
            let word = value(code, source);
            code.word_store(word, flags, target, 0);
            for (variable, at, step) in [(from, source, from_step), (to, target, to_step)] {
                let next = code.ins().iadd(at, step);
                code.b.def_var(variable, next);
            }
            add(code, left, -1);
        });
        code.if_then(end, true, |code| code.check_stop_of_slot());
    });
    code.ins().return_(&[]);
}

fn add(code: &mut Code<'_>, variable: Variable, by: i64) {
    let value = code.b.use_var(variable);
    let value = code.ins().iadd_imm_s(value, by);
    code.b.def_var(variable, value);
}

fn at_least(code: &mut Code<'_>, left: Variable, bytes: i64) -> Value {
    let value = code.b.use_var(left);
    code.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, value, bytes)
}

/// Returns how many of the remaining bytes are whole cells.
fn whole_cells(code: &mut Code<'_>, left: Variable) -> Value {
    let (value, cell) = (code.b.use_var(left), code.layout.cell() as i64);
    code.ins().band_imm_s(value, -cell)
}

/// Moves bytes one by one until `side` is at a cell boundary.
fn bytes_to_cell(code: &mut Code<'_>, side: Side, left: Variable, byte: impl FnOnce(&mut Code<'_>)) {
    code.while_loop(
        |code| {
            let inside = side.in_cell(code);
            let inside = code.ins().icmp_imm_s(IntCC::NotEqual, inside, 0);
            let more = code.b.use_var(left);
            let more = code.ins().icmp_imm_s(IntCC::NotEqual, more, 0);
            code.ins().band(inside, more)
        },
        byte,
    );
}

fn while_any(code: &mut Code<'_>, left: Variable, byte: impl FnOnce(&mut Code<'_>)) {
    code.while_loop(|code| code.b.use_var(left), byte);
}
