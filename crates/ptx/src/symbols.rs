//! Looks up functions by their CLIF names, and finds the functions that kernels reach.
//!
//! CLIF names a function by a namespace and an index. Only functions that kernels reach are printed. A kernel reaches
//! them through calls and function addresses and, if any printed function reads the function table, through all entries
//! of the table.

use crate::{Error, Function, Kind, Program};
use cranelift_codegen::ir::{
    ExternalName, GlobalValueData, Inst, InstructionData, Opcode, UserExternalName, UserFuncName,
};
use gpu_run_abi::intrinsic::{Intrinsic, namespace, symbol};

/// A limit above any module's number of functions: wasm engines stop at a million.
const MAX_INDEX: u32 = 1 << 24;
const ABSENT: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Symbols<'a> {
    pub(crate) program: &'a Program,
    /// Positions in `program.functions` by index in the namespace, or `ABSENT`.
    wasm: Vec<u32>,
    runtime: Vec<u32>,
}

/// The meaning of an external name in CLIF.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name<'a> {
    Function(&'a Function),
    Intrinsic(Intrinsic),
    FunctionTable,
}

/// The parts of a program that are printed.
#[derive(Debug)]
pub(crate) struct Reachable {
    /// Positions in `program.functions`, ascending.
    pub(crate) functions: Vec<usize>,
    /// Whether the function table is printed.
    pub(crate) table: bool,
}

impl<'a> Symbols<'a> {
    pub(crate) fn new(program: &'a Program) -> Result<Self, Error> {
        let mut symbols = Symbols { program, wasm: Vec::new(), runtime: Vec::new() };
        for (position, function) in program.functions.iter().enumerate() {
            let error = || Error::FunctionName { position, name: function.clif.name.to_string() };
            let UserFuncName::User(ref name) = function.clif.name else { return Err(error()) };
            let space = match name.namespace {
                namespace::WASM => &mut symbols.wasm,
                namespace::RUNTIME => &mut symbols.runtime,
                _ => return Err(error()),
            };
            if name.index >= MAX_INDEX {
                return Err(error());
            }
            let index = name.index as usize;
            if space.len() <= index {
                space.resize(index + 1, ABSENT);
            }
            if space[index] != ABSENT {
                return Err(error());
            }
            space[index] = position as u32;
            check_identifier(&function.symbol)?;
        }
        Ok(symbols)
    }

    fn position(&self, name: &UserExternalName) -> Option<usize> {
        let space = match name.namespace {
            namespace::WASM => &self.wasm,
            namespace::RUNTIME => &self.runtime,
            _ => return None,
        };
        space.get(name.index as usize).filter(|&&p| p != ABSENT).map(|&p| p as usize)
    }

    /// Returns the meaning of `name` in `function`.
    pub(crate) fn resolve(&self, function: &Function, name: &ExternalName) -> Result<Name<'a>, Error> {
        let unknown = |name: String| Error::UnknownName { function: function.symbol.clone(), name };
        let ExternalName::User(reference) = *name else {
            return Err(unknown(name.display(Some(&function.clif.params)).to_string()));
        };
        let Some(user) = function.clif.params.user_named_funcs().get(reference) else {
            return Err(unknown(reference.to_string()));
        };
        let found = match (user.namespace, user.index) {
            (namespace::INTRINSIC, index) => Intrinsic::from_index(index).map(Name::Intrinsic),
            (namespace::DATA, symbol::FUNCTION_TABLE) => Some(Name::FunctionTable),
            _ => self.position(user).map(|p| Name::Function(&self.program.functions[p])),
        };
        found.ok_or_else(|| unknown(format!("function {} of namespace {}", user.index, user.namespace)))
    }

    /// Whether an instruction calls a function. Intrinsics are calls in CLIF, too, but are not meant here.
    pub(crate) fn calls(&self, function: &Function, inst: Inst) -> bool {
        let dfg = &function.clif.dfg;
        match dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } => {
                let name = self.resolve(function, &dfg.ext_funcs[func_ref].name);
                matches!(name, Ok(Name::Function(callee)) if callee.kind == Kind::Device)
            }
            ref data => data.opcode().is_call(),
        }
    }

    /// Returns the symbols of the function table's entries; `None` where an entry is absent.
    pub(crate) fn table(&self) -> impl Iterator<Item = Option<&'a str>> {
        self.program.function_table.iter().map(|entry| {
            let name = UserExternalName { namespace: namespace::WASM, index: (*entry)? };
            self.position(&name).map(|p| self.program.functions[p].symbol.as_str())
        })
    }

    pub(crate) fn reachable(&self) -> Result<Reachable, Error> {
        let functions = &self.program.functions;
        let mut live = vec![false; functions.len()];
        let mut table = false;
        let mut work: Vec<usize> = (0..functions.len()).filter(|&i| functions[i].kind == Kind::Kernel).collect();
        work.iter().for_each(|&i| live[i] = true);
        let reach = |work: &mut Vec<usize>, live: &mut [bool], name: &UserExternalName| {
            if let Some(position) = self.position(name)
                && !std::mem::replace(&mut live[position], true)
            {
                work.push(position);
            }
        };
        while let Some(position) = work.pop() {
            let mut reads_table = false;
            each_name(&functions[position], |name| match name.namespace {
                namespace::DATA => reads_table = true,
                _ => reach(&mut work, &mut live, name),
            });
            if reads_table && !table {
                table = true;
                for (entry, &function) in self.program.function_table.iter().enumerate() {
                    let Some(index) = function else { continue };
                    let name = UserExternalName { namespace: namespace::WASM, index };
                    if self.position(&name).is_none() {
                        return Err(Error::TableEntry { entry, index });
                    }
                    reach(&mut work, &mut live, &name);
                }
            }
        }
        Ok(Reachable { functions: (0..functions.len()).filter(|&i| live[i]).collect(), table })
    }
}

/// Calls `with` with every name that the function's instructions use.
fn each_name(function: &Function, mut with: impl FnMut(&UserExternalName)) {
    let func = &function.clif;
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let name = match func.dfg.insts[inst] {
                InstructionData::Call { func_ref, .. } | InstructionData::FuncAddr { func_ref, .. } => {
                    &func.dfg.ext_funcs[func_ref].name
                }
                InstructionData::UnaryGlobalValue { opcode: Opcode::SymbolValue, global_value } => {
                    match &func.global_values[global_value] {
                        GlobalValueData::Symbol { name, .. } => name,
                        _ => continue,
                    }
                }
                _ => continue,
            };
            if let ExternalName::User(reference) = *name
                && let Some(name) = func.params.user_named_funcs().get(reference)
            {
                with(name);
            }
        }
    }
}

fn check_identifier(symbol: &str) -> Result<(), Error> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    if symbol.starts_with(|c: char| c.is_ascii_alphabetic()) && symbol.chars().all(is_word) {
        Ok(())
    } else {
        Err(Error::Symbol { symbol: symbol.to_string() })
    }
}
