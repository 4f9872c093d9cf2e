//! The *hot* words of a thread's slot: those that functions use on entry, such as the guest's stack pointer and the address
//! of its memory.
//!
//! The threads of a program synchronise again and again, and each time a GPU empties its processor's cache: the next access
//! to any line takes nine times as long as one to shared memory, which stays. So a thread
//! that starts copies its hot words from its slot to its warp's shared memory, and uses the copy from there on. In the
//! slot, the words keep their first values, except for those that the host reads: when the thread ends, the slot becomes a
//! fresh instance.
//!
//! All lanes have their own copy. The copies of one word lie side by side, so that lanes in step make one access.

use super::Printer;
use super::body::Body;
use super::memory::Address;
use super::register::{Class, Operand, Reg};
use super::step;
use crate::{Error, Kind, Program};
use cranelift_codegen::ir::Inst;
use gpu_run_abi::layout::WORD;
use gpu_run_abi::threads::{HotWord, LANES};

/// Bytes from one word to the next.
const STRIDE: u64 = LANES * WORD;

/// Returns how many bytes of shared memory the words take.
pub(crate) fn bytes(program: &Program) -> u64 {
    STRIDE * program.hot_words().len() as u64
}

/// Returns the address that the lane's copies are counted from.
fn base(body: &mut Body) -> Reg {
    let lane = body.op_to_temp(Class::B32, "mov", ".u32", &[Operand::Name("%laneid")]);
    let words = body.op_to_temp(Class::B64, "mov", ".u64", &[Operand::Name(step::STATE)]);
    body.op_to_temp(Class::B64, "mad.wide", ".u32", &[lane.into(), (WORD as i64).into(), words.into()])
}

/// Returns where the copy of the hot word with this number is, counted from [`base`].
fn place(index: usize) -> i64 {
    (step::HOT_WORDS + index as u64 * STRIDE) as i64
}

/// Returns where the copy of byte `at` of the slot is, counted from [`base`], and the word it belongs to; `None` if the byte is
/// in the slot alone.
fn copy(program: &Program, at: i64) -> Option<(i64, HotWord)> {
    let at = u64::try_from(at).ok()?;
    let (index, word) = program.hot_words().iter().enumerate().find(|(_, word)| word.at == at - at % WORD)?;
    Some((place(index) + (at % WORD) as i64, *word))
}

/// The copy of a hot word.
pub(crate) struct Hot {
    pub(crate) address: Address,
    /// Stores go to the slot, too.
    pub(crate) is_watched: bool,
}

impl Printer<'_> {
    /// Prints the function's first lines: they find the hot words.
    pub(crate) fn find_hot_words(&mut self) {
        if self.program.is_threads() && self.function.kind == Kind::Device {
            self.hot = Some(base(&mut self.body));
        }
    }

    /// Returns the copy of a hot word, if the address is one in the slot.
    pub(crate) fn hot(&self, address: Address) -> Option<Hot> {
        let is_slot = self.instance().is_ok_and(|instance| instance == address.base);
        let base = self.hot.filter(|_| is_slot)?;
        let (offset, word) = copy(self.program, address.offset)?;
        Some(Hot { address: Address { base, offset }, is_watched: word.is_watched })
    }

    /// Loads from the slot, or from the copy there is.
    pub(crate) fn slot_load(&mut self, suffix: &str, result: Reg, address: Address) {
        match self.hot(address) {
            Some(Hot { address, .. }) => self.body.load("ld.shared", suffix, result, address.base, address.offset),
            None => self.body.load("ld.global", suffix, result, address.base, address.offset),
        }
    }
}

/// Stores words of the slot, given with their offsets, to the copies there are.
pub(crate) fn store(body: &mut Body, program: &Program, instance: Reg, words: &[(u64, Reg)]) {
    let copies = base(body);
    for (at, word) in words {
        match copy(program, *at as i64) {
            Some((offset, _)) => body.store("st.shared", ".u64", copies, offset, (*word).into()),
            None => body.store("st.global", ".u64", instance, *at as i64, (*word).into()),
        }
    }
}

/// Prints [`gpu_run_abi::intrinsic::Intrinsic::TakeHotWords`].
pub(crate) fn take(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let [slot] = *p.func.dfg.inst_args(inst) else { return Err(p.unsupported(inst)) };
    let (slot, copies) = (p.address(slot, 0), base(&mut p.body));
    for (index, hot) in p.program.hot_words().iter().enumerate() {
        let word = p.body.temp(Class::B64);
        p.body.load("ld.global", ".u64", word, slot.base, slot.offset + hot.at as i64);
        p.body.store("st.shared", ".u64", copies, place(index), word.into());
    }
    Ok(())
}
