//! Printing with the number of who prints.

use std::fmt;

/// Whether `gpu_println!` and `gpu_dbg!` print in release builds, too.
#[doc(hidden)]
pub const PRINTS: bool = cfg!(feature = "print");

/// Displays who calls: the instance, and the thread if there can be others.
#[doc(hidden)]
#[derive(Debug)]
pub struct Place;

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match crate::threads() {
            1 => write!(f, "[{}]", crate::instance()),
            _ => write!(f, "[{}.{}]", crate::instance(), crate::thread()),
        }
    }
}

/// Prints a line on stdout that begins with the instance's number: `[3] hello`. In a program with threads, the thread's number
/// follows: `[0.17] hello`.
///
/// In release builds, it prints nothing and evaluates nothing, unless the crate's feature `print` is on.
///
/// ```
/// gpu_run_guest::gpu_println!("x is {}", 2.5); // [0] x is 2.5
/// ```
#[macro_export]
macro_rules! gpu_println {
    () => {
        if $crate::PRINTS || cfg!(debug_assertions) {
            ::std::println!("{}", $crate::Place);
        }
    };
    ($($arg:tt)*) => {
        if $crate::PRINTS || cfg!(debug_assertions) {
            ::std::println!("{} {}", $crate::Place, ::std::format_args!($($arg)*));
        }
    };
}

/// Prints an expression and its value on stderr, as [`dbg!`] does, with the number of [`gpu_println!`](crate::gpu_println!), and
/// returns the value. Of several expressions, it returns a tuple; without one, it prints where it is.
///
/// In release builds, it only returns the value, unless the crate's feature `print` is on.
///
/// ```
/// let half = gpu_run_guest::gpu_dbg!(5 / 2) + 1; // [0] src/main.rs:1: 5 / 2 = 2
/// assert_eq!(half, 3);
/// ```
#[macro_export]
macro_rules! gpu_dbg {
    () => {
        if $crate::PRINTS || cfg!(debug_assertions) {
            let (file, line) = (::std::file!(), ::std::line!());
            ::std::eprintln!("{} {file}:{line}", $crate::Place);
        }
    };
    ($value:expr $(,)?) => {
        match $value {
            value => {
                if $crate::PRINTS || cfg!(debug_assertions) {
                    let (file, line) = (::std::file!(), ::std::line!());
                    ::std::eprintln!("{} {file}:{line}: {} = {:#?}", $crate::Place, ::std::stringify!($value), &value);
                }
                value
            }
        }
    };
    ($($value:expr),+ $(,)?) => {
        ($($crate::gpu_dbg!($value)),+,)
    };
}
