//! Accesses to guest memory: how they are checked, where the bytes are on the device, and how the bytes move.
//!
//! CLIF has guest addresses only; everything else happens here. How an access is checked depends on the build: see
//! [`exact`] and [`speculative`]. [`address`] computes device addresses, [`cells`] moves the bytes. This folder uses
//! the functions of `print`; `print` knows nothing of this folder.

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

/// The size in bytes of the units in which speculative builds access guest memory where nothing promises alignment.
const CELL: i64 = 4;

/// The printer of a function, and what the function's guest accesses share.
pub(crate) struct Guest<'a> {
    pub(crate) print: Printer<'a>,
    /// The device address of guest byte 0, which need not be in the slot ([`crate::Memory::low`]). Set by the prologue
    /// if the function accesses guest memory.
    memory: Option<Reg>,
    /// Exact builds: the limits that roots are compared with, by the number of bits that the limit is shifted to the
    /// right.
    limits: [Option<Reg>; SHIFTS],
    /// Speculative builds: the memory's length, read at the function's entry and after everything that may change it.
    length: Option<Reg>,
    /// The slow paths that the module has to define for this function.
    pub(crate) slow_paths: SlowPaths,
    /// Whether the function reads the shared copy of the guest's read-only data.
    pub(crate) reads_copy: bool,
    /// Whether the load that is being printed may wait for another thread.
    waits: bool,
    /// Exact builds: what is known about the checks of the accesses that are being printed.
    pub(crate) tested: Tested,
    known: KnownRoots,
}

/// Whether the checks of a run's accesses have been made ([`crate::analysis::runs`]).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Tested {
    /// No: each access has a check of its own.
    #[default]
    No,
    /// Yes, and all of them hold.
    Passed,
    /// Yes, and one of them failed.
    Failed,
}

/// What is known about roots in the block that is being printed.
#[derive(Clone, Debug, Default)]
struct KnownRoots {
    block: Option<Block>,
    /// Registers with the device addresses that roots lead to.
    addresses: SmallVec<[(Value, Reg); 8]>,
    /// Registers with the low 32 bits of roots.
    words: SmallVec<[(Value, Reg); 4]>,
    /// Exact builds: predicates that are true if the check of a root failed.
    failed: SmallVec<[(Value, Reg); 8]>,
    /// Gangs: roots that were checked with a trap, so that they are valid from there on.
    settled: SmallVec<[Value; 8]>,
    /// Speculative builds: accesses whose checks were already printed, before the accesses themselves.
    checked_early: SmallVec<[Inst; 4]>,
}

/// What is known at one place of a block, saved for [`Guest::resume`].
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
            waits: false,
            tested: Tested::No,
            known: KnownRoots::default(),
        }
    }

    /// Prints the code at the function's entry that its guest accesses share.
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

    /// Begins a block, and forgets what was known in the block before.
    pub(crate) fn begin_block(&mut self, block: Block, next: Option<Block>) {
        self.print.block = BlockState { next, ..BlockState::default() };
        self.known = KnownRoots { block: Some(block), ..KnownRoots::default() };
    }

    /// Forgets the registers that hold addresses, roots and predicates: a call would have to save them.
    pub(crate) fn begin_call(&mut self) {
        self.known.addresses.clear();
        self.known.words.clear();
        self.known.failed.clear();
    }

    /// Returns what is known here, for [`Guest::resume`].
    pub(crate) fn state(&self) -> State {
        State(self.print.block.clone(), self.known.clone())
    }

    /// Continues out of line with the knowledge of the place where `state` was taken. No block is printed next.
    pub(crate) fn resume(&mut self, State(block, known): State) {
        self.print.block = BlockState { next: None, ..block };
        self.known = known;
    }

    /// Prints a load or store of guest memory.
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
        self.waits = self.print.analysis.waiting.loads.contains(&inst);
        match checks {
            GuestChecks::Exact(checks) => self.exact_load(checks, inst, read, result, access),
            GuestChecks::Speculative(checks) => self.speculative_load(checks, inst, read, result, access),
        }
    }
}

fn find<T: Copy>(known: &[(Value, T)], value: Value) -> Option<T> {
    known.iter().find(|(v, _)| *v == value).map(|(_, t)| *t)
}
