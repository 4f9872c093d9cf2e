//! Why an instance stopped.

/// The kinds of trap, numbered as the device writes them. 0 is "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum TrapCode {
    Unreachable = 1,
    MemoryOutOfBounds = 2,
    TableOutOfBounds = 3,
    IndirectCallToNull = 4,
    BadSignature = 5,
    IntegerDivisionByZero = 6,
    IntegerOverflow = 7,
    BadConversionToInteger = 8,
    StackOverflow = 9,
    /// The stop word was set: a timeout, or the host gave up.
    Interrupted = 10,
    /// The host's side of a call failed in a way that WASI has no errno for.
    HostCall = 11,
    NullReference = 12,
    /// An indirect call through an index outside the table.
    UndefinedElement = 13,
    /// Not a trap of the guest: a speculative build stopped an instance that cannot be rerun. Never in a record, see
    /// [`Status::Running`].
    Inexact = 14,
    /// Not a trap of the guest: when it was rerun, an instance made another host call than in its first run. Never in a
    /// record.
    Deviated = 17,
    /// An atomic access whose address is not a multiple of its size.
    UnalignedAtomic = 15,
    /// A wait on a memory that no other thread can reach.
    WaitOnUnshared = 16,
    /// A call of a null function reference.
    NullFunction = 20,
    /// A throw of a null exception reference.
    NullException = 21,
    /// An exception that no handler caught.
    UncaughtException = 22,
    /// A throw of a reference to an exception that is no longer kept.
    LostException = 23,
    /// A pointer given to a host function is not aligned for the type it points to.
    MisalignedPointer = 24,
}

impl TrapCode {
    pub const ALL: [TrapCode; 22] = [
        Self::Unreachable,
        Self::MemoryOutOfBounds,
        Self::TableOutOfBounds,
        Self::IndirectCallToNull,
        Self::BadSignature,
        Self::IntegerDivisionByZero,
        Self::IntegerOverflow,
        Self::BadConversionToInteger,
        Self::StackOverflow,
        Self::Interrupted,
        Self::HostCall,
        Self::NullReference,
        Self::UndefinedElement,
        Self::Inexact,
        Self::Deviated,
        Self::UnalignedAtomic,
        Self::WaitOnUnshared,
        Self::NullFunction,
        Self::NullException,
        Self::UncaughtException,
        Self::LostException,
        Self::MisalignedPointer,
    ];

    pub fn from_u8(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|c| *c as u8 == code)
    }

    /// Returns the message that the WebAssembly specification uses and its test suite compares.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::MemoryOutOfBounds => "out of bounds memory access",
            Self::TableOutOfBounds => "out of bounds table access",
            Self::IndirectCallToNull => "uninitialized element",
            Self::BadSignature => "indirect call type mismatch",
            Self::IntegerDivisionByZero => "integer divide by zero",
            Self::IntegerOverflow => "integer overflow",
            Self::BadConversionToInteger => "invalid conversion to integer",
            Self::StackOverflow => "call stack exhausted",
            Self::Interrupted => "interrupted",
            Self::HostCall => "host call failed",
            Self::NullReference => "null reference",
            Self::UndefinedElement => "undefined element",
            Self::UnalignedAtomic => "unaligned atomic",
            Self::WaitOnUnshared => "expected shared memory",
            Self::NullFunction => "null function reference",
            Self::NullException => "null exception reference",
            Self::UncaughtException => "uncaught exception",
            Self::LostException => "the rethrown exception is no longer kept: too many others were referenced after it",
            Self::MisalignedPointer => "a host function was given a misaligned pointer",
            Self::Inexact => "a speculative build stopped it, and it could not be rerun",
            Self::Deviated => "its rerun asked the host for something different from its first run",
        }
    }
}

/// Where and why an instance trapped, packed into one word so that the device writes it in one store:
/// `code << 56 | function << 32 | offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapRecord {
    pub code: TrapCode,
    /// Index in the module's function space; [`TrapRecord::NO_FUNCTION`] for code that no module contains.
    pub function: u32,
    /// Offset in the .wasm file of the instruction that trapped.
    pub offset: u32,
}

impl TrapRecord {
    pub const NO_FUNCTION: u32 = 0xff_ffff;

    pub const fn pack(self) -> u64 {
        ((self.code as u64) << 56) | (((self.function & 0xff_ffff) as u64) << 32) | self.offset as u64
    }

    pub fn unpack(word: u64) -> Option<Self> {
        let code = TrapCode::from_u8((word >> 56) as u8)?;
        Some(Self { code, function: (word >> 32) as u32 & 0xff_ffff, offset: word as u32 })
    }
}

/// How an instance stopped: its header's `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Status {
    /// The instance has not run, or it trapped: then there is a trap record. If it ran and has no record, a speculative
    /// build stopped it, and the host reruns it with an exact build.
    Running = 0,
    /// The entry function returned.
    Returned = 1,
    /// The instance called `proc_exit`; the header's `exit_code` holds the code.
    Exited = 2,
    /// The instance's memory or stack needed more than this slot has: the host reruns the instance where there is more.
    Outgrown = 3,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_survives_packing() {
        for code in TrapCode::ALL {
            let record = TrapRecord { code, function: 0x12_3456, offset: 0xdead_beef };
            assert_eq!(TrapRecord::unpack(record.pack()), Some(record));
        }
        assert_eq!(TrapRecord::unpack(0), None);
    }
}
