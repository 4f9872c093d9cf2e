//! Modules of our own: deep expressions over every operator, memory accesses of every width at every alignment,
//! control flow, calls and tables. They are made as text, so that a failing one can be read and cut down by hand.
//!
//! wasm-smith spends its operators on whatever fits the stack, most of which is dropped; here every value flows into a result, a
//! global or the memory, and constants are the ones arithmetic goes wrong at.

use crate::atomics::{self, Version};
use crate::random::Random;
use crate::vectors;
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ty {
    I32,
    I64,
    F32,
    F64,
    V128,
}

use Ty::{F32, F64, I32, I64, V128};

const TYPES: [Ty; 5] = [I32, I64, F32, F64, V128];
const SCALARS: [Ty; 4] = [I32, I64, F32, F64];
/// Calls in one call from outside, before the module traps.
const FUEL: u32 = 150;
const PARAMS: &str = "(param $p0 i32) (param $p1 i64) (param $p2 f32) (param $p3 f64) (param $p4 v128)";
const LOCALS: &str = "(local $l0 i32) (local $l1 i64) (local $l2 f32) (local $l3 f64) (local $l4 v128)";

impl Ty {
    fn name(self) -> &'static str {
        match self {
            I32 => "i32",
            I64 => "i64",
            F32 => "f32",
            F64 => "f64",
            V128 => "v128",
        }
    }

    /// The number in `$p0`, `$l0`, `$g0` and their like.
    fn index(self) -> usize {
        self as usize
    }

    /// (operator, type of the operand)
    #[rustfmt::skip] // a table
    fn unary(self) -> &'static [(&'static str, Ty)] {
        match self {
            I32 => &[
                ("i32.clz", I32),
                ("i32.ctz", I32),
                ("i32.popcnt", I32),
                ("i32.eqz", I32),
                ("i64.eqz", I64),
                ("i32.extend8_s", I32),
                ("i32.extend16_s", I32),
                ("i32.wrap_i64", I64),
                ("i32.reinterpret_f32", F32),
                ("i32.trunc_sat_f32_s", F32),
                ("i32.trunc_sat_f32_u", F32),
                ("i32.trunc_sat_f64_s", F64),
                ("i32.trunc_sat_f64_u", F64),
                ("i32.trunc_f32_s", F32),
                ("i32.trunc_f32_u", F32),
                ("i32.trunc_f64_s", F64),
                ("i32.trunc_f64_u", F64),
            ],
            I64 => &[
                ("i64.clz", I64),
                ("i64.ctz", I64),
                ("i64.popcnt", I64),
                ("i64.extend8_s", I64),
                ("i64.extend16_s", I64),
                ("i64.extend32_s", I64),
                ("i64.extend_i32_s", I32),
                ("i64.extend_i32_u", I32),
                ("i64.reinterpret_f64", F64),
                ("i64.trunc_sat_f32_s", F32),
                ("i64.trunc_sat_f32_u", F32),
                ("i64.trunc_sat_f64_s", F64),
                ("i64.trunc_sat_f64_u", F64),
                ("i64.trunc_f32_s", F32),
                ("i64.trunc_f32_u", F32),
                ("i64.trunc_f64_s", F64),
                ("i64.trunc_f64_u", F64),
            ],
            F32 => &[
                ("f32.abs", F32),
                ("f32.neg", F32),
                ("f32.ceil", F32),
                ("f32.floor", F32),
                ("f32.trunc", F32),
                ("f32.nearest", F32),
                ("f32.sqrt", F32),
                ("f32.convert_i32_s", I32),
                ("f32.convert_i32_u", I32),
                ("f32.convert_i64_s", I64),
                ("f32.convert_i64_u", I64),
                ("f32.demote_f64", F64),
                ("f32.reinterpret_i32", I32),
            ],
            F64 => &[
                ("f64.abs", F64),
                ("f64.neg", F64),
                ("f64.ceil", F64),
                ("f64.floor", F64),
                ("f64.trunc", F64),
                ("f64.nearest", F64),
                ("f64.sqrt", F64),
                ("f64.convert_i32_s", I32),
                ("f64.convert_i32_u", I32),
                ("f64.convert_i64_s", I64),
                ("f64.convert_i64_u", I64),
                ("f64.promote_f32", F32),
                ("f64.reinterpret_i64", I64),
            ],
            V128 => &[
                ("i8x16.splat", I32),
                ("i16x8.splat", I32),
                ("i32x4.splat", I32),
                ("i64x2.splat", I64),
                ("f32x4.splat", F32),
                ("f64x2.splat", F64),
            ],
        }
    }

    /// Operators on two values of this type.
    #[rustfmt::skip]
    fn binary(self) -> &'static [&'static str] {
        match self {
            I32 | I64 => &[
                "add", "sub", "mul", "and", "or", "xor", "shl", "shr_s", "shr_u", "rotl", "rotr", "div_s", "div_u",
                "rem_s", "rem_u",
            ],
            F32 | F64 => &["add", "sub", "mul", "div", "min", "max", "copysign"],
            V128 => vectors::BINARY,
        }
    }

    fn comparisons(self) -> &'static [&'static str] {
        match self {
            I32 | I64 => &["eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"],
            F32 | F64 => &["eq", "ne", "lt", "gt", "le", "ge"],
            V128 => &[],
        }
    }

    /// (instruction, log2 of its width)
    #[rustfmt::skip]
    fn loads(self) -> &'static [(&'static str, usize)] {
        match self {
            I32 => &[("i32.load", 2), ("i32.load8_s", 0), ("i32.load8_u", 0), ("i32.load16_s", 1), ("i32.load16_u", 1)],
            I64 => &[
                ("i64.load", 3),
                ("i64.load8_s", 0),
                ("i64.load8_u", 0),
                ("i64.load16_s", 1),
                ("i64.load16_u", 1),
                ("i64.load32_s", 2),
                ("i64.load32_u", 2),
            ],
            F32 => &[("f32.load", 2)],
            F64 => &[("f64.load", 3)],
            V128 => vectors::LOADS,
        }
    }

    #[rustfmt::skip]
    fn stores(self) -> &'static [(&'static str, usize)] {
        match self {
            I32 => &[("i32.store", 2), ("i32.store8", 0), ("i32.store16", 1)],
            I64 => &[("i64.store", 3), ("i64.store8", 0), ("i64.store16", 1), ("i64.store32", 2)],
            F32 => &[("f32.store", 2)],
            F64 => &[("f64.store", 3)],
            V128 => &[("v128.store", 4)],
        }
    }
}

/// The text of a seed's module, and the one Wasmtime gets.
pub(crate) fn module(seed: u64) -> [String; 2] {
    let shared = seed % 4 == 3;
    [Version::Atomic { shared }, Version::Plain { shared }].map(|version| text(seed, shared, version))
}

fn text(seed: u64, shared: bool, version: Version) -> String {
    let mut random = Random::new(seed);
    let count = 2 + random.below(5);
    let results: Vec<Ty> = (0..count).map(|_| random.pick(&TYPES)).collect();
    // What can trap mostly does, and hides what comes after it: one module in four takes the risk.
    let reckless = random.one_in(4);
    let mut text = String::from("(module\n");
    for ty in TYPES {
        _ = writeln!(text, "  (type $t{} (func {PARAMS} (result {})))", ty.index(), ty.name());
    }
    let pages = if reckless { 1 } else { 2 };
    _ = writeln!(text, "  (memory (export \"memory\") {pages} 3{})", atomics::sharing(version));
    for ty in TYPES {
        let (n, name) = (ty.index(), ty.name());
        _ = writeln!(text, "  (global $g{n} (export \"g{n}\") (mut {name}) {})", constant(&mut random, ty));
    }
    _ = writeln!(text, "  (global $fuel (mut i32) (i32.const {FUEL}))");
    let names: Vec<String> = (0..count).map(|i| format!("$f{i}")).collect();
    let names = names.join(" ");
    _ = writeln!(text, "  (table $table {} {} funcref)", count + 2, count + 5);
    _ = writeln!(text, "  (elem (i32.const 0) func {names})\n  (elem $passive func {names})");
    for (place, name) in [("(i32.const 0)", ""), ("(i32.const 65500)", ""), ("", " $data")] {
        let bytes: String = random.bytes(36).iter().map(|b| format!("\\{b:02x}")).collect();
        _ = writeln!(text, "  (data{name} {place} \"{bytes}\")");
    }
    // Fuel is given anew for every call from outside.
    for (i, ty) in results.iter().enumerate() {
        let args = "(local.get $p0) (local.get $p1) (local.get $p2) (local.get $p3) (local.get $p4)";
        _ = writeln!(
            text,
            "  (func (export \"f{i}\") {PARAMS} (result {})\n    (global.set $fuel (i32.const {FUEL}))\n    (call $f{i} {args}))",
            ty.name()
        );
    }
    for (i, ty) in results.iter().enumerate() {
        let nodes = 20 + random.below(160);
        let function = Function {
            random: &mut random,
            callees: &results[..i],
            result: *ty,
            reckless,
            shared,
            nodes,
            loops: 0,
            labels: 0,
            in_loop: 0,
        };
        text += &function.text(i);
    }
    text + &atomics::functions(version) + ")\n"
}

fn constant(random: &mut Random, ty: Ty) -> String {
    match ty {
        I32 => format!("(i32.const {})", random.i32()),
        I64 => format!("(i64.const {})", random.i64()),
        F32 => {
            let bits = random.f32();
            let (value, sign) = (f32::from_bits(bits), if bits >> 31 == 1 { "-" } else { "" });
            match value.is_nan() {
                true => format!("(f32.const {sign}nan:{:#x})", bits & 0x7f_ffff),
                false => format!("(f32.const {value:?})"),
            }
        }
        F64 => {
            let bits = random.f64();
            let (value, sign) = (f64::from_bits(bits), if bits >> 63 == 1 { "-" } else { "" });
            match value.is_nan() {
                true => format!("(f64.const {sign}nan:{:#x})", bits & 0xf_ffff_ffff_ffff),
                false => format!("(f64.const {value:?})"),
            }
        }
        V128 => {
            let bits = random.v128();
            let word = |i: u32| bits >> (32 * i) & 0xffff_ffff;
            format!("(v128.const i32x4 {} {} {} {})", word(0), word(1), word(2), word(3))
        }
    }
}

struct Function<'a> {
    random: &'a mut Random,
    /// What each function before this one returns: those it calls, so that most calls come to an end.
    callees: &'a [Ty],
    result: Ty,
    /// Whether it does what is likely to trap.
    reckless: bool,
    /// Whether the memory is shared.
    shared: bool,
    /// How many more nodes it may have.
    nodes: usize,
    /// Loop counters and labels made so far.
    loops: usize,
    labels: usize,
    /// How deep in loops we are.
    in_loop: usize,
}

impl Function<'_> {
    fn text(mut self, index: usize) -> String {
        let mut body = String::new();
        for _ in 0..1 + self.random.below(6) {
            _ = writeln!(body, "    {}", self.statement(3));
        }
        // What is left of the nodes goes into the result.
        let result = self.expression(self.result, 8);
        let counters: String = (0..self.loops).map(|n| format!(" (local $n{n} i32)")).collect();
        format!(
            "  (func $f{index} {PARAMS} (result {})\n    {LOCALS}{counters}\n    {}\n{body}    {result})\n",
            self.result.name(),
            "(if (i32.eqz (global.get $fuel)) (then (unreachable)))\n    (global.set $fuel (i32.sub (global.get $fuel) (i32.const 1)))",
        )
    }

    /// True once in `n` times, where risks are taken.
    fn risk(&mut self, n: usize) -> bool {
        self.reckless && self.random.one_in(n)
    }

    fn expression(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 || self.nodes == 0 {
            return self.leaf(ty);
        }
        self.nodes -= 1;
        let depth = depth - 1;
        match self.random.below(20) {
            0..=1 => self.leaf(ty),
            2..=5 if ty == V128 => self.vector(depth),
            2..=5 => self.unary(ty, depth),
            6..=10 => self.binary(ty, depth),
            11 if ty == I32 => self.comparison(depth),
            11 if ty != V128 && self.random.one_in(2) => self.lane(ty, depth),
            11..=12 => {
                let typed = if self.random.one_in(2) { format!("(result {}) ", ty.name()) } else { String::new() };
                let (a, b, c) = (self.expression(ty, depth), self.expression(ty, depth), self.condition(depth));
                format!("(select {typed}{a} {b} {c})")
            }
            13 if (ty == I32 || ty == I64) && self.random.one_in(2) => self.atomic(ty, depth),
            13..=14 => self.load(ty, depth),
            15 => {
                let (c, a, b) = (self.condition(depth), self.expression(ty, depth), self.expression(ty, depth));
                format!("(if (result {}) {c} (then {a}) (else {b}))", ty.name())
            }
            16 => format!("(local.tee $l{} {})", ty.index(), self.expression(ty, depth)),
            17 => self.block(ty, depth),
            18 => self.call(ty, depth),
            _ if ty == I32 && self.random.one_in(2) => self.sizes(depth),
            _ => {
                let statement = self.statement(depth.min(2));
                format!("(block (result {}) {statement} {})", ty.name(), self.expression(ty, depth))
            }
        }
    }

    fn leaf(&mut self, ty: Ty) -> String {
        match self.random.below(6) {
            0..=1 => constant(self.random, ty),
            2..=3 => format!("(local.get $p{})", ty.index()),
            4 => format!("(local.get $l{})", ty.index()),
            _ => format!("(global.get $g{})", ty.index()),
        }
    }

    fn unary(&mut self, ty: Ty, depth: usize) -> String {
        let (op, from) = self.random.pick(ty.unary());
        let operand = self.expression(from, depth);
        match op {
            // Wasmtime leaves these NaNs as the machine makes them; a multiplication canonicalises.
            "f32.demote_f64" | "f64.promote_f32" => format!("({0}.mul ({op} {operand}) ({0}.const 1))", ty.name()),
            // Most floats are out of range. What is left of them here is between -0.5 and 2e9; a NaN is compared away.
            _ if op.contains("trunc_f") && !self.risk(6) => {
                let name = from.name();
                let number = format!("(select {operand} ({name}.const 7) ({name}.lt {operand} ({name}.const inf)))");
                format!("({op} ({name}.min ({name}.max {number} ({name}.const -0.5)) ({name}.const 2e9)))")
            }
            _ => format!("({op} {operand})"),
        }
    }

    fn binary(&mut self, ty: Ty, depth: usize) -> String {
        let (op, name) = (self.random.pick(ty.binary()), ty.name());
        if ty == V128 {
            return format!("({op} {} {})", self.expression(V128, depth), self.expression(V128, depth));
        }
        let (a, mut b) = (self.expression(ty, depth), self.expression(ty, depth));
        let divides = op.starts_with("div_") || op.starts_with("rem_");
        if divides && !self.risk(8) {
            b = format!("({name}.or {b} ({name}.const {}))", self.random.pick(&[1, 2, 3, 5, 16, 128]));
        }
        format!("({name}.{op} {a} {b})")
    }

    /// A v128 from anything but two of them.
    fn vector(&mut self, depth: usize) -> String {
        let operand = self.expression(V128, depth);
        match self.random.below(9) {
            0 => self.unary(V128, depth),
            1..=2 => {
                let op = self.random.pick(vectors::UNARY);
                let canonical = |ty: &str, ones: &str| format!("({ty}.mul ({op} {operand}) (v128.const {ty} {ones}))");
                match op {
                    // As with scalars: a multiplication canonicalises.
                    "f32x4.demote_f64x2_zero" => canonical("f32x4", "1 1 1 1"),
                    "f64x2.promote_low_f32x4" => canonical("f64x2", "1 1"),
                    _ => format!("({op} {operand})"),
                }
            }
            3 => format!("({} {operand} {})", self.random.pick(vectors::SHIFTS), self.expression(I32, depth)),
            4 => {
                let (b, c) = (self.expression(V128, depth), self.expression(V128, depth));
                format!("({} {operand} {b} {c})", self.random.pick(vectors::TERNARY))
            }
            5..=6 => format!("({} {operand} {})", vectors::shuffle(self.random), self.expression(V128, depth)),
            7 => {
                let (shape, lane) = vectors::lane(self.random);
                let scalar = match shape {
                    "i64x2" => I64,
                    "f32x4" => F32,
                    "f64x2" => F64,
                    _ => I32,
                };
                format!("({shape}.replace_lane {lane} {operand} {})", self.expression(scalar, depth))
            }
            _ => {
                let (bits, log2) = self.random.pick(&vectors::LANES);
                let (place, lane) = (self.offset_and_alignment(log2), self.random.below(128 / bits));
                format!("(v128.load{bits}_lane {place} {lane} {} {operand})", self.address(depth))
            }
        }
    }

    /// A scalar of a v128.
    fn lane(&mut self, ty: Ty, depth: usize) -> String {
        let operand = self.expression(V128, depth);
        let lane = self.random.below(16);
        match ty {
            I32 => match self.random.below(4) {
                0 => format!("({} {operand})", self.random.pick(vectors::TESTS)),
                1 => format!("(i8x16.extract_lane_{} {lane} {operand})", self.random.pick(&["s", "u"])),
                2 => format!("(i16x8.extract_lane_{} {} {operand})", self.random.pick(&["s", "u"]), lane % 8),
                _ => format!("(i32x4.extract_lane {} {operand})", lane % 4),
            },
            I64 => format!("(i64x2.extract_lane {} {operand})", lane % 2),
            F32 => format!("(f32x4.extract_lane {} {operand})", lane % 4),
            _ => format!("(f64x2.extract_lane {} {operand})", lane % 2),
        }
    }

    /// The address of an atomic access, aligned unless risks are taken.
    fn aligned(&mut self, log2: usize, depth: usize) -> String {
        let address = self.address(depth);
        match self.risk(12) {
            true => address,
            false => format!("(i32.and {address} (i32.const {}))", -(1i32 << log2)),
        }
    }

    fn atomic(&mut self, ty: Ty, depth: usize) -> String {
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

    fn comparison(&mut self, depth: usize) -> String {
        let ty = self.random.pick(&SCALARS);
        let op = self.random.pick(ty.comparisons());
        format!("({}.{op} {} {})", ty.name(), self.expression(ty, depth), self.expression(ty, depth))
    }

    fn condition(&mut self, depth: usize) -> String {
        if self.random.one_in(3) { self.expression(I32, depth) } else { self.comparison(depth.saturating_sub(1)) }
    }

    /// An address: mostly in memory, often misaligned, often at a place where something ends.
    fn address(&mut self, depth: usize) -> String {
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

    fn offset_and_alignment(&mut self, log2: usize) -> String {
        let offset = match self.random.below(12) {
            _ if self.risk(40) => self.random.pick(&[65535, 65536, 0x7fff_ffff, 0xffff_fff8, 0xffff_ffff]),
            0..=4 => 0,
            5..=10 => self.random.below(40),
            _ => self.random.below(50_000),
        };
        format!("offset={offset} align={}", 1 << self.random.below(log2 + 1))
    }

    fn load(&mut self, ty: Ty, depth: usize) -> String {
        let (op, log2) = self.random.pick(ty.loads());
        let place = self.offset_and_alignment(log2);
        format!("({op} {place} {})", self.address(depth))
    }

    fn store(&mut self, depth: usize) -> String {
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

    /// A block that may be left early, with the value.
    fn block(&mut self, ty: Ty, depth: usize) -> String {
        let (label, name) = (self.label(), ty.name());
        let (early, condition) = (self.expression(ty, depth), self.condition(depth));
        let late = self.expression(ty, depth);
        match self.random.one_in(2) {
            true => format!("(block ${label} (result {name}) (drop (br_if ${label} {early} {condition})) {late})"),
            false => {
                let (other, selector) = (self.label(), self.expression(I32, depth));
                let table = format!(
                    "(br_table ${label} ${other} ${label} ${other} {early} (i32.and {selector} (i32.const 7)))"
                );
                format!("(block ${label} (result {name}) (drop (block ${other} (result {name}) {table})) {late})")
            }
        }
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("b{}", self.labels)
    }

    fn call(&mut self, ty: Ty, depth: usize) -> String {
        let depth = depth.min(3);
        let args = TYPES.map(|ty| self.expression(ty, depth)).join(" ");
        let fitting: Vec<usize> = (0..self.callees.len()).filter(|i| self.callees[*i] == ty).collect();
        if fitting.is_empty() || self.in_loop > 1 {
            return self.leaf(ty);
        }
        if self.random.one_in(2) {
            return format!("(call $f{} {args})", self.random.pick(&fitting));
        }
        let index = match () {
            () if self.risk(12) => self.expression(I32, depth),
            () if self.risk(6) => format!("(i32.and {} (i32.const 7))", self.expression(I32, depth)),
            () => format!("(i32.const {})", self.random.pick(&fitting)),
        };
        format!("(call_indirect $table (type $t{}) {args} {index})", ty.index())
    }

    /// The sizes of things, and their growth.
    fn sizes(&mut self, depth: usize) -> String {
        match self.random.below(5) {
            0 => "(memory.size)".into(),
            1 => format!("(memory.grow (i32.and {} (i32.const 1)))", self.expression(I32, depth)),
            2 => "(table.size $table)".into(),
            3 => format!("(table.grow $table (ref.null func) (i32.and {} (i32.const 1)))", self.expression(I32, depth)),
            _ => format!("(ref.is_null (table.get $table (i32.and {} (i32.const 3))))", self.expression(I32, depth)),
        }
    }

    fn statement(&mut self, depth: usize) -> String {
        if depth == 0 || self.nodes == 0 {
            return format!("(drop {})", self.leaf(I32));
        }
        self.nodes -= 1;
        let inner = depth - 1;
        let ty = self.random.pick(&TYPES);
        match self.random.below(16) {
            0..=4 => self.store(depth + 1),
            5..=6 => format!("(local.set $l{} {})", ty.index(), self.expression(ty, depth + 2)),
            7..=8 => format!("(global.set $g{} {})", ty.index(), self.expression(ty, depth + 2)),
            9 => {
                let (c, a, b) = (self.condition(depth), self.statement(inner), self.statement(inner));
                format!("(if {c} (then {a}) (else {b}))")
            }
            10..=11 => self.repeat(inner),
            12..=13 => self.bulk(inner),
            14 => {
                let label = self.label();
                let (c, s) = (self.condition(depth), self.statement(inner));
                format!("(block ${label} (br_if ${label} {c}) {s})")
            }
            _ if self.random.one_in(4) => {
                let (c, value) = (self.condition(depth), self.expression(self.result, depth));
                format!("(if {c} (then (return {value})))")
            }
            _ => format!("(drop {})", self.expression(ty, depth + 2)),
        }
    }

    /// A loop with a counter of its own.
    fn repeat(&mut self, depth: usize) -> String {
        let (counter, label) = (self.loops, self.label());
        self.loops += 1;
        self.in_loop += 1;
        let body: Vec<String> = (0..1 + self.random.below(3)).map(|_| self.statement(depth)).collect();
        self.in_loop -= 1;
        format!(
            "(local.set $n{counter} (i32.const {})) (loop ${label} {} (br_if ${label} (local.tee $n{counter} (i32.sub (local.get $n{counter}) (i32.const 1)))))",
            1 + self.random.below(9),
            body.join(" "),
        )
    }

    fn bulk(&mut self, depth: usize) -> String {
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
