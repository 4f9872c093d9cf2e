//! Scripts: what happens on a desktop, one command or event a line. docs/desktop.md has the format.

use crate::event::{self, kinds, properties as p, style as s};
use crate::records;
use crate::words::*;
use gpu_run_machine::Event;
use std::collections::HashMap;
use std::time::Duration;

/// What happens, in order, each with its line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    pub(crate) steps: Vec<(usize, Step)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Event(Event),
    /// So many frames, of which the first takes the events so far.
    Frames(u32),
    /// Frames until nothing moves.
    Settle,
    /// Frames for so long.
    Wait(Duration),
    /// Starts an app.
    Start {
        name: String,
        args: Vec<String>,
    },
    /// Frames until a widget has this text.
    Expect(String),
    /// The pointer, at a place.
    Pointer {
        kind: u16,
        at: Place,
    },
    /// The pointer takes hold of what is at a place, and moves by so much in so many frames.
    Drag {
        at: Place,
        by: (f32, f32),
        frames: u32,
    },
}

/// Where the pointer goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// To the middle of a widget, to the title of a window.
    Widget { number: u32, name: String },
    /// In units.
    At(f32, f32),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct ScriptError {
    pub line: usize,
    pub why: String,
}

/// A widget that the script has made.
#[derive(Clone, Copy)]
struct Named {
    number: u32,
    /// The word of its style, of which a script sets the parts one by one.
    style: u32,
}

#[derive(Default)]
struct Reader {
    script: Script,
    names: HashMap<String, Named>,
    line: usize,
    next: u32,
}

impl Script {
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut reader = Reader { next: 1, ..Reader::default() };
        for (index, line) in text.lines().enumerate() {
            reader.line = index + 1;
            let said = split(line).and_then(|words| reader.read(&words));
            said.map_err(|why| ScriptError { line: index + 1, why })?;
        }
        Ok(reader.script)
    }

    /// Whether it starts apps.
    pub fn starts_apps(&self) -> bool {
        self.steps.iter().any(|(_, step)| matches!(step, Step::Start { .. }))
    }
}

/// Splits a line into words. Text in quotes is one word, which begins with a quote here; `#` begins a comment.
fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while !rest.is_empty() && !rest.starts_with('#') {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').ok_or("a text has no closing quote")?;
            words.push(format!("\"{}", &quoted[..end]));
            rest = quoted[end + 1..].trim_start();
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len());
            words.push(rest[..end].to_owned());
            rest = rest[end..].trim_start();
        }
    }
    Ok(words)
}

fn unknown(what: &str, name: &str, table: &[(&str, u32)]) -> String {
    format!("`{name}` is no {what}; there are {}", names(table))
}

fn number(word: &str) -> Result<f32, String> {
    if word == "auto" {
        return Ok(f32::NAN);
    }
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

/// A number of frames.
fn count(word: &str) -> Result<u32, String> {
    let count = word.parse().ok().filter(|count| (1..=100_000).contains(count));
    count.ok_or_else(|| format!("`{word}` is no number of frames from 1 to 100000"))
}

impl Reader {
    fn read(&mut self, words: &[String]) -> Result<(), String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Ok(()),
            [kind, rest @ ..] if find(&KINDS, kind).is_some() => self.create(kind, rest),
            ["set", name, rest @ ..] => self.set(name, rest),
            ["text", name, text] if text.starts_with('"') => {
                let widget = self.named(name)?.number;
                self.text(widget, &text[1..])
            }
            ["destroy", name] => {
                let widget = self.named(name)?.number;
                self.names.remove(*name);
                self.event(Event { kind: event::DESTROY, key: widget, ..Event::default() })
            }
            ["theme", theme] => {
                let a = find(&THEMES, theme).ok_or_else(|| unknown("theme", theme, &THEMES))?;
                self.event(Event { kind: event::THEME, a, ..Event::default() })
            }
            ["hover", at @ ..] => self.pointer(event::MOVE, at),
            ["press", at @ ..] => self.pointer(event::PRESS, at),
            ["release"] => self.event(Event { kind: event::RELEASE, ..Event::default() }),
            ["click", at @ ..] => {
                self.pointer(event::MOVE, at)?;
                self.pointer(event::PRESS, at)?;
                self.pointer(event::RELEASE, at)
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
            [name] => Ok(Place::Widget { number: self.named(name)?.number, name: (*name).to_owned() }),
            [x, y] => Ok(Place::At(number(x)?, number(y)?)),
            _ => Err("the pointer goes to a widget, or to a place: two numbers".to_owned()),
        }
    }

    fn named(&self, name: &str) -> Result<Named, String> {
        self.names.get(name).copied().ok_or_else(|| format!("there is no widget `{name}`"))
    }

    /// `KIND NAME [in PARENT] ["TEXT"] [PROPERTY=VALUE]…`
    fn create(&mut self, kind: &str, words: &[&str]) -> Result<(), String> {
        let kind = find(&KINDS, kind).ok_or_else(|| unknown("kind", kind, &KINDS))?;
        let (name, rest) = words.split_first().ok_or("a widget needs a name")?;
        if self.names.contains_key(*name) {
            return Err(format!("there already is a widget `{name}`"));
        }
        let (parent, rest) = match rest {
            ["in", parent, rest @ ..] => (self.named(parent)?.number, rest),
            rest => (0, rest),
        };
        if (kind == kinds::WINDOW) != (parent == 0) {
            return Err("a window is in nothing, and everything else is `in` a widget".to_owned());
        }
        // The style that the desktop gives a new widget of this kind.
        let style = match kind {
            kinds::WINDOW => s::COLUMN << s::DIRECTION | 1 << s::ABSOLUTE,
            kinds::PANEL => s::COLUMN << s::DIRECTION,
            kinds::LABEL => s::CENTER << s::ALIGN_ITEMS,
            _ => 0,
        };
        let number = self.next;
        self.next += 1;
        self.names.insert((*name).to_owned(), Named { number, style });
        self.event(Event { kind: event::CREATE, key: number, a: kind, b: parent, ..Event::default() })?;
        let rest = match rest {
            [text, rest @ ..] if text.starts_with('"') => {
                self.text(number, &text[1..])?;
                rest
            }
            rest => rest,
        };
        self.set(name, rest)
    }

    fn text(&mut self, key: u32, text: &str) -> Result<(), String> {
        records::text(key, text).into_iter().try_for_each(|event| self.event(event))
    }

    fn set(&mut self, name: &str, words: &[&str]) -> Result<(), String> {
        let widget = self.named(name)?;
        let mut style = widget.style;
        for word in words {
            let (property, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not PROPERTY=VALUE"))?;
            if let Some(Keyword { shift, mask, values, .. }) = KEYWORDS.iter().find(|known| known.name == property) {
                let keyword = find(values, value).ok_or_else(|| unknown(property, value, values))?;
                style = style & !(mask << shift) | keyword << shift;
                continue;
            }
            let mut put =
                |a: u32, b: u32| self.event(Event { kind: event::SET, key: widget.number, a, b, ..Event::default() });
            if let Some(property) = find(&NUMBERS, property) {
                put(property, number(value)?.to_bits())?;
            } else if let Some((_, all)) = SHORT.iter().find(|(known, _)| *known == property) {
                let value = number(value)?.to_bits();
                all.iter().try_for_each(|property| put(*property, value))?;
            } else if property == "look" {
                put(p::LOOK, find(&LOOKS, value).ok_or_else(|| unknown("look", value, &LOOKS))?)?;
            } else if property == "disabled" {
                put(p::DISABLED, find(&SWITCH, value).ok_or_else(|| unknown("switch", value, &SWITCH))?)?;
            } else {
                return Err(format!("`{property}` is no property"));
            }
        }
        if style != widget.style {
            self.names.insert(name.to_owned(), Named { style, ..widget });
            self.event(Event { kind: event::SET, key: widget.number, a: p::STYLE, b: style, ..Event::default() })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Script::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_line_becomes_events() {
        let script =
            Script::parse("# nothing\n\nwindow w \"A b\" left=4\nlabel l in w gap=2 justify=end\nframes 3").unwrap();
        let kinds: Vec<_> = script.steps.iter().map(|(line, step)| (*line, step.clone())).collect();
        let event = |kind, flags, key, a, b| Step::Event(Event { kind, flags, key, a, b, ..Event::default() });
        let text = u32::from('A') | u32::from(' ') << 16;
        assert_eq!(
            kinds,
            [
                (3, event(event::CREATE, 0, 1, kinds::WINDOW, 0)),
                (3, event(event::TEXT, 3 | event::TEXT_BEGINS, 1, text, u32::from('b'))),
                (3, event(event::SET, 0, 1, p::LEFT, 4f32.to_bits())),
                (4, event(event::CREATE, 0, 2, kinds::LABEL, 1)),
                (4, event(event::SET, 0, 2, p::GAP_X, 2f32.to_bits())),
                (4, event(event::SET, 0, 2, p::GAP_Y, 2f32.to_bits())),
                (4, event(event::SET, 0, 2, p::STYLE, s::CENTER << s::ALIGN_ITEMS | s::END << s::JUSTIFY)),
                (5, Step::Frames(3)),
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        assert_eq!(refused("\nbutton b in w"), "line 2: there is no widget `w`");
        assert!(refused("window w\nwindow w").contains("already is a widget `w`"));
        assert!(refused("button b").contains("everything else is `in` a widget"));
        assert!(refused("window w colour=red").contains("`colour` is no property"));
        assert!(refused("window w left=far").contains("`far` is no number"));
        assert!(refused("window w justify=middle").contains("there are normal, start"));
        assert!(refused("window w \"open").contains("no closing quote"));
        assert!(refused("key escpe").contains("escape"));
        assert!(refused("frames 0").contains("1 to 100000"));
        assert!(refused("dance").contains("`dance` does not begin a line"));
    }
}
