//! The guest's memory: what an access's address is made of, and where that is on the device.
//!
//! CLIF names the guest's address; everything else is decided here. An address is its *root* plus constants, and most roots serve several
//! accesses, so that what is found out about a root holds for all of them. How much is asked is the build's choice: [`crate::guest::exact`] or
//! [`crate::guest::speculative`]; how the bytes move is [`crate::guest::cells`].

pub(crate) mod cells;
pub(crate) mod exact;
pub(crate) mod read_only;
pub(crate) mod slow_path;
pub(crate) mod speculative;

use crate::Checks;
use crate::Error;
use crate::function::Emitter;
use crate::print::gang;
use crate::print::integer::low_word;
use crate::print::memory::Read;
use crate::print::register::{Class, Operand, Reg};
use cranelift_codegen::ir::{Block, Inst, InstructionData, MemFlags, Opcode, Value, ValueDef, types};
use gpu_run_abi::layout::{GUARD, WORD, field};
use smallvec::SmallVec;

/// Bytes that quick checks go by where nothing promises alignment.
pub(crate) const CELL: i64 = 4;

/// Offsets of a GPU's loads and stores have 24 bits.
const FARTHEST: i64 = 1 << 23;

/// What an access's address is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Constant(u32),
    /// An i32, or an i64 that is one zero-extended.
    Value(Value),
}

/// An access, before it is known where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) root: Root,
    /// Added to the root by the guest, in 32 bits.
    pub(crate) folded: u32,
    /// The instruction's own offset.
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    /// Whether it is expected to be aligned.
    pub(crate) expected: bool,
    pub(crate) stores: bool,
    /// Whether the module says that it is.
    pub(crate) promised: bool,
}

impl Access {
    /// From the root to the first byte.
    pub(crate) fn displacement(&self) -> u64 {
        u64::from(self.folded) + u64::from(self.offset)
    }
}

/// What was already made of roots: the address, the low 32 bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots {
    addresses: SmallVec<[(Value, Reg); 8]>,
    words: SmallVec<[(Value, Reg); 4]>,
}

impl Roots {
    pub(crate) fn forget(&mut self) {
        self.addresses.clear();
        self.words.clear();
    }
}

pub(crate) fn find<T: Copy>(known: &[(Value, T)], value: Value) -> Option<T> {
    known.iter().find(|(v, _)| *v == value).map(|(_, t)| *t)
}

impl Emitter<'_> {
    /// Prepares what the function's accesses share.
    pub(crate) fn guest_prologue(&mut self) -> Result<(), Error> {
        match self.symbols.checks() {
            Checks::Exact => self.exact_plan(),
            Checks::Fast => self.fast_plan(),
        }
    }

    /// Where guest byte 0 is, or would be.
    pub(crate) fn find_memory(&mut self) -> Result<(), Error> {
        let (at, layout) = (self.symbols.memory().offset(self.symbols.layout()), self.symbols.layout());
        let instance = self.instance()?;
        if self.symbols.memory().own {
            let [low, high] = [0, WORD / 2].map(|half| {
                let word = self.body.temp(Class::B32);
                let at = layout.offset(field::MEMORY_AT + half) as i64;
                self.body.load("ld.global", ".u32", word, instance, at);
                word
            });
            let memory = self.body.temp(Class::B64);
            self.body.pack(memory, low.into(), high.into());
            self.memory = Some(memory);
            return Ok(());
        }
        if self.symbols.memory().region > 0 {
            self.memory = Some(gang::memory(&mut self.body, instance, self.symbols.memory().region));
            return Ok(());
        }
        let memory = match at > -FARTHEST {
            true => self.body.op_to_temp(Class::B64, "add", ".u64", &[instance.into(), at.into()]),
            // A constant would be added to every address anew, for what an instruction's offset cannot take of it.
            false => {
                let one = self.body.hidden_one();
                let below = self.body.op_to_temp(Class::B64, "mul.wide", ".u32", &[one.into(), (-at).into()]);
                self.body.op_to_temp(Class::B64, "sub", ".u64", &[instance.into(), below.into()])
            }
        };
        self.memory = Some(memory);
        Ok(())
    }

    /// A new block: nothing is kept from the last.
    pub(crate) fn guest_block(&mut self, block: Block) {
        self.guest_call();
        if self.symbols.checks() == Checks::Exact {
            self.exact_block(block);
        }
    }

    /// A call ends what is kept in registers: it would have to be saved.
    pub(crate) fn guest_call(&mut self) {
        self.here.roots.forget();
        self.exact.tests.clear();
    }

    pub(crate) fn guest_load(&mut self, inst: Inst, read: Read, result: Reg, access: &Access) -> Result<(), Error> {
        match self.symbols.checks() {
            Checks::Exact => self.exact_load(inst, read, result, access),
            Checks::Fast => {
                self.fast_load(inst, read, result, access);
                Ok(())
            }
        }
    }

    pub(crate) fn guest_store(
        &mut self,
        inst: Inst,
        suffix: &str,
        value: Operand,
        access: &Access,
    ) -> Result<(), Error> {
        match self.symbols.checks() {
            Checks::Exact => self.exact_store(inst, suffix, value, access),
            Checks::Fast => {
                self.fast_store(inst, suffix, value, access);
                Ok(())
            }
        }
    }

    pub(crate) fn is_guest(&self, flags: MemFlags) -> bool {
        let region = self.func.dfg.mem_flags[flags].alias_region();
        region.is_some() && region == self.guest_region
    }

    /// The access an instruction makes to guest memory, if it does.
    pub(crate) fn guest_access(&self, inst: Inst) -> Option<Access> {
        let (opcode, at, flags, offset) = match self.func.dfg.insts[inst] {
            InstructionData::Load { opcode, arg, flags, offset } => (opcode, arg, flags, offset),
            InstructionData::Store { opcode, args: [_, at], flags, offset } => (opcode, at, flags, offset),
            _ => return None,
        };
        if !self.is_guest(flags) {
            return None;
        }
        let bytes = match opcode {
            Opcode::Uload8 | Opcode::Sload8 | Opcode::Istore8 => 1,
            Opcode::Uload16 | Opcode::Sload16 | Opcode::Istore16 => 2,
            Opcode::Uload32 | Opcode::Sload32 | Opcode::Istore32 => 4,
            Opcode::Store => self.func.dfg.value_type(self.func.dfg.inst_args(inst)[0]).bytes(),
            _ => self.func.dfg.ctrl_typevar(inst).bytes(),
        };
        // An offset is a u32 that the front end keeps below 2^31.
        let offset = i32::from(offset) as u32;
        // A store that is misaligned goes byte by byte, in the cold, whatever was expected; quick checks have no such way.
        let has_cold = self.symbols.checks() == Checks::Exact;
        let promised = self.func.dfg.mem_flags[flags].aligned() || bytes == 1;
        let expected = self.func.dfg.mem_flags[flags].aligned() || (has_cold && opcode.can_store());
        let (root, folded) = self.root(at, u64::from(offset) + u64::from(bytes));
        Some(Access { root, folded, offset, bytes, expected, stores: opcode.can_store(), promised })
    }

    /// Where an address comes from, and the constant between, as long as `reach` bytes from there stay within the guard.
    fn root(&self, at: Value, reach: u64) -> (Root, u32) {
        let dfg = &self.func.dfg;
        let def = |value| match dfg.value_def(value) {
            ValueDef::Result(inst, _) => Some(dfg.insts[inst]),
            _ => None,
        };
        let at = dfg.resolve_aliases(at);
        if let Some(constant) = self.constant(at) {
            return (Root::Constant(constant as u32), 0);
        }
        let mut root = match def(at) {
            Some(InstructionData::Unary { opcode: Opcode::Uextend, arg }) if self.ty(arg) == types::I32 => {
                dfg.resolve_aliases(arg)
            }
            _ => return (Root::Value(at), 0),
        };
        let mut folded = 0u32;
        // A gang's tests are of the address itself: a sum may wrap, and what fails them does not come back.
        let folds = self.symbols.memory().region == 0;
        while let Some(InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] }) = def(root) {
            let split = [(a, self.constant(b)), (b, self.constant(a))];
            let Some((base, by)) = split.into_iter().find_map(|(v, c)| Some((v, c?))) else { break };
            let fits = folds && by >= 0 && u64::from(folded) + by as u64 + reach <= GUARD;
            if !fits {
                break;
            }
            folded += by as u32;
            root = dfg.resolve_aliases(base);
        }
        match self.constant(root) {
            Some(constant) => (Root::Constant((constant as u32).wrapping_add(folded)), 0),
            None => (Root::Value(root), folded),
        }
    }

    /// The value an access needs in a register, besides what it stores.
    pub(crate) fn guest_root(&self, access: &Access) -> Option<Value> {
        match access.root {
            Root::Constant(_) => None,
            Root::Value(value) => Some(value),
        }
    }

    /// The size of one access to the device for a value of so many bytes.
    pub(crate) fn unit(&self, bytes: u32) -> u64 {
        if self.is_flat() { bytes.into() } else { u64::from(bytes).min(self.symbols.layout().cell()) }
    }

    /// Whether the bytes of guest memory lie one after the other.
    pub(crate) fn is_flat(&self) -> bool {
        self.symbols.memory().own || self.symbols.layout().spread() == 1
    }

    /// Bytes on the device from one cell of guest memory to the next.
    pub(crate) fn guest_stride(&self) -> i64 {
        if self.is_flat() { CELL } else { self.symbols.layout().stride() as i64 }
    }

    /// How guest memory is read.
    pub(crate) fn guest_ld(&self) -> &'static str {
        if self.symbols.memory().own { "ld.local" } else { "ld.global" }
    }

    /// How guest memory is written.
    pub(crate) fn guest_st(&self) -> &'static str {
        if self.symbols.memory().own { "st.local" } else { "st.global" }
    }

    /// How many low bits of a value are certainly 0.
    pub(crate) fn trailing_zeros(&self, value: Value, depth: u32) -> u32 {
        let dfg = &self.func.dfg;
        let value = dfg.resolve_aliases(value);
        if let Some(constant) = self.constant(value) {
            return constant.trailing_zeros();
        }
        let ValueDef::Result(inst, _) = dfg.value_def(value) else { return 0 };
        if depth == 0 {
            return 0;
        }
        let of = |v| self.trailing_zeros(v, depth - 1);
        match dfg.insts[inst] {
            InstructionData::Binary { opcode: Opcode::Iadd | Opcode::Isub | Opcode::Bor | Opcode::Bxor, args } => {
                of(args[0]).min(of(args[1]))
            }
            InstructionData::Binary { opcode: Opcode::Band, args } => of(args[0]).max(of(args[1])),
            InstructionData::Binary { opcode: Opcode::Imul, args } => of(args[0]) + of(args[1]),
            InstructionData::Binary { opcode: Opcode::Ishl, args } => match self.constant(args[1]) {
                Some(by @ 0..32) => of(args[0]) + by as u32,
                _ => of(args[0]),
            },
            InstructionData::Ternary { opcode: Opcode::Select, args } => of(args[1]).min(of(args[2])),
            InstructionData::Unary { opcode: Opcode::Uextend, arg } => of(arg),
            _ => 0,
        }
    }

    /// The root in a 32-bit register.
    pub(crate) fn root_word(&mut self, root: Value) -> Reg {
        if self.ty(root) == types::I32 {
            return self.in_register(root);
        }
        if let Some(known) = find(&self.here.roots.words, root) {
            return known;
        }
        let word = low_word(self, root);
        let word = self.load_operand(word, types::I32);
        self.here.roots.words.push((root, word));
        word
    }

    pub(crate) fn memory_register(&mut self) -> Reg {
        // Made by the prologue, which saw every access.
        self.memory.unwrap_or_else(|| self.body.temp(Class::B64))
    }

    /// The memory's address, and an offset that PTX takes.
    pub(crate) fn displaced(&mut self, offset: u64) -> (Reg, i64) {
        let memory = self.memory_register();
        match i32::try_from(offset) {
            Ok(offset) => (memory, offset.into()),
            Err(_) => {
                let offset = Operand::Int(offset as i64);
                (self.body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), offset]), 0)
            }
        }
    }

    /// The address of the cell a guest address is in, and the offset of one that is so many bytes further.
    pub(crate) fn cell_of(&mut self, word: Reg, cells: u64) -> (Reg, i64) {
        let layout = self.symbols.layout();
        let (memory, mask) = (self.memory_register(), -(layout.cell() as i64));
        let first = self.body.op_to_temp(Class::B32, "and", ".b32", &[word.into(), mask.into()]);
        let operands = [first.into(), (layout.spread() as i64).into(), memory.into()];
        (self.body.op_to_temp(Class::B64, "mad.wide", ".u32", &operands), layout.offset(cells) as i64)
    }

    /// The address of a byte in its cell.
    pub(crate) fn byte_in(&mut self, cell: Reg, word: Reg) -> Reg {
        let mask = self.symbols.layout().cell() as i64 - 1;
        let byte = self.body.op_to_temp(Class::B32, "and", ".b32", &[word.into(), mask.into()]);
        let byte = self.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[byte.into()]);
        self.body.op_to_temp(Class::B64, "or", ".b64", &[cell.into(), byte.into()])
    }

    pub(crate) fn cells_address(&mut self, root: Value) -> Reg {
        if let Some(known) = find(&self.here.roots.addresses, root) {
            return known;
        }
        let (word, memory) = (self.root_word(root), self.memory_register());
        let spread = self.symbols.layout().spread() as i64;
        let operands = [word.into(), spread.into(), memory.into()];
        let address = self.body.op_to_temp(Class::B64, "mad.wide", ".u32", &operands);
        self.here.roots.addresses.push((root, address));
        address
    }

    pub(crate) fn linear_address(&mut self, root: Value) -> Reg {
        if let Some(known) = find(&self.here.roots.addresses, root) {
            return known;
        }
        let (word, memory) = (self.root_word(root), self.memory_register());
        let wide = self.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[word.into()]);
        let address = self.body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), wide.into()]);
        self.here.roots.addresses.push((root, address));
        address
    }
}
