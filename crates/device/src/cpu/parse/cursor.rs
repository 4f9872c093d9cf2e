//! Reads the text: white space, words, numbers, and the line for error messages.

use crate::{Error, Result};

#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    end: usize,
    line: u32,
}

/// The bytes of a name, a mnemonic or a directive.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut c = 0;
    while c < 256 {
        let b = c as u8;
        table[c] = b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'%' | b'.');
        c += 1;
    }
    table
};

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, end: text.len(), line: 1 }
    }

    /// Returns a cursor on the next `len` bytes, and moves past them and their `lines` lines.
    pub(super) fn split_off(&mut self, len: usize, lines: u32) -> Self {
        let part = Self { end: self.at + len, ..*self };
        self.at += len;
        self.line += lines;
        part
    }

    pub(super) fn line(&self) -> u32 {
        self.line
    }

    /// The rest of the text.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..self.end]
    }

    /// Returns the next byte after white space and comments; 0 at the end.
    #[inline]
    pub(super) fn peek(&mut self) -> u8 {
        self.skip();
        self.byte()
    }

    #[inline]
    fn byte(&self) -> u8 {
        if self.at < self.end { self.text.as_bytes()[self.at] } else { 0 }
    }

    #[inline]
    fn skip(&mut self) {
        loop {
            match self.byte() {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                }
                b'/' if self.rest().starts_with(b"//") => {
                    while self.at < self.end && self.byte() != b'\n' {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    pub(super) fn at_end(&mut self) -> bool {
        self.skip();
        self.at >= self.end
    }

    /// Takes `c` if it comes next.
    #[inline]
    pub(super) fn accept(&mut self, c: u8) -> bool {
        let found = self.peek() == c && self.at < self.end;
        self.at += found as usize;
        found
    }

    #[inline]
    pub(super) fn expect(&mut self, c: u8) -> Result<()> {
        if self.accept(c) { Ok(()) } else { Err(self.expected(&format!("`{}`", c as char))) }
    }

    /// Returns the next word; empty if none begins here.
    #[inline]
    pub(super) fn word(&mut self) -> &'a str {
        self.skip();
        let from = self.at;
        loop {
            while self.at < self.end && WORD[self.text.as_bytes()[self.at] as usize] {
                self.at += 1;
            }
            // `.L1::no_allocate` is one word; a single colon ends a label.
            match self.rest().starts_with(b"::") {
                true => self.at += 2,
                false => break,
            }
        }
        &self.text[from..self.at] // words are ASCII: both ends are character boundaries
    }

    pub(super) fn name(&mut self) -> Result<&'a str> {
        match self.word() {
            "" => Err(self.expected("a name")),
            word => Ok(word),
        }
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        let before = self.clone();
        if self.word() == word {
            return Ok(());
        }
        *self = before;
        Err(self.expected(&format!("`{word}`")))
    }

    /// Reads an integer literal; the result is its 64 bits.
    pub(super) fn integer(&mut self) -> Result<i64> {
        let negative = self.accept(b'-');
        let word = self.word();
        let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        match value {
            Ok(value) if negative => Ok((value as i64).wrapping_neg()),
            Ok(value) => Ok(value as i64),
            Err(_) => Err(self.error(format!("`{word}` is not an integer of 64 bits"))),
        }
    }

    /// Reads a count or size that fits 32 bits.
    pub(super) fn small(&mut self) -> Result<u32> {
        let value = self.integer()?;
        u32::try_from(value).map_err(|_| self.error(format!("{value} is out of range here")))
    }

    pub(super) fn skip_line(&mut self) {
        while self.at < self.end && self.byte() != b'\n' {
            self.at += 1;
        }
    }

    fn expected(&mut self, what: &str) -> Error {
        self.skip();
        match self.text[self.at..self.end].chars().next() {
            Some(c) => self.error(format!("expected {what}, found `{c}`")),
            None => self.error(format!("expected {what}, but the text ends here")),
        }
    }

    #[cold]
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        at_line(self.text, self.line, message)
    }
}

/// An error that shows its line.
#[cold]
pub(in crate::cpu) fn at_line(text: &str, line: u32, message: impl Into<String>) -> Error {
    let shown = text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim();
    let shown = shown.chars().take(200).collect();
    Error::Ptx { line: line as usize, message: message.into(), text: shown }
}
