//! Modules of our own: deep expressions over every operator, memory accesses of every width at every alignment,
//! control flow, calls and tables. They are made as text, so that a failing one can be read and cut down by hand.
//!
//! wasm-smith spends its operators on whatever fits the stack, most of which is dropped; here every value flows into a result, a
//! global or the memory, and constants are the ones arithmetic goes wrong at.

mod flow;
mod memory;
mod operators;
mod types;

use crate::atomics::{self, Version};
use crate::random::Random;
use std::fmt::Write;
use types::Ty::{self, F32, F64, I32, I64, V128};
use types::{SCALARS, TYPES};

/// Calls in one call from outside, before the module traps.
const FUEL: u32 = 150;
const PARAMS: &str = "(param $p0 i32) (param $p1 i64) (param $p2 f32) (param $p3 f64) (param $p4 v128)";
const LOCALS: &str = "(local $l0 i32) (local $l1 i64) (local $l2 f32) (local $l3 f64) (local $l4 v128)";

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
}
