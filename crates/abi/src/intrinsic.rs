//! What a compiled function may name besides other functions.
//!
//! CLIF refers to functions by a namespace and an index; this module says which namespace holds what. Device intrinsics
//! are calls that `crates/ptx` lowers to an instruction or two. To add an intrinsic, add a row here and a row there.

/// Namespaces of CLIF's external names.
pub mod namespace {
    /// A wasm function, by its index in the module's function space (imports' stubs included).
    pub const WASM: u32 = 0;
    /// One of [`super::Intrinsic`].
    pub const INTRINSIC: u32 = 1;
    /// Functions that the compiler itself adds: bus helpers, entry points.
    pub const RUNTIME: u32 = 2;
    /// Data symbols: [`super::symbol`].
    pub const DATA: u32 = 3;
}

pub mod symbol {
    /// The array of code addresses: one u64 for each function of the module that may be called indirectly.
    pub const FUNCTION_TABLE: u32 = 0;
}

/// Identifiers of CLIF's alias regions (`AliasRegionData::user_id`): within a function, accesses in different regions
/// never overlap.
pub mod region {
    /// The guest's linear memory, by guest address. Accesses in this region, and only these, may be misaligned.
    pub const GUEST: u32 = 1;
    /// The instance header, and other words of a slot's fixed part.
    pub const HEADER: u32 = 2;
    /// Table elements.
    pub const TABLE: u32 = 3;
    /// The bus (ports, ring), outboxes, and other bytes by device address: memories other than the first, for example.
    pub const BUS: u32 = 4;
    /// The guest's linear memory, by device address: aligned and checked. No function uses both this and `GUEST`.
    pub const CELLS: u32 = 6;
    /// Data that does not change while an instance runs.
    pub const CONSTANT: u32 = 5;
    /// Locals of a function that live in its frame, which is memory of the thread alone.
    pub const FRAME: u32 = 7;
    /// Memory that instances share by [`crate::guest`]. Atomic operations on it order nothing but themselves.
    pub const SHARED: u32 = 8;
    /// Global `n` of the module is region `GLOBALS + n`.
    pub const GLOBALS: u32 = 16;
}

macro_rules! intrinsics {
    ($($(#[$doc:meta])* $name:ident ($($param:ident),*) -> ($($result:ident),*) ;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Intrinsic { $($(#[$doc])* $name),* }

        impl Intrinsic {
            pub const ALL: &[Intrinsic] = &[$(Intrinsic::$name),*];

            pub fn from_index(index: u32) -> Option<Self> {
                Self::ALL.get(index as usize).copied()
            }
            /// Returns the parameter and result types.
            pub const fn signature(self) -> (&'static [Type], &'static [Type]) {
                match self { $(Intrinsic::$name => (&[$(Type::$param),*], &[$(Type::$result),*])),* }
            }
        }
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    I32,
    I64,
    F32,
    F64,
}

intrinsics! {
    /// `%tid.x`
    ThreadInWorkgroup() -> (I32);
    /// `%ctaid.x`
    Workgroup() -> (I32);
    /// `%ntid.x`
    WorkgroupThreads() -> (I32);
    /// `%laneid`
    Lane() -> (I32);
    /// `%globaltimer`: nanoseconds, from an unspecified start.
    GlobalTimer() -> (I64);
    /// `nanosleep.u32`: sleeps about that many nanoseconds, so that other threads can run.
    NanoSleep(I32) -> ();
    /// `exit`: the thread stops here. CLIF code after this call is unreachable.
    Exit() -> ();
    /// `membar.sys`
    FenceSystem() -> ();
    /// `bar.sync 0`
    Barrier() -> ();
    /// `activemask.b32`
    ActiveMask() -> (I32);
    /// `ld.global.L1::no_allocate.u32`: a word that the host may change at any time; the value may be slightly stale.
    /// This load orders nothing: a load that orders other accesses empties a cache, and where an assembler finds such a
    /// load (or a volatile one) in a loop, it makes the lanes of a warp take turns there, until no two of them are in
    /// step.
    Glance(I64) -> (I32);
    /// One iteration of a loop: `(iterations left, address of the stop word) -> iterations left`. When none are left,
    /// the code reads the stop word as `Glance` does, traps if it is set, and starts again with [`INTERVAL`].
    Tick(I32, I64) -> (I32);
    /// `%nctaid.x`
    GridWorkgroups() -> (I32);
    /// `%smid`
    Processor() -> (I32);
    /// `%clock64`
    Cycles() -> (I64);
    /// `atom.relaxed.gpu.global.add.u32` of 1: (address) -> the old value
    Ticket(I64) -> (I32);
    /// `atom.relaxed.gpu.global.add.u64`: (address, by) -> the old value
    Count(I64, I64) -> (I64);
    /// `fence.acq_rel.gpu`
    FenceDevice() -> ();
    /// `fence.acq_rel.sys`
    FenceHost() -> ();
    /// `barrier.sync 0` of a gang, then a check whether another thread trapped.
    GangBarrier() -> ();
    /// `nanosleep.u32` of a gang, then a check of the stop word: (nanoseconds, address of the stop word).
    GangSleep(I32, I64) -> ();
    /// `vote.sync.ballot.b32`, all lanes
    Ballot(I32) -> (I32);
    /// `shfl.sync.idx.b32`, all lanes: (value, lane)
    ShuffleIndex(I32, I32) -> (I32);
    /// `shfl.sync.up.b32`: (value, delta)
    ShuffleUp(I32, I32) -> (I32);
    /// `shfl.sync.bfly.b32`: (value, mask)
    ShuffleXor(I32, I32) -> (I32);
    /// `ld.shared.u32` of the workgroup's memory: (offset), which was checked.
    LocalLoad(I32) -> (I32);
    /// `st.shared.u32`: (offset, value)
    LocalStore(I32, I32) -> ();
    /// `atom.relaxed.cta.shared.add.u32`: (offset, value) -> the old value
    LocalAdd(I32, I32) -> (I32);
    /// `st.shared.u32` of 0 to the word that [`Intrinsic::GangBarrier`] reads: no thread of the workgroup has trapped
    /// yet.
    LocalReset() -> ();
    /// `ld.relaxed.sys.global.u64`
    BusLoad(I64) -> (I64);
    /// `st.release.sys.global.u64`: (address, value)
    BusStore(I64, I64) -> ();
    /// `st.relaxed.sys.global.u64`: (address, value)
    BusPut(I64, I64) -> ();
    /// `ld.relaxed.sys.global.v2.u64`
    BusLoad2(I64) -> (I64, I64);
    /// `st.relaxed.sys.global.v2.u64`: (address, values)
    BusPut2(I64, I64, I64) -> ();
    /// Sleeps while the u64 at `address` is `value` and the u64 at `end` is 0, for at most `nanoseconds`: (address, value,
    /// end, nanoseconds, nap). May return earlier, and orders nothing. A GPU looks at the words every `nap` nanoseconds, or
    /// more often. Only programs with threads have this one and the next.
    Await(I64, I64, I64, I64, I32) -> ();
    /// Wakes the thread that awaits a change of the u64 at `address`, or the threads whose `end` that is. Whoever changes
    /// such a word does this afterwards.
    Wake(I64) -> ();
    /// `bar.warp.sync`: (lanes), each of which is here or will be.
    WarpBarrier(I32) -> ();
    /// Forgets all lanes of the warp that share it; see `print/step.rs` in the crate `gpu-run-ptx` for this one and the next
    /// three. Only programs with threads have them; on `cpu`, they do nothing.
    StepClear() -> ();
    /// From here on, this lane shares its warp's instructions with others, unless the argument is 0. It is 2 for a thread that
    /// starts, and otherwise what `StepLeave` returned.
    StepJoin(I32) -> ();
    /// From here on, no lane waits for this one. Returns 1 if the lane shared its warp, else 0.
    StepLeave() -> (I32);
    /// Lanes that share the warp, but are not in step, wait for each other here.
    StepMeet() -> ();
    /// Now and then, lanes of the warp that are not in step with this one run first.
    GiveWay() -> ();
    /// `vote.sync.ballot.b32`: (value, lanes), for those of the warp's lanes that are in step with this one.
    BallotAmong(I32, I32) -> (I32);
    /// `shfl.sync.idx.b32`: (value, lane, lanes), likewise. The lane is one of the lanes.
    ShuffleAmong(I32, I32, I32) -> (I32);
    /// `sin.approx.f32`, and so on: the hardware's approximations.
    Sin(F32) -> (F32);
    Cos(F32) -> (F32);
    Exp2(F32) -> (F32);
    Log2(F32) -> (F32);
    InverseRoot(F32) -> (F32);
    /// The thread's functions use copies of its slot's hot words from here on ([`crate::threads::HOT_FIELDS`] and globals), which
    /// are made now. The argument is the slot's address.
    TakeHotWords(I64) -> ();
}

/// Loop iterations between two checks of the stop word; also the units of work that functions which can reach
/// themselves may do between two checks.
pub const INTERVAL: i64 = 4096;
