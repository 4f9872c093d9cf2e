//! Scripts on a desktop.

use crate::apps::Apps;
use crate::desktop::{Desktop, Error, Result};
use crate::script::{Place, Script, Step};
use crate::{Owners, event, map};
use gpu_run_machine::Event;
use std::thread;
use std::time::{Duration, Instant};

/// How far below a window's top the pointer takes hold of it, in units.
const TITLE_HANDLE: f32 = 18.0;
/// The most frames in which everything that moves has to come to rest.
const MAX_SETTLE: u32 = 10_000;
/// How long a script waits for a text.
const EXPECT_FOR: Duration = Duration::from_secs(120);
/// How often a frame is done while a script waits.
const PERIOD: Duration = Duration::from_millis(8);

/// Someone who does what a script says.
struct Performer<'a> {
    desktop: &'a mut Desktop,
    apps: Option<&'a mut Apps>,
}

impl Desktop {
    /// Does what a script says.
    pub fn run(&mut self, script: &Script) -> Result<()> {
        Performer { desktop: self, apps: None }.run(script)
    }

    /// Does what a script says, with apps.
    pub fn run_with(&mut self, script: &Script, apps: &mut Apps) -> Result<()> {
        Performer { desktop: self, apps: Some(apps) }.run(script)
    }

    /// Does frames until nothing moves any more.
    pub fn settle(&mut self) -> Result<()> {
        Performer { desktop: self, apps: None }.settle()
    }

    /// Fails if commands were refused.
    pub(crate) fn check_refused(&self, line: usize) -> Result<()> {
        match self.word(map::D_REFUSED)? {
            0 => Ok(()),
            count => Err(Error::Refused { count, line }),
        }
    }
}

impl Performer<'_> {
    /// Does a frame with these events, and what apps want.
    fn frame(&mut self, events: &[Event]) -> Result<()> {
        let Some(apps) = &mut self.apps else { return self.desktop.frame(events) };
        let mut events = events.to_vec();
        events.extend(apps.events(usize::MAX));
        self.desktop.frame(&events)?;
        apps.told(&self.desktop.told(), self.desktop);
        Ok(())
    }

    /// Does frames until nothing moves any more.
    fn settle(&mut self) -> Result<()> {
        for _ in 0..MAX_SETTLE {
            self.frame(&[])?;
            if self.desktop.word(map::D_MOVING)? == 0 {
                return Ok(());
            }
        }
        Err(Error::Restless)
    }

    fn run(&mut self, script: &Script) -> Result<()> {
        let mut events = Vec::new();
        for (line, step) in &script.steps {
            if let Step::Event(event) = step {
                events.push(*event);
                continue;
            }
            self.frame(&std::mem::take(&mut events))?;
            self.check(*line)?;
            match step {
                Step::Event(_) => {}
                Step::Frames(count) => (1..*count).try_for_each(|_| self.frame(&[]))?,
                Step::Settle => self.settle()?,
                Step::Wait(time) => self.wait(*time)?,
                Step::Start { name, args } => match &self.apps {
                    Some(apps) => apps.start(name, args),
                    None => return Err(Error::NoApps { line: *line }),
                },
                Step::Expect(text) => self.expect(text, *line)?,
                Step::Pointer { kind, at } => {
                    let (x, y) = self.handle(at, *line)?;
                    events.push(self.desktop.pointer(*kind, x, y)?);
                }
                Step::Drag { at, by, frames } => {
                    let from = self.handle(at, *line)?;
                    self.drag(from, *by, *frames)?;
                }
            }
        }
        self.frame(&events)?;
        self.check(script.steps.last().map_or(0, |(line, _)| *line))?;
        self.settle()
    }

    /// Where the pointer takes hold of a widget: a window at its title, everything else in the middle.
    fn handle(&self, at: &Place, line: usize) -> Result<(f32, f32)> {
        let (number, name) = match at {
            Place::At(x, y) => return Ok((*x, *y)),
            Place::Widget { number, name } => (*number, name),
        };
        let middle = self.desktop.middle(number)?;
        let (x, y) = middle.ok_or_else(|| Error::Invisible { line, name: name.clone() })?;
        if self.desktop.word(map::W_KIND + number * 4)? != event::kinds::WINDOW {
            return Ok((x, y));
        }
        let top = f32::from_bits(self.desktop.word(map::W_AT_Y + number * 4)?);
        Ok((x, top + TITLE_HANDLE))
    }

    /// Presses, moves over so many frames, and releases.
    fn drag(&mut self, (x, y): (f32, f32), by: (f32, f32), frames: u32) -> Result<()> {
        let press = [self.desktop.pointer(event::MOVE, x, y)?, self.desktop.pointer(event::PRESS, x, y)?];
        self.frame(&press)?;
        for frame in 1..=frames {
            let share = frame as f32 / frames as f32;
            let moved = self.desktop.pointer(event::MOVE, x + by.0 * share, y + by.1 * share)?;
            self.frame(&[moved])?;
        }
        let release = self.desktop.pointer(event::RELEASE, x + by.0, y + by.1)?;
        self.frame(&[release])
    }

    /// Does frames for so long.
    fn wait(&mut self, time: Duration) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < time {
            self.frame(&[])?;
            thread::sleep(PERIOD);
        }
        Ok(())
    }

    /// Does frames until a widget has this text somewhere in its own.
    fn expect(&mut self, text: &str, line: usize) -> Result<()> {
        let began = Instant::now();
        loop {
            // Few reads: on a GPU, each takes its time.
            let lengths = self.desktop.words(map::W_TEXT_LENGTH, self.desktop.word(map::D_USED)?)?;
            for (widget, length) in (0..).zip(lengths) {
                if length as usize >= text.chars().count() && self.desktop.text(widget)?.contains(text) {
                    return Ok(());
                }
            }
            if began.elapsed() > EXPECT_FOR {
                return Err(Error::Unexpected { line, text: text.to_owned() });
            }
            self.wait(PERIOD)?;
        }
    }

    fn check(&self, line: usize) -> Result<()> {
        // What apps were refused is not the script's.
        if self.apps.is_some() { Ok(()) } else { self.desktop.check_refused(line) }
    }
}
