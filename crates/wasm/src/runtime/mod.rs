//! Device code that no module contains: the helpers behind bulk operations and the bus, the stubs of imported
//! functions, and the kernels that start instances. It is written in CLIF, through the same [`Code`] as everything
//! else.

mod answers;
mod bulk;
mod bus;
mod embedder;
mod exception;
mod gang;
mod kernel;
mod setup;
mod side;
mod spawn;
mod stub;
mod tail;
mod threads;
mod wait;

pub use gang::GANG;
pub use kernel::{ENDINGS, FRESH, KERNEL, START};
pub use threads::THREADS;

use crate::code::{Code, signature};
use crate::provided::Imported;
use crate::translate::{Env, Function, FunctionKind, clif_signature, device};
use cranelift_codegen::ir::{self, Type, UserExternalName, UserFuncName, Value, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use gpu_run_abi::TrapRecord;
use gpu_run_abi::intrinsic::namespace;

macro_rules! helpers {
    ($($(#[$doc:meta])* $name:ident ($($param:ident),*) -> ($($result:ident),*) = $build:path;)*) => {
        /// Functions that generated code calls. Their first parameter, the instance pointer, is not listed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub(crate) enum Helper { $($(#[$doc])* $name),* }

        impl Helper {
            const ALL: &[Helper] = &[$(Helper::$name),*];
            fn signature(self) -> (&'static [Type], &'static [Type]) {
                match self { $(Helper::$name => (&[types::I64, $(types::$param),*], &[$(types::$result),*])),* }
            }
            fn build(self, code: &mut Code<'_>, env: &Env<'_>) {
                match self { $(Helper::$name => $build(code, env)),* }
            }
        }
    };
}

helpers! {
    /// Copies `length` bytes of guest memory from `from` to `to`, as memmove does: (to, from, length). Bounds were checked.
    GuestCopy(I32, I32, I32) -> () = bulk::guest_copy;
    /// Sets `length` bytes of guest memory: (to, byte, length). Bounds were checked.
    GuestFill(I32, I32, I32) -> () = bulk::guest_fill;
    /// Copies bytes from a device address to guest memory: (to, from, length). Bounds were checked.
    GuestWrite(I32, I64, I32) -> () = bulk::guest_write;
    /// Copies bytes of guest memory to a device address: (to, from, length). Bounds were checked.
    GuestRead(I64, I32, I32) -> () = bulk::guest_read;
    /// Like `GuestCopy`, `GuestFill` and `GuestWrite`, for any memory: the last parameter is the memory's device
    /// address. A copy has two such parameters: (to, from, length, destination's memory, source's memory).
    CopyIn(I32, I32, I32, I64, I64) -> () = side::copy;
    FillIn(I32, I32, I32, I64) -> () = side::fill;
    WriteIn(I32, I64, I32, I64) -> () = side::write;
    /// Loads a value that may be misaligned: (memory, address, bytes) -> value, zero-extended. Bounds were checked.
    LoadIn(I64, I32, I32) -> (I64) = side::load;
    /// Stores a value that may be misaligned: (memory, address, bytes, value). Bounds were checked.
    StoreIn(I64, I32, I32, I64) -> () = side::store;
    /// Copies words within a slot: (to, from, count), with device addresses.
    WordsCopy(I64, I64, I32) -> () = bulk::words_copy;
    /// Fills words of a slot: (to, value, count).
    WordsFill(I64, I64, I32) -> () = bulk::words_fill;
    /// Copies contiguous words to words of a slot: (to, from, count).
    WordsInit(I64, I64, I32) -> () = bulk::words_init;
    /// Makes the tail calls that the slot asks for, one after the other.
    TailCalls() -> () = tail::tail_calls;
    /// Gives the pending exception a number, and returns it.
    KeepException() -> (I64) = exception::keep;
    /// Makes the exception with this number the pending one.
    TakeException(I64) -> () = exception::take;
    /// Makes the slot a fresh instance: (launch, index, where guest byte 0 is in the thread's local memory, if the
    /// guest's memory is there).
    SetUp(I64, I32, I64) -> () = setup::set_up;
    /// Returns 64 random bits.
    RandomWord() -> (I64) = answers::random_word;
    /// Sends a packet and waits for the reply: (op, two arguments) -> errno.
    BusPost(I32, I64, I64) -> (I32) = bus::post;
    /// Appends guest bytes to the call's input, at most `limit`: (from, length, limit) -> the remaining limit.
    BusSend(I32, I32, I32) -> (I32) = bus::send;
    /// Copies up to `length` bytes of the reply's output to guest memory: (to, length).
    BusReceive(I32, I32) -> () = bus::receive;
    /// Returns the sum of the lengths of io-vectors, at most 2^32 - 1: (iovs, count) -> bytes.
    IoTotal(I32, I32) -> (I32) = bus::io_total;
    /// Sends the bytes that io-vectors point at, up to a limit: (iovs, count, limit).
    IoSend(I32, I32, I32) -> () = bus::io_send;
    /// Fills io-vectors from the reply's output: (iovs, count).
    IoReceive(I32, I32) -> () = bus::io_receive;
    /// Sleeps until the thread is notified or the time runs out: (address, nanoseconds) -> 0 or 2.
    Wait(I32, I64) -> (I32) = wait::wait;
    /// Wakes waiting threads: (address, how many at most) -> how many were woken.
    Notify(I32, I32) -> (I32) = wait::notify;
    /// The same for threads: waits if memory holds the expected value: (address, expected, its bytes, nanoseconds, where
    /// in the module) -> 0, 1 or 2.
    WaitShared(I32, I64, I32, I64, I32) -> (I32) = wait::wait_shared;
    /// Grows the memory that threads share: (bytes) -> its length before, or -1.
    GrowShared(I64) -> (I64) = threads::grow;
}

/// Index in the runtime's namespace of the function that calls the entry that the host selected.
const ENTRY: u32 = Helper::ALL.len() as u32;
/// Indices of the kernels. A gang has one kernel, at the first of these.
const BATCH: u32 = ENTRY + 1;
const COLLECT: u32 = BATCH + 1;
/// Index of the body of wasm function 0, for functions that make tail calls.
const BODIES: u32 = COLLECT + 1;

/// Returns the name of the body of a wasm function that makes tail calls: the function's own name is that of its
/// stand-in.
pub(crate) fn body_name(function: u32) -> UserExternalName {
    UserExternalName { namespace: namespace::RUNTIME, index: BODIES + function }
}

/// Returns all runtime functions of a program. Those that are never called are not emitted.
pub(crate) fn functions(env: &Env<'_>, entries: &[u32], isa: &OwnedTargetIsa) -> Vec<Function> {
    let mut context = FunctionBuilderContext::new();
    let mut make =
        |name: UserFuncName, ty: ir::Signature, index, kind, label: String, build: &mut dyn FnMut(&mut Code<'_>)| {
            let mut clif = ir::Function::with_name_signature(name, ty);
            let mut code = Code::new(FunctionBuilder::new(&mut clif, &mut context), env.layout, env.slots);
            build(&mut code);
            code.b.finalize(isa.frontend_config());
            Function { index, kind, name: label, cycle: None, clif }
        };
    let mut all = Vec::new();
    for helper in Helper::ALL {
        let (params, results) = helper.signature();
        let ty = signature(params.iter().copied(), results.iter().copied());
        let name = UserFuncName::user(namespace::RUNTIME, *helper as u32);
        all.push(make(name, ty, TrapRecord::NO_FUNCTION, FunctionKind::Runtime, format!("{helper:?}"), &mut |code| {
            helper.build(code, env)
        }));
    }
    for (i, import) in env.module.imports.iter().enumerate() {
        let ty = clif_signature(env.module.function_type(i as u32));
        let name = UserFuncName::user(namespace::WASM, i as u32);
        all.push(make(name, ty, i as u32, FunctionKind::Stub, import.name(&env.module.embedder).into(), &mut |code| {
            match *import {
                Imported::Host(call) => stub::build(code, call),
                Imported::Device(call) => device::stub(code, call),
                Imported::Spawn => spawn::spawn(code),
                Imported::Embedder(number) => embedder::stub(code, number, &env.module.embedder[number as usize]),
            }
        }));
    }
    for (index, _) in (0u32..).zip(&env.module.traits.tails).filter(|(_, tails)| **tails) {
        let ty = clif_signature(env.module.function_type(index));
        let name = UserFuncName::user(namespace::WASM, index);
        all.push(make(
            name,
            ty,
            TrapRecord::NO_FUNCTION,
            FunctionKind::Runtime,
            format!("tail {index}"),
            &mut |code| tail::stand_in(code, env, index),
        ));
    }
    let name = UserFuncName::user(namespace::RUNTIME, ENTRY);
    let ty = signature([types::I64, types::I32, types::I32], []);
    all.push(make(name, ty, TrapRecord::NO_FUNCTION, FunctionKind::Runtime, "entry".into(), &mut |code| {
        kernel::entry(code, env, entries)
    }));
    let none = TrapRecord::NO_FUNCTION;
    if let Some(place) = env.slots.gang() {
        let name = UserFuncName::user(namespace::RUNTIME, BATCH);
        let ty = gang::signature();
        all.push(make(name, ty, none, FunctionKind::Kernel, GANG.into(), &mut |code| gang::kernel(code, env, &place)));
        return all;
    }
    let name = UserFuncName::user(namespace::RUNTIME, BATCH);
    let ty = kernel::batch_signature();
    if env.slots.is_shared() {
        // The last entry is the one that threads run.
        let start = entries.len() as u32 - 1;
        let kind = FunctionKind::Kernel;
        all.push(make(name, ty, none, kind, THREADS.into(), &mut |code| threads::kernel(code, env, start)));
    } else {
        all.push(make(name, ty, none, FunctionKind::Kernel, KERNEL.into(), &mut |code| kernel::batch(code, env)));
    }
    let name = UserFuncName::user(namespace::RUNTIME, COLLECT);
    let ty = kernel::collect_signature();
    all.push(make(name, ty, none, FunctionKind::Kernel, ENDINGS.into(), &mut |code| kernel::collect(code, env)));
    all
}

impl Code<'_> {
    /// Calls a helper, with the instance pointer as its first argument.
    pub(crate) fn call_helper(&mut self, helper: Helper, args: &[Value]) -> Option<Value> {
        let (params, results) = helper.signature();
        let function = self
            .function(namespace::RUNTIME, helper as u32, || signature(params.iter().copied(), results.iter().copied()));
        let args: Vec<_> = std::iter::once(self.instance).chain(args.iter().copied()).collect();
        let call = ir::InstBuilder::call(self.ins(), function, &args);
        self.b.inst_results(call).first().copied()
    }
}
