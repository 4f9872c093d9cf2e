//! Parameters and results of functions, as Rust types.

use gpu_run_compiler::{Value, ValueType};

/// A Rust type that a WebAssembly function can take or return.
pub trait Scalar: Copy + Send + 'static {
    const TYPE: ValueType;
    fn to_value(self) -> Value;
    /// Returns `None` for a value of another type.
    fn of_value(value: Value) -> Option<Self>;
    /// The value as one word of a call: zero-extended, a float's bits.
    fn to_word(self) -> u64;
    fn of_word(word: u64) -> Self;
}

macro_rules! scalars {
    ($($type:ty, $variant:ident, |$value:ident| $bits:expr, |$word:ident| $back:expr, $wide:ty;)*) => {$(
        impl Scalar for $type {
            const TYPE: ValueType = ValueType::$variant;
            fn to_value(self) -> Value {
                let $value = self;
                Value::$variant($bits)
            }
            fn of_value(value: Value) -> Option<Self> {
                match value {
                    Value::$variant($word) => Some($back),
                    _ => None,
                }
            }
            fn to_word(self) -> u64 {
                let $value = self;
                ($bits as $wide) as u64
            }
            fn of_word(word: u64) -> Self {
                let $word = word as _;
                $back
            }
        }
    )*};
}

scalars! {
    i32, I32, |v| v, |w| w, u32;
    u32, I32, |v| v as i32, |w| {
        let bits: i32 = w;
        bits as u32
    }, u32;
    i64, I64, |v| v, |w| w, u64;
    u64, I64, |v| v as i64, |w| {
        let bits: i64 = w;
        bits as u64
    }, u64;
    f32, F32, |v| v.to_bits(), |w| f32::from_bits(w), u32;
    f64, F64, |v| v.to_bits(), |w| f64::from_bits(w), u64;
}

/// A row of parameters, as words: see [`Scalar::to_word`].
pub trait RowWords {
    /// Appends a word for each parameter.
    fn put_words(self, bytes: &mut Vec<u8>);
}

/// The results of a row, as words.
pub trait ResultWords: Sized {
    /// Returns `None` if these are not as many words as there are results.
    fn of_words(words: &[[u8; 8]]) -> Option<Self>;
}

/// The parameters of a typed function: a scalar, or a tuple of scalars.
pub trait Parameters: RowWords {
    fn types() -> Vec<ValueType>;
    fn values(self) -> Vec<Value>;
}

/// The results of a typed function: nothing, a scalar, or a tuple of scalars.
pub trait Results: ResultWords {
    fn types() -> Vec<ValueType>;
    /// Returns `None` if the values have other types.
    fn of_values(values: &[Value]) -> Option<Self>;
}

impl<S: Scalar> Parameters for S {
    fn types() -> Vec<ValueType> {
        vec![S::TYPE]
    }
    fn values(self) -> Vec<Value> {
        vec![self.to_value()]
    }
}

impl<S: Scalar> RowWords for S {
    fn put_words(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_word().to_le_bytes());
    }
}

impl<S: Scalar> Results for S {
    fn types() -> Vec<ValueType> {
        vec![S::TYPE]
    }
    fn of_values(values: &[Value]) -> Option<Self> {
        match values {
            [value] => S::of_value(*value),
            _ => None,
        }
    }
}

impl<S: Scalar> ResultWords for S {
    fn of_words(words: &[[u8; 8]]) -> Option<Self> {
        match words {
            [word] => Some(S::of_word(u64::from_le_bytes(*word))),
            _ => None,
        }
    }
}

macro_rules! tuples {
    ($(($($name:ident),*))*) => {$(
        impl<$($name: Scalar),*> Parameters for ($($name,)*) {
            fn types() -> Vec<ValueType> {
                vec![$($name::TYPE),*]
            }
            #[allow(non_snake_case)]
            fn values(self) -> Vec<Value> {
                let ($($name,)*) = self;
                vec![$($name.to_value()),*]
            }
        }

        impl<$($name: Scalar),*> RowWords for ($($name,)*) {
            #[allow(non_snake_case, unused_variables)]
            fn put_words(self, bytes: &mut Vec<u8>) {
                let ($($name,)*) = self;
                $(bytes.extend_from_slice(&$name.to_word().to_le_bytes());)*
            }
        }

        impl<$($name: Scalar),*> Results for ($($name,)*) {
            fn types() -> Vec<ValueType> {
                vec![$($name::TYPE),*]
            }
            #[allow(non_snake_case)]
            fn of_values(values: &[Value]) -> Option<Self> {
                let [$($name),*] = values else { return None };
                Some(($($name::of_value(*$name)?,)*))
            }
        }

        impl<$($name: Scalar),*> ResultWords for ($($name,)*) {
            #[allow(non_snake_case)]
            fn of_words(words: &[[u8; 8]]) -> Option<Self> {
                let [$($name),*] = words else { return None };
                Some(($($name::of_word(u64::from_le_bytes(*$name)),)*))
            }
        }
    )*};
}

tuples! {
    ()
    (A)
    (A, B)
    (A, B, C)
    (A, B, C, D)
    (A, B, C, D, E)
    (A, B, C, D, E, F)
    (A, B, C, D, E, F, G)
    (A, B, C, D, E, F, G, H)
}
