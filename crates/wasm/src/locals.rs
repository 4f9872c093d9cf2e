//! Decides which locals of a function live in its frame.
//!
//! A local is a CLIF value wherever possible. At the head of a loop that changes it, and where branches meet behind a
//! change, a block takes the local as a parameter, and every branch to the block passes it on. V locals that the
//! innermost of D loops changes are V × D parameters, from V + D bytes of wasm. So the parameters are counted first,
//! without making them. If a function would have far more parameters than operators, each local that is passed on much
//! more often than it is accessed lives in the function's frame instead: then the number of parameters is linear in the
//! function's length.

use std::collections::BTreeMap;
use wasmparser::{BrTable, Catch, Operator};

/// Locals with indices below this are in a vector, the others in a map: a function of a few bytes can have 50,000
/// locals.
const DIRECT: u32 = 1024;

/// Values passed to blocks that every function may have, and how many more for each of its operators.
const ANY_PASSED: u64 = 1 << 15;
const PASSED_PER_OPERATOR: u64 = 8;
/// The same for *meetings*, places where branches meet while a local is in use: there, it must be found out for each
/// local whether it changed.
const ANY_MEETINGS: u64 = 1 << 22;
const MEETINGS_PER_OPERATOR: u64 = 64;
/// The same for the nesting depth of loops, summed over all operators.
const ANY_DEPTHS: u64 = 1 << 16;
const DEPTH_OF_OPERATORS: u64 = 32;
/// In a function that exceeds these limits: how much a local may cost per access, and how many accesses each local gets
/// for free.
const PASSED_PER_ACCESS: u64 = 4;
const MEETINGS_PER_ACCESS: u64 = 64;
const FREE_ACCESSES: u64 = 2;

/// The counts while a function's operators are read one by one.
#[derive(Debug)]
pub(crate) struct Locals {
    near: Vec<Local>,
    /// The accessed locals from [`DIRECT`] on.
    far: BTreeMap<u32, Local>,
    params: u32,
    open: Vec<Open>,
    /// For each block, in the order of opening: the number of paths that join where its branches lead; 0 if none join.
    ways: Vec<u32>,
    /// Operators so far.
    now: u32,
    /// Meetings so far.
    meetings: u32,
    /// If a loop is open: the number of blocks open around the outermost loop, and the meetings before that loop.
    outermost: Option<(usize, u32)>,
    /// Meetings up to the end of each outermost loop.
    loop_ends: Vec<u32>,
    /// Values that branches pass to blocks.
    passed: u64,
    /// Number of open loops, and its sum over all operators.
    loops: u32,
    depths: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Local {
    accesses: u32,
    /// The operator that wrote it last, counted from 1; 0 for never.
    written: u32,
    /// Number of meetings before it is first needed.
    first: u32,
    /// Number of meetings before the last access, or the outermost loop of the last access.
    last: Last,
    /// Values that branches pass to blocks for this local.
    passed: u64,
}

#[derive(Clone, Copy, Debug)]
enum Last {
    Meetings(u32),
    Loop(u32),
}

impl Default for Last {
    fn default() -> Self {
        Self::Meetings(0)
    }
}

#[derive(Debug)]
struct Open {
    /// Its index in `ways`.
    index: u32,
    opened: u32,
    is_loop: bool,
    branches: u32,
    /// Once the sums of inner blocks are added as those close: the number of distinct locals written in this block. So a
    /// write adds 1 to the innermost block, and subtracts 1 from the innermost open block that counts the local already.
    written: i64,
    /// In the second pass: the sum of `ways` from the outermost block to this one.
    ways_so_far: u64,
}

impl Locals {
    pub(crate) fn new(params: u32) -> Self {
        let mut this = Self {
            near: Vec::new(),
            far: BTreeMap::new(),
            params,
            open: Vec::new(),
            ways: Vec::new(),
            now: 0,
            meetings: 0,
            outermost: None,
            loop_ends: Vec::new(),
            passed: 0,
            loops: 0,
            depths: 0,
        };
        this.push(false, 0);
        this
    }

    pub(crate) fn in_loop(&self) -> bool {
        self.outermost.is_some()
    }

    /// Returns one more than the highest index of an accessed local.
    pub(crate) fn accessed(&self) -> u32 {
        self.far.last_key_value().map_or(self.near.len() as u32, |(number, _)| number + 1)
    }

    /// Returns whether loops are nested so deep that it takes too long to find out which of them an operator can be
    /// moved out of.
    pub(crate) fn is_deep(&self) -> bool {
        self.depths > ANY_DEPTHS + DEPTH_OF_OPERATORS * u64::from(self.now)
    }

    /// Returns all accessed locals, and some that are not accessed, in order.
    fn all(&self) -> impl Iterator<Item = (u32, &Local)> {
        (0..).zip(&self.near).chain(self.far.iter().map(|(number, local)| (*number, local)))
    }

    /// Counts the next operator.
    pub(crate) fn operator(&mut self, op: &Operator<'_>) {
        self.now += 1;
        self.depths += u64::from(self.loops);
        match op {
            Operator::Block { .. } => self.push(false, 0),
            Operator::Loop { .. } => self.push(true, 0),
            // The branch that skips the body.
            Operator::If { .. } => self.push(false, 1),
            Operator::TryTable { try_table } => {
                // Labels are counted from outside of the block.
                for catch in &try_table.catches {
                    let (Catch::One { label, .. }
                    | Catch::OneRef { label, .. }
                    | Catch::All { label }
                    | Catch::AllRef { label }) = *catch;
                    self.branch(label);
                }
                self.push(false, 0);
            }
            Operator::End => self.close(),
            Operator::Br { relative_depth }
            | Operator::BrIf { relative_depth }
            | Operator::BrOnNull { relative_depth }
            | Operator::BrOnNonNull { relative_depth } => self.branch(*relative_depth),
            Operator::Return => self.branch(self.open.len().saturating_sub(1) as u32),
            Operator::BrTable { targets } => self.branch_table(targets),
            Operator::LocalGet { local_index } => self.access(*local_index, false),
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => self.access(*local_index, true),
            _ => {}
        }
    }

    fn push(&mut self, is_loop: bool, branches: u32) {
        if is_loop && self.outermost.is_none() {
            self.outermost = Some((self.open.len(), self.meetings));
        }
        self.meetings += u32::from(is_loop);
        self.loops += u32::from(is_loop);
        let index = self.ways.len() as u32;
        self.ways.push(0);
        self.open.push(Open { index, opened: self.now, is_loop, branches, written: 0, ways_so_far: 0 });
    }

    fn branch(&mut self, depth: u32) {
        let Some(last) = self.open.len().checked_sub(1 + depth as usize) else { return };
        self.open[last].branches += 1;
    }

    fn branch_table(&mut self, targets: &BrTable<'_>) {
        for depth in targets.targets().chain([Ok(targets.default())]).flatten() {
            self.branch(depth);
        }
    }

    fn close(&mut self) {
        let Some(block) = self.open.pop() else { return };
        self.loops -= u32::from(block.is_loop);
        // With a single path in, nothing meets.
        let ways = if block.branches > 0 { block.branches + 1 } else { 0 };
        self.ways[block.index as usize] = ways;
        self.meetings += u32::from(!block.is_loop && ways > 0);
        self.passed += block.written.unsigned_abs() * u64::from(ways);
        if let Some(outer) = self.open.last_mut() {
            outer.written += block.written;
        }
        if self.outermost.is_some_and(|(depth, _)| depth == self.open.len()) {
            self.outermost = None;
            self.loop_ends.push(self.meetings);
        }
    }

    fn access(&mut self, number: u32, writes: bool) {
        let (loop_number, meetings) = (self.loop_ends.len() as u32, self.meetings);
        let local = local(&mut self.near, &mut self.far, number);
        if local.accesses == 0 && writes && number >= self.params {
            local.first = self.outermost.map_or(meetings, |(_, before)| before);
        }
        local.accesses += 1;
        local.last = match self.outermost {
            Some(_) => Last::Loop(loop_number),
            None => Last::Meetings(meetings),
        };
        if writes {
            let known = already_written_in(&self.open, local.written);
            local.written = self.now;
            if let Some(innermost) = self.open.last_mut() {
                innermost.written += 1;
            }
            if let Some(outer) = known.checked_sub(1) {
                self.open[outer].written -= 1;
            }
        }
    }

    /// Returns at how many meetings it must be found out whether a local changed.
    fn meetings(&self, local: &Local) -> u64 {
        let last = match local.last {
            Last::Meetings(meetings) => meetings,
            Last::Loop(number) => self.loop_ends.get(number as usize).copied().unwrap_or(self.meetings),
        };
        u64::from(last.saturating_sub(local.first))
    }

    /// Returns the locals that live in the frame, in order. `again` yields the operators a second time, if that is
    /// needed.
    pub(crate) fn in_frame<'a>(mut self, again: impl IntoIterator<Item = Operator<'a>>) -> Vec<u32> {
        let operators = u64::from(self.now);
        let meetings: u64 = self.all().map(|(_, local)| self.meetings(local)).sum();
        let many_passed = self.passed > ANY_PASSED + PASSED_PER_OPERATOR * operators;
        let many_meetings = meetings > ANY_MEETINGS + MEETINGS_PER_OPERATOR * operators;
        if many_passed {
            self.count_passed(again);
        }
        let in_frame = |local: &Local| {
            let accesses = u64::from(local.accesses) + FREE_ACCESSES;
            (many_passed && local.passed > PASSED_PER_ACCESS * accesses)
                || (many_meetings && self.meetings(local) > MEETINGS_PER_ACCESS * accesses)
        };
        self.all().filter(|(_, local)| in_frame(local)).map(|(number, _)| number).collect()
    }

    /// Counts the values passed for each local, now that the number of paths to each block is known.
    fn count_passed<'a>(&mut self, operators: impl IntoIterator<Item = Operator<'a>>) {
        let (mut open, mut blocks, mut now): (Vec<Open>, _, u32) = (Vec::new(), 0u32, 0);
        self.near.iter_mut().chain(self.far.values_mut()).for_each(|local| local.written = 0);
        let push = |open: &mut Vec<Open>, ways: &[u32], index: u32, opened: u32| {
            let so_far = open.last().map_or(0, |outer| outer.ways_so_far);
            let ways_so_far = so_far + u64::from(ways[index as usize]);
            open.push(Open { index, opened, is_loop: false, branches: 0, written: 0, ways_so_far });
        };
        push(&mut open, &self.ways, 0, 0);
        for op in operators {
            now += 1;
            match op {
                Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } | Operator::TryTable { .. } => {
                    blocks += 1;
                    push(&mut open, &self.ways, blocks, now);
                }
                Operator::End => {
                    open.pop();
                }
                Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                    let local = local(&mut self.near, &mut self.far, local_index);
                    let known = already_written_in(&open, local.written);
                    local.written = now;
                    let so_far = |depth: usize| open[..depth].last().map_or(0, |block| block.ways_so_far);
                    local.passed += so_far(open.len()) - so_far(known);
                }
                _ => {}
            }
        }
    }
}

fn local<'a>(near: &'a mut Vec<Local>, far: &'a mut BTreeMap<u32, Local>, number: u32) -> &'a mut Local {
    if number >= DIRECT {
        return far.entry(number).or_default();
    }
    let place = number as usize;
    if near.len() <= place {
        near.resize(place + 1, Local::default());
    }
    &mut near[place]
}

/// Returns in how many of the open blocks a local is already written, given when it was last written: those blocks that
/// were open then.
fn already_written_in(open: &[Open], written: u32) -> usize {
    if written == 0 { 0 } else { open.partition_point(|block| block.opened < written) }
}

#[cfg(test)]
#[path = "locals_tests.rs"]
mod tests;
