//! Scripts: what happens on a desktop, one command or event a line. docs/desktop.md has the format.

mod reader;
mod shapes;
mod words;

use gpu_run_machine::Event;
use reader::Reader;
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

impl Script {
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut reader = Reader::default();
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
            let (text, behind) = unquote(quoted)?;
            words.push(format!("\"{text}"));
            rest = behind.trim_start();
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len());
            words.push(rest[..end].to_owned());
            rest = rest[end..].trim_start();
        }
    }
    Ok(words)
}

/// Returns the text up to the closing quote, and what is behind it.
fn unquote(quoted: &str) -> Result<(String, &str), String> {
    let (mut text, mut rest) = (String::new(), quoted.chars());
    while let Some(c) = rest.next() {
        match c {
            '"' => return Ok((text, rest.as_str())),
            '\\' => text.push(match rest.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(c @ ('"' | '\\')) => c,
                other => {
                    let other = other.map_or(String::new(), String::from);
                    return Err(format!("`\\{other}` stands for nothing; there are \\n, \\t, \\\" and \\\\"));
                }
            }),
            c => text.push(c),
        }
    }
    Err("a text has no closing quote".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{self, kinds, properties as p, style as s};

    #[test]
    fn a_line_becomes_events() {
        let script =
            Script::parse("# nothing\n\nwindow w \"A b\" left=4\nlabel l in w gap=2 justify=end\nframes 3").unwrap();
        let event = |kind, flags, key, a, b| Step::Event(Event { kind, flags, key, a, b, ..Event::default() });
        let text = u32::from('A') | u32::from(' ') << 16;
        let justify = p::STYLE_PART | s::JUSTIFY << 8 | 15 << 16;
        assert_eq!(
            script.steps,
            [
                (3, event(event::CREATE, 0, 1, kinds::WINDOW, 0)),
                (3, event(event::TEXT, 3 | event::TEXT_BEGINS, 1, text, u32::from('b'))),
                (3, event(event::SET, 0, 1, p::LEFT, 4f32.to_bits())),
                (4, event(event::CREATE, 0, 2, kinds::LABEL, 1)),
                (4, event(event::SET, 0, 2, p::GAP_X, 2f32.to_bits())),
                (4, event(event::SET, 0, 2, p::GAP_Y, 2f32.to_bits())),
                (4, event(event::SET, 0, 2, justify, s::END)),
                (5, Step::Frames(3)),
            ]
        );
    }

    /// What a script says, as one text: what its texts begin with and continue with.
    fn written(script: &str) -> String {
        let mut text = String::new();
        for (_, step) in Script::parse(script).unwrap().steps {
            if let Step::Event(Event { kind: event::TEXT, flags, a, b, id, .. }) = step {
                text += if flags & event::TEXT_BEGINS != 0 { "|" } else { "" };
                let codes = [a, a >> 16, b, b >> 16, id, id >> 16].map(|code| code as u16);
                text += &String::from_utf16(&codes[..usize::from(flags & 0xFF)]).unwrap();
            }
        }
        text
    }

    #[test]
    fn several_texts_are_lines_and_some_characters_are_escaped() {
        let list = "window w\nlist l in w";
        assert_eq!(written(&format!("{list} \"a\" \"b c\" \"\" \"d\"")), "|a\nb c\n\nd");
        assert_eq!(written(&format!("{list} \"a\"\nadd l \"b\"\nadd l \"c\" \"d\"")), "|a\nb\nc\nd");
        assert_eq!(written(&format!("{list}\nadd l \"first\"\ntext l \"anew\"\nadd l \"end\"")), "|first|anew\nend");
        assert_eq!(written(&format!(r#"{list} "a\tb\n\"c\" \\""#)), "|a\tb\n\"c\" \\");
        assert_eq!(written("text desktop \"Files\" \"Editor\""), "|Files\nEditor");
    }

    #[test]
    fn points_lie_on_lines_between_those_that_are_given() {
        let script = Script::parse("window w\nplot p in w\npoints p 2 over 5 0 8 4\npoints p 1 3").unwrap();
        let point = |(_, step): &(usize, Step)| match step {
            Step::Event(Event { kind: event::POINT, flags, a, .. }) => Some((*flags, f32::from_bits(*a))),
            _ => None,
        };
        let points: Vec<(u16, f32)> = script.steps.iter().filter_map(point).collect();
        assert_eq!(points, [(2, 0.0), (2, 4.0), (2, 8.0), (2, 6.0), (2, 4.0), (1, 3.0)]);
    }

    /// Each case is lines of a script and, behind `=>`, a part of what is said about it.
    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let cases = include_str!("../../tests/script/refused.txt");
        for case in cases.split("\n\n").filter(|case| !case.starts_with('#')) {
            let (script, message) = case.trim_end().rsplit_once("\n=> ").unwrap();
            let said = Script::parse(script).map(|_| ()).map_err(|error| error.to_string());
            assert!(said.as_ref().is_err_and(|said| said.contains(message)), "{script}\n{said:?}");
        }
        assert!(cases.matches("\n=> ").count() > 30);
    }
}
