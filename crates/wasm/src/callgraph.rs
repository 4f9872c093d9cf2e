//! Who calls whom: found while a body is validated, and used to know which functions may recurse.
//!
//! Only functions that can reach themselves need to look at the stop word when they are entered: any other endless run goes through a loop, and loops look for
//! themselves.

use crate::decode::Module;
use crate::error::Error;
use wasmparser::{FuncValidator, FunctionBody, Operator, WasmModuleResources};

/// What a pass over a function's operators tells.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Functions it calls, sorted, once each.
    pub(crate) calls: Vec<u32>,
    /// Types it calls through, sorted, once each.
    pub(crate) indirect: Vec<u32>,
    /// Functions it takes references to.
    pub(crate) references: Vec<u32>,
    pub(crate) grows_memory: bool,
    pub(crate) grows_tables: bool,
}

/// Validates a body and surveys it.
pub(crate) fn survey<T: WasmModuleResources>(
    body: &FunctionBody<'_>,
    checker: &mut FuncValidator<T>,
) -> Result<Survey, Error> {
    let mut survey = Survey::default();
    let mut reader = body.get_binary_reader();
    checker.read_locals(&mut reader)?;
    reader.set_features(*checker.features());
    let mut reader = wasmparser::OperatorsReader::new(reader);
    while !reader.eof() {
        let at = reader.original_position();
        let op = reader.read()?;
        checker.op(at, &op)?;
        match op {
            Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                survey.calls.push(function_index)
            }
            Operator::CallIndirect { type_index, .. } | Operator::ReturnCallIndirect { type_index, .. } => {
                survey.indirect.push(type_index)
            }
            Operator::RefFunc { function_index } => survey.references.push(function_index),
            Operator::MemoryGrow { .. } => survey.grows_memory = true,
            Operator::TableGrow { .. } => survey.grows_tables = true,
            _ => {}
        }
    }
    reader.finish()?;
    for list in [&mut survey.calls, &mut survey.indirect, &mut survey.references] {
        list.sort_unstable();
        list.dedup();
    }
    Ok(survey)
}

/// For each function of the module, whether it can reach itself. Calls through a table may reach any function of
/// that type whose reference is taken: one extra node for each type stands for them.
pub(crate) fn recursive(module: &Module<'_>, imports: usize) -> Vec<bool> {
    let functions = module.functions.len();
    let mut edges: Vec<Vec<u32>> = vec![Vec::new(); functions + module.types.len()];
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
    cycles(&edges)[..functions].iter().map(Option::is_some).collect()
}

/// For each function of the module, the number of the cycle of calls by name that it is part of, if it is of one.
pub(crate) fn cycles_of_names(module: &Module<'_>, imports: usize) -> Vec<Option<u32>> {
    let mut edges: Vec<Vec<u32>> = vec![Vec::new(); module.functions.len()];
    for (node, survey) in edges[imports..].iter_mut().zip(&module.surveys) {
        node.extend(&survey.calls);
    }
    cycles(&edges)
}

/// Tarjan's strongly connected components, without recursion: which nodes lie on a cycle, and which on the same.
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
    use super::cycles;

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
