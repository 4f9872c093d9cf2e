//! The desktop, as an app sees it.

use crate::connection::Connection;
use crate::event::{self, kinds};
use crate::happens::Event;
use crate::widget::Widget;
use crate::wire::{self, Record};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

/// The way to the desktop. Clones are the same way.
#[derive(Clone, Debug)]
pub struct Ui(pub(crate) Rc<Connection>);

impl Ui {
    /// Connects to the desktop that has started this program. An error says that there is none.
    pub fn connect() -> io::Result<Self> {
        Ok(Self(Rc::new(Connection::open()?)))
    }

    /// Speaks to a desktop over a stream that the program has otherwise.
    pub fn over(stream: OwnedFd) -> Self {
        Self(Rc::new(Connection::over(stream.into())))
    }

    /// Opens a window.
    pub fn window(&self, title: &str) -> Widget {
        Widget::make(&self.0, 0, kinds::WINDOW, title)
    }

    /// Waits until something happens to one of the widgets. Returns `None` when the desktop ends.
    // It may fail, and it is not an iterator's.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&self) -> io::Result<Option<Event>> {
        loop {
            let Some(record) = self.0.receive()? else { return Ok(None) };
            if let Some(event) = Event::new(&self.0, &record) {
                return Ok(Some(event));
            }
        }
    }

    /// Has [`Event::Tick`] come once, after so long. What is asked for again before that replaces it.
    pub fn tick_in(&self, time: Duration) {
        let a = time.as_micros().min(u128::from(u32::MAX)) as u32;
        self.0.send(Record { kind: wire::TICK, a, ..Record::default() });
    }

    /// Chooses the dark palette, or the light one, for the whole desktop. Only apps that come with gpu-run may.
    pub fn set_dark(&self, dark: bool) {
        self.0.send(Record { kind: event::THEME, a: dark.into(), ..Record::default() });
    }

    /// Sets the colour of what is chosen and of main actions: red, green, blue. Only apps that come with gpu-run may.
    pub fn set_accent(&self, [red, green, blue]: [u8; 3]) {
        let a = u32::from_le_bytes([red, green, blue, 0]);
        self.0.send(Record { kind: event::ACCENT, a, ..Record::default() });
    }

    /// Sets how many frames a second things move with. Only apps that come with gpu-run may.
    pub fn set_rate(&self, rate: u32) {
        self.0.send(Record { kind: event::RATE, a: rate, ..Record::default() });
    }

    /// Sets how large everything is: 1.0 is as the display has it, from 0.25 to 4. Only apps that come with gpu-run may.
    pub fn set_scale(&self, scale: f32) {
        let a = (scale * 256.0).round() as u32;
        self.0.send(Record { kind: event::ZOOM, a, ..Record::default() });
    }

    /// Starts another app of the desktop, by its name.
    pub fn start(&self, name: &str, args: &[&str]) {
        let mut words = Vec::new();
        for word in std::iter::once(&name).chain(args) {
            words.extend(word.bytes());
            words.push(0);
        }
        if words.len() <= wire::MAX_FOLLOWING {
            self.0.send_with(Record { kind: wire::START, a: words.len() as u32, ..Record::default() }, &words);
        }
    }

    /// Asks how the desktop is: names and numbers, such as `frames` and `layout_us`.
    pub fn status(&self) -> io::Result<Vec<(String, f64)>> {
        let bytes = self.0.ask(Record { kind: wire::STATUS, ..Record::default() })?;
        let text = String::from_utf8_lossy(&bytes);
        let pair = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Ok(text.lines().filter_map(pair).collect())
    }
}
