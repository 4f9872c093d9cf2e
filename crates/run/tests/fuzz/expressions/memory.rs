//! Expressions and statements that access memories and tables.

use super::*;
use crate::vectors;

impl Function<'_> {
    /// The address of an atomic access, aligned unless risks are taken.
    pub(super) fn aligned(&mut self, log2: usize, depth: usize) -> String {
        let address = self.address(depth);
        match self.risk(12) {
            true => address,
            false => format!("(i32.and {address} (i32.const {}))", -(1i32 << log2)),
        }
    }

    pub(super) fn atomic(&mut self, ty: Ty, depth: usize) -> String {
        if ty == I32 && self.random.one_in(8) {
            let at = self.aligned(3, depth);
            return match self.random.below(3) {
                // It would trap.
                0..=1 if !self.shared && !self.risk(8) => self.leaf(I32),
                0 => format!("(call $memory.atomic.wait32 {at} {})", self.expression(I32, depth)),
                1 => format!("(call $memory.atomic.wait64 {at} {})", self.expression(I64, depth)),
                _ => format!("(call $memory.atomic.notify {at} {})", self.expression(I32, depth)),
            };
        }
        let all = atomics::all(ty.name(), false);
        let atomic = &all[self.random.below(all.len())];
        let at = self.aligned(atomic.log2, depth);
        let values: Vec<String> = (0..atomic.values).map(|_| self.expression(ty, depth)).collect();
        format!("(call ${} {at} {})", atomic.name, values.join(" "))
    }

    /// An address: mostly in memory, often misaligned, often at a place where something ends.
    pub(super) fn address(&mut self, depth: usize) -> String {
        let address = self.expression(I32, depth);
        if self.risk(30) {
            return address;
        }
        match self.random.below(12) {
            0 => format!(
                "(i32.add (i32.and {address} (i32.const 15)) (i32.const {}))",
                self.random.pick(&[65512, 65520, 65528])
            ),
            1 => format!("(i32.sub (i32.const 65536) (i32.and {address} (i32.const 31)))"),
            2..=8 => format!("(i32.and {address} (i32.const 63))"),
            _ => format!("(i32.and {address} (i32.const 16383))"),
        }
    }

    pub(super) fn offset_and_alignment(&mut self, log2: usize) -> String {
        let offset = match self.random.below(12) {
            _ if self.risk(40) => self.random.pick(&[65535, 65536, 0x7fff_ffff, 0xffff_fff8, 0xffff_ffff]),
            0..=4 => 0,
            5..=10 => self.random.below(40),
            _ => self.random.below(50_000),
        };
        format!("offset={offset} align={}", 1 << self.random.below(log2 + 1))
    }

    pub(super) fn load(&mut self, ty: Ty, depth: usize) -> String {
        let (op, log2) = self.random.pick(ty.loads());
        let place = self.offset_and_alignment(log2);
        format!("({op} {place} {})", self.address(depth))
    }

    pub(super) fn store(&mut self, depth: usize) -> String {
        let ty = self.random.pick(&TYPES);
        if ty == V128 && self.random.one_in(3) {
            let (bits, log2) = self.random.pick(&vectors::LANES);
            let (place, lane) = (self.offset_and_alignment(log2), self.random.below(128 / bits));
            return format!(
                "(v128.store{bits}_lane {place} {lane} {} {})",
                self.address(depth),
                self.expression(V128, depth)
            );
        }
        if (ty == I32 || ty == I64) && self.random.one_in(6) {
            let all = atomics::all(ty.name(), true);
            let atomic = &all[self.random.below(all.len())];
            let at = self.aligned(atomic.log2, depth);
            return format!("(call ${} {at} {})", atomic.name, self.expression(ty, depth));
        }
        let (op, log2) = self.random.pick(ty.stores());
        let place = self.offset_and_alignment(log2);
        format!("({op} {place} {} {})", self.address(depth), self.expression(ty, depth))
    }

    /// The sizes of things, and their growth.
    pub(super) fn sizes(&mut self, depth: usize) -> String {
        match self.random.below(5) {
            0 => "(memory.size)".into(),
            1 => format!("(memory.grow (i32.and {} (i32.const 1)))", self.expression(I32, depth)),
            2 => "(table.size $table)".into(),
            3 => format!("(table.grow $table (ref.null func) (i32.and {} (i32.const 1)))", self.expression(I32, depth)),
            _ => format!("(ref.is_null (table.get $table (i32.and {} (i32.const 3))))", self.expression(I32, depth)),
        }
    }

    pub(super) fn bulk(&mut self, depth: usize) -> String {
        let length = |this: &mut Self| {
            format!("(i32.and {} (i32.const {}))", this.expression(I32, depth), this.random.pick(&[7, 31, 127]))
        };
        let small = |this: &mut Self| {
            format!("(i32.and {} (i32.const {}))", this.expression(I32, depth), if this.risk(2) { 3 } else { 1 })
        };
        match self.random.below(9) {
            0..=2 => format!("(memory.fill {} {} {})", self.address(depth), self.expression(I32, depth), length(self)),
            3..=5 => format!("(memory.copy {} {} {})", self.address(depth), self.address(depth), length(self)),
            6 => format!(
                "(memory.init $data {} {} {})",
                self.address(depth),
                small(self),
                length(self).replace("127", "31")
            ),
            7 => format!("(table.copy $table $table {} {} {})", small(self), small(self), small(self)),
            _ => format!(
                "(table.init $table $passive {} {} (i32.and {} (i32.const 1)))",
                small(self),
                small(self),
                small(self)
            ),
        }
    }
}
