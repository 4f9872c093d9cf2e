//! The slow path to guest memory: bounds to the byte, any alignment. [`super::exact`] takes it if the check of a root
//! fails.
//!
//! A module has at most one load and one store function for each size: `(instance, address, offset, record)` and, for a
//! store, the value. If the access is out of bounds, the record becomes the instance's trap and the thread exits. A
//! load reads all cells that the value can lie in and shifts them together (the bytes after the last cell of a memory
//! can always be read). A store writes byte by byte, since the other bytes of a cell may belong to another thread.

use crate::Program;
use crate::analysis::memory_length::LENGTH;
use crate::print::body::{Body, When};
use crate::print::register::{Class, Operand, Reg, argument};
use crate::print::trap;
use crate::print::{gang, hot};
use gpu_run_abi::layout::{GUARD, WORD, field};
use gpu_run_abi::{Layout, threads};

// The `cpu` device recognises these functions by `cold_`: it compiles calls of them so that they change no register
// (docs/ptx.md).
const SIZES: [u32; 4] = [1, 2, 4, 8];
const LOADS: [&str; 4] = ["cold_load_1", "cold_load_2", "cold_load_4", "cold_load_8"];
const STORES: [&str; 4] = ["cold_store_1", "cold_store_2", "cold_store_4", "cold_store_8"];

/// The set of these functions that a module uses: one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlowPaths(u8);

impl SlowPaths {
    pub(crate) fn load(&mut self, bytes: u32) -> &'static str {
        self.0 |= 1 << index(bytes);
        LOADS[index(bytes)]
    }
    pub(crate) fn store(&mut self, bytes: u32) -> &'static str {
        self.0 |= 16 << index(bytes);
        STORES[index(bytes)]
    }
    pub(crate) fn join(self, other: SlowPaths) -> SlowPaths {
        SlowPaths(self.0 | other.0)
    }

    pub(crate) fn declare(self, out: &mut String) {
        self.each(|kind, bytes| {
            push_header(out, kind, bytes);
            out.push_str(";\n");
        });
    }

    pub(crate) fn define(self, out: &mut String, program: &Program) {
        self.each(|kind, bytes| {
            out.push('\n');
            push_header(out, kind, bytes);
            let body = body(kind, bytes, program);
            out.push_str("\n{\n");
            body.regs.declare(out);
            out.push_str(&body.out);
            out.push_str("}\n");
        });
    }

    fn each(self, mut with: impl FnMut(Kind, u32)) {
        for bytes in SIZES {
            if self.0 & (1 << index(bytes)) != 0 {
                with(Kind::Load, bytes);
            }
            if self.0 & (16 << index(bytes)) != 0 {
                with(Kind::Store, bytes);
            }
        }
    }
}

/// Returns 0, 1, 2, 3 for 1, 2, 4, 8 bytes.
fn index(bytes: u32) -> usize {
    bytes.trailing_zeros().min(3) as usize
}

#[derive(Clone, Copy)]
enum Kind {
    Load,
    Store,
}

const INSTANCE: Reg = argument(0);
const ADDRESS: Reg = argument(1);
const OFFSET: Reg = argument(2);
const RECORD: Reg = argument(3);
const VALUE: Reg = argument(4);

fn push_header(out: &mut String, kind: Kind, bytes: u32) {
    let class = if bytes == 8 { ".b64" } else { ".b32" };
    out.push_str(".func ");
    if let Kind::Load = kind {
        out.push_str("(.reg ");
        out.push_str(class);
        out.push_str(" %out) ");
    }
    out.push_str(match kind {
        Kind::Load => LOADS[index(bytes)],
        Kind::Store => STORES[index(bytes)],
    });
    out.push_str(" (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2, .reg .b64 %a3");
    if let Kind::Store = kind {
        out.push_str(", .reg ");
        out.push_str(class);
        out.push_str(" %a4");
    }
    out.push(')');
}

fn body(kind: Kind, bytes: u32, program: &Program) -> Body {
    let (layout, memory) = (program.layout(), program.memory);
    let mut body = Body::default();
    let at = body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[ADDRESS.into()]);
    let offset = body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[OFFSET.into()]);
    let first = body.op_to_temp(Class::B64, "add", ".u64", &[at.into(), offset.into()]);
    let end = body.op_to_temp(Class::B64, "add", ".u64", &[first.into(), i64::from(bytes).into()]);
    let length = match program.gang_region() {
        None if program.is_threads() => shared_length(&mut body, program).into(),
        None => {
            let length = body.temp(Class::B32);
            body.load("ld.global", ".u32", length, INSTANCE, layout.offset(LENGTH) as i64);
            body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[length.into()]).into()
        }
        Some(_) => Operand::Int(memory.least as i64),
    };
    let outside = body.op_to_temp(Class::Pred, "setp.gt", ".u64", &[end.into(), length]);
    let outside_memory = body.local();
    body.branch_if(outside, When::True, outside_memory);
    let memory = match program.gang_region() {
        None if program.is_threads() => shared_memory(&mut body),
        None => body.op_to_temp(Class::B64, "add", ".u64", &[INSTANCE.into(), memory.offset(layout).into()]),
        Some(region) => gang::memory(&mut body, INSTANCE, region),
    };
    let guest = body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[first.into()]);
    match kind {
        Kind::Load => {
            let value = load(&mut body, layout, memory, guest, bytes);
            body.op("mov", if bytes == 8 { ".b64" } else { ".b32" }, &[Operand::Name("%out"), value.into()]);
        }
        Kind::Store => store(&mut body, layout, memory, guest, bytes),
    }
    body.op("ret", "", &[]);
    body.place(outside_memory);
    trap::end(&mut body, program, INSTANCE, RECORD);
    body
}

/// Returns the device address of a guest byte.
fn byte_address(body: &mut Body, layout: Layout, memory: Reg, guest: Reg) -> Reg {
    if layout.spread() == 1 {
        let wide = body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[guest.into()]);
        return body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), wide.into()]);
    }
    let cell = cell_address(body, layout, memory, guest);
    let byte = body.op_to_temp(Class::B32, "and", ".b32", &[guest.into(), (layout.cell() as i64 - 1).into()]);
    let byte = body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[byte.into()]);
    body.op_to_temp(Class::B64, "or", ".b64", &[cell.into(), byte.into()])
}

/// Returns the address of the memory that threads share.
fn shared_memory(body: &mut Body) -> Reg {
    let memory = body.temp(Class::B64);
    body.load("ld.global", ".u64", memory, INSTANCE, field::MEMORY_AT as i64);
    memory
}

/// Returns the length of the memory that threads share, and notes it: another thread may have grown the memory since
/// the length was noted.
fn shared_length(body: &mut Body, program: &Program) -> Reg {
    let (memory, length) = (shared_memory(body), body.temp(Class::B64));
    body.load("ld.relaxed.gpu.global", ".u64", length, memory, threads::offset::LENGTH.into());
    // A memory that is used at all has a page, which is larger than the guard.
    let fast = body.op_to_temp(Class::B64, "sub", ".u64", &[length.into(), (GUARD as i64).into()]);
    hot::store(body, program, INSTANCE, &[(field::MEMORY_BYTES, length), (field::MEMORY_FAST, fast)]);
    length
}

fn cell_address(body: &mut Body, layout: Layout, memory: Reg, guest: Reg) -> Reg {
    let first = body.op_to_temp(Class::B32, "and", ".b32", &[guest.into(), (-(layout.cell() as i64)).into()]);
    let operands = [first.into(), (layout.spread() as i64).into(), memory.into()];
    body.op_to_temp(Class::B64, "mad.wide", ".u32", &operands)
}

/// Returns the value at a guest address, zero-extended to a register of 32 bits, or of 64 bits for 8 bytes.
fn load(body: &mut Body, layout: Layout, memory: Reg, guest: Reg, bytes: u32) -> Reg {
    if bytes == 1 || layout.spread() == 1 {
        let address = byte_address(body, layout, memory, guest);
        if bytes > 1 {
            return two_words(body, address, bytes);
        }
        let value = body.temp(Class::B32);
        body.load("ld.global", ".u8", value, address, 0);
        return value;
    }
    let cell = cell_address(body, layout, memory, guest);
    let shift = body.op_to_temp(Class::B32, "shl", ".b32", &[guest.into(), 3.into()]);
    let word = |body: &mut Body, n: i64| {
        let word = body.temp(Class::B32);
        body.load("ld.global", ".u32", word, cell, n * layout.stride() as i64);
        word
    };
    let joined = |body: &mut Body, a: Reg, b: Reg| {
        body.op_to_temp(Class::B32, "shf.r.wrap", ".b32", &[a.into(), b.into(), shift.into()])
    };
    let (first, second) = (word(body, 0), word(body, 1));
    let low = joined(body, first, second);
    match bytes {
        2 => body.op_to_temp(Class::B32, "and", ".b32", &[low.into(), 0xffff.into()]),
        4 => low,
        _ => {
            let third = word(body, 2);
            let high = joined(body, second, third);
            let value = body.temp(Class::B64);
            body.pack(value, low.into(), high.into());
            value
        }
    }
}

/// Returns the value at a device address in a linear layout, zero-extended: reads the two 8-byte words around the
/// address.
pub(crate) fn two_words(body: &mut Body, address: Reg, bytes: u32) -> Reg {
    let word = WORD as i64;
    let start = body.op_to_temp(Class::B64, "and", ".b64", &[address.into(), (-word).into()]);
    let (first, second) = (body.temp(Class::B64), body.temp(Class::B64));
    body.load("ld.global", ".u64", first, start, 0);
    body.load("ld.global", ".u64", second, start, word);
    let low = body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[address.into()]);
    let at = body.op_to_temp(Class::B32, "and", ".b32", &[low.into(), (word - 1).into()]);
    let skip = body.op_to_temp(Class::B32, "shl", ".b32", &[at.into(), 3.into()]);
    let rest = body.op_to_temp(Class::B32, "sub", ".u32", &[64.into(), skip.into()]);
    let low = body.op_to_temp(Class::B64, "shr", ".u64", &[first.into(), skip.into()]);
    let high = body.op_to_temp(Class::B64, "shl", ".b64", &[second.into(), rest.into()]);
    let both = body.op_to_temp(Class::B64, "or", ".b64", &[low.into(), high.into()]);
    if bytes == 8 {
        return both;
    }
    let word = body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[both.into()]);
    match bytes {
        4 => word,
        _ => body.op_to_temp(Class::B32, "and", ".b32", &[word.into(), 0xffff.into()]),
    }
}

/// Stores the value's bytes one after the other.
fn store(body: &mut Body, layout: Layout, memory: Reg, guest: Reg, bytes: u32) {
    let words = if bytes == 8 { body.unpack(VALUE.into()) } else { [VALUE.into(); 2] };
    for k in 0..bytes {
        let at = match k {
            0 => guest,
            _ => body.op_to_temp(Class::B32, "add", ".u32", &[guest.into(), i64::from(k).into()]),
        };
        let address = byte_address(body, layout, memory, at);
        let word = words[k as usize / 4];
        let byte = match k % 4 {
            0 => word,
            shift => body.op_to_temp(Class::B32, "shr", ".u32", &[word, i64::from(8 * shift).into()]).into(),
        };
        body.store("st.global", ".u8", address, 0, byte);
    }
}
