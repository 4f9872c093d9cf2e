//! The call graph: collected while bodies are validated, and used to know which functions may recurse.
//!
//! Only functions that can reach themselves need to check the stop word when they are entered: any other endless run
//! goes through a loop, and loops check it themselves. [`crate::work`] handles code that returns, but late.

use crate::cost::Cost;
use crate::decode::Module;
use crate::error::Error;
use crate::link::Part;
use crate::locals::Locals;
use crate::work::Text;
use wasmparser::{Catch, FuncValidator, FunctionBody, Operator, WasmModuleResources};

/// What one pass over a function's operators finds.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Functions it calls, sorted, without duplicates.
    pub(crate) calls: Vec<u32>,
    /// Types it calls through, sorted, without duplicates.
    pub(crate) indirect: Vec<u32>,
    pub(crate) text: Text,
    pub(crate) cost: Cost,
    /// Functions it takes references to.
    pub(crate) references: Vec<u32>,
    /// Of the functions and types that it calls, those that it tail-calls.
    pub(crate) tails: Vec<u32>,
    pub(crate) tails_indirect: Vec<u32>,
    pub(crate) throws: bool,
    /// Whether it makes references to exceptions.
    pub(crate) keeps_exceptions: bool,
    pub(crate) grows_memories: Vec<u32>,
    pub(crate) grows_tables: bool,
    /// The most bytes it takes at once of the stack that programs built by LLVM have in their memory.
    pub(crate) frame: u32,
    /// One more than the index of the highest local it accesses.
    pub(crate) locals: u32,
    /// Whether its loops are nested so deep that it is not optimised.
    pub(crate) deep: bool,
    /// Locals that live in its frame, sorted.
    pub(crate) frame_locals: Vec<u32>,
}

/// How far the last operators match `global.get 0`, `i32.const`, `i32.sub`, which take bytes of LLVM's stack.
#[derive(Default)]
enum Prologue {
    #[default]
    None,
    Pointer,
    Bytes(u32),
}

impl Prologue {
    /// Advances by an operator; returns the number of bytes if `op` completes the sequence.
    fn operator(&mut self, op: &Operator<'_>) -> Option<u32> {
        let (next, taken) = match (&*self, op) {
            (_, Operator::GlobalGet { global_index: 0 }) => (Self::Pointer, None),
            // A negative size is no frame.
            (Self::Pointer, Operator::I32Const { value }) => (Self::Bytes(u32::try_from(*value).unwrap_or(0)), None),
            (Self::Bytes(bytes), Operator::I32Sub) => (Self::None, Some(*bytes)),
            _ => (Self::None, None),
        };
        *self = next;
        taken
    }
}

impl Survey {
    /// Replaces the module's indices with the program's.
    pub(crate) fn renumber(&mut self, part: &Part) {
        for list in [&mut self.calls, &mut self.references, &mut self.tails] {
            list.iter_mut().for_each(|f| *f = part.functions[*f as usize]);
        }
        for list in [&mut self.indirect, &mut self.tails_indirect] {
            list.iter_mut().for_each(|ty| *ty += part.types);
        }
        self.grows_memories.iter_mut().for_each(|memory| *memory = part.memories[*memory as usize]);
        self.text.renumber(&part.functions, part.types);
    }

    fn operator(&mut self, op: &Operator<'_>) {
        match *op {
            Operator::Call { function_index } => self.calls.push(function_index),
            Operator::CallIndirect { type_index, .. } | Operator::CallRef { type_index } => {
                self.indirect.push(type_index);
            }
            Operator::ReturnCall { function_index } => {
                self.calls.push(function_index);
                self.tails.push(function_index);
            }
            Operator::ReturnCallIndirect { type_index, .. } | Operator::ReturnCallRef { type_index } => {
                self.indirect.push(type_index);
                self.tails_indirect.push(type_index);
            }
            Operator::Throw { .. } | Operator::ThrowRef => self.throws = true,
            Operator::TryTable { ref try_table } => {
                let keeps = |catch: &Catch| matches!(catch, Catch::OneRef { .. } | Catch::AllRef { .. });
                self.keeps_exceptions |= try_table.catches.iter().any(keeps);
            }
            Operator::RefFunc { function_index } => self.references.push(function_index),
            Operator::MemoryGrow { mem } => self.grows_memories.push(mem),
            Operator::TableGrow { .. } => self.grows_tables = true,
            _ => {}
        }
    }
}

/// Validates and surveys a body.
pub(crate) fn survey<T: WasmModuleResources>(
    body: &FunctionBody<'_>,
    checker: &mut FuncValidator<T>,
) -> Result<Survey, Error> {
    let (mut survey, mut prologue) = (Survey::default(), Prologue::default());
    let mut locals = Locals::new(checker.len_locals());
    let mut reader = body.get_binary_reader();
    checker.read_locals(&mut reader)?;
    reader.set_features(*checker.features());
    let mut reader = wasmparser::OperatorsReader::new(reader);
    let again = reader.clone();
    while !reader.eof() {
        let at = reader.original_position();
        let op = reader.read()?;
        survey.cost.operator(&op, checker);
        checker.op(at, &op)?;
        survey.operator(&op);
        locals.operator(&op);
        survey.text.operator(&op, locals.in_loop());
        survey.frame = survey.frame.max(prologue.operator(&op).unwrap_or(0));
    }
    reader.finish()?;
    survey.text.finish();
    survey.cost = survey.cost.with_locals(locals.accessed());
    survey.cost.check(checker.index())?;
    survey.locals = locals.accessed();
    survey.deep = locals.is_deep();
    survey.frame_locals = locals.in_frame(again.into_iter().map_while(Result::ok));
    let Survey { calls, indirect, references, tails, tails_indirect, grows_memories, .. } = &mut survey;
    for list in [calls, indirect, references, tails, tails_indirect, grows_memories] {
        list.sort_unstable();
        list.dedup();
    }
    Ok(survey)
}

/// What a function's callers have to expect.
#[derive(Debug, Default)]
pub(crate) struct Traits {
    /// Functions that may return with a pending exception.
    pub(crate) throws: Vec<bool>,
    /// The same for calls through a type, by the type's number.
    pub(crate) throws_through: Vec<bool>,
    /// Functions that make tail calls to others, see `runtime::tail`.
    pub(crate) tails: Vec<bool>,
    /// Functions that are tail-called through the slot.
    pub(crate) tail_targets: Vec<u32>,
}

/// The call graph. A call through a reference may reach any function of that type, or of a subtype, whose reference is
/// taken: one extra node per type stands for these functions.
pub(crate) struct Graph {
    functions: usize,
    edges: Vec<Vec<u32>>,
}

impl Graph {
    pub(crate) fn new(module: &Module<'_>) -> Self {
        let (functions, imports) = (module.functions.len(), module.imports.len());
        let types = module.supertypes.len();
        let mut edges: Vec<Vec<u32>> = vec![Vec::new(); functions + types];
        for (i, survey) in module.surveys.iter().enumerate() {
            let node = &mut edges[imports + i];
            node.extend(&survey.calls);
            node.extend(survey.indirect.iter().map(|ty| functions as u32 + module.signatures[*ty as usize]));
        }
        for (f, taken) in module.address_taken.iter().enumerate() {
            if *taken {
                edges[functions + module.signature_of(f as u32) as usize].push(f as u32);
            }
        }
        for (ty, of) in module.supertypes.iter().enumerate() {
            if let Some(of) = of {
                edges[functions + *of as usize].push((functions + ty) as u32);
            }
        }
        Self { functions, edges }
    }

    /// Returns for each node the number of the cycle that it is part of, if any.
    pub(crate) fn cycles(&self) -> Vec<Option<u32>> {
        cycles(&self.edges)
    }

    /// Returns the nodes that this one calls directly.
    pub(crate) fn called_by(&self, node: usize) -> &[u32] {
        &self.edges[node]
    }

    /// Returns all nodes, callees before their callers; within a cycle, in any order.
    pub(crate) fn called_first(&self) -> Vec<usize> {
        let (mut seen, mut order, mut work) = (vec![false; self.edges.len()], Vec::new(), Vec::new());
        for root in 0..self.edges.len() {
            if !std::mem::replace(&mut seen[root], true) {
                work.push((root, 0));
            }
            while let Some((node, edge)) = work.pop() {
                let Some(&to) = self.edges[node].get(edge) else {
                    order.push(node);
                    continue;
                };
                work.push((node, edge + 1));
                if !std::mem::replace(&mut seen[to as usize], true) {
                    work.push((to as usize, 0));
                }
            }
        }
        order
    }

    pub(crate) fn traits(&self, module: &Module<'_>) -> Traits {
        let imports = module.imports.len();
        let throwing = (0..module.surveys.len()).filter(|i| module.surveys[*i].throws).map(|i| imports + i);
        let mut throws = self.leading_to(throwing.collect());
        let throws_through = throws.split_off(self.functions);
        let leaves = |(i, survey): (usize, &crate::callgraph::Survey)| {
            let this = (imports + i) as u32;
            !survey.tails_indirect.is_empty() || survey.tails.iter().any(|f| *f != this)
        };
        let mut tails = vec![false; imports];
        tails.extend(module.surveys.iter().enumerate().map(leaves));
        // Functions that make tail calls themselves, and all that may be tail-called through a reference.
        let mut targets: Vec<u32> = module.surveys.iter().flat_map(|survey| survey.tails.iter().copied()).collect();
        targets.retain(|f| tails[*f as usize]);
        let through = module.surveys.iter().flat_map(|survey| &survey.tails_indirect);
        let reached =
            self.reached(through.map(|ty| self.functions + module.signatures[*ty as usize] as usize).collect());
        targets.extend((0..self.functions as u32).filter(|f| reached[*f as usize]));
        targets.sort_unstable();
        targets.dedup();
        Traits { throws, throws_through, tails, tail_targets: targets }
    }

    /// Returns which nodes can reach one of these.
    fn leading_to(&self, work: Vec<usize>) -> Vec<bool> {
        let mut reversed = vec![Vec::new(); self.edges.len()];
        for (from, to) in self.edges.iter().enumerate() {
            to.iter().for_each(|to| reversed[*to as usize].push(from));
        }
        flood(self.edges.len(), work, |node| reversed[node].clone())
    }

    /// Returns which functions these type nodes lead to, through type nodes only.
    fn reached(&self, work: Vec<usize>) -> Vec<bool> {
        flood(self.edges.len(), work, |node| match node < self.functions {
            true => Vec::new(),
            false => self.edges[node].iter().map(|to| *to as usize).collect(),
        })
    }
}

/// Returns which nodes can be reached.
fn flood(nodes: usize, mut work: Vec<usize>, next: impl Fn(usize) -> Vec<usize>) -> Vec<bool> {
    let mut seen = vec![false; nodes];
    while let Some(node) = work.pop() {
        if !std::mem::replace(&mut seen[node], true) {
            work.extend(next(node));
        }
    }
    seen
}

/// Returns for each function the number of the cycle of direct calls that it is part of, if any.
pub(crate) fn cycles_of_names(module: &Module<'_>) -> Vec<Option<u32>> {
    let imports = module.imports.len();
    let mut edges: Vec<Vec<u32>> = vec![Vec::new(); module.functions.len()];
    for (node, survey) in edges[imports..].iter_mut().zip(&module.surveys) {
        node.extend(&survey.calls);
    }
    cycles(&edges)
}

/// Finds strongly connected components with Tarjan's algorithm, without recursion. Returns for each node the number of
/// the cycle it lies on, if any.
fn cycles(edges: &[Vec<u32>]) -> Vec<Option<u32>> {
    const UNSEEN: u32 = u32::MAX;
    let n = edges.len();
    let (mut index, mut low) = (vec![UNSEEN; n], vec![0u32; n]);
    let (mut on_stack, mut calls_itself, mut cycles) = (vec![false; n], vec![false; n], vec![None; n]);
    let (mut stack, mut work, mut next) = (Vec::new(), Vec::new(), 0u32);
    for root in 0..n {
        if index[root] != UNSEEN {
            continue;
        }
        work.push((root, 0usize));
        while let Some((node, edge)) = work.pop() {
            if edge == 0 {
                index[node] = next;
                low[node] = next;
                next += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(&to) = edges[node].get(edge) {
                let to = to as usize;
                work.push((node, edge + 1));
                if index[to] == UNSEEN {
                    work.push((to, 0));
                } else if on_stack[to] {
                    low[node] = low[node].min(index[to]);
                    calls_itself[node] |= to == node;
                }
                continue;
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == index[node] {
                let alone = stack.last() == Some(&node);
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    cycles[member] = (!alone || calls_itself[member]).then_some(node as u32);
                    if member == node {
                        break;
                    }
                }
            }
        }
    }
    cycles
}

#[cfg(test)]
mod tests {
    use super::{Prologue, cycles};
    use wasmparser::Operator::{self, GlobalGet, I32Const, I32Sub, Nop};

    #[test]
    fn a_frame_is_what_is_taken_from_the_first_global_and_never_negative() {
        let frame = |ops: &[Operator<'_>]| {
            let mut prologue = Prologue::default();
            ops.iter().filter_map(|op| prologue.operator(op)).max()
        };
        let pointer = GlobalGet { global_index: 0 };
        let takes = |value| [pointer.clone(), I32Const { value }, I32Sub];
        assert_eq!(frame(&takes(4096)), Some(4096));
        assert_eq!(frame(&[takes(16), takes(48), takes(32)].concat()), Some(48));
        assert_eq!([frame(&takes(-16)), frame(&takes(i32::MIN))], [Some(0); 2]);
        let other = [GlobalGet { global_index: 1 }, I32Const { value: 16 }, I32Sub];
        let apart = [pointer.clone(), Nop, I32Const { value: 16 }, I32Sub];
        assert_eq!([frame(&other), frame(&apart), frame(&[pointer, I32Sub])], [None; 3]);
    }

    #[test]
    fn cycles_and_only_cycles_are_found() {
        // 0 → 1 → 2 → 1, 3 → 3, 4 → 0
        let edges = vec![vec![1], vec![2], vec![1], vec![3], vec![0]];
        assert_eq!(cycles(&edges), [None, Some(1), Some(1), Some(3), None]);
    }

    #[test]
    fn long_chain_does_not_overflow_the_stack() {
        let n = 200_000;
        let edges: Vec<Vec<u32>> = (0..n).map(|i| if i + 1 < n { vec![i + 1] } else { vec![0] }).collect();
        assert!(cycles(&edges).iter().all(|c| *c == Some(0)));
    }
}
