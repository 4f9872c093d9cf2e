//! Statements, loops, blocks and calls.

use super::*;

impl Function<'_> {
    pub(super) fn statement(&mut self, depth: usize) -> String {
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
    pub(super) fn repeat(&mut self, depth: usize) -> String {
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

    /// A block that may be left early, with the value.
    pub(super) fn block(&mut self, ty: Ty, depth: usize) -> String {
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

    pub(super) fn label(&mut self) -> String {
        self.labels += 1;
        format!("b{}", self.labels)
    }

    pub(super) fn call(&mut self, ty: Ty, depth: usize) -> String {
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
}
