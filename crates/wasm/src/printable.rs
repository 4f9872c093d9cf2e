//! Makes text that others chose safe to print on a terminal.
//!
//! A module names its functions, imports and exports as it likes, and so does whoever makes a file. Printed unchanged,
//! such names could move the cursor, set the window's title, or reverse a line. So every character that a terminal
//! would obey is printed as an escape such as `\u001b`. JSON uses the same form: an object whose strings were escaped
//! this way is still the same object.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Escapes a name, so that it stays on one line.
pub fn name(name: &str) -> Cow<'_, str> {
    escape(name, is_obeyed)
}

/// Escapes a file's path; bytes that are not text are replaced.
pub fn path(path: &Path) -> String {
    name(&path.to_string_lossy()).into_owned()
}

/// Escapes a message of our own, which may have lines and tabs.
pub fn message(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'))
}

/// Returns whether a terminal or a text layout does anything with this character other than show it.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Marks, embeddings, overrides and isolates of the writing direction; separators of lines and paragraphs.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            // A byte order mark, annotations, tags: all invisible.
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !is_escaped(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(escaped, "\\u{unit:04x}"); // writing to a string cannot fail
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown() {
        assert_eq!(name("\x1b]0;title\x07"), "\\u001b]0;title\\u0007");
        assert_eq!(name("a\u{9b}31mb\x7f"), "a\\u009b31mb\\u007f");
        assert_eq!(name("a\r\n\tb"), "a\\u000d\\u000a\\u0009b");
        assert_eq!(name("exe\u{202e}gpj.\u{2028}\u{2066}"), "exe\\u202egpj.\\u2028\\u2066");
        assert_eq!(name("\u{e0041}"), "\\udb40\\udc41");
    }

    #[test]
    fn what_is_harmless_stays_as_it_is() {
        for text in ["", "core::fmt::Write", "größe 日本 👩‍👩‍👧", "a\\u001b \"quoted\""] {
            assert!(matches!(name(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn a_message_keeps_its_lines() {
        assert_eq!(message("error: a\n\tb\r\x1b[2J"), "error: a\n\tb\\u000d\\u001b[2J");
    }
}
