//! Everything that can be known about a function before a line of it is printed.
//!
//! Every pass here takes CLIF and returns plain data. Nothing in this folder knows of registers, of text or of the
//! printing structs: `print` and `guest` read the results of these passes, never the other way round.

pub(crate) mod access;
pub(crate) mod branch_table;
pub(crate) mod division;
pub(crate) mod exact;
pub(crate) mod flow;
pub(crate) mod legalize;
pub(crate) mod memory_length;
pub(crate) mod moves;
pub(crate) mod overlap;
pub(crate) mod predicates;
pub(crate) mod range;
pub(crate) mod read_only;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod speculative;
pub(crate) mod uses;
pub(crate) mod values;
pub(crate) mod waiting;

use crate::Function;
use crate::symbols::Symbols;
use access::Accesses;
use cranelift_codegen::ir::{self, Block, Opcode, Value};
use cranelift_entity::EntitySet;
use exact::ExactChecks;
use flow::Flow;
use legalize::Forms;
use range::Ranges;
use runs::Part;
use schedule::Schedule;
use speculative::SpeculativeChecks;
use std::collections::{HashMap, HashSet};
use uses::Uses;
use waiting::Waiting;

/// The results of all passes for one function.
pub(crate) struct Analysis {
    /// The function's accesses to guest memory.
    pub(crate) accesses: Accesses,
    /// The checks of those accesses.
    pub(crate) checks: GuestChecks,
    /// The order of the blocks that are not printed in CLIF's order.
    pub(crate) schedules: HashMap<Block, Schedule>,
    /// Exact builds: the parts of the blocks in which accesses share a test.
    pub(crate) runs: HashMap<Block, Vec<Part>>,
    /// Headers of loops that surely end soon.
    pub(crate) short_loops: HashSet<Block>,
    /// Values that live in predicate registers.
    pub(crate) predicates: EntitySet<Value>,
    /// The form in which each instruction is printed.
    pub(crate) forms: Forms,
    pub(crate) uses: Uses,
    /// Programs with threads: what a thread may wait with for another one.
    pub(crate) waiting: Waiting,
}

/// The checks of guest accesses, by the kind of build.
pub(crate) enum GuestChecks {
    Exact(ExactChecks),
    Speculative(SpeculativeChecks),
}

impl Analysis {
    /// Runs all passes on a function.
    pub(crate) fn of(symbols: &Symbols<'_>, function: &Function) -> Analysis {
        let (program, func) = (symbols.program, &function.clif);
        let flow = Flow::find(symbols, function);
        let ranges = Ranges { func, flow: &flow };
        let accesses = Accesses::find(program, func);
        let (checks, schedules, runs) = if program.is_speculative() {
            let checks = SpeculativeChecks::find(program, ranges, &accesses);
            let schedules = schedule::find(program, func, &flow, &accesses, &checks);
            (GuestChecks::Speculative(checks), schedules, HashMap::new())
        } else {
            let checks = ExactChecks::find(program, func, &accesses);
            (GuestChecks::Exact(checks), HashMap::new(), runs::find(symbols, function, &accesses))
        };
        let predicates = predicates::find(func);
        Analysis {
            forms: Forms::find(symbols, function, &predicates),
            uses: Uses::count(func, &accesses),
            predicates,
            short_loops: ranges.short_loops(),
            waiting: match program.is_threads() {
                true => waiting::find(symbols, function, &flow, &accesses),
                false => Waiting::default(),
            },
            accesses,
            checks,
            schedules,
            runs,
        }
    }

    /// Whether the register of an i8 or i16 holds the value zero-extended. Registers of other narrow values have
    /// undefined upper bits; narrow loads extend, and so does the conversion of a predicate to a number.
    pub(crate) fn is_zero_above(&self, func: &ir::Function, value: Value) -> bool {
        let value = func.dfg.resolve_aliases(value);
        let is_load = |inst| func.dfg.insts[inst].opcode() == Opcode::Load;
        self.predicates.contains(value) || func.dfg.value_def(value).inst().is_some_and(is_load)
    }
}
