//! Reads the lines of a script, one after the other.

use super::shapes::{self, colour};
use super::words::*;
use super::{Place, Script, Step};
use crate::event::{self, kinds as k};
use crate::records;
use gpu_run_machine::Event;
use std::collections::HashMap;
use std::time::Duration;

/// The name of the desktop itself, whose text is the names of apps.
const DESKTOP: &str = "desktop";

/// A widget that the script has made.
#[derive(Clone, Copy, Debug)]
struct Named {
    number: u32,
    kind: u32,
    /// Whether the script has given it a text.
    has_text: bool,
    /// Columns and rows of a canvas or an image.
    pixels: (u32, u32),
}

#[derive(Debug)]
pub(super) struct Reader {
    pub(super) script: Script,
    pub(super) line: usize,
    names: HashMap<String, Named>,
    next: u32,
}

impl Default for Reader {
    fn default() -> Self {
        let desktop = Named { number: 0, kind: k::DESKTOP, has_text: false, pixels: (0, 0) };
        Self { script: Script::default(), line: 0, names: HashMap::from([(DESKTOP.to_owned(), desktop)]), next: 1 }
    }
}

fn unknown(what: &str, name: &str, table: &Table) -> String {
    format!("`{name}` is no {what}; there are {}", list(table.iter().map(|(name, _)| *name)))
}

fn number(word: &str) -> Result<f32, String> {
    if word == "auto" {
        return Ok(f32::NAN);
    }
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

fn numbers(words: &[&str]) -> Result<Vec<f32>, String> {
    let finite = |word: &&str| number(word).ok().filter(|number| number.is_finite());
    words.iter().map(|word| finite(word).ok_or_else(|| format!("`{word}` is no number"))).collect()
}

/// A number of frames, milliseconds or values.
fn count(word: &str) -> Result<u32, String> {
    let count = word.parse().ok().filter(|count| (1..=100_000).contains(count));
    count.ok_or_else(|| format!("`{word}` is no whole number from 1 to 100000"))
}

/// Texts, which begin with a quote here: each is a line.
fn lines(words: &[&str]) -> Option<String> {
    let lines: Option<Vec<&str>> = words.iter().map(|word| word.strip_prefix('"')).collect();
    lines.filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n"))
}

impl Takes {
    /// Returns the word that a property is set to.
    fn value(self, property: &str, word: &str) -> Result<u32, String> {
        let half = |word: &str| word.parse::<u16>().ok();
        match self {
            Takes::Number => number(word).map(f32::to_bits),
            Takes::Word(table) => find(table, word).ok_or_else(|| unknown(property, word, table)),
            Takes::Size => {
                let size = word.split_once('x').and_then(|(w, h)| Some((half(w)?, half(h)?)));
                let size = size.filter(|(width, height)| *width > 0 && *height > 0);
                let (width, height) = size.ok_or_else(|| format!("`{word}` is no size such as 160x100"))?;
                Ok(u32::from(width) | u32::from(height) << 16)
            }
            Takes::Row if word == "none" => Ok(u32::MAX),
            Takes::Row => {
                word.parse().map_err(|_| format!("`{word}` is no number of a row from 0; `none` chooses none"))
            }
        }
    }
}

/// Returns so many values on straight lines between those that are given.
fn between(values: &[f32], count: u32) -> Result<Vec<f32>, String> {
    let (Some(last), true) = (values.len().checked_sub(1), count as usize >= values.len()) else {
        return Err("behind `over` comes a number of values, then at least one value and at most so many".to_owned());
    };
    let value = |i: u32| {
        let at = if count > 1 { i as f32 * last as f32 / (count - 1) as f32 } else { 0.0 };
        let first = (at as usize).min(last);
        let (from, to) = (values[first], values[(first + 1).min(last)]);
        from + (to - from) * (at - first as f32)
    };
    Ok((0..count).map(value).collect())
}

impl Reader {
    /// Reads a line, which is split into words; texts begin with a quote.
    pub(super) fn read(&mut self, words: &[String]) -> Result<(), String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let [first, rest @ ..] = words.as_slice()
            && let Some(kind) = KINDS.iter().find(|kind| kind.name == *first)
        {
            return self.create(kind, rest);
        }
        match words.as_slice() {
            [] => Ok(()),
            ["set", name, rest @ ..] => self.set(name, rest),
            ["text", name, texts @ ..] if let Some(text) = lines(texts) => self.text(name, &text, true),
            ["add", name, texts @ ..] if let Some(text) = lines(texts) => self.text(name, &text, false),
            ["destroy", name] => {
                let key = self.widget(name)?.number;
                self.names.remove(*name);
                self.event(Event { kind: event::DESTROY, key, ..Event::default() })
            }
            ["draw", name, shape, colour, at @ ..] => self.draw(name, shape, colour, at),
            ["points", name, series, "over", many, values @ ..] => {
                self.points(name, series, &between(&numbers(values)?, count(many)?)?)
            }
            ["points", name, series, values @ ..] => self.points(name, series, &numbers(values)?),
            ["theme", theme] => {
                let a = find(&THEMES, theme).ok_or_else(|| unknown("theme", theme, &THEMES))?;
                self.event(Event { kind: event::THEME, a, ..Event::default() })
            }
            ["accent", word] => {
                let a = colour(word)?;
                self.event(Event { kind: event::ACCENT, a, ..Event::default() })
            }
            ["hover", at @ ..] => self.pointer(event::MOVE, at),
            ["press", at @ ..] => self.pointer(event::PRESS, at),
            ["release"] => self.event(Event { kind: event::RELEASE, ..Event::default() }),
            ["click", at @ ..] => {
                self.pointer(event::MOVE, at)?;
                self.pointer(event::PRESS, at)?;
                self.pointer(event::RELEASE, at)
            }
            ["wheel", at @ .., down] => {
                let down = number(down)?;
                self.pointer(event::MOVE, at)?;
                self.step(Step::Pointer { kind: event::WHEEL, at: Place::At(0.0, down) })
            }
            ["drag", at @ .., x, y, "over", frames] => {
                let (at, by) = (self.place(at)?, (number(x)?, number(y)?));
                let frames = count(frames)?;
                self.step(Step::Drag { at, by, frames })
            }
            ["key", key, with @ ..] => {
                let key = find(&KEYS, key).ok_or_else(|| unknown("key", key, &KEYS))?;
                let mut a = 0;
                for name in with {
                    a |= find(&MODIFIERS, name).ok_or_else(|| unknown("modifier", name, &MODIFIERS))?;
                }
                self.event(Event { kind: event::KEY, key, a, ..Event::default() })
            }
            ["type", text] if text.starts_with('"') => text[1..]
                .chars()
                .try_for_each(|c| self.event(Event { kind: event::TYPE, key: c as u32, ..Event::default() })),
            ["paste", texts @ ..] if let Some(text) = lines(texts) => {
                let pieces = records::text(0, &text).into_iter();
                pieces.map(|piece| Event { kind: event::PASTE, ..piece }).try_for_each(|event| self.event(event))
            }
            ["frames", frames] => {
                let frames = count(frames)?;
                self.step(Step::Frames(frames))
            }
            ["settle"] => self.step(Step::Settle),
            ["wait", milliseconds] => {
                let time = Duration::from_millis(count(milliseconds)?.into());
                self.step(Step::Wait(time))
            }
            ["expect", text] if text.starts_with('"') => self.step(Step::Expect(text[1..].to_owned())),
            ["start", name, args @ ..] => {
                let plain = |word: &&str| word.trim_start_matches('"').to_owned();
                self.step(Step::Start { name: plain(name), args: args.iter().map(plain).collect() })
            }
            [first, ..] => Err(format!("`{first}` does not begin a line like this; docs/desktop.md has the format")),
        }
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        self.script.steps.push((self.line, step));
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<(), String> {
        self.step(Step::Event(event))
    }

    fn pointer(&mut self, kind: u16, at: &[&str]) -> Result<(), String> {
        let at = self.place(at)?;
        self.step(Step::Pointer { kind, at })
    }

    /// A widget's name, or two numbers.
    fn place(&self, words: &[&str]) -> Result<Place, String> {
        match words {
            [name] => Ok(Place::Widget { number: self.widget(name)?.number, name: (*name).to_owned() }),
            [x, y] => Ok(Place::At(number(x)?, number(y)?)),
            _ => Err("the pointer goes to a widget, or to a place: two numbers".to_owned()),
        }
    }

    /// A widget, or the desktop.
    fn named(&mut self, name: &str) -> Result<&mut Named, String> {
        self.names.get_mut(name).ok_or_else(|| format!("there is no widget `{name}`"))
    }

    fn widget(&self, name: &str) -> Result<Named, String> {
        match self.names.get(name) {
            Some(widget) if widget.kind != k::DESKTOP => Ok(*widget),
            Some(_) => Err(format!("`{name}` is the desktop itself, which only has a text: the names of apps")),
            None => Err(format!("there is no widget `{name}`")),
        }
    }

    /// `KIND NAME [in PARENT] ["TEXT"]… [PROPERTY=VALUE]…`
    fn create(&mut self, kind: &Kind, words: &[&str]) -> Result<(), String> {
        let (name, rest) = words.split_first().ok_or("a widget needs a name")?;
        if self.names.contains_key(*name) {
            return Err(format!("there already is a widget `{name}`"));
        }
        let (parent, rest) = match rest {
            ["in", parent, rest @ ..] => (*parent, rest),
            rest => (DESKTOP, rest),
        };
        let Named { number: b, kind: holder, .. } = *self.named(parent)?;
        if (kind.number == k::WINDOW) != (b == 0) {
            return Err("a window is in nothing, and everything else is `in` a widget".to_owned());
        }
        if !kind.within.contains(&holder) {
            return Err(format!("`{parent}` takes no {}; what takes one: {}", kind.name, kinds(kind.within)));
        }
        let number = self.next;
        self.next += 1;
        self.names.insert((*name).to_owned(), Named { number, kind: kind.number, has_text: false, pixels: (0, 0) });
        self.event(Event { kind: event::CREATE, key: number, a: kind.number, b, ..Event::default() })?;
        let texts = rest.iter().take_while(|word| word.starts_with('"')).count();
        let (texts, rest) = rest.split_at(texts);
        if let Some(text) = lines(texts) {
            self.text(name, &text, true)?;
        }
        self.set(name, rest)
    }

    /// Sets a widget's text, or adds lines to it.
    fn text(&mut self, name: &str, text: &str, begins: bool) -> Result<(), String> {
        let widget = self.named(name)?;
        let (key, had_text) = (widget.number, widget.has_text && !begins);
        widget.has_text = true;
        let events = if had_text { records::more_text(key, &format!("\n{text}")) } else { records::text(key, text) };
        events.into_iter().try_for_each(|event| self.event(event))
    }

    fn draw(&mut self, name: &str, shape: &str, colour: &str, at: &[&str]) -> Result<(), String> {
        let widget = self.widget(name)?;
        if widget.pixels == (0, 0) {
            return Err(format!("`{name}` has no pixels; give a canvas or an image some: pixels=160x100"));
        }
        let runs = shapes::runs(widget.pixels, shape, colour, &numbers(at)?)?;
        let (kind, flags, key) = (event::PIXELS, event::PIXELS_RUN, widget.number);
        let event = |run: shapes::Run| Event { kind, flags, key, a: run.first, b: run.colour, id: run.count, wait: 0 };
        runs.into_iter().map(event).try_for_each(|event| self.event(event))
    }

    fn points(&mut self, name: &str, series: &str, values: &[f32]) -> Result<(), String> {
        let widget = self.widget(name)?;
        if widget.kind != k::PLOT {
            return Err(format!("`{name}` is no plot"));
        }
        let number = series.parse::<u16>().ok().filter(|number| u32::from(*number) < crate::map::SERIES);
        let flags = number.ok_or_else(|| format!("`{series}` is no number of a series, 0 to 3"))?;
        let event =
            |a: &f32| Event { kind: event::POINT, flags, key: widget.number, a: a.to_bits(), ..Event::default() };
        values.iter().map(event).try_for_each(|event| self.event(event))
    }

    fn set(&mut self, name: &str, words: &[&str]) -> Result<(), String> {
        let widget = self.widget(name)?;
        for word in words {
            let (property, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not PROPERTY=VALUE"))?;
            let known = PROPERTIES.iter().find(|known| known.name == property);
            let known = known.ok_or_else(|| format!("`{property}` is no property; docs/desktop.md has them"))?;
            if !known.of.is_empty() && !known.of.contains(&widget.kind) {
                return Err(format!("`{name}` has no `{property}`; what has one: {}", kinds(known.of)));
            }
            let b = known.takes.value(property, value)?;
            if matches!(known.takes, Takes::Size) {
                self.named(name)?.pixels = (b & 0xFFFF, b >> 16);
            }
            for a in known.sets {
                self.event(Event { kind: event::SET, key: widget.number, a: *a, b, ..Event::default() })?;
            }
        }
        Ok(())
    }
}
