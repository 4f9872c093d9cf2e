//! The content of a PTX text, before it is compiled.
//!
//! Names of functions and data stay slices of the text; registers and labels are numbered while a body is read. A body
//! is two flat arrays, statements and their operands, because a real program has a million of each.

use std::ops::Range;

/// The type an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) enum Type {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    B32,
    B64,
    F32,
    F64,
    Pred,
}

impl Type {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "u8" => Self::U8,
            "s8" => Self::S8,
            "u16" => Self::U16,
            "s16" => Self::S16,
            "u32" => Self::U32,
            "s32" => Self::S32,
            "u64" => Self::U64,
            "s64" => Self::S64,
            "b32" => Self::B32,
            "b64" => Self::B64,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "pred" => Self::Pred,
            _ => return None,
        })
    }
    /// Bytes in memory. A predicate is never in memory.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::S8 | Self::Pred => 1,
            Self::U16 | Self::S16 => 2,
            Self::U32 | Self::S32 | Self::B32 | Self::F32 => 4,
            Self::U64 | Self::S64 | Self::B64 | Self::F64 => 8,
        }
    }
    pub(crate) fn bits(self) -> u32 {
        self.bytes() * 8
    }
    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }
    pub(crate) fn is_unsigned(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }
    pub(crate) fn is_integer(self) -> bool {
        self.is_signed() || self.is_unsigned()
    }
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
    /// Whether it is `.b32` or `.b64`, which stand for any type of that size.
    pub(crate) fn is_bits(self) -> bool {
        matches!(self, Self::B32 | Self::B64)
    }
    pub(crate) fn is_narrow(self) -> bool {
        self.bytes() < 4
    }
}

/// A register's number in its function. Its type is `Body::registers[n]`: B32, B64, F32, F64 or Pred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register(pub(crate) u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(pub(crate) u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Tid,
    Ntid,
    Ctaid,
    Nctaid,
    /// `.y` and `.z` of the indices: a grid has one dimension.
    Zero,
    /// `.y` and `.z` of the counts.
    One,
    Lane,
    Warp,
    LanesBelow,
    Clock,
    GlobalTimer,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operand<'a> {
    Register(Register),
    /// `!%p`
    Not(Register),
    Int(i64),
    F32(u32),
    F64(u64),
    Special(Special),
    Symbol(&'a str),
    /// `[%d+offset]`
    Address(Register, i32),
    /// `[symbol+offset]`
    SymbolAddress(&'a str, i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    MulHigh,
    Div,
    Rem,
    Min,
    Max,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    CopySign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Neg,
    Abs,
    Not,
    LeadingZeros,
    Ones,
    Reverse,
    SquareRoot,
    /// 1/x, approximated to 20 bits; and 1/√x.
    AboutInverse,
    AboutInverseRoot,
    /// `sin.approx.f32`, and so on: here, the exact value.
    Sine,
    Cosine,
    Exp2,
    Log2,
    InverseRoot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// No modifier: between integers, and f32 to f64.
    Exact,
    Nearest,
    NearestInteger,
    Zero,
    Down,
    Up,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// The `u` forms: true if an operand is NaN.
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

/// The memory order of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Weak,
    Volatile,
    /// `ld.acquire`, `st.release`
    Synchronizing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomic {
    Add,
    Exchange,
    And,
    Or,
    Xor,
    Min,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Index,
    Up,
    Down,
    Butterfly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    Any,
    All,
    Uniform,
    Ballot,
}

/// An instruction's name with all of its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Mov(Type),
    /// `mov.b64 d, {low, high}`, and `mov.b64 {low, high}, a`.
    Pack,
    Unpack,
    Binary(Binary, Type),
    Unary(Unary, Type),
    MulWide,
    MadLow(Type),
    MadWide,
    Fma(Type),
    Funnel {
        left: bool,
        wrap: bool,
    },
    BitField(Type),
    Permute,
    Convert {
        to: Type,
        from: Type,
        round: Round,
    },
    Compare(Compare, Type),
    Select(Type),
    Load(Order, Type),
    Store(Order, Type),
    /// `ld.….v2.u64 {d, e}, [a]`, and `st.….v2.u64 [a], {b, c}`: 16 bytes at once.
    LoadPair,
    StorePair,
    LoadParam(Type),
    StoreParam(Type),
    Atomic(Atomic, Type),
    CompareExchange(Type),
    /// `local`: only among the threads of a workgroup.
    Fence {
        local: bool,
    },
    Barrier,
    WarpBarrier,
    Shuffle(Shuffle),
    Vote(Vote),
    ActiveMask,
    Sleep,
    StackSave,
    Return,
    Exit,
    Trap,
    // These have operands of another form, so each becomes an `Action` of its own.
    Branch,
    BranchTable,
    Call,
}

/// `@%p` or `@!%p`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Guard {
    pub(crate) predicate: Register,
    pub(crate) negated: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Statement<'a> {
    pub(crate) line: u32,
    pub(crate) guard: Option<Guard>,
    pub(crate) action: Action<'a>,
}

#[derive(Clone, Debug)]
pub(crate) enum Action<'a> {
    /// The operands are `Body::operands[first..first + count]`, as many as the opcode takes.
    Do {
        opcode: Opcode,
        first: u32,
        count: u8,
    },
    Label(Label),
    Branch(Label),
    /// Jumps to the label in `Body::tables[table]` that the register's value selects.
    BranchTable {
        index: Register,
        table: u32,
    },
    /// `Body::calls[n]`
    Call(u32),
    Open,
    Close,
    /// `.param .align 8 .b8 name[bytes];` in the scope of a call.
    Param {
        name: &'a str,
        bytes: u32,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) result: CallResult<'a>,
    pub(crate) callee: Callee<'a>,
    /// The range in `Body::operands`.
    pub(crate) arguments: Range<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CallResult<'a> {
    None,
    Register(Register),
    Param(&'a str),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee<'a> {
    Direct(&'a str),
    /// The register with the address, and the number of its signature in `Body::prototypes`.
    Indirect(Register, u32),
}

/// A function's parameters and result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Signature {
    pub(crate) parameters: Vec<Type>,
    pub(crate) result: Returns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Returns {
    Nothing,
    Register(Type),
    /// Bytes of a result that is returned in 8-byte cells.
    Cells(u32),
}

/// A label, and how it is used.
#[derive(Clone, Debug)]
pub(crate) struct LabelUse<'a> {
    pub(crate) name: &'a str,
    /// How many branches name it.
    pub(crate) uses: u32,
    pub(crate) first_use: u32,
    pub(crate) defined: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Body<'a> {
    /// Parameters first, then the result if it is a register, then what `.reg` declares.
    pub(crate) registers: Vec<Type>,
    pub(crate) statements: Vec<Statement<'a>>,
    pub(crate) operands: Vec<Operand<'a>>,
    pub(crate) labels: Vec<LabelUse<'a>>,
    pub(crate) tables: Vec<Vec<Label>>,
    pub(crate) calls: Vec<Call<'a>>,
    pub(crate) prototypes: Vec<Signature>,
    pub(crate) locals: Vec<LocalArray<'a>>,
}

#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: u32,
    /// Whether it is a kernel, whose parameters are in `.param` space.
    pub(crate) entry: bool,
    pub(crate) signature: Signature,
    pub(crate) parameter_names: Vec<&'a str>,
    pub(crate) result_name: &'a str,
}

#[derive(Debug)]
pub(crate) struct Global<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: u32,
    pub(crate) align: u32,
    pub(crate) bytes: u64,
    /// Bytes of one element.
    pub(crate) element: u32,
    /// The first elements; the rest are 0.
    pub(crate) initial: Vec<Initial<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Initial<'a> {
    Bits(u64),
    Symbol(&'a str),
}

/// A `.local` array: a thread's own memory, in a function's frame.
#[derive(Debug)]
pub(crate) struct LocalArray<'a> {
    pub(crate) name: &'a str,
    pub(crate) bytes: u32,
}

#[derive(Debug)]
pub(crate) struct SharedArray<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: u32,
    pub(crate) align: u32,
    pub(crate) bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Module<'a> {
    pub(crate) functions: Vec<Function<'a>>,
    pub(crate) globals: Vec<Global<'a>>,
    pub(crate) shared: Vec<SharedArray<'a>>,
}
