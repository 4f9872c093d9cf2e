//! Turns CLIF instructions into lines of PTX. Most of what this crate knows about PTX's syntax is in this folder.
//!
//! A CLIF value becomes a virtual register or a constant, an instruction a row of [`table`], a block a label.
//! `analysis` decides which of an opcode's rows an instruction takes, and everything else that can be decided before a
//! line is written. Accesses to guest memory are not printed here: `guest` prints them with the functions of this
//! folder.

pub(crate) mod assign;
pub(crate) mod atomic;
pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod control;
pub(crate) mod division;
pub(crate) mod float;
pub(crate) mod gang;
pub(crate) mod hot;
pub(crate) mod integer;
pub(crate) mod intrinsic;
pub(crate) mod memory;
pub(crate) mod operand;
pub(crate) mod register;
pub(crate) mod row;
pub(crate) mod signature;
pub(crate) mod step;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod trap;
pub(crate) mod vector;
pub(crate) mod wait;

use crate::analysis::Analysis;
use crate::analysis::legalize::Form;
use crate::symbols::Symbols;
use crate::{Error, Function, Kind, Program};
use assign::Operands;
use body::Body;
use control::EdgeBuffers;
use cranelift_codegen::ir::{self, Block, Inst, types};
use register::{Class, Operand, Reg};
use signature::Prototypes;
use trap::Traps;

/// Prints the instructions of one function.
pub(crate) struct Printer<'a> {
    // The function to print and what is known about it. None of this changes.
    pub(crate) program: &'a Program,
    pub(crate) symbols: &'a Symbols<'a>,
    pub(crate) function: &'a Function,
    pub(crate) func: &'a ir::Function,
    pub(crate) analysis: &'a Analysis,
    /// The register or constant of each value.
    pub(crate) operands: Operands,
    /// The text so far.
    pub(crate) body: Body,
    /// Where the thread's hot words are, if it has some.
    pub(crate) hot: Option<Reg>,
    /// The trap blocks to print at the function's end.
    pub(crate) traps: Traps,
    /// The prototypes to declare at the function's start.
    pub(crate) prototypes: Prototypes,
    pub(crate) block: BlockState,
    edges: EdgeBuffers,
}

/// The state of the block that is being printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockState {
    /// The block that is printed after this one.
    pub(crate) next: Option<Block>,
    /// A predicate: results computed in this block are right only if it is true. See [`division`].
    pub(crate) provided: Option<Reg>,
    /// The rest of the block cannot be reached.
    pub(crate) ended: bool,
}

impl<'a> Printer<'a> {
    /// Returns a printer with no text yet. Every value has its operand.
    pub(crate) fn new(
        symbols: &'a Symbols<'a>,
        function: &'a Function,
        analysis: &'a Analysis,
    ) -> Result<Printer<'a>, Error> {
        let mut body = Body::default();
        body.out.reserve(function.clif.dfg.num_insts() * 40);
        let operands = assign::operands(function, analysis, &mut body)?;
        Ok(Printer {
            program: symbols.program,
            symbols,
            function,
            func: &function.clif,
            analysis,
            operands,
            body,
            hot: None,
            traps: Traps::default(),
            prototypes: Prototypes::default(),
            block: BlockState::default(),
            edges: EdgeBuffers::default(),
        })
    }

    /// Returns the form in which an instruction is printed.
    pub(crate) fn form(&self, inst: Inst) -> Form {
        self.analysis.forms.of(inst)
    }

    pub(crate) fn unsupported(&self, inst: Inst) -> Error {
        Error::unsupported(self.function, inst)
    }

    /// Returns the register with the instance pointer: the function's first parameter.
    pub(crate) fn instance(&self) -> Result<Reg, Error> {
        let error = || Error::NoInstance { function: self.function.symbol.clone() };
        match self.func.signature.params.first() {
            Some(param) if param.value_type == types::I64 => {}
            _ => return Err(error()),
        }
        if self.function.kind == Kind::Device {
            return Ok(Reg { class: Class::Argument, index: 0 });
        }
        let entry = self.func.layout.entry_block().ok_or_else(error)?;
        match self.func.dfg.block_params(entry).first().map(|&param| self.value(param)) {
            Some(Operand::Reg(reg)) => Ok(reg),
            _ => Err(error()),
        }
    }

    /// Returns the source offset of an instruction; 0 is "nowhere".
    pub(crate) fn source_offset(&self, inst: Inst) -> u32 {
        let at = self.func.srcloc(inst);
        if at.is_default() { 0 } else { at.bits() }
    }

    /// Loads a kernel's parameters into their registers.
    pub(crate) fn load_kernel_parameters(&mut self, entry: Block) {
        if self.function.kind == Kind::Device {
            return;
        }
        for (i, &param) in self.func.dfg.block_params(entry).iter().enumerate() {
            let ty = self.func.dfg.value_type(param);
            self.body.begin("ld.param", register::unsigned(ty));
            self.body.operand(self.operands.scalars[param]);
            self.body.out.push_str(", [p");
            text::push_unsigned(&mut self.body.out, i as u64);
            self.body.out.push(']');
            self.body.end();
        }
    }
}
