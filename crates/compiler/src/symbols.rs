//! Names and source lines for traps.

use crate::compile::demangle;
use gpu_run_wasm::Module;
use std::collections::HashMap;

/// Names and debug information of a module's functions, for trap messages.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    names: HashMap<u32, String>,
    /// DWARF sections, parsed for each trap.
    debug: Vec<(String, Box<[u8]>)>,
    code_start: u64,
}

impl Symbols {
    pub(crate) fn new(module: &Module<'_>) -> Self {
        let names = (0..module.functions.len() as u32).filter_map(|f| Some((f, module.function_name(f)?.to_owned())));
        let debug = module.debug_sections.iter().map(|(name, data)| ((*name).to_owned(), Box::from(*data)));
        Self { names: names.collect(), debug: debug.collect(), code_start: module.code_start as u64 }
    }

    pub(crate) fn name(&self, function: u32) -> Option<String> {
        self.names.get(&function).map(|name| demangle(name))
    }

    /// Returns file and line for an offset in the .wasm file, if the module has debug information.
    pub(crate) fn source(&self, offset: u32) -> Option<(String, u32)> {
        type Reader<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;
        if self.debug.is_empty() {
            return None;
        }
        let section = |id: gimli::SectionId| -> Result<Reader<'_>, gimli::Error> {
            let data = self.debug.iter().find(|(name, _)| name == id.name()).map(|(_, data)| &**data);
            Ok(Reader::new(data.unwrap_or_default(), gimli::LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section).ok()?;
        let context = addr2line::Context::from_dwarf(dwarf).ok()?;
        let address = u64::from(offset).checked_sub(self.code_start)?;
        let location = context.find_location(address).ok()??;
        Some((location.file?.to_owned(), location.line?))
    }
}
