//! Functions that are compiled when they are first called.
//!
//! A large program has ten thousand functions and calls a tenth of them: compiling the others would be most of its
//! first run. From [`Options::late_from`] bytes of PTX on, only kernels and slow paths ([`is_cold`](super::is_cold))
//! are compiled at once. Every other function has a *slot* in the module's data, which holds its address, and callers
//! call the address in the slot. At first that is a stub ([`stub`]), which has the function compiled ([`Late::make`])
//! and then calls it through the slot like any caller. Other data that holds the function's address changes with the
//! slot. Code is never changed, so no memory is ever writable and executable, and a caller that has read an old address
//! goes through the stub once more.
//!
//! Threads that need the same function wait until one of them has compiled it; other threads continue. Cores that have
//! nothing else to do compile what will probably be called next (`helpers`). The compiled functions are kept, together
//! with the text ([`Late::grown`]): the next run compiles only what it calls beyond them.

use super::helpers::HelperQueue;
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
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Bytes of PTX from which on only one helper at a time compiles a function ahead.
const ONE_HELPER_FROM: usize = 1 << 20;
/// Bytes of a helper's stack.
const STACK_BYTES: usize = 16 << 20;

/// Makes the stub that stands in for a function until it is compiled.
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

/// Compiles functions as they are called, as long as somebody can call them. When this is dropped, helpers stop on
/// their own: nobody waits for them, and they own a share of the memory they write to.
#[derive(Debug)]
pub(in crate::cpu) struct Called(Arc<Late>);

impl Called {
    /// Ensures that a function is compiled and that its slot holds its address.
    pub(super) fn make(&self, function: u32) -> Result<()> {
        self.0.make(function)?;
        if self.0.ahead.start(|| self.0.in_tables()) {
            self.start_helpers();
        }
        Ok(())
    }

    fn start_helpers(&self) {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        for _ in 1..cores {
            let late = self.0.clone();
            let helper = std::thread::Builder::new().name("gpu-run ahead".into()).stack_size(STACK_BYTES);
            // Without helpers the program only starts more slowly.
            let _ = helper.spawn(move || late.help());
        }
    }

    /// Returns the module with all functions compiled by now, if some were compiled since it was loaded.
    pub(super) fn grown(&self) -> Option<Vec<u8>> {
        self.0.grown()
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        self.0.ahead.end();
    }
}

/// A loaded module's functions that are compiled when they are called: those that were, and what the rest is made from.
struct Late {
    functions: Vec<OnceLock<Result<Compiled, String>>>,
    /// Offsets in the data that hold each function's address.
    places: HashMap<u32, Vec<u32>>,
    addresses: Addresses,
    /// The data that the addresses are written to.
    _data: Arc<Mapping>,
    ahead: HelperQueue,
    /// How many functions were compiled here.
    new: AtomicU32,
    /// The parsed text, made when the first function is compiled. It borrows from `object`, and so stands before it:
    /// fields are dropped in order.
    parsed: OnceLock<Result<Parsed, String>>,
    /// The module as it was loaded, without the functions that were compiled by then.
    object: Object<'static>,
    options: Options,
}

/// A compiled function, in memory.
struct Compiled {
    made: Made<'static>,
    _code: Mapping,
}

/// The parsed text.
struct Parsed {
    unit: Unit<'static>,
    bodies: Vec<Text<'static>>,
    /// `unit` borrows from it.
    _module: Box<ast::Module<'static>>,
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compiled = self.functions.iter().filter(|f| f.get().is_some()).count();
        write!(f, "Late({compiled} of {})", self.functions.len())
    }
}

impl Called {
    /// `object` is the object that `late` belongs to, with bytes of its own; `placed` are the functions that were
    /// compiled in earlier runs.
    pub(super) fn new(
        object: Object<'static>,
        late: &LateObject<'_>,
        placed: Vec<(u32, Mapping)>,
        addresses: Addresses,
        data: Arc<Mapping>,
        options: Options,
    ) -> Self {
        let functions: Vec<OnceLock<_>> = late.offsets.iter().map(|_| OnceLock::new()).collect();
        let ahead = HelperQueue::new(functions.len());
        for (made, (function, code)) in late.made.iter().zip(placed) {
            if let Some(cell) = functions.get(function as usize) {
                let _ = cell.set(Ok(Compiled { made: made.owned(), _code: code }));
                ahead.begin(function);
            }
        }
        let mut places: HashMap<u32, Vec<u32>> = HashMap::new();
        for fixup in &object.data_fixups {
            if let Target::Late(function) = fixup.target {
                places.entry(function).or_default().push(fixup.at);
            }
        }
        let (new, parsed) = (AtomicU32::new(0), OnceLock::new());
        Self(Arc::new(Late { functions, places, addresses, _data: data, ahead, new, parsed, object, options }))
    }
}

impl Late {
    fn make(&self, function: u32) -> Result<()> {
        self.ahead.begin(function);
        let made = self.made(function)?;
        self.ahead.add(self.calls(made), 0);
        Ok(())
    }

    /// Returns the function, compiled here or by the thread that has begun it.
    fn made(&self, function: u32) -> Result<&Made<'static>> {
        let unknown = || Error::Codegen(format!("there is no function {function} to compile"));
        let cell = self.functions.get(function as usize).ok_or_else(unknown)?;
        let made = cell.get_or_init(|| self.compile(function).map_err(|error| error.to_string()));
        made.as_ref().map(|compiled| &compiled.made).map_err(|message| Error::Codegen(message.clone()))
    }

    /// The main loop of a helper. A failure is reported when the function is called.
    fn help(&self) {
        while let Some((function, distance)) = self.ahead.next() {
            let large = self.text_of(function).is_none_or(|body| body.len() >= ONE_HELPER_FROM);
            if large && !self.ahead.begin_large() {
                // Left to the guest's thread that calls it.
                continue;
            }
            if let Ok(made) = self.made(function) {
                self.ahead.add(self.calls(made), distance + 1);
            }
            if large {
                self.ahead.end_large();
            }
        }
    }

    /// The functions that a function calls through their slots, in order.
    fn calls<'m>(&self, made: &'m Made<'_>) -> impl DoubleEndedIterator<Item = u32> + 'm {
        let slots = self.slots();
        let slots = slots..slots + 8 * self.functions.len() as u32;
        made.fixups.iter().filter_map(move |fixup| match fixup.target {
            Target::Data(at) if slots.contains(&at) => Some((at - slots.start) / 8),
            _ => None,
        })
    }

    /// Offset in the data where the slots begin.
    fn slots(&self) -> u32 {
        let parsed = self.parsed.get().and_then(|parsed| parsed.as_ref().ok());
        parsed.map_or(u32::MAX / 2, |parsed| parsed.unit.slot(0))
    }

    fn text_of(&self, function: u32) -> Option<&Text<'static>> {
        self.parsed.get()?.as_ref().ok()?.bodies.get(function as usize)
    }

    /// Functions whose addresses are in the data outside of the slots, in order.
    fn in_tables(&self) -> Vec<u32> {
        let slots = self.slots();
        let fixups = self.object.data_fixups.iter().filter(|fixup| fixup.at < slots);
        fixups
            .filter_map(|fixup| if let Target::Late(function) = fixup.target { Some(function) } else { None })
            .collect()
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
            // SAFETY: `fill` has written the same eight bytes, which lie in the module's data; a slot, or an address in
            // a table, is aligned to its size. Compiled code only reads it, and `_data` keeps the data alive.
            unsafe { AtomicU64::from_ptr(place) }.store(code.address(), Ordering::Release);
        }
        self.new.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(name = ptx.name, bytes = made.code.len(), time = ?start.elapsed(), "function compiled");
        Ok(Compiled { made, _code: code })
    }

    fn parse(&self) -> Result<Parsed> {
        let text = self.object.late.as_ref().map_or("", |late| &late.text);
        // SAFETY: `object` owns the text, is never changed, and is dropped after `parsed`, which borrows from it and
        // comes first.
        let text: &'static str = unsafe { &*std::ptr::from_ref::<str>(text) };
        let (module, bodies) = parse(text)?;
        let module = Box::new(module);
        // SAFETY: the box stays in the same struct as the unit, which borrows from it, and is not changed.
        let borrowed: &'static ast::Module<'static> = unsafe { &*std::ptr::from_ref(&*module) };
        let unit = lay_out(text, borrowed, super::host()?, self.options)?;
        Ok(Parsed { unit, bodies, _module: module })
    }

    /// Returns the module with all functions compiled by now, if some were compiled since it was loaded.
    fn grown(&self) -> Option<Vec<u8>> {
        if self.new.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let compiled = self.functions.iter().filter_map(|cell| cell.get()?.as_ref().ok());
        self.object.with_made(compiled.map(|compiled| &compiled.made)).to_bytes().ok()
    }
}
