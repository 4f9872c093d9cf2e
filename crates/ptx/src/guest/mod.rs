//! Access to guest memory: checks, where the bytes are on the device, and how they move.
//!
//! CLIF names the guest's address; everything else happens here. How an access is checked depends on the build: see
//! [`exact`] and [`speculative`]. [`address`] finds the device's address, [`cells`] moves the bytes. This folder writes
//! with what `print` has; `print` knows nothing of it.

mod address;
mod cells;
mod exact;
pub(crate) mod read_only;
pub(crate) mod slow_path;
mod speculative;

use crate::Error;
use crate::analysis::GuestChecks;
use crate::analysis::access::Access;
use crate::analysis::exact::SHIFTS;
use crate::print::memory::{read, written};
use crate::print::register::Reg;
use crate::print::{BlockState, Printer};
use cranelift_codegen::ir::{Block, Inst, Value};
use slow_path::SlowPaths;
use smallvec::SmallVec;

/// Bytes that the accesses of speculative builds go by where nothing promises alignment.
const CELL: i64 = 4;

/// The printer of a function, and what its guest accesses share.
pub(crate) struct Guest<'a> {
    pub(crate) print: Printer<'a>,
    /// Where guest byte 0 is, or would be, in a function that accesses guest memory.
    memory: Option<Reg>,
    /// Exact builds: the limit of roots, by how many bits it is shifted.
    limits: [Option<Reg>; SHIFTS],
    /// Speculative builds: the memory's length. Read at the function's entry and after everything that may change it.
    length: Option<Reg>,
    /// What the module has to define for this function.
    pub(crate) slow_paths: SlowPaths,
    pub(crate) reads_copy: bool,
    known: KnownRoots,
}

/// What is known of roots in the block that is being printed.
#[derive(Clone, Debug, Default)]
struct KnownRoots {
    block: Option<Block>,
    /// Device addresses that were made of roots.
    addresses: SmallVec<[(Value, Reg); 8]>,
    /// The low 32 bits of roots.
    words: SmallVec<[(Value, Reg); 4]>,
    /// Exact builds: the predicates of the roots that were checked.
    failed: SmallVec<[(Value, Reg); 8]>,
    /// Gangs: roots whose failed check has trapped.
    settled: SmallVec<[Value; 8]>,
    /// Speculative builds: accesses whose checks were printed before their turn.
    checked_early: SmallVec<[Inst; 4]>,
}

/// What is known in a block, to come back to.
#[derive(Clone, Debug)]
pub(crate) struct State(BlockState, KnownRoots);

impl<'a> Guest<'a> {
    pub(crate) fn new(print: Printer<'a>) -> Guest<'a> {
        Guest {
            print,
            memory: None,
            limits: [None; SHIFTS],
            length: None,
            slow_paths: SlowPaths::default(),
            reads_copy: false,
            known: KnownRoots::default(),
        }
    }

    /// Writes what the function's accesses share.
    pub(crate) fn prologue(&mut self) -> Result<(), Error> {
        let analysis = self.print.analysis;
        if analysis.accesses.is_empty() {
            return Ok(());
        }
        self.find_memory()?;
        match &analysis.checks {
            GuestChecks::Exact(checks) => self.exact_prologue(checks),
            GuestChecks::Speculative(checks) => self.speculative_prologue(checks),
        }
    }

    /// Begins a block: nothing is kept from the last.
    pub(crate) fn begin_block(&mut self, block: Block, next: Option<Block>) {
        self.print.block = BlockState { next, ..BlockState::default() };
        self.known = KnownRoots { block: Some(block), ..KnownRoots::default() };
    }

    /// A call ends what is kept in registers: it would have to be saved.
    pub(crate) fn begin_call(&mut self) {
        self.known.addresses.clear();
        self.known.words.clear();
        self.known.failed.clear();
    }

    /// What is known here, for [`Guest::resume`].
    pub(crate) fn state(&self) -> State {
        State(self.print.block.clone(), self.known.clone())
    }

    /// Goes on where `state` was taken, out of line: no block follows.
    pub(crate) fn resume(&mut self, State(block, known): State) {
        self.print.block = BlockState { next: None, ..block };
        self.known = known;
    }

    /// A load or a store of guest memory.
    pub(crate) fn access(&mut self, inst: Inst, access: &Access) -> Result<(), Error> {
        let checks = &self.print.analysis.checks;
        if access.stores {
            let (suffix, value) = written(&mut self.print, inst)?;
            return match checks {
                GuestChecks::Exact(checks) => self.exact_store(checks, inst, suffix, value, access),
                GuestChecks::Speculative(checks) => self.speculative_store(checks, inst, suffix, value, access),
            };
        }
        let (read, result) = read(&self.print, inst)?;
        match checks {
            GuestChecks::Exact(checks) => self.exact_load(checks, inst, read, result, access),
            GuestChecks::Speculative(checks) => self.speculative_load(checks, inst, read, result, access),
        }
    }
}

fn find<T: Copy>(known: &[(Value, T)], value: Value) -> Option<T> {
    known.iter().find(|(v, _)| *v == value).map(|(_, t)| *t)
}
