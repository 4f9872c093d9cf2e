//! How much memory, stack and output an instance gets, and how many instances fit beside it.
//!
//! An [`Allowance`] is small at first: most instances need little, and the more each one gets, the fewer run side by
//! side. An instance that outgrows its allowance is stopped and rerun with a larger one ([`Bounds::larger`]), at last
//! with all that one instance can get ([`Bounds::all`]). So only the bounds themselves deny an instance anything: what
//! the user allows, what the module declares, and what the device has for a single instance.

use gpu_run_abi::launch::Ending;
use gpu_run_abi::layout::{MAX_PAGES, MEMORY_TAIL, PAGE, SLOT_ALIGN, WORD};
use gpu_run_compiler::Compiled;
use gpu_run_compiler::Error;
use gpu_run_device::{Device, Properties};
use serde::{Deserialize, Serialize};

/// What one instance may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// Bytes that each of its memories may grow to.
    pub memory: u64,
    /// Bytes of its thread's stack.
    pub stack: u32,
    /// Bytes of its outbox's annex.
    #[serde(default)]
    pub output: u64,
}

/// What an instance was refused for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It printed more than this many bytes.
    Output(u64),
    /// Its memory tried to grow beyond the maximum that its module declares, in bytes.
    ModuleMaximum(u64),
    /// Its memory tried to grow beyond the bytes that the user allows.
    MaxMemory(u64),
    /// Its memory tried to grow beyond the bytes that the device has for one instance.
    DeviceMemory(u64),
}

impl Denied {
    /// Returns why a `memory.grow` was refused, if one was.
    pub fn growth(compiled: &Compiled, max_memory: Option<u64>, ending: &Ending) -> Option<Self> {
        let wanted = Some(ending.growth_refused).filter(|wanted| *wanted > 0)?;
        let declared =
            compiled.memories.first().and_then(|memory| memory.maximum).unwrap_or(MAX_PAGES).min(MAX_PAGES) * PAGE;
        Some(match max_memory {
            _ if wanted > declared => Self::ModuleMaximum(declared),
            Some(most) if wanted > most => Self::MaxMemory(most),
            _ => Self::DeviceMemory(ending.memory_bytes),
        })
    }
}

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Output(most) => write!(f, "it printed more than {most} bytes, the limit for one record"),
            Self::ModuleMaximum(most) => write!(f, "its memory could not grow: the module allows {most} bytes"),
            Self::MaxMemory(most) => write!(f, "its memory could not grow: the user allows {most} bytes"),
            Self::DeviceMemory(had) => {
                write!(f, "its memory could not grow beyond {had} bytes: the device has no more for one instance")
            }
        }
    }
}

/// What one or several instances that could not finish ran out of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lack {
    /// A memory ran out: the bytes that it tried to grow to.
    pub memory: Option<u64>,
    pub stack: bool,
    /// Space for output ran out: the bytes that the instance had printed by then.
    pub output: Option<u64>,
    /// The memory that all instances of a launch share for transcripts ran out.
    pub shared: bool,
}

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of device memory for slots. If `None`: a part of what is free.
    pub device_bytes: Option<u64>,
    /// Bytes of stack that instances begin with. If `None`, it depends on the device's free memory.
    pub first_stack: Option<u32>,
    /// Bytes that the instances of one launch may print together, beyond the [`SHARE`] that each of them has.
    pub output_bytes: usize,
    /// Bytes that all outboxes of a launch take, about.
    pub outbox_bytes: u64,
    /// Bytes of device memory that all annexes of a launch take. If `None`, it depends on the memory of device and
    /// host.
    pub annex_bytes: Option<u64>,
    /// Bytes that the transcripts of the instances of one launch may take together.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            device_bytes: None,
            first_stack: None,
            output_bytes: 1 << 30,
            outbox_bytes: 64 << 20,
            annex_bytes: None,
            answer_bytes: 256 << 20,
        }
    }
}

/// Bytes of stdout that every instance may print, whatever other instances print.
pub const SHARE: usize = 16 << 10;
/// Annexes take at most 1/16 of the device's free memory and 1/16 of the host's memory, because the host reads all of
/// them at once. Larger annexes do not make a launch faster.
const ANNEX_PART: u64 = 16;
/// Bytes that all annexes take together, at most.
const MAX_ANNEXES: u64 = 8 << 30;
/// An annex is a multiple of this many bytes.
const ANNEX_UNIT: u64 = 4 << 10;
/// Bytes of the first annex that an instance gets.
const FIRST_ANNEX: u64 = 1 << 20;
/// A rerun gets this many times the memory or output that it had, so that few instances run more than twice.
const GROWTH_FACTOR: u64 = 4;
/// The same for the stack.
const STACK_GROWTH: u32 = 4;
/// Bytes by which all instances together may grow at first, at most.
const FIRST_GROWTH: u64 = 2 << 30;
/// At first, instances may grow into at most 1/16 of the memory for slots.
const GROWTH_PART: u64 = 16;
/// Bytes by which each instance may grow at least, if memory is plenty.
const LEAST_GROWTH: u64 = 1 << 20;
/// The least growth that is worth having where memory is short, in bytes.
const SCARCE_GROWTH: u64 = 2 * PAGE;
/// At first, stacks take 1/4 of the free memory.
const STACK_PART: u64 = 4;
/// Stacks never take the last 1/16 of the free memory.
const NO_STACK_PART: u64 = 16;
/// The smallest stack that is worth a launch, in bytes; stacks are multiples of it.
pub(crate) const MIN_STACK: u32 = 2 << 10;
/// The largest stack that instances begin with on a GPU, in bytes.
const MAX_FIRST_STACK: u32 = 32 << 10;
/// Bytes that a GPU sets aside per thread beside its stack, about; it depends on the kernel.
const THREAD_FRAME: u64 = 1 << 10;
/// The stacks of an instance that stays take 1/8 of the free memory, or more if they would be smaller than
/// [`RESIDENT_STACK`].
const RESIDENT_STACK_PART: u64 = 8;
/// The stack that an instance that stays should have, in bytes.
const RESIDENT_STACK: u32 = 8 << 10;
/// An instance that stays leaves 1/4 of the free memory to others.
const OTHERS_PART: u64 = 4;

/// The most that any instance of a program may have on a device.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes for all slots together.
    device: u64,
    /// Bytes for slots and stacks together.
    pub free: u64,
    /// The device sets a stack aside for each of this many threads, whether they run or not.
    resident_threads: u64,
    /// Whether memory costs nothing until it is touched.
    overcommits: bool,
    /// Bytes that one memory may have.
    memory: u64,
    first_stack: u32,
    /// Bytes that a stack may have.
    pub most_stack: u32,
    /// Bytes that a stack could have if other processes left the device its memory.
    whole_stack: u32,
    /// Bytes that all memories and tables of an instance may have together.
    max_memory: Option<u64>,
    /// Bytes for all annexes together.
    annexes: u64,
    /// The largest annex that is worth having.
    most_annex: u64,
    /// Bytes that an instance may print.
    printed: u64,
}

impl Bounds {
    pub fn new(
        device: &dyn Device,
        compiled: &Compiled,
        max_memory: Option<u64>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        Self::where_free(device.properties(), device.free_bytes()?, compiled, max_memory, limits)
    }

    fn where_free(
        properties: &Properties,
        free: u64,
        compiled: &Compiled,
        max_memory: Option<u64>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        // Stacks, code and other processes need memory, too.
        let part = if properties.overcommits { free } else { free / 8 * 5 };
        let slots = limits.device_bytes.unwrap_or(part);
        let growth = growth_left(compiled, max_memory)?;
        let most = |memory: usize| most_memory(compiled, memory, growth);
        let (resident_threads, whole_stack) = (properties.resident_threads, properties.stack_bytes);
        let most_stack = stack(free - free / NO_STACK_PART, resident_threads, whole_stack);
        let most_first = if resident_threads == 0 { whole_stack } else { MAX_FIRST_STACK.min(whole_stack) };
        let first_stack = stack(free / STACK_PART, resident_threads, most_first);
        let annexes = limits.annex_bytes.unwrap_or_else(|| (free.min(host_memory()) / ANNEX_PART).min(MAX_ANNEXES));
        let printed = (SHARE + limits.output_bytes) as u64;
        let first_stack = limits.first_stack.unwrap_or(first_stack).min(most_stack);
        Ok(Self {
            device: slots,
            free,
            resident_threads,
            overcommits: properties.overcommits,
            memory: (0..compiled.memories.len()).map(most).max().unwrap_or(0).min(largest_alone(compiled, slots)),
            first_stack,
            most_stack,
            whole_stack,
            max_memory,
            annexes,
            most_annex: annexes.min(printed).next_multiple_of(ANNEX_UNIT),
            printed,
        })
    }

    /// Returns the bounds for `free` bytes of free memory, if that is at least twice what was free before: other
    /// processes have left the device.
    pub fn raised(&self, properties: &Properties, free: u64, compiled: &Compiled, limits: &Limits) -> Option<Self> {
        let has_more = !self.overcommits && free / 2 >= self.free;
        has_more.then(|| Self::where_free(properties, free, compiled, self.max_memory, limits).ok())?
    }

    /// Returns the allowance that each of `count` instances begins with.
    pub fn first(&self, compiled: &Compiled, count: usize) -> Allowance {
        let count = compiled.layout().slots(count.max(1) as u64);
        let least = least_memory(compiled);
        let share = (self.device / count).saturating_sub(least) / PAGE * PAGE;
        let growth = match self.overcommits {
            true => share,
            false => {
                let together = FIRST_GROWTH.min(self.device / GROWTH_PART);
                (together / count).max(LEAST_GROWTH).min(share.max(SCARCE_GROWTH))
            }
        };
        Allowance { memory: (least + growth / PAGE * PAGE).min(self.memory), stack: self.first_stack, output: 0 }
    }

    /// Returns the allowance of an instance that stays, if `free` bytes are free: others may stay beside it, and it
    /// cannot be rerun.
    pub fn resident(&self, compiled: &Compiled, free: u64) -> Allowance {
        let less_others = |bytes: u64| bytes - bytes / OTHERS_PART;
        let of = |bytes: u64| stack(bytes, self.resident_threads, self.most_stack);
        let stack = of(free / RESIDENT_STACK_PART).max(of(less_others(free)).min(RESIDENT_STACK));
        let (least, slots) = (least_memory(compiled), compiled.layout().slots(1));
        let most = if self.overcommits { self.memory } else { least.saturating_add(FIRST_GROWTH / slots) };
        let share = less_others(free.saturating_sub(self.stacks(compiled, stack))) / slots;
        let memory = least.saturating_add(share / PAGE * PAGE).min(most).min(self.memory).max(least);
        Allowance { memory, stack, output: 0 }
    }

    /// Returns an allowance that was learned earlier, within the bounds that hold now.
    pub fn learned(&self, compiled: &Compiled, count: usize, learned: Allowance) -> Allowance {
        let first = self.first(compiled, count);
        let memory = learned.memory.clamp(first.memory, self.memory.max(first.memory));
        let stack = learned.stack.clamp(first.stack, self.most_stack.max(first.stack));
        Allowance { memory, stack, output: self.annex(learned.output) }
    }

    /// Returns the allowance for a rerun of instances that lacked something, if they can have more.
    pub fn larger(&self, had: Allowance, lack: &Lack) -> Option<Allowance> {
        let more = Allowance {
            memory: lack.memory.map_or(had.memory, |wanted| {
                wanted
                    .max(had.memory.saturating_mul(GROWTH_FACTOR))
                    .next_multiple_of(PAGE)
                    .min(self.memory.max(had.memory))
            }),
            stack: match lack.stack {
                true => had.stack.saturating_mul(STACK_GROWTH).min(self.most_stack.max(had.stack)),
                false => had.stack,
            },
            output: had.output,
        };
        (more != had).then_some(more)
    }

    /// Returns the size of an annex that holds `bytes` bytes, within the bounds.
    pub fn annex(&self, bytes: u64) -> u64 {
        bytes.min(self.most_annex).next_multiple_of(ANNEX_UNIT)
    }

    /// Returns the annex of a rerun, if a larger one is possible; `printed` is what the instance had printed when its
    /// output no longer fitted.
    pub fn more_output(&self, had: Allowance, printed: u64) -> Option<u64> {
        let more = self.annex(printed.max(had.output).saturating_mul(GROWTH_FACTOR).max(FIRST_ANNEX));
        (more > had.output && printed <= self.printed).then_some(more)
    }

    /// Returns how many bytes an instance may print.
    pub fn printed_at_most(&self) -> u64 {
        self.printed
    }

    /// Returns all that an instance may have if it is alone. It has no annex: a write that would be too much is
    /// refused.
    pub fn all(&self) -> Allowance {
        Allowance { memory: self.memory, stack: self.most_stack, output: 0 }
    }

    /// Returns how many instances with this allowance fit on the device.
    pub fn at_once(&self, compiled: &Compiled, allowance: Allowance) -> usize {
        self.at_once_in(compiled, allowance, self.free)
    }

    /// Returns how many instances with this allowance fit if `free` bytes are free.
    pub fn at_once_in(&self, compiled: &Compiled, allowance: Allowance, free: u64) -> usize {
        let Ok(sizes) = Sizes::new(compiled, allowance, self.max_memory, true) else { return 1 };
        // Only whole warps if slots are interleaved.
        let room = self.device.min(free.saturating_sub(self.stacks(compiled, allowance.stack)));
        let slots = room / sizes.slot_bytes.max(1);
        let slots = slots / compiled.layout().slots(1) * compiled.layout().slots(1);
        slots.min(self.annexes.checked_div(allowance.output).unwrap_or(u64::MAX)) as usize
    }

    /// Returns whether the instances of one warp fit, with their memories in slots.
    pub fn has_room_for_warp(&self, compiled: &Compiled, allowance: Allowance) -> bool {
        let memories = allowance.memory.saturating_mul(compiled.memories.len() as u64);
        let each = memories + compiled.slots.memory + SLOT_ALIGN;
        each.saturating_mul(compiled.layout().slots(1))
            <= self.device.min(self.free.saturating_sub(set_aside(allowance.stack.into(), self.resident_threads)))
    }

    /// Returns the bytes that a GPU sets aside for its threads' stacks and local memory.
    pub fn stacks(&self, compiled: &Compiled, stack: u32) -> u64 {
        set_aside(u64::from(stack) + compiled.slots.local_bytes(), self.resident_threads)
    }

    /// Returns whether the device can give each thread enough local memory for the program's memory.
    pub fn has_room_in_threads(&self, compiled: &Compiled) -> bool {
        self.stacks(compiled, self.first_stack) <= self.free - self.free / NO_STACK_PART
    }

    /// Returns whether a stack could be deeper if other processes left the device its memory.
    pub fn is_short_of_stack(&self) -> bool {
        self.most_stack < self.whole_stack
    }

    pub fn sizes(&self, compiled: &Compiled, allowance: Allowance, is_last: bool) -> Result<Sizes, Error> {
        Sizes::new(compiled, allowance, self.max_memory, is_last)
    }

    /// Raises the largest stack, if `free` bytes of free memory suffice for a larger one.
    pub fn raise_stack(&mut self, free: u64) {
        let most = stack(free - free / NO_STACK_PART, self.resident_threads, self.whole_stack);
        (self.free, self.most_stack) = (self.free.max(free), self.most_stack.max(most));
    }

    /// Lowers the largest stack to half of `refused`, which a launch could not get; it holds from now on. Returns
    /// whether that is lower.
    pub fn lower_stack(&mut self, refused: u32) -> bool {
        let lower = (refused / 2 / MIN_STACK * MIN_STACK).max(MIN_STACK);
        let is_lower = lower < refused;
        if is_lower {
            self.most_stack = self.most_stack.min(lower);
            self.first_stack = self.first_stack.min(lower);
        }
        is_lower
    }
}

/// Returns the bytes that the stacks of an instance that stays take on a GPU that can hold this many threads, if each
/// stack has the size that it should have, 8 KiB.
pub fn resident_stacks(threads: u64) -> u64 {
    set_aside(RESIDENT_STACK.into(), threads)
}

/// Returns the bytes that a GPU that can hold this many threads sets aside if each needs `each` bytes.
fn set_aside(each: u64, threads: u64) -> u64 {
    (each + THREAD_FRAME) * threads
}

/// Returns the initial length of the largest of an instance's memories.
fn least_memory(compiled: &Compiled) -> u64 {
    compiled.initial.memories.iter().map(|memory| memory.length).max().unwrap_or(0)
}

/// Returns the stack of each of `threads` threads if they share `bytes` bytes, but not more than `most`. If the device
/// sets no stacks aside (`threads` is 0): `most`.
fn stack(bytes: u64, threads: u64, most: u32) -> u32 {
    match bytes.checked_div(threads).map(|share| share.saturating_sub(THREAD_FRAME)) {
        Some(share) if share < most.into() => (share as u32 / MIN_STACK * MIN_STACK).max(MIN_STACK),
        _ => most,
    }
}

/// Returns the bytes of memory that the host has.
fn host_memory() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(info.mem_unit.into())
}

/// Where a memory lies in a slot, and the bytes it may grow to.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRoom {
    pub at: u64,
    pub limit: u64,
    /// Guest addresses below this have no place in the slot.
    pub low: u64,
}

/// The size of a slot, and where its memories lie.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// One after the other, from `SlotLayout::memory` on.
    pub memories: Vec<MemoryRoom>,
    pub slot_bytes: u64,
    /// Bytes by which all memories and tables together may grow.
    pub growth_left: u64,
    /// Device address of guest byte 0 of the memory that all slots share, if they do.
    pub shared_memory: Option<u64>,
}

impl Sizes {
    /// `is_last`: an instance whose memory does not fit its slot is refused to grow. Otherwise it is stopped, and
    /// rerun.
    pub fn new(
        compiled: &Compiled,
        allowance: Allowance,
        max_memory: Option<u64>,
        is_last: bool,
    ) -> Result<Self, Error> {
        let mut growth_left = growth_left(compiled, max_memory)?;
        let mut at = compiled.slots.memory;
        let mut memories = Vec::new();
        for (index, memory) in compiled.memories.iter().enumerate() {
            let least = compiled.initial.memories[index].length;
            let most = most_memory(compiled, index, growth_left);
            let limit = if memory.grows { allowance.memory.clamp(least, most.max(least)) } else { least };
            if is_last && memory.grows && limit < most {
                growth_left = growth_left.min(limit - least);
            }
            let low = if index == 0 { compiled.slots.low } else { 0 };
            memories.push(MemoryRoom { at, limit, low });
            let in_slot = if compiled.slots.is_local() { 0 } else { limit.saturating_sub(low) };
            at = (at + in_slot + MEMORY_TAIL).next_multiple_of(SLOT_ALIGN);
        }
        Ok(Self {
            memories,
            slot_bytes: (at + MEMORY_TAIL).next_multiple_of(SLOT_ALIGN),
            growth_left,
            shared_memory: None,
        })
    }
}

/// Returns the bytes by which an instance may grow beyond its initial memories and tables.
fn growth_left(compiled: &Compiled, max_memory: Option<u64>) -> Result<u64, Error> {
    let memories = compiled.initial.memories.iter().map(|memory| memory.length).sum::<u64>();
    let tables = compiled.initial.tables.iter().map(|elements| elements.len() as u64 * WORD).sum::<u64>();
    let least = memories + tables;
    let Some(most) = max_memory else { return Ok(u64::MAX / 2) };
    most.checked_sub(least).ok_or_else(|| {
        let what = if tables > 0 { "its memories and tables begin" } else { "its memory begins" };
        Error::Limit(format!("{what} with {least} bytes, but the user allows {most}"))
    })
}

/// Returns what each memory of an instance may grow to if the instance is alone in `device` bytes, in a linear slot.
fn largest_alone(compiled: &Compiled, device: u64) -> u64 {
    let least: u64 = compiled.initial.memories.iter().map(|memory| memory.length).sum();
    let growing = compiled.memories.iter().filter(|memory| memory.grows).count().max(1) as u64;
    let beside = compiled.slots.memory + (compiled.memories.len() as u64 + 1) * (SLOT_ALIGN + MEMORY_TAIL);
    least_memory(compiled) + device.saturating_sub(beside + least) / growing / PAGE * PAGE
}

/// Returns what a memory may grow to, whatever the device.
fn most_memory(compiled: &Compiled, index: usize, growth_left: u64) -> u64 {
    let (memory, least) = (compiled.memories[index], compiled.initial.memories[index].length);
    let declared = memory.maximum.unwrap_or(MAX_PAGES).min(MAX_PAGES) * PAGE;
    if memory.grows { declared.min(least.saturating_add(growth_left) / PAGE * PAGE).max(least) } else { least }
}
