//! Guest accesses that may be misaligned, which on a GPU ends the whole launch.
//!
//! Every such access wider than a byte looks at its address's low bits first. Where they are in order it is one instruction.
//! Else a load takes the two 8-byte cells the value can lie in and shifts them together (the cell after a memory's last
//! one is always readable), and a store goes byte by byte, since the cells' other bytes may belong to another thread.
//!
//! An address's low three bits are its place in a cell in either layout, and the next cell is [`Layout::stride`] further.

use crate::body::{Body, When};
use crate::function::Emitter;
use crate::memory::{Alignment, Place, Read};
use crate::regs::{Class, Operand, Reg};
use cranelift_codegen::ir::types;
use gpu_run_abi::Layout;
use gpu_run_abi::layout::CELL;

const LOADS: [&str; 3] = ["load_unaligned_16", "load_unaligned_32", "load_unaligned_64"];
const STORES: [&str; 3] = ["store_unaligned_16", "store_unaligned_32", "store_unaligned_64"];

/// Which of the module's out-of-line paths are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Helpers(u8);

impl Helpers {
    fn use_load(&mut self, bytes: u32) -> &'static str {
        self.0 |= 1 << size_index(bytes);
        LOADS[size_index(bytes)]
    }
    fn use_store(&mut self, bytes: u32) -> &'static str {
        self.0 |= 8 << size_index(bytes);
        STORES[size_index(bytes)]
    }
    pub(crate) fn join(self, other: Helpers) -> Helpers {
        Helpers(self.0 | other.0)
    }

    pub(crate) fn declare(self, out: &mut String) {
        self.each(|helper| {
            helper.push_header(out);
            out.push_str(";\n");
        });
    }

    pub(crate) fn define(self, out: &mut String, layout: Layout) {
        self.each(|helper| {
            out.push('\n');
            helper.push_header(out);
            let body = helper.body(layout);
            out.push_str("\n{\n");
            body.regs.declare(out);
            out.push_str(&body.out);
            out.push_str("}\n");
        });
    }

    fn each(self, mut with: impl FnMut(Helper)) {
        for (i, bytes) in [2, 4, 8].into_iter().enumerate() {
            if self.0 & (1 << i) != 0 {
                with(Helper::Load(bytes));
            }
            if self.0 & (8 << i) != 0 {
                with(Helper::Store(bytes));
            }
        }
    }
}

/// 0, 1, 2 for 2, 4, 8 bytes.
fn size_index(bytes: u32) -> usize {
    bytes.trailing_zeros().saturating_sub(1).min(2) as usize
}

/// A function that the module has once.
enum Helper {
    Load(u32),
    Store(u32),
}

const ADDRESS: Reg = Reg { class: Class::Argument, index: 0 };
const VALUE: Reg = Reg { class: Class::Argument, index: 1 };

impl Helper {
    fn push_header(&self, out: &mut String) {
        let class = |bytes| if bytes == 8 { ".b64" } else { ".b32" };
        match *self {
            Helper::Load(bytes) => {
                out.push_str(".func (.reg ");
                out.push_str(class(bytes));
                out.push_str(" %out) ");
                out.push_str(LOADS[size_index(bytes)]);
                out.push_str(" (.reg .b64 %a0)");
            }
            Helper::Store(bytes) => {
                out.push_str(".func ");
                out.push_str(STORES[size_index(bytes)]);
                out.push_str(" (.reg .b64 %a0, .reg ");
                out.push_str(class(bytes));
                out.push_str(" %a1)");
            }
        }
    }

    fn body(&self, layout: Layout) -> Body {
        let mut body = Body::default();
        match *self {
            Helper::Load(bytes) => {
                let value = two_cells(&mut body, layout, ADDRESS, bytes);
                let suffix = if bytes == 8 { ".b64" } else { ".b32" };
                body.op("mov", suffix, &[Operand::Name("%out"), value.into()]);
            }
            Helper::Store(bytes) => byte_stores(&mut body, layout, ADDRESS, bytes, VALUE.into()),
        }
        body.op("ret", "", &[]);
        body
    }
}

/// The value at an address, zero-extended into a register of 32 bits, or of 64 for 8 bytes.
fn two_cells(body: &mut Body, layout: Layout, address: Reg, bytes: u32) -> Reg {
    let cell = body.op_to_temp(Class::B64, "and", ".b64", &[address.into(), (-(CELL as i64)).into()]);
    let first = body.temp(Class::B64);
    body.load("ld.global", ".u64", first, cell, 0);
    let second = body.temp(Class::B64);
    body.load("ld.global", ".u64", second, cell, layout.stride() as i64);
    let at = place_in_cell(body, address);
    let skip = body.op_to_temp(Class::B32, "shl", ".b32", &[at.into(), 3.into()]);
    let rest = body.op_to_temp(Class::B32, "sub", ".u32", &[64.into(), skip.into()]);
    let low = body.op_to_temp(Class::B64, "shr", ".u64", &[first.into(), skip.into()]);
    let high = body.op_to_temp(Class::B64, "shl", ".b64", &[second.into(), rest.into()]);
    let both = body.op_to_temp(Class::B64, "or", ".b64", &[low.into(), high.into()]);
    match bytes {
        8 => both,
        4 => body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[both.into()]),
        _ => {
            let word = body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[both.into()]);
            body.op_to_temp(Class::B32, "and", ".b32", &[word.into(), 0xffff.into()])
        }
    }
}

fn place_in_cell(body: &mut Body, address: Reg) -> Reg {
    let low = body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[address.into()]);
    body.op_to_temp(Class::B32, "and", ".b32", &[low.into(), (CELL as i64 - 1).into()])
}

/// The value's bytes one after the other; `value` is an integer of 32 bits, or of 64 for 8 bytes.
fn byte_stores(body: &mut Body, layout: Layout, address: Reg, bytes: u32, value: Operand) {
    let gap = layout.stride() as i64 - CELL as i64;
    let crossing = (gap != 0).then(|| {
        let at = place_in_cell(body, address);
        (at, body.op_to_temp(Class::B64, "add", ".u64", &[address.into(), gap.into()]))
    });
    let words = words(body, bytes, value);
    for k in 0..bytes {
        let byte = match (words[k as usize / 4], k % 4) {
            (word, 0) => word,
            (Operand::Int(n), shift) => i64::from((n as u32 >> (8 * shift)) as u8).into(),
            (word, shift) => body.op_to_temp(Class::B32, "shr", ".u32", &[word, i64::from(8 * shift).into()]).into(),
        };
        let k = i64::from(k);
        let base = match crossing {
            // Byte k is in the next cell where the first is among the last k of its own.
            Some((at, beyond)) if k > 0 => {
                let crosses = body.op_to_temp(Class::Pred, "setp.gt", ".u32", &[at.into(), (7 - k).into()]);
                body.op_to_temp(Class::B64, "selp", ".b64", &[beyond.into(), address.into(), crosses.into()])
            }
            _ => address,
        };
        body.store("st.global", ".u8", base, k, byte);
    }
}

/// The value's low and high 32 bits.
fn words(body: &mut Body, bytes: u32, value: Operand) -> [Operand; 2] {
    match value {
        Operand::Int(n) => [i64::from(n as i32).into(), (n >> 32).into()],
        value if bytes == 8 => {
            let low = body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[value]);
            let upper = body.op_to_temp(Class::B64, "shr", ".u64", &[value, 32.into()]);
            let high = body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[upper.into()]);
            [low.into(), high.into()]
        }
        value => [value, value],
    }
}

impl Emitter<'_> {
    /// Branches to the returned label where the address is misaligned; the place's offset is then a multiple of the size.
    fn check_alignment(&mut self, place: Place, bytes: u32) -> (Place, crate::body::Label) {
        let size = i64::from(bytes);
        let place = if place.offset % size == 0 { place } else { Place { base: self.sum(place), offset: 0 } };
        let low = self.body.op_to_temp(Class::B64, "and", ".b64", &[place.base.into(), (size - 1).into()]);
        let is_misaligned = self.body.op_to_temp(Class::Pred, "setp.ne", ".u64", &[low.into(), 0.into()]);
        let misaligned = self.body.local();
        self.body.branch_if(is_misaligned, When::True, misaligned);
        (place, misaligned)
    }

    /// The address in one register.
    fn sum(&mut self, place: Place) -> Reg {
        match place.offset {
            0 => place.base,
            offset => self.body.op_to_temp(Class::B64, "add", ".u64", &[place.base.into(), offset.into()]),
        }
    }

    pub(crate) fn checked_load(&mut self, read: Read, result: Reg, place: Place, alignment: Alignment) {
        let (place, misaligned) = self.check_alignment(place, read.bytes);
        let done = self.body.local();
        self.plain_load(read, result, place);
        if alignment == Alignment::Expected {
            self.out_of_line(|e| {
                e.body.place(misaligned);
                let address = e.sum(place);
                let raw = e.body.temp(if read.bytes == 8 { Class::B64 } else { Class::B32 });
                let helper = e.helpers.use_load(read.bytes);
                e.call_helper(Some(raw), helper, &[address.into()]);
                e.take_bits(read, result, raw);
                e.body.branch(done);
            });
        } else {
            self.body.branch(done);
            self.body.place(misaligned);
            let address = self.sum(place);
            let raw = two_cells(&mut self.body, self.symbols.layout(), address, read.bytes);
            self.take_bits(read, result, raw);
        }
        self.body.place(done);
    }

    /// A load's result from the zero-extended bits.
    fn take_bits(&mut self, read: Read, result: Reg, raw: Reg) {
        match read.widening() {
            Some(widening) => self.body.op("cvt", widening, &[result.into(), raw.into()]),
            None if read.bytes == 8 => self.body.op("mov", ".b64", &[result.into(), raw.into()]),
            None => self.body.op("mov", ".b32", &[result.into(), raw.into()]),
        }
    }

    pub(crate) fn checked_store(
        &mut self,
        bytes: u32,
        suffix: &str,
        place: Place,
        value: Operand,
        alignment: Alignment,
    ) {
        let (place, misaligned) = self.check_alignment(place, bytes);
        let done = self.body.local();
        self.body.store("st.global", suffix, place.base, place.offset, value);
        if alignment == Alignment::Expected {
            self.out_of_line(|e| {
                e.body.place(misaligned);
                let address = e.sum(place);
                let raw = e.bits_of(value);
                let helper = e.helpers.use_store(bytes);
                e.call_helper(None, helper, &[address.into(), raw]);
                e.body.branch(done);
            });
        } else {
            self.body.branch(done);
            self.body.place(misaligned);
            let address = self.sum(place);
            let raw = self.bits_of(value);
            byte_stores(&mut self.body, self.symbols.layout(), address, bytes, raw);
        }
        self.body.place(done);
    }

    /// A float's bits; an integer as it is.
    fn bits_of(&mut self, value: Operand) -> Operand {
        match value {
            Operand::F32(bits) => i64::from(bits as i32).into(),
            Operand::F64(bits) => (bits as i64).into(),
            Operand::Reg(reg) => match self.class_of(reg) {
                Class::F32 => self.body.op_to_temp(Class::B32, "mov", ".b32", &[value]).into(),
                Class::F64 => self.body.op_to_temp(Class::B64, "mov", ".b64", &[value]).into(),
                _ => value,
            },
            other => other,
        }
    }

    /// What a register holds: a parameter's class is in the signature.
    fn class_of(&self, reg: Reg) -> Class {
        if reg.class != Class::Argument {
            return reg.class;
        }
        let ty = self.func.signature.params.get(reg.index as usize).map_or(types::I64, |p| p.value_type);
        Class::of(ty).unwrap_or(Class::B64)
    }
}
