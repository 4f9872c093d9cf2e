//! A spinner for work that takes long.

use gpu_run_compiler::printable;
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// No spinner is shown for work that takes less time than this.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

/// Shows a spinner while it lives, if stderr is a terminal.
#[derive(Debug)]
pub struct Progress {
    end: Option<mpsc::Sender<()>>,
    spinner: Option<JoinHandle<()>>,
}

impl Progress {
    pub fn start(message: String) -> Self {
        if !io::stderr().is_terminal() {
            return Self { end: None, spinner: None };
        }
        let (end, ended) = mpsc::channel();
        let message = printable::name(&message).into_owned();
        let spin = move || {
            if ended.recv_timeout(SHOWN_AFTER) == Err(RecvTimeoutError::Timeout) {
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_message(message);
                bar.enable_steady_tick(Duration::from_millis(100));
                let _ = ended.recv();
                bar.finish_and_clear();
            }
        };
        Self { end: Some(end), spinner: Some(std::thread::spawn(spin)) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(spinner) = self.spinner.take() {
            let _ = spinner.join();
        }
    }
}
