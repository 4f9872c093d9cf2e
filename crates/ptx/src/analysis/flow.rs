//! A function's control flow: edges, dominators, loops.

use crate::Function;
use crate::symbols::Symbols;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::Block;
use cranelift_codegen::loop_analysis::{Loop, LoopAnalysis};
use cranelift_entity::SecondaryMap;

pub(crate) struct Flow {
    pub(crate) edges: ControlFlowGraph,
    pub(crate) dominators: DominatorTree,
    pub(crate) loops: LoopAnalysis,
    /// Loops that contain another loop or a call.
    pub(crate) busy: SecondaryMap<Loop, bool>,
}

impl Flow {
    pub(crate) fn find(symbols: &Symbols<'_>, function: &Function) -> Flow {
        let func = &function.clif;
        let edges = ControlFlowGraph::with_function(func);
        let dominators = DominatorTree::with_function(func, &edges);
        let mut loops = LoopAnalysis::new();
        loops.compute(func, &edges, &dominators);
        let mut busy = SecondaryMap::new();
        for outer in loops.loops().filter_map(|of| loops.loop_parent(of)) {
            busy[outer] = true;
        }
        for block in func.layout.blocks() {
            if let Some(of) = loops.innermost_loop(block)
                && !busy[of]
            {
                busy[of] = func.layout.block_insts(block).any(|inst| symbols.calls(function, inst));
            }
        }
        Flow { edges, dominators, loops, busy }
    }

    pub(crate) fn is_in_loop(&self, block: Block) -> bool {
        self.loops.innermost_loop(block).is_some()
    }
}
