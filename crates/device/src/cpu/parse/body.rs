//! Parses a function's statements.

use super::cursor::Cursor;
use super::mnemonic;
use super::names::{Map, Registers};
use super::{prototype, register_type};
use crate::Result;
use crate::cpu::ast::{
    Action, Body, Call, CallResult, Callee, Function, Guard, Label, LabelUse, Opcode, Operand, Register, Returns,
    Special, Statement, Type,
};

/// Parses the text between a function's braces.
pub(super) fn parse<'a>(function: &Function<'a>, text: Cursor<'a>) -> Result<Body<'a>> {
    let mut registers = Registers::default();
    let mut body = Body::default();
    let lines = text.rest().len() / 32; // an estimate
    body.statements.reserve(lines);
    body.operands.reserve(lines * 2);
    if !function.entry {
        let result = match function.signature.result {
            Returns::Register(ty) => Some((function.result_name, ty)),
            _ => None,
        };
        let parameters = function.parameter_names.iter().copied().zip(function.signature.parameters.iter().copied());
        for (name, ty) in parameters.chain(result) {
            if registers.declare(&mut body.registers, name, ty).is_none() {
                return Err(text.error(format!("`{name}` is declared twice")));
            }
        }
    }
    let mut parser = Parser {
        text,
        body,
        registers,
        labels: Map::default(),
        tables: Map::default(),
        prototypes: Map::default(),
        opcodes: vec![("", Opcode::Trap); OPCODES],
        depth: 0,
    };
    parser.statements()?;
    Ok(parser.body)
}

/// Entries of the table that remembers decoded mnemonics; a function uses a few dozen mnemonics.
const OPCODES: usize = 64;

struct Parser<'a> {
    text: Cursor<'a>,
    body: Body<'a>,
    registers: Registers<'a>,
    labels: Map<'a, Label>,
    tables: Map<'a, u32>,
    prototypes: Map<'a, u32>,
    opcodes: Vec<(&'a str, Opcode)>,
    /// Depth of braces within the body.
    depth: u32,
}

impl<'a> Parser<'a> {
    fn statements(&mut self) -> Result<()> {
        while !self.text.at_end() {
            self.statement()?;
        }
        if self.depth != 0 {
            return Err(self.text.error("a `{` is not closed"));
        }
        match self.body.labels.iter().find(|l| !l.defined) {
            None => Ok(()),
            Some(label) => Err(self.text.error(format!(
                "the label `{}`, used on line {}, is not in this function",
                label.name, label.first_use
            ))),
        }
    }

    fn statement(&mut self) -> Result<()> {
        match self.text.peek() {
            b'@' => {
                let guard = self.guard()?;
                self.instruction(Some(guard))
            }
            b'.' => self.directive(),
            b'{' => {
                self.text.expect(b'{')?;
                self.depth += 1;
                self.push(None, Action::Open);
                Ok(())
            }
            b'}' if self.depth > 0 => {
                self.text.expect(b'}')?;
                self.depth -= 1;
                self.push(None, Action::Close);
                Ok(())
            }
            _ => self.instruction(None),
        }
    }

    fn push(&mut self, guard: Option<Guard>, action: Action<'a>) {
        self.body.statements.push(Statement { line: self.text.line(), guard, action });
    }

    fn guard(&mut self) -> Result<Guard> {
        self.text.expect(b'@')?;
        let negated = self.text.accept(b'!');
        Ok(Guard { predicate: self.register()?, negated })
    }

    /// Parses an instruction or a label.
    fn instruction(&mut self, guard: Option<Guard>) -> Result<()> {
        let word = self.text.name()?;
        if guard.is_none() && self.text.accept(b':') {
            return self.label(word);
        }
        let line = self.text.line();
        let opcode = self.decode(word)?;
        let action = match opcode {
            Opcode::Branch => {
                let name = self.text.name()?;
                Action::Branch(self.label_used(name))
            }
            Opcode::BranchTable => self.branch_table()?,
            Opcode::Call => self.call()?,
            Opcode::Mov(Type::B64) => self.halves(word)?,
            _ => self.operands(word, opcode)?,
        };
        self.text.expect(b';')?;
        self.body.statements.push(Statement { line, guard, action });
        Ok(())
    }

    fn decode(&mut self, word: &'a str) -> Result<Opcode> {
        let slot = word.bytes().fold(word.len(), |h, b| h.wrapping_mul(31) ^ b as usize) % OPCODES;
        let (known, opcode) = self.opcodes[slot];
        if known == word {
            return Ok(opcode);
        }
        let Some(opcode) = mnemonic::decode(word) else {
            return Err(self.text.error(format!("the instruction `{word}` is not known")));
        };
        self.opcodes[slot] = (word, opcode);
        Ok(opcode)
    }

    /// Parses the operands of `mov.b64`, where either operand may be two halves in braces.
    fn halves(&mut self, word: &str) -> Result<Action<'a>> {
        let first = self.body.operands.len();
        let mut opcode = Opcode::Mov(Type::B64);
        for (place, braces) in [Opcode::Unpack, Opcode::Pack].into_iter().enumerate() {
            if place > 0 {
                self.text.expect(b',')?;
            }
            if opcode == Opcode::Mov(Type::B64) && self.text.accept(b'{') {
                opcode = braces;
                for end in [b',', b'}'] {
                    let half = self.operand()?;
                    self.body.operands.push(half);
                    self.text.expect(end)?;
                }
            } else {
                let operand = self.operand()?;
                self.body.operands.push(operand);
            }
        }
        self.counted(word, opcode, first)
    }

    fn operands(&mut self, word: &str, opcode: Opcode) -> Result<Action<'a>> {
        let first = self.body.operands.len();
        let is_pair = matches!(opcode, Opcode::LoadPair | Opcode::StorePair);
        while self.text.peek() != b';' {
            let braced = is_pair && self.text.accept(b'{');
            let operand = self.operand()?;
            self.body.operands.push(operand);
            if braced {
                self.text.expect(b',')?;
                let second = self.operand()?;
                self.body.operands.push(second);
                self.text.expect(b'}')?;
            }
            let separated = self.text.accept(b',') || (matches!(opcode, Opcode::Shuffle(_)) && self.text.accept(b'|'));
            if !separated {
                break;
            }
        }
        self.counted(word, opcode, first)
    }

    /// Returns the instruction whose operands are those from `first` on, if it takes that many.
    fn counted(&self, word: &str, opcode: Opcode, first: usize) -> Result<Action<'a>> {
        let count = self.body.operands.len() - first;
        let wanted = mnemonic::operands(opcode);
        if !wanted.contains(&count) {
            let wanted = *wanted.start();
            return Err(self.text.error(format!("`{word}` takes {wanted} operands, not {count}")));
        }
        Ok(Action::Do { opcode, first: first as u32, count: count as u8 })
    }

    #[inline]
    fn operand(&mut self) -> Result<Operand<'a>> {
        Ok(match self.text.peek() {
            b'%' => {
                let word = self.text.word();
                match self.registers.find(word) {
                    Some(register) => Operand::Register(register),
                    None => match special(word) {
                        Some(special) => Operand::Special(special),
                        None => return Err(self.text.error(format!("the register `{word}` is not declared"))),
                    },
                }
            }
            b'0'..=b'9' | b'-' => self.literal()?,
            b'[' => self.address()?,
            b'!' => {
                self.text.expect(b'!')?;
                Operand::Not(self.register()?)
            }
            _ => Operand::Symbol(self.text.name()?),
        })
    }

    /// Parses an integer, or a float's bits: `0f3F800000`, `0d3FF0000000000000`.
    fn literal(&mut self) -> Result<Operand<'a>> {
        let rest = self.text.rest();
        let digits = match rest {
            [b'0', b'f' | b'F', ..] => 8,
            [b'0', b'd' | b'D', ..] => 16,
            _ => return Ok(Operand::Int(self.text.integer()?)),
        };
        let word = self.text.word();
        match u64::from_str_radix(&word[2..], 16) {
            Ok(bits) if word.len() == 2 + digits && digits == 8 => Ok(Operand::F32(bits as u32)),
            Ok(bits) if word.len() == 2 + digits => Ok(Operand::F64(bits)),
            _ => Err(self.text.error(format!("`{word}` is not a float's {digits} hexadecimal digits"))),
        }
    }

    fn address(&mut self) -> Result<Operand<'a>> {
        self.text.expect(b'[')?;
        let word = self.text.name()?;
        let offset = match self.text.peek() {
            b'+' => {
                self.text.expect(b'+')?;
                self.text.integer()?
            }
            b'-' => self.text.integer()?,
            _ => 0,
        };
        self.text.expect(b']')?;
        let Ok(offset) = i32::try_from(offset) else {
            return Err(self.text.error(format!("the offset {offset} is beyond 32 bits")));
        };
        Ok(match self.registers.find(word) {
            Some(register) => Operand::Address(register, offset),
            None => Operand::SymbolAddress(word, offset),
        })
    }

    fn register(&mut self) -> Result<Register> {
        let word = self.text.name()?;
        match self.registers.find(word) {
            Some(register) => Ok(register),
            None => Err(self.text.error(format!("the register `{word}` is not declared"))),
        }
    }

    fn label_number(&mut self, name: &'a str) -> Label {
        let next = Label(self.body.labels.len() as u32);
        let label = *self.labels.entry(name).or_insert(next);
        if label == next {
            self.body.labels.push(LabelUse { name, uses: 0, first_use: self.text.line(), defined: false });
        }
        label
    }

    fn label_used(&mut self, name: &'a str) -> Label {
        let label = self.label_number(name);
        self.body.labels[label.0 as usize].uses += 1;
        label
    }

    /// Parses what follows `name:`. A directive belongs to the name; otherwise the name is a label to jump to.
    fn label(&mut self, name: &'a str) -> Result<()> {
        if self.text.peek() == b'.' {
            let before = self.text.clone();
            match self.text.word() {
                ".branchtargets" => return self.branch_targets(name),
                ".callprototype" => {
                    let signature = prototype(&mut self.text)?;
                    self.text.expect(b';')?;
                    self.prototypes.insert(name, self.body.prototypes.len() as u32);
                    self.body.prototypes.push(signature);
                    return Ok(());
                }
                _ => self.text = before,
            }
        }
        let label = self.label_number(name);
        let entry = &mut self.body.labels[label.0 as usize];
        if entry.defined {
            return Err(self.text.error(format!("the label `{name}` is defined twice")));
        }
        entry.defined = true;
        self.push(None, Action::Label(label));
        Ok(())
    }

    fn branch_targets(&mut self, name: &'a str) -> Result<()> {
        let mut targets = Vec::new();
        loop {
            let target = self.text.name()?;
            targets.push(self.label_number(target));
            if !self.text.accept(b',') {
                break;
            }
        }
        self.text.expect(b';')?;
        self.tables.insert(name, self.body.tables.len() as u32);
        self.body.tables.push(targets);
        Ok(())
    }

    fn branch_table(&mut self) -> Result<Action<'a>> {
        let index = self.register()?;
        self.text.expect(b',')?;
        let name = self.text.name()?;
        let Some(&table) = self.tables.get(name) else {
            return Err(self.text.error(format!("no `.branchtargets` named `{name}` before this line")));
        };
        for target in &self.body.tables[table as usize] {
            self.body.labels[target.0 as usize].uses += 1;
        }
        Ok(Action::BranchTable { index, table })
    }

    /// Parses `(result), callee, (arguments), prototype`; result, arguments and prototype are optional.
    fn call(&mut self) -> Result<Action<'a>> {
        let mut result = CallResult::None;
        if self.text.accept(b'(') {
            let name = self.text.name()?;
            result = match self.registers.find(name) {
                Some(register) => CallResult::Register(register),
                None => CallResult::Param(name),
            };
            self.text.expect(b')')?;
            self.text.expect(b',')?;
        }
        let callee = self.text.name()?;
        let first = self.body.operands.len() as u32;
        let mut proto = None;
        if self.text.accept(b',') {
            self.arguments()?;
            if self.text.accept(b',') {
                proto = Some(self.text.name()?);
            }
        }
        let callee = match proto {
            None => Callee::Direct(callee),
            Some(proto) => {
                let Some(address) = self.registers.find(callee) else {
                    return Err(self.text.error(format!("`{callee}` is not a register to call through")));
                };
                let Some(&number) = self.prototypes.get(proto) else {
                    return Err(self.text.error(format!("no `.callprototype` named `{proto}` before this line")));
                };
                Callee::Indirect(address, number)
            }
        };
        let arguments = first..self.body.operands.len() as u32;
        self.body.calls.push(Call { result, callee, arguments });
        Ok(Action::Call(self.body.calls.len() as u32 - 1))
    }

    fn arguments(&mut self) -> Result<()> {
        self.text.expect(b'(')?;
        while self.text.peek() != b')' {
            let operand = self.operand()?;
            self.body.operands.push(operand);
            if !self.text.accept(b',') {
                break;
            }
        }
        self.text.expect(b')')
    }

    /// Parses `.reg`, `.local`, and a call's `.param`.
    fn directive(&mut self) -> Result<()> {
        match self.text.word() {
            ".reg" => self.declare_registers(),
            ".param" => {
                let (name, bytes) = super::cells(&mut self.text)?;
                self.text.expect(b';')?;
                if self.depth == 0 {
                    return Err(self.text.error("a `.param` must be inside the braces around its call"));
                }
                self.push(None, Action::Param { name, bytes });
                Ok(())
            }
            ".local" => {
                let array = super::local(&mut self.text)?;
                self.text.expect(b';')?;
                if self.body.locals.iter().any(|known| known.name == array.name) {
                    return Err(self.text.error(format!("`{}` is declared twice", array.name)));
                }
                self.body.locals.push(array);
                Ok(())
            }
            other => Err(self.text.error(format!("the directive `{other}` is not known here"))),
        }
    }

    fn declare_registers(&mut self) -> Result<()> {
        let ty = register_type(&mut self.text, true)?;
        loop {
            let name = self.text.name()?;
            let declared = if self.text.accept(b'<') {
                let count = self.text.small()?;
                self.text.expect(b'>')?;
                self.registers.declare_family(&mut self.body.registers, name, count, ty)
            } else {
                self.registers.declare(&mut self.body.registers, name, ty)
            };
            if declared.is_none() {
                return Err(self.text.error(format!("`{name}` is declared twice, or declares too many registers")));
            }
            if !self.text.accept(b',') {
                return self.text.expect(b';');
            }
        }
    }
}

fn special(name: &str) -> Option<Special> {
    Some(match name {
        "%tid.x" => Special::Tid,
        "%ntid.x" => Special::Ntid,
        "%ctaid.x" => Special::Ctaid,
        "%nctaid.x" => Special::Nctaid,
        "%tid.y" | "%tid.z" | "%ctaid.y" | "%ctaid.z" => Special::Zero,
        "%ntid.y" | "%ntid.z" | "%nctaid.y" | "%nctaid.z" => Special::One,
        "%laneid" => Special::Lane,
        "%warpid" => Special::Warp,
        // A kernel cannot tell cores apart here, so each workgroup counts as on a multiprocessor of its own.
        "%smid" => Special::Ctaid,
        "%lanemask_lt" => Special::LanesBelow,
        "%clock64" => Special::Clock,
        "%globaltimer" => Special::GlobalTimer,
        _ => return None,
    })
}
