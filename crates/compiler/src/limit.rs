//! Stops compiling that takes too long.
//!
//! The compiler checks the clock between two functions, and kills the assemblers it has started. A single function can
//! take longer than the limit, so a thread of its own does all the compiling, and is abandoned when its time is over.

use crate::error::Error;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long compiling may take by default.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
/// How long past the limit the compiler may take to report which step it was at.
const GRACE: Duration = Duration::from_millis(500);
/// Bytes of the compiling thread's stack.
const STACK_BYTES: usize = 16 << 20;

/// Runs `compile` within `limit`, and passes it the time by which it has to finish. `name` is what is compiled.
pub(crate) fn within<T: Send + 'static>(
    name: &str,
    limit: Option<Duration>,
    compile: impl FnOnce(Option<Instant>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let Some((limit, until)) = limit.and_then(|limit| Some((limit, Instant::now().checked_add(limit)?))) else {
        return compile(None);
    };
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name("compiler".into()).stack_size(STACK_BYTES);
    let spawned = thread.spawn(move || drop(sender.send(compile(Some(until)))));
    spawned.map_err(|error| Error::Internal(format!("cannot start a thread to compile {name}: {error}")))?;
    match receiver.recv_timeout(limit.saturating_add(GRACE)) {
        Ok(Err(Error::Late(place))) => Err(late(name, limit, &format!("; it was at {place}"))),
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(late(name, limit, "")),
        Err(RecvTimeoutError::Disconnected) => Err(Error::Internal(format!("the compiler failed on {name}"))),
    }
}

fn late(name: &str, limit: Duration, place: &str) -> Error {
    Error::CompileTimeout(format!("compiling {name} took longer than {limit:?}{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_does_not_end_is_left_to_itself() {
        let (_never, waits) = mpsc::channel::<()>();
        let error = within("a.wasm", Some(Duration::from_millis(1)), move |_| {
            let _ = waits.recv();
            Ok(())
        });
        let error = error.expect_err("it does not end").to_string();
        assert!(error.contains("a.wasm"), "{error}");
    }

    #[test]
    fn one_that_notices_says_what_it_was_at() {
        let error = within::<()>("a.wasm", Some(Duration::from_secs(600)), |until| {
            assert!(until.is_some());
            Err(Error::Late("function 7".into()))
        });
        assert!(error.expect_err("it was late").to_string().contains("was at function 7"));
        assert!(within("a.wasm", None, |until| Ok(until.is_none())).expect("no limit"));
    }
}
