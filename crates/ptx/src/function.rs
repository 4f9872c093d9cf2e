//! Prints one function: from CLIF to text.

use crate::analysis::Analysis;
use crate::block::Blocks;
use crate::guest::Guest;
use crate::guest::slow_path::SlowPaths;
use crate::print::Printer;
use crate::print::signature::push_header;
use crate::print::text::{INDENT, push_comment, push_unsigned};
use crate::symbols::Symbols;
use crate::{Error, Function};

/// The text of a function, and the definitions it needs in the module.
#[derive(Debug)]
pub(crate) struct Emitted {
    pub(crate) text: String,
    pub(crate) slow_paths: SlowPaths,
    /// Whether the function reads the shared copy of the guest's read-only data.
    pub(crate) reads_copy: bool,
    /// Pairs of a byte position in `text` and the source offset of the code from there on.
    pub(crate) marks: Vec<(usize, u32)>,
}

/// Prints one function. `record` says whether to fill in [`Emitted::marks`].
pub(crate) fn emit(symbols: &Symbols<'_>, function: &Function, record: bool) -> Result<Emitted, Error> {
    let analysis = Analysis::of(symbols, function); // everything that can be decided before printing
    let printer = Printer::new(symbols, function, &analysis)?; // a register or a constant for every value
    let mut blocks = Blocks::new(Guest::new(printer), record);
    blocks.print()?; // the body, block by block
    let Blocks { guest, marks } = blocks;
    finish(guest, marks.unwrap_or_default())
}

/// Joins the parts of the function: PTX requires register declarations before the body that uses the registers.
fn finish(guest: Guest<'_>, mut marks: Vec<(usize, u32)>) -> Result<Emitted, Error> {
    let Guest { mut print, slow_paths, reads_copy, .. } = guest;
    print.body.push_tail();
    marks.push((print.body.out.len(), 0));
    print.trap_blocks()?;
    let mut text = String::with_capacity(print.body.out.len() + 512);
    push_comment(&mut text, &print.function.comment);
    push_header(&mut text, print.function)?;
    text.push_str("\n{\n");
    for (slot, data) in print.func.sized_stack_slots.iter() {
        text.push_str(INDENT);
        text.push_str(".local .align 16 .b8 own");
        push_unsigned(&mut text, slot.as_u32().into());
        text.push('[');
        push_unsigned(&mut text, data.size.into());
        text.push_str("];\n");
    }
    print.body.regs.declare(&mut text);
    print.prototypes.declare(&mut text, print.function, &print.func.dfg.signatures)?;
    marks.iter_mut().for_each(|(at, _)| *at += text.len());
    text.push_str(&print.body.out);
    text.push_str("}\n");
    Ok(Emitted { text, slow_paths, reads_copy, marks })
}
