//! One app.

use super::outbox::{Outbox, Silent};
use super::widgets::{Numbers, Widgets};
use super::{Back, Listed, Running, Shared};
use crate::Desktop;
use crate::event;
use gpu_run_machine::Event;
use gpu_run_ui::wire::{self, BYTES, MAX_FOLLOWING, Record};
use parking_lot::{Condvar, Mutex};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The most commands that wait for a frame.
const MAX_WAITING: usize = 8192;
/// How long an app that has no window any more may take to end.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub(super) struct App {
    pub(super) id: u32,
    listed: Listed,
    running: Box<dyn Running>,
    pub(super) widgets: Mutex<Widgets>,
    outbox: Outbox,
    inbox: Mutex<Inbox>,
    taken: Condvar,
}

#[derive(Default)]
struct Inbox {
    /// For the next frame.
    waiting: Vec<Event>,
    /// What is asked after these events; and what is answered after the frame that took them.
    questions: Vec<Record>,
    due: Vec<Record>,
    is_closed: bool,
}

impl App {
    pub(super) fn new(id: u32, listed: Listed, running: Box<dyn Running>) -> Self {
        Self {
            id,
            listed,
            running,
            widgets: Mutex::default(),
            outbox: Outbox::default(),
            inbox: Mutex::default(),
            taken: Condvar::new(),
        }
    }

    /// Serves the app's stream with two threads.
    pub(super) fn serve(self: &Arc<Self>, stream: UnixStream, shared: &Arc<Shared>) {
        let writer = match stream.try_clone() {
            Ok(writer) => writer,
            Err(error) => return self.end(shared, Some(&error.to_string())),
        };
        let (app, back) = (self.clone(), Arc::downgrade(shared));
        let reads = move || {
            let said = app.read(&stream, &back);
            if let Some(shared) = back.upgrade() {
                app.end(&shared, said.err().as_deref());
            }
        };
        let (app, back) = (self.clone(), Arc::downgrade(shared));
        let writes = move || {
            let silent = app.outbox.write(&writer);
            if let (Silent::Hangs, Some(shared)) = (silent, back.upgrade()) {
                app.end(&shared, Some("it did not look at what happened for 10 seconds"));
            }
            // The reader ends with the stream.
            _ = writer.shutdown(std::net::Shutdown::Both);
        };
        let begun = thread::Builder::new()
            .name("gpu-run app".into())
            .spawn(reads)
            .and_then(|_| thread::Builder::new().name("gpu-run app's clock".into()).spawn(writes));
        if let Err(error) = begun {
            self.end(shared, Some(&error.to_string()));
        }
    }

    /// Ends the app, if it runs, with its windows. The reason is told.
    fn end(&self, shared: &Shared, reason: Option<&str>) {
        if let Some(reason) = reason {
            shared.starter.say(&format!("{} was closed: {reason}", self.listed.name));
        }
        self.running.kill();
        self.outbox.close();
        let mut inbox = self.inbox.lock();
        inbox.is_closed = true;
        self.taken.notify_all();
        drop(inbox);
        shared.ended(self);
    }

    pub(super) fn kill(&self) {
        self.running.kill();
    }

    /// Reads commands until the app closes its end.
    fn read(self: &Arc<Self>, mut stream: &UnixStream, back: &Back) -> Result<(), String> {
        let mut bytes = Vec::new();
        let mut piece = vec![0; 1 << 16];
        loop {
            let count = match stream.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return Ok(()),
            };
            bytes.extend_from_slice(&piece[..count]);
            let Some(shared) = back.upgrade() else { return Ok(()) };
            let mut at = 0;
            while let Some(head) = bytes[at..].first_chunk::<BYTES>() {
                let record = Record::from_bytes(head);
                let following = record.following();
                if following > MAX_FOLLOWING {
                    return Err(format!("it sent a record with {following} bytes"));
                }
                let Some(rest) = bytes.get(at + BYTES..at + BYTES + following) else { break };
                self.take_record(&record, rest, &shared)?;
                at += BYTES + following;
            }
            bytes.drain(..at);
            // Has the desktop do a frame.
            if !(shared.wake)() {
                return Ok(());
            }
        }
    }

    fn take_record(self: &Arc<Self>, record: &Record, following: &[u8], shared: &Arc<Shared>) -> Result<(), String> {
        match record.kind {
            wire::ALIVE => self.outbox.is_alive(),
            wire::TICK => self.outbox.tick_in(Duration::from_micros(record.a.into())),
            // Whoever waits for an answer does not look at what happens meanwhile.
            wire::TEXT_OF | wire::STATUS => {
                self.outbox.is_alive();
                self.wait_for_room(shared, |inbox| inbox.questions.push(*record));
            }
            wire::START => {
                let mut words =
                    following.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
                let name = words.next().unwrap_or_default();
                let mut args: Vec<String> = words.collect();
                // Behind the last zero byte there is nothing.
                args.pop();
                shared.start(&name, &args);
            }
            event::THEME | event::ACCENT | event::RATE | event::ZOOM => {
                if self.listed.is_trusted {
                    let event = Event { kind: record.kind, a: record.a, ..Event::default() };
                    self.wait_for_room(shared, |inbox| inbox.waiting.push(event));
                }
            }
            _ => {
                let event = {
                    // First the numbers, then the widgets, as everywhere.
                    let mut numbers = shared.numbers.lock();
                    self.widgets.lock().command(record, self.id, &mut numbers)?
                };
                if let Some(event) = event {
                    self.wait_for_room(shared, |inbox| inbox.waiting.push(event));
                }
            }
        }
        Ok(())
    }

    /// Puts something into the inbox when there is room.
    fn wait_for_room(&self, shared: &Shared, put: impl FnOnce(&mut Inbox)) {
        let mut inbox = self.inbox.lock();
        while inbox.waiting.len() + inbox.questions.len() >= MAX_WAITING && !inbox.is_closed {
            // Waking the desktop does not wait for it.
            if (shared.wake)() {
                self.taken.wait(&mut inbox);
            } else {
                inbox.is_closed = true;
            }
        }
        put(&mut inbox);
    }

    /// Returns commands for the next frame, at most so many.
    pub(super) fn take(&self, most: usize) -> Vec<Event> {
        let mut inbox = self.inbox.lock();
        let count = inbox.waiting.len().min(most);
        let events = inbox.waiting.drain(..count).collect();
        if inbox.waiting.is_empty() {
            let questions = std::mem::take(&mut inbox.questions);
            inbox.due.extend(questions);
        }
        self.taken.notify_all();
        events
    }

    /// Tells the app what happened to a widget of it.
    pub(super) fn tell(self: &Arc<Self>, it: &Event, numbers: &mut Numbers) {
        let mut widgets = self.widgets.lock();
        let Some(key) = widgets.own(it.key) else { return };
        self.outbox.send(Record { kind: it.kind, flags: it.flags, key, a: it.a, ..Record::default() }, &[]);
        if it.kind == event::CLOSED {
            widgets.forget(it.key, numbers);
            if widgets.windows().is_empty() {
                drop(widgets);
                self.end_soon();
            }
        }
    }

    /// An app without windows is ended if it opens none and does not end by itself.
    fn end_soon(self: &Arc<Self>) {
        let app = Arc::downgrade(self);
        let end = move || {
            thread::sleep(LAST_WORDS);
            if let Some(app) = app.upgrade()
                && app.widgets.lock().windows().is_empty()
            {
                app.running.kill();
            }
        };
        // Without the thread, an app that hangs stays.
        _ = thread::Builder::new().name("gpu-run app's end".into()).spawn(end);
    }

    /// Answers what was asked before the last frame.
    pub(super) fn answer(&self, desktop: &Desktop) {
        let due = std::mem::take(&mut self.inbox.lock().due);
        for question in due {
            let text = match question.kind {
                wire::STATUS => desktop.figures(),
                _ => {
                    let number = self.widgets.lock().number(question.key);
                    number.and_then(|number| desktop.text(number).ok()).unwrap_or_default()
                }
            };
            let record = Record { kind: question.kind, key: question.key, a: text.len() as u32, ..Record::default() };
            self.outbox.send(record, text.as_bytes());
        }
    }
}
