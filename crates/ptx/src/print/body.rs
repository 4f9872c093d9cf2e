//! The text of one function's body while it is being written: lines, registers, labels.
//!
//! This file knows PTX's syntax and nothing of CLIF.

use super::register::{Class, Operand, Reg, Registers};
use super::text::{INDENT, push_address, push_line, push_operand, push_reg, push_unsigned};

/// A branch target. In the text, each kind has its own letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// A CLIF block.
    Block(u32),
    /// A place within a block, or the moves on an edge between two blocks.
    Local(u32),
    /// A trap: the thread stores a record and exits.
    Trap(u32),
}

/// The value that the predicate of [`Body::branch_if`] must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    True,
    False,
}

#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) out: String,
    pub(crate) regs: Registers,
    locals: u32,
    /// Text of rarely taken paths, to be placed behind the last block.
    tail: String,
    /// An empty buffer for text out of line, kept so that its allocation is reused.
    aside: String,
}

/// The inline text that [`Body::begin_out_of_line`] has set aside.
#[must_use]
pub(crate) struct Inline(String);

impl Body {
    /// Prints one instruction: `name suffix operands;`.
    pub(crate) fn op(&mut self, name: &str, suffix: &str, operands: &[Operand]) {
        push_line(&mut self.out, name, suffix, operands);
    }

    /// Prints an instruction whose result goes to a new register, which is returned.
    pub(crate) fn op_to_temp(&mut self, class: Class, name: &str, suffix: &str, operands: &[Operand]) -> Reg {
        let result = self.temp(class);
        self.begin(name, suffix);
        push_reg(&mut self.out, result);
        for &operand in operands {
            self.out.push_str(", ");
            push_operand(&mut self.out, operand);
        }
        self.end();
        result
    }

    /// `name to from result, operand;`
    pub(crate) fn convert(&mut self, name: &str, to: &str, from: &str, result: Reg, operand: Reg) {
        self.out.push_str(INDENT);
        for part in [name, to, from, " "] {
            self.out.push_str(part);
        }
        push_reg(&mut self.out, result);
        self.out.push_str(", ");
        push_reg(&mut self.out, operand);
        self.end();
    }

    /// Returns a register that holds 1 in a way no assembler can see: the number of workgroups of a grid in its second
    /// dimension.
    pub(crate) fn hidden_one(&mut self) -> Reg {
        self.op_to_temp(Class::B32, "mov", ".u32", &[Operand::Name("%nctaid.y")])
    }

    pub(crate) fn temp(&mut self, class: Class) -> Reg {
        self.regs.fresh(class)
    }

    /// Begins a line that [`Body::op`] cannot print: `name suffix `. [`Body::end`] ends it.
    pub(crate) fn begin(&mut self, name: &str, suffix: &str) {
        self.out.push_str(INDENT);
        self.out.push_str(name);
        self.out.push_str(suffix);
        self.out.push(' ');
    }
    pub(crate) fn operand(&mut self, operand: impl Into<Operand>) {
        push_operand(&mut self.out, operand.into());
    }
    pub(crate) fn end(&mut self) {
        self.out.push_str(";\n");
    }

    /// `@predicate store`
    pub(crate) fn store_if(&mut self, predicate: Reg, name: &str, base: Reg, offset: i64, value: Operand) {
        self.guard(predicate, When::True);
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push(' ');
        push_address(&mut self.out, base, offset);
        self.out.push_str(", ");
        push_operand(&mut self.out, value);
        self.end();
    }

    /// Begins a line with `@predicate` or `@!predicate`, which guards the instruction that follows.
    fn guard(&mut self, predicate: Reg, when: When) {
        self.out.push_str(INDENT);
        self.out.push_str(if when == When::True { "@" } else { "@!" });
        push_reg(&mut self.out, predicate);
    }

    /// `@predicate exit;`
    pub(crate) fn exit_if(&mut self, predicate: Reg, when: When) {
        self.guard(predicate, when);
        self.out.push_str(" exit");
        self.end();
    }

    /// `name suffix result, [base+offset];`
    pub(crate) fn load(&mut self, name: &str, suffix: &str, result: Reg, base: Reg, offset: i64) {
        self.begin(name, suffix);
        push_reg(&mut self.out, result);
        self.out.push_str(", ");
        push_address(&mut self.out, base, offset);
        self.end();
    }

    /// `name suffix [base+offset], value;`
    pub(crate) fn store(&mut self, name: &str, suffix: &str, base: Reg, offset: i64, value: Operand) {
        self.begin(name, suffix);
        push_address(&mut self.out, base, offset);
        self.out.push_str(", ");
        push_operand(&mut self.out, value);
        self.end();
    }

    /// `mov.b64 result, {low, high};`
    pub(crate) fn pack(&mut self, result: Reg, low: Operand, high: Operand) {
        self.begin("mov", ".b64");
        push_reg(&mut self.out, result);
        self.out.push_str(", {");
        push_operand(&mut self.out, low);
        self.out.push_str(", ");
        push_operand(&mut self.out, high);
        self.out.push('}');
        self.end();
    }

    /// Returns the low and the high half of a 64-bit value.
    pub(crate) fn unpack(&mut self, value: Operand) -> [Operand; 2] {
        let halves = |bits: u64| [bits as u32, (bits >> 32) as u32].map(|half| i64::from(half as i32).into());
        match value {
            Operand::Int(n) => halves(n as u64),
            Operand::F64(bits) => halves(bits),
            value => {
                let (low, high) = (self.temp(Class::B32), self.temp(Class::B32));
                self.begin("mov", ".b64");
                self.out.push('{');
                push_reg(&mut self.out, low);
                self.out.push_str(", ");
                push_reg(&mut self.out, high);
                self.out.push_str("}, ");
                push_operand(&mut self.out, value);
                self.end();
                [low.into(), high.into()]
            }
        }
    }

    /// From here to [`Body::end_out_of_line`], text goes behind the last block. Such sections may be nested.
    pub(crate) fn begin_out_of_line(&mut self) -> Inline {
        let aside = std::mem::take(&mut self.aside);
        Inline(std::mem::replace(&mut self.out, aside))
    }

    pub(crate) fn end_out_of_line(&mut self, Inline(inline): Inline) {
        self.aside = std::mem::replace(&mut self.out, inline);
        self.tail.push_str(&self.aside);
        self.aside.clear();
    }

    /// Puts the text that was written out of line behind the last block.
    pub(crate) fn push_tail(&mut self) {
        self.out.push_str(&self.tail);
        self.tail.clear();
    }

    /// Returns a new label of the kind [`Label::Local`].
    pub(crate) fn local(&mut self) -> Label {
        self.locals += 1;
        Label::Local(self.locals - 1)
    }

    pub(crate) fn push_label(&mut self, label: Label) {
        let (letter, number) = match label {
            Label::Block(n) => ("$B", n),
            Label::Local(n) => ("$L", n),
            Label::Trap(n) => ("$X", n),
        };
        self.out.push_str(letter);
        push_unsigned(&mut self.out, u64::from(number));
    }

    /// Prints a label on its own line, where branches to it lead.
    pub(crate) fn place(&mut self, label: Label) {
        self.push_label(label);
        self.out.push_str(":\n");
    }

    pub(crate) fn branch(&mut self, label: Label) {
        self.out.push_str(INDENT);
        self.out.push_str("bra ");
        self.push_label(label);
        self.end();
    }

    pub(crate) fn branch_if(&mut self, predicate: Reg, when: When, label: Label) {
        self.guard(predicate, when);
        self.out.push_str(" bra ");
        self.push_label(label);
        self.end();
    }
}
