//! A spinner for work that takes long.

use gpu_run_compiler::printable;
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No spinner is shown for work that takes less time than this.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

/// Shows a spinner while it lives, if stderr is a terminal.
#[derive(Debug)]
pub struct Progress {
    messages: Option<mpsc::Sender<String>>,
    spinner: Option<JoinHandle<()>>,
}

impl Progress {
    pub fn start(message: String) -> Self {
        if !io::stderr().is_terminal() {
            return Self { messages: None, spinner: None };
        }
        let (messages, next) = mpsc::channel::<String>();
        let spin = move || {
            let mut message = message;
            let shown = Instant::now() + SHOWN_AFTER;
            loop {
                match next.recv_timeout(shown.saturating_duration_since(Instant::now())) {
                    Ok(other) => message = other,
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_message(printable::name(&message).into_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            next.iter().for_each(|other| bar.set_message(printable::name(&other).into_owned()));
            bar.finish_and_clear();
        };
        Self { messages: Some(messages), spinner: Some(std::thread::spawn(spin)) }
    }

    /// Shows another message.
    pub fn set(&self, message: String) {
        if let Some(messages) = &self.messages {
            let _ = messages.send(message);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.messages.take());
        if let Some(spinner) = self.spinner.take() {
            let _ = spinner.join();
        }
    }
}
