//! A desktop on a device, one frame after the other.

use crate::picture::Picture;
use crate::{KERNEL, event, map};
use gpu_run_compiler::Compiler;
use gpu_run_device::Device;
use gpu_run_machine::{Checkpoint, Ended, Event, GridSize, Kernel, Machine, Start, Status};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a frame may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long a machine may take no events, and how often it is asked again.
const POST_PATIENCE: Duration = Duration::from_secs(60);
const POST_AGAIN: Duration = Duration::from_millis(1);
/// The most events that one frame takes.
pub(crate) const MAX_EVENTS: usize = gpu_run_machine::layout::STAGED_MAX as usize;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Machine(#[from] gpu_run_machine::Error),
    #[error("cannot write {}: {error}", path.display())]
    Picture { path: PathBuf, error: String },
    #[error(
        "the desktop refused {count} commands of the script, up to line {line}: a widget lies in one that takes no others, or too deep, or a value is out of range"
    )]
    Refused { count: u32, line: usize },
    #[error("line {line}: {name} does not show, so the pointer cannot go there")]
    Invisible { line: usize, name: String },
    #[error("cannot serve the desktop's page: {0}")]
    Server(std::io::Error),
    #[error("cannot show the desktop in a window: {0}")]
    Window(String),
    #[error("something still moves after 10000 frames")]
    Restless,
    #[error("line {line}: there are no apps here; `gpu-run desktop` has them")]
    NoApps { line: usize },
    #[error("line {line}: no widget has the text {text:?} after two minutes")]
    Unexpected { line: usize, text: String },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The frame's size, and the threads that draw it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Pixels.
    pub width: u32,
    pub height: u32,
    /// Pixels for one unit of length.
    pub scale: f64,
    pub grid: GridSize,
    /// Threads per workgroup. Default: as for the machine.
    pub threads: Option<u32>,
}

/// What a live desktop asks after each frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Whether the next frames go on with something.
    pub(crate) moves: bool,
}

/// A desktop that does a frame when it is told to.
#[derive(Debug)]
pub struct Desktop {
    machine: Machine,
    tick: u64,
    began: Instant,
    /// Frames per second while something moves, where something moves by itself.
    pub(crate) rate: u32,
}

impl Desktop {
    /// Boots an empty desktop of this size, or one with the state of another, which brings its size.
    pub fn boot(compiler: &Compiler, device: &Arc<dyn Device>, start: Start, options: &Options) -> Result<Self> {
        let (tick, is_new) = match &start {
            Start::Empty => (0, true),
            Start::Checkpoint(checkpoint) => (checkpoint.tick(), false),
        };
        let machine = Machine::boot(
            compiler,
            device,
            start,
            gpu_run_machine::Options {
                rate: 0,
                held: true,
                grid: options.grid,
                threads: options.threads,
                kernel: Kernel::named("the desktop's kernel", KERNEL.to_vec())?,
                phases: &map::PHASE_NAMES,
                ..gpu_run_machine::Options::default()
            },
        )?;
        let mut desktop = Self { machine, tick, began: Instant::now(), rate: 60 };
        if is_new {
            let (key, a, b) = ((options.scale * 256.0) as u32, options.width, options.height);
            desktop.frame(&[Event { kind: event::RESIZE, key, a, b, ..Event::default() }])?;
            desktop.check_refused(0)?;
        }
        Ok(desktop)
    }

    /// Does a frame with these events; several frames, if one does not take as many.
    pub fn frame(&mut self, events: &[Event]) -> Result<()> {
        let mut rest = events;
        loop {
            let (now, later) = rest.split_at(rest.len().min(MAX_EVENTS));
            self.tick(now)?;
            rest = later;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Does one frame with these events, of which there are at most [`MAX_EVENTS`].
    pub(crate) fn tick(&mut self, events: &[Event]) -> Result<()> {
        for event in events {
            self.post(*event)?;
        }
        self.tick += 1;
        Ok(self.machine.run_to(self.tick, PATIENCE)?)
    }

    /// Posts an event. A machine that was held up, or restarts because all of this process was, takes none for a while.
    fn post(&self, event: Event) -> Result<()> {
        let since = Instant::now();
        loop {
            match self.machine.post(event) {
                Err(gpu_run_machine::Error::Full { .. }) if since.elapsed() < POST_PATIENCE => {
                    std::thread::sleep(POST_AGAIN);
                }
                posted => return Ok(posted?),
            }
        }
    }

    /// An event of the pointer at a place in units.
    pub fn pointer(&self, kind: u16, x: f32, y: f32) -> Result<Event> {
        let scale = self.word(map::D_SCALE)? as f32;
        let at = |at: f32| (at * scale).round() as i32 as u32;
        Ok(Event { kind, a: at(x), b: at(y), ..Event::default() })
    }

    /// The middle of a widget in units; none if it does not show.
    pub fn middle(&self, widget: u32) -> Result<Option<(f32, f32)>> {
        let word = |field: u32| self.word(field + widget * 4);
        if word(map::W_KIND)? == 0 || word(map::W_ORDER)? == 0 {
            return Ok(None);
        }
        let number = |field: u32| word(field).map(f32::from_bits);
        let (x, y) = (number(map::W_AT_X)?, number(map::W_AT_Y)?);
        Ok(Some((x + number(map::W_W)? / 2.0, y + number(map::W_H)? / 2.0)))
    }

    /// Returns the frame's size, and whether something moves.
    pub(crate) fn header(&self) -> Result<Header> {
        // One read for words that lie close to each other.
        let bytes = self.read(map::D_WIDTH, map::D_MOVING + 4 - map::D_WIDTH)?;
        let (words, _) = bytes.as_chunks::<4>();
        let word = |at: u32| u32::from_le_bytes(words[((at - map::D_WIDTH) / 4) as usize]);
        let (width, height) = (word(map::D_WIDTH), word(map::D_HEIGHT));
        Ok(Header { width, height, moves: word(map::D_MOVING) != 0 })
    }

    /// Returns a word of the desktop's memory.
    pub fn word(&self, at: u32) -> Result<u32> {
        let bytes = self.machine.read(at, 4)?;
        Ok(bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word)))
    }

    /// Returns a part of the desktop's memory. On a GPU each read takes some 20 µs, however little it reads.
    pub(crate) fn read(&self, at: u32, length: u32) -> Result<Vec<u8>> {
        Ok(self.machine.read(at, length)?)
    }

    /// Returns so many words of the desktop's memory.
    pub(crate) fn words(&self, at: u32, count: u32) -> Result<Vec<u32>> {
        let bytes = self.read(at, count * 4)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    /// Returns a widget's text; an empty one if there is no such widget.
    pub fn text(&self, widget: u32) -> Result<String> {
        if widget >= map::WIDGETS || self.word(map::W_KIND + widget * 4)? == 0 {
            return Ok(String::new());
        }
        let word = |field: u32| self.word(field + widget * 4);
        let (piece, length, gap) = (word(map::W_TEXT)?, word(map::W_TEXT_LENGTH)?, word(map::W_TEXT_GAP)?);
        let room = map::UNIT_TEXT << word(map::W_TEXT_ORDER)?.min(map::TEXT_ORDERS - 1);
        if piece >= map::TEXT_UNITS || length > room {
            return Ok(String::new());
        }
        let bytes = self.read(map::TEXT_ARENA + piece * map::UNIT_BYTES, room * 2)?;
        let (codes, _) = bytes.as_chunks::<2>();
        // The gap is where the last change was.
        let (before, behind) = (gap.min(length) as usize, (room - length + gap.min(length)) as usize);
        let character = |code: &[u8; 2]| char::from_u32(u16::from_le_bytes(*code) as u32).unwrap_or('\u{FFFD}');
        Ok(codes[..before].iter().chain(&codes[behind..]).map(character).collect())
    }

    /// Returns what was copied last.
    pub fn copied(&self) -> Result<String> {
        let length = self.word(map::S_COPIED)?.min(map::MAX_TEXT);
        let codes = self.words(map::COPIED_TEXT, length)?;
        Ok(codes.into_iter().map(|code| char::from_u32(code).unwrap_or('\u{FFFD}')).collect())
    }

    /// Returns what the desktop shows.
    pub fn picture(&self) -> Result<Picture> {
        let (width, height) = (self.word(map::D_WIDTH)?, self.word(map::D_HEIGHT)?);
        let pixels = self.machine.read(map::PIXELS, width * height * 4)?;
        Ok(Picture { width, height, pixels })
    }

    /// Returns what the machine reports about itself, with the time of each phase.
    pub fn status(&self) -> Status {
        self.machine.status()
    }

    /// Returns what the desktop reports about itself, for people and apps: lines with a name, a space, and a number.
    pub fn figures(&self) -> String {
        let status = self.status();
        let word = |at: u32| self.word(at).unwrap_or(0);
        let mut text = format!(
            "frames {}\ntime_us {}\nwidgets {}\ntext_blocks {}\ntiles {}\nevents {}\nrefused {}\nlaunches {}\nwaits {}\nhost_cpu_us {}\nrate {}\nscale_percent {}\ndark {}\naccent {}\neffects_left_out {}\n",
            self.tick,
            self.began.elapsed().as_micros(),
            word(map::D_COUNT),
            word(map::D_TEXT_COUNT),
            word(map::S_TILES),
            status.events,
            word(map::D_REFUSED),
            status.launches,
            status.waits,
            status.host_cpu.as_micros(),
            self.rate,
            word(map::D_ZOOM) * 100 / 256,
            word(map::D_THEME),
            word(map::D_ACCENT) & 0xFF_FFFF,
            word(map::D_EFFECTS),
        );
        for phase in &status.phases {
            let name = phase.name.replace(" and frame end", "").replace(' ', "_");
            text += &format!("{name}_us {}\n", phase.time.as_micros());
        }
        text
    }

    /// Returns what owners were told since the last call.
    pub fn told(&self) -> Vec<Event> {
        self.machine.take_events()
    }

    /// Returns the desktop's state.
    pub fn checkpoint(&self) -> Result<Arc<Checkpoint>> {
        Ok(self.machine.snapshot()?)
    }

    /// How many frames were done, those before a checkpoint included.
    pub fn frames(&self) -> u64 {
        self.tick
    }

    pub fn shutdown(self) -> Result<Ended> {
        Ok(self.machine.shutdown()?)
    }
}
