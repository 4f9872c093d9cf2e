//! Functions that become machine code when they are first called.
//!
//! A large program has ten thousand functions and calls a tenth of them: compiling the others is most of its first run. From [`Options::late_from`] bytes of PTX on, only
//! kernels and what is called at every access ([`is_cold`](super::is_cold)) are compiled at once. Every other function has a *slot* in the module's data, which holds its address, and
//! callers call what the slot says. At first that is a stub ([`stub`]), which has the function compiled ([`Late::make`]) and then does what a caller does. Where data holds a
//! function's address, it changes with the slot. Code is never changed, so nothing is ever writable and executable, and whoever has read an old address goes through the stub
//! once more.
//!
//! Threads that need the same function wait for one of them to compile it; others go on. What was compiled is kept, together with the text ([`Late::grown`]): the next run compiles what
//! it calls beyond that.

use super::object::{Addresses, LateObject, Made, Object, Target, place};
use super::threads::host_function;
use super::{DATA, Native, Options, Scratch, Unit, finished, host::Host, lay_out, link, native};
use crate::cpu::ast;
use crate::cpu::mapping::Mapping;
use crate::cpu::parse::{Text, parse};
use crate::{Error, Result};
use cranelift_codegen::ir::{ExternalName, GlobalValueData, InstBuilder, MemFlagsData, UserExternalName, types};
use cranelift_frontend::FunctionBuilder;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// What takes a function's place until it is compiled.
pub(super) fn stub<'a>(unit: &Unit<'a>, index: u32, scratch: &mut Scratch) -> Result<Native> {
    let function = &unit.module.functions[index as usize];
    let signature = unit.function_signature(function);
    let Scratch { context, builder } = scratch;
    context.clear();
    context.func.signature = signature.clone();
    let mut b = FunctionBuilder::new(&mut context.func, builder);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    b.seal_block(block);
    let late = host_function(&mut b, unit, Host::Late, &[types::I32], None);
    let number = b.ins().iconst(types::I32, i64::from(index));
    b.ins().call(late, &[number]);
    let name = UserExternalName { namespace: DATA, index: unit.slot(index) };
    let name = ExternalName::user(b.func.declare_imported_user_function(name));
    let symbol = GlobalValueData::Symbol { name, offset: 0.into(), colocated: false, tls: false };
    let symbol = b.create_global_value(symbol);
    let slot = b.ins().symbol_value(types::I64, symbol);
    let address = b.ins().load(types::I64, MemFlagsData::trusted(), slot, 0);
    let signature = b.import_signature(signature);
    let arguments = b.block_params(block).to_vec();
    let call = b.ins().call_indirect(signature, address, &arguments);
    let results = b.inst_results(call).to_vec();
    b.ins().return_(&results);
    b.finalize(unit.isa.frontend_config());
    finished(unit, function, context)
}

/// What is left to compile of a loaded module, and what was.
pub(in crate::cpu) struct Late {
    functions: Vec<OnceLock<Result<Compiled, String>>>,
    /// By function, where in the data its address is.
    places: HashMap<u32, Vec<u32>>,
    addresses: Addresses,
    /// Functions that were compiled here.
    new: AtomicU32,
    /// What functions are compiled of; read when the first is. Before `object`, which it borrows from.
    parsed: OnceLock<Result<Parsed, String>>,
    /// As it was loaded, without the functions that were compiled by then.
    object: Object<'static>,
    options: Options,
}

/// A function that can be called.
struct Compiled {
    made: Made<'static>,
    _code: Mapping,
}

/// The text, read.
struct Parsed {
    unit: Unit<'static>,
    bodies: Vec<Text<'static>>,
    /// What `unit` borrows.
    _module: Box<ast::Module<'static>>,
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compiled = self.functions.iter().filter(|f| f.get().is_some()).count();
        write!(f, "Late({compiled} of {})", self.functions.len())
    }
}

impl Late {
    /// `object` is what `late` is of, with bytes of its own; `placed` are the functions that were compiled before.
    pub(super) fn new(
        object: Object<'static>,
        late: &LateObject<'_>,
        placed: Vec<(u32, Mapping)>,
        addresses: Addresses,
        options: Options,
    ) -> Result<Self> {
        let functions: Vec<OnceLock<_>> = late.offsets.iter().map(|_| OnceLock::new()).collect();
        for (made, (function, code)) in late.made.iter().zip(placed) {
            if let Some(cell) = functions.get(function as usize) {
                let _ = cell.set(Ok(Compiled { made: made.owned(), _code: code }));
            }
        }
        let mut places: HashMap<u32, Vec<u32>> = HashMap::new();
        for fixup in &object.data_fixups {
            if let Target::Late(function) = fixup.target {
                places.entry(function).or_default().push(fixup.at);
            }
        }
        let (new, parsed) = (AtomicU32::new(0), OnceLock::new());
        Ok(Self { functions, places, addresses, new, parsed, object, options })
    }

    /// Sees to it that a function is compiled, and that its slot says so.
    pub(super) fn make(&self, function: u32) -> Result<()> {
        let unknown = || Error::Codegen(format!("there is no function {function} to compile"));
        let cell = self.functions.get(function as usize).ok_or_else(unknown)?;
        let made = cell.get_or_init(|| self.compile(function).map_err(|error| error.to_string()));
        made.as_ref().map(|_| ()).map_err(|message| Error::Codegen(message.clone()))
    }

    fn compile(&self, function: u32) -> Result<Compiled> {
        let start = Instant::now();
        let parsed = self.parsed.get_or_init(|| self.parse().map_err(|error| error.to_string()));
        let Parsed { unit, bodies, .. } = parsed.as_ref().map_err(|message| Error::Codegen(message.clone()))?;
        let unknown = || Error::Codegen(format!("there is no function {function} in the PTX"));
        let of = unit.module.functions.get(function as usize).zip(bodies.get(function as usize));
        let (ptx, body) = of.ok_or_else(unknown)?;
        let offsets = self.object.late.as_ref().map_or(&[][..], |late| &late.offsets);
        let (code, fixups) = link::link_one(&native(unit, ptx, body, &mut Scratch::default())?, offsets)?;
        let made = Made { function, code: code.into(), fixups };
        let code = place(&made, &self.addresses)?;
        for &at in self.places.get(&function).map_or(&[][..], |places| places) {
            let place = self.addresses.of(Target::Data(at))? as *mut u64;
            // SAFETY: `fill` has written the same eight bytes, which lie in the module's data; a slot, or an address in a table, is aligned to its size. Compiled code only reads
            // it, and the data outlives this (`Program`).
            unsafe { AtomicU64::from_ptr(place) }.store(code.address(), Ordering::Release);
        }
        self.new.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(name = ptx.name, bytes = made.code.len(), time = ?start.elapsed(), "function compiled");
        Ok(Compiled { made, _code: code })
    }

    fn parse(&self) -> Result<Parsed> {
        let text = self.object.late.as_ref().map_or("", |late| &late.text);
        // SAFETY: `object` owns the text, is never changed, and is dropped after what borrows from it (`parsed` comes first).
        let text: &'static str = unsafe { &*std::ptr::from_ref::<str>(text) };
        let (module, bodies) = parse(text)?;
        let module = Box::new(module);
        // SAFETY: the box stays where it is, in the same struct, for as long as the unit does, and is not changed.
        let borrowed: &'static ast::Module<'static> = unsafe { &*std::ptr::from_ref(&*module) };
        let unit = lay_out(text, borrowed, super::host()?, self.options)?;
        Ok(Parsed { unit, bodies, _module: module })
    }

    /// The module with all that is compiled by now, if that is more than there was when it was loaded.
    pub(super) fn grown(&self) -> Option<Vec<u8>> {
        if self.new.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let compiled = self.functions.iter().filter_map(|cell| cell.get()?.as_ref().ok());
        let made: Vec<&Made<'_>> = compiled.map(|compiled| &compiled.made).collect();
        Some(self.object.to_bytes_with(&made))
    }
}
