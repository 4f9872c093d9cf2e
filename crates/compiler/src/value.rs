//! wasm values as the host sees them.

use gpu_run_wasm::ValType;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    I32(i32),
    I64(i64),
    /// The bits.
    F32(u32),
    /// The bits.
    F64(u64),
    /// The bits, lane 0 lowest.
    V128(u128),
    /// A function's index; `None` is null.
    FuncRef(Option<u32>),
    /// The host's number; `None` is null.
    ExternRef(Option<u32>),
    /// The exception's number; `None` is null.
    ExnRef(Option<u64>),
    /// Null, the only value so far.
    AnyRef,
}

pub type ValueType = ValType;

impl Value {
    pub fn ty(self) -> ValueType {
        match self {
            Value::I32(_) => ValType::I32,
            Value::I64(_) => ValType::I64,
            Value::F32(_) => ValType::F32,
            Value::F64(_) => ValType::F64,
            Value::V128(_) => ValType::V128,
            Value::FuncRef(_) => ValType::FuncRef,
            Value::ExternRef(_) => ValType::ExternRef,
            Value::ExnRef(_) => ValType::ExnRef,
            Value::AnyRef => ValType::AnyRef,
        }
    }

    /// Returns the function that a function reference refers to.
    pub fn function(self) -> Option<u32> {
        match self {
            Value::FuncRef(index) => index,
            _ => None,
        }
    }

    /// Returns the value's words in the slot. A function reference also needs the function's signature, so `reference`
    /// returns its word, see `gpu_run_wasm::function_reference`.
    pub fn words(self, reference: impl FnOnce(u32) -> u64) -> impl Iterator<Item = u64> {
        let bits: u128 = match self {
            Value::I32(v) => (v as u32).into(),
            Value::I64(v) => (v as u64).into(),
            Value::F32(bits) => bits.into(),
            Value::F64(bits) => bits.into(),
            Value::V128(bits) => bits,
            Value::FuncRef(index) => index.map_or(0, reference).into(),
            Value::ExternRef(number) => number.map_or(0, |n| u64::from(n) + 1).into(),
            Value::ExnRef(number) => number.unwrap_or(0).into(),
            Value::AnyRef => 0,
        };
        [bits as u64, (bits >> 64) as u64].into_iter().take(self.ty().words() as usize)
    }

    /// Returns the value of these words in a slot; `read` returns a word by its position.
    pub fn from_words<E>(ty: ValueType, read: impl Fn(u64) -> Result<u64, E>) -> Result<Self, E> {
        let reference = |word: u64| (word as u32).checked_sub(1);
        let word = read(0)?;
        Ok(match ty {
            ValType::I32 => Value::I32(word as i32),
            ValType::I64 => Value::I64(word as i64),
            ValType::F32 => Value::F32(word as u32),
            ValType::F64 => Value::F64(word),
            ValType::V128 => Value::V128(u128::from(word) | u128::from(read(1)?) << 64),
            ValType::FuncRef => Value::FuncRef(reference(word)),
            ValType::ExternRef => Value::ExternRef(reference(word)),
            ValType::AnyRef => Value::AnyRef,
            ValType::ExnRef => Value::ExnRef((word != 0).then_some(word)),
        })
    }
}
