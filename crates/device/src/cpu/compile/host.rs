//! Functions of this process that compiled code calls. They have numbers, because their addresses differ from run to
//! run and code is kept for many runs.

use crate::cpu::context;
use cranelift_codegen::ir::LibCall;

/// The host functions that compiled code calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Host {
    Exit,
    Fault,
    Sleep,
    Barrier,
    Warp,
    Timer,
    Clock,
    Late,
    Await,
    Wake,
    Look,
    Turn,
    Sine,
    Cosine,
    Exp2,
    Log2,
    InverseRoot,
}

impl Host {
    const ALL: [Self; 17] = [
        Self::Exit,
        Self::Fault,
        Self::Sleep,
        Self::Barrier,
        Self::Warp,
        Self::Timer,
        Self::Clock,
        Self::Late,
        Self::Await,
        Self::Wake,
        Self::Look,
        Self::Turn,
        Self::Sine,
        Self::Cosine,
        Self::Exp2,
        Self::Log2,
        Self::InverseRoot,
    ];

    pub(super) fn number(self) -> u32 {
        self as u32
    }

    fn address(self) -> usize {
        match self {
            Self::Exit => context::exit as *const () as usize,
            Self::Fault => context::fault as *const () as usize,
            Self::Sleep => context::sleep as *const () as usize,
            Self::Barrier => context::barrier as *const () as usize,
            Self::Warp => context::warp as *const () as usize,
            Self::Timer => context::timer as *const () as usize,
            Self::Clock => context::clock as *const () as usize,
            Self::Late => context::late as *const () as usize,
            Self::Await => context::await_word as *const () as usize,
            Self::Wake => context::wake_word as *const () as usize,
            Self::Look => context::look_word as *const () as usize,
            Self::Turn => context::turn as *const () as usize,
            Self::Sine => sine as *const () as usize,
            Self::Cosine => cosine as *const () as usize,
            Self::Exp2 => exp2 as *const () as usize,
            Self::Log2 => log2 as *const () as usize,
            Self::InverseRoot => inverse_root as *const () as usize,
        }
    }
}

// What a GPU approximates is rounded from f64 here.

extern "C" fn sine(x: f32) -> f32 {
    f64::from(x).sin() as f32
}
extern "C" fn cosine(x: f32) -> f32 {
    f64::from(x).cos() as f32
}
extern "C" fn exp2(x: f32) -> f32 {
    f64::from(x).exp2() as f32
}
extern "C" fn log2(x: f32) -> f32 {
    f64::from(x).log2() as f32
}
extern "C" fn inverse_root(x: f32) -> f32 {
    f64::from(x).sqrt().recip() as f32
}

/// The function by which a thread looks at the stop word; only programs with threads have it.
pub(super) const LOOK: &str = "look_word";

/// Returns the host function that takes the place of a PTX function with this name.
pub(super) fn in_place_of(name: &str) -> Option<Host> {
    match name {
        "await_word" => Some(Host::Await),
        "wake_word" => Some(Host::Wake),
        LOOK => Some(Host::Look),
        _ => None,
    }
}

/// Returns whether a PTX function is left out, and returns 0: threads of this device do not share warps.
pub(super) fn is_left_out(name: &str) -> bool {
    matches!(name, "step_clear" | "step_join" | "step_leave" | "step_meet")
}

/// Returns the address of the function with this number.
pub(super) fn address(number: u32) -> Option<usize> {
    let number = number as usize;
    match number.checked_sub(Host::ALL.len()) {
        None => Host::ALL.get(number).map(|host| host.address()),
        Some(number) => LIBRARY.get(number).map(|(_, address)| address()),
    }
}

/// Returns the number of the function that Cranelift calls where the processor has no instruction.
pub(super) fn library(call: LibCall) -> Option<u32> {
    LIBRARY.iter().position(|(known, _)| *known == call).map(|at| (Host::ALL.len() + at) as u32)
}

macro_rules! table {
    ($($call:ident($($arg:ident),* : $float:ty) => $value:expr,)*) => {
        [$((LibCall::$call, || {
            extern "C" fn function($($arg: $float),*) -> $float {
                $value
            }
            function as *const () as usize
        })),*]
    };
}

const LIBRARY: [(LibCall, fn() -> usize); 10] = table! {
    CeilF32(x: f32) => x.ceil(),
    CeilF64(x: f64) => x.ceil(),
    FloorF32(x: f32) => x.floor(),
    FloorF64(x: f64) => x.floor(),
    TruncF32(x: f32) => x.trunc(),
    TruncF64(x: f64) => x.trunc(),
    NearestF32(x: f32) => x.round_ties_even(),
    NearestF64(x: f64) => x.round_ties_even(),
    FmaF32(a, b, c: f32) => a.mul_add(b, c),
    FmaF64(a, b, c: f64) => a.mul_add(b, c),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_a_function_and_no_other_is() {
        for (at, host) in Host::ALL.into_iter().enumerate() {
            assert_eq!((host.number(), address(host.number())), (at as u32, Some(host.address())));
        }
        let count = (Host::ALL.len() + LIBRARY.len()) as u32;
        let addresses: std::collections::HashSet<_> = (0..count).filter_map(address).collect();
        assert_eq!(addresses.len(), count as usize);
        assert_eq!(address(count), None);
        assert_eq!(library(LibCall::FmaF64), Some(count - 1));
    }
}
