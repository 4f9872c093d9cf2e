//! Functions of the embedder: from a closure to what a guest can import.

use crate::error::AnyError;
use crate::value::Scalar;
use gpu_run_compiler::{Parameter, ValueType};

/// What a function of the embedder knows of the instance that calls it.
#[derive(Debug)]
pub struct Caller<'a, T> {
    data: &'a mut T,
    instance: u64,
}

impl<'a, T> Caller<'a, T> {
    pub(crate) fn new(data: &'a mut T, instance: u64) -> Self {
        Self { data, instance }
    }

    /// What the store holds for the instance.
    pub fn data(&self) -> &T {
        self.data
    }

    pub fn data_mut(&mut self) -> &mut T {
        self.data
    }

    /// The instance's number: of several instances of a command, or of a mapper's record. The others have 0.
    pub fn instance(&self) -> u64 {
        self.instance
    }
}

/// What a guest passes in a call.
#[derive(Debug)]
pub struct Arguments<'a> {
    words: &'a [u8],
    bytes: &'a [u8],
}

const WORD: usize = 8;

impl<'a> Arguments<'a> {
    /// Returns `None` if the input is shorter than a call with so many parameters can be.
    pub(crate) fn new(input: &'a [u8], parameters: usize) -> Option<Self> {
        let (words, bytes) = input.split_at_checked(parameters * WORD)?;
        Some(Self { words, bytes })
    }

    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.words.split_first_chunk::<WORD>()?;
        self.words = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.word()?).ok()?;
        let (bytes, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(bytes)
    }
}

/// A Rust type that a function of the embedder can take: a number, or text or bytes, for which the guest passes a pointer and a length.
pub trait Argument: Sized + Send + 'static {
    #[doc(hidden)]
    const PARAMETER: Parameter;
    #[doc(hidden)]
    fn take(arguments: &mut Arguments<'_>) -> Result<Self, AnyError>;
}

const SHORT: &str = "the call has fewer arguments than the function has parameters";

macro_rules! numbers {
    ($($type:ty = $parameter:ident),*) => {$(
        impl Argument for $type {
            const PARAMETER: Parameter = Parameter::$parameter;
            fn take(arguments: &mut Arguments<'_>) -> Result<Self, AnyError> {
                Ok(Scalar::of_word(arguments.word().ok_or(SHORT)?))
            }
        }
    )*};
}

numbers!(i32 = I32, u32 = I32, i64 = I64, u64 = I64, f32 = F32, f64 = F64);

impl Argument for Vec<u8> {
    const PARAMETER: Parameter = Parameter::Bytes;
    fn take(arguments: &mut Arguments<'_>) -> Result<Self, AnyError> {
        Ok(arguments.bytes().ok_or(SHORT)?.to_vec())
    }
}

impl Argument for String {
    const PARAMETER: Parameter = Parameter::Bytes;
    fn take(arguments: &mut Arguments<'_>) -> Result<Self, AnyError> {
        Ok(std::str::from_utf8(arguments.bytes().ok_or(SHORT)?)?.to_owned())
    }
}

/// What a function of the embedder returned: the word of its result, and bytes for the guest's memory.
#[derive(Debug, Default)]
pub struct Returned {
    pub(crate) word: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A Rust type that a function of the embedder can return.
///
/// For text or bytes, the guest's function has two more parameters at the end, a pointer and a length, and returns how many bytes there
/// are (i32). If that is more than the length it passed, it got only the first ones.
pub trait Answer: Send + 'static {
    #[doc(hidden)]
    const RESULT: Option<ValueType>;
    #[doc(hidden)]
    const HAS_ROOM: bool = false;
    #[doc(hidden)]
    fn returned(self) -> Result<Returned, AnyError>;
}

impl Answer for () {
    const RESULT: Option<ValueType> = None;
    fn returned(self) -> Result<Returned, AnyError> {
        Ok(Returned::default())
    }
}

impl<S: Scalar> Answer for S {
    const RESULT: Option<ValueType> = Some(S::TYPE);
    fn returned(self) -> Result<Returned, AnyError> {
        Ok(Returned { word: self.to_word(), bytes: Vec::new() })
    }
}

impl Answer for Vec<u8> {
    const RESULT: Option<ValueType> = Some(ValueType::I32);
    const HAS_ROOM: bool = true;
    fn returned(self) -> Result<Returned, AnyError> {
        let length = u32::try_from(self.len())?;
        Ok(Returned { word: length.into(), bytes: self })
    }
}

impl Answer for String {
    const RESULT: Option<ValueType> = Some(ValueType::I32);
    const HAS_ROOM: bool = true;
    fn returned(self) -> Result<Returned, AnyError> {
        self.into_bytes().returned()
    }
}

/// A function that fails ends the instance, and the call of the instance returns the error.
impl<A: Answer, E: Into<AnyError> + Send + 'static> Answer for Result<A, E> {
    const RESULT: Option<ValueType> = A::RESULT;
    const HAS_ROOM: bool = A::HAS_ROOM;
    fn returned(self) -> Result<Returned, AnyError> {
        self.map_err(Into::into)?.returned()
    }
}

/// A function with its parameters, ready to be called.
pub(crate) struct HostFunction<T> {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) result: Option<ValueType>,
    #[allow(clippy::type_complexity)]
    pub(crate) call: Box<dyn Fn(Caller<'_, T>, Arguments<'_>) -> Result<Returned, AnyError> + Send + Sync>,
    /// Whether it may take long, so that other threads run it.
    pub(crate) blocks: bool,
}

/// A closure that can be provided for import. Its parameters are [`Argument`]s, with a [`Caller`] in front if it wants to know who
/// calls; what it returns is an [`Answer`].
pub trait IntoFunction<T, P>: Send + Sync + 'static {
    #[doc(hidden)]
    fn parameters() -> Vec<Parameter>;
    #[doc(hidden)]
    fn result() -> Option<ValueType>;
    #[doc(hidden)]
    fn call(&self, caller: Caller<'_, T>, arguments: Arguments<'_>) -> Result<Returned, AnyError>;
}

fn parameters_of<A: Answer>(own: &[Parameter]) -> Vec<Parameter> {
    own.iter().copied().chain(A::HAS_ROOM.then_some(Parameter::Room)).collect()
}

macro_rules! functions {
    ($(($($name:ident),*))*) => {$(
        impl<T, F, R: Answer, $($name: Argument),*> IntoFunction<T, (R, $($name,)*)> for F
        where
            F: Fn($($name),*) -> R + Send + Sync + 'static,
        {
            fn parameters() -> Vec<Parameter> {
                parameters_of::<R>(&[$($name::PARAMETER),*])
            }
            fn result() -> Option<ValueType> {
                R::RESULT
            }
            #[allow(non_snake_case, unused_mut, unused_variables)]
            fn call(&self, _: Caller<'_, T>, mut arguments: Arguments<'_>) -> Result<Returned, AnyError> {
                $(let $name = $name::take(&mut arguments)?;)*
                self($($name),*).returned()
            }
        }

        impl<T, F, R: Answer, $($name: Argument),*> IntoFunction<T, (Caller<'static, T>, R, $($name,)*)> for F
        where
            T: 'static,
            F: Fn(Caller<'_, T>, $($name),*) -> R + Send + Sync + 'static,
        {
            fn parameters() -> Vec<Parameter> {
                parameters_of::<R>(&[$($name::PARAMETER),*])
            }
            fn result() -> Option<ValueType> {
                R::RESULT
            }
            #[allow(non_snake_case, unused_mut, unused_variables)]
            fn call(&self, caller: Caller<'_, T>, mut arguments: Arguments<'_>) -> Result<Returned, AnyError> {
                $(let $name = $name::take(&mut arguments)?;)*
                self(caller, $($name),*).returned()
            }
        }
    )*};
}

functions! {
    ()
    (A)
    (A, B)
    (A, B, C)
    (A, B, C, D)
    (A, B, C, D, E)
    (A, B, C, D, E, G)
    (A, B, C, D, E, G, H)
    (A, B, C, D, E, G, H, I)
}
