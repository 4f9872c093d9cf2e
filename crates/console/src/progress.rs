//! A spinner for work that takes long.

use gpu_run_compiler::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
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
            let bar = spinner(ProgressDrawTarget::stderr(), &message);
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

/// A bar with an own target would have the style of a bar, which shows no message.
fn spinner(target: ProgressDrawTarget, message: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target).with_style(ProgressStyle::default_spinner());
    bar.set_message(printable::name(message).into_owned());
    bar
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.messages.take());
        if let Some(spinner) = self.spinner.take() {
            let _ = spinner.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use parking_lot::Mutex;
    use std::sync::Arc;

    /// A terminal that keeps what is written to it.
    #[derive(Clone, Debug, Default)]
    struct Written(Arc<Mutex<String>>);

    impl TermLike for Written {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_spinner_shows_its_message_and_no_bar() {
        let written = Written::default();
        let bar = spinner(ProgressDrawTarget::term_like(Box::new(written.clone())), "compiling app.wasm");
        bar.tick();
        let text = written.0.lock().clone();
        assert!(text.contains("compiling app.wasm") && !text.contains("0/0"), "{text:?}");
    }
}
