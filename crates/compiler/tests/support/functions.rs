//! Decides which functions of a PTX module NVIDIA's assembler has to see.
//!
//! Programs share most of their code: the standard library's functions differ from one program to the next in the
//! numbers of their callees and the addresses of constants. ptxas accepts or refuses a function for its instructions,
//! so one function of each *shape* is enough: the text without names and values. Functions that are left out get an
//! empty body, so that calls of them are still checked against their declaration.
//!
//! Of the largest programs a module can take a [`Share`]: every second function of one build, the others of another
//! build, and of both all functions that have an instruction of a new *form* (operation and kinds of operands).

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Which of the functions with a new shape to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    All,
    /// Functions with an even number, functions that are not the program's own, and all with an instruction of a new
    /// form.
    Even,
    Odd,
}

/// The shapes and forms that were taken so far.
#[derive(Default)]
pub struct Seen {
    shapes: HashSet<u64>,
    forms: HashSet<u64>,
}

/// Returns the module without the bodies of functions like those that this process has taken before.
pub fn new_ones(ptx: &str, share: Share) -> String {
    static SEEN: Mutex<Option<Seen>> = Mutex::new(None);
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().thin(ptx, share)
}

impl Seen {
    pub fn thin(&mut self, ptx: &str, share: Share) -> String {
        let mut text = String::with_capacity(ptx.len() / 2);
        let mut rest = ptx;
        while let Some((before, head, body, after)) = next_function(rest) {
            text.push_str(before);
            text.push_str(head);
            // Kernels are few, and lead to everything else.
            let taken = head.contains(".entry") || self.takes(head, body, share);
            text.push_str(if taken { body } else { "{\nret;\n}\n" });
            rest = after;
        }
        text + rest
    }

    fn takes(&mut self, head: &str, body: &str, share: Share) -> bool {
        let mut hasher = DefaultHasher::new();
        for token in tokens(head).chain(tokens(body)) {
            token.shape().hash(&mut hasher);
        }
        let shape = hasher.finish();
        if self.shapes.contains(&shape) {
            return false;
        }
        let forms: Vec<u64> = body.lines().map(form).collect();
        let mine = match share {
            Share::All => true,
            Share::Even => number(head).is_none_or(|number| number % 2 == 0),
            Share::Odd => number(head).is_none_or(|number| number % 2 == 1),
        };
        let taken = mine || forms.iter().any(|form| !self.forms.contains(form));
        if taken {
            self.shapes.insert(shape);
            self.forms.extend(forms);
        }
        taken
    }
}

/// Returns the text before the first function that has a body, the function's head, its body, and the text after it.
fn next_function(text: &str) -> Option<(&str, &str, &str, &str)> {
    // A body begins and ends at the start of a line, and nothing in it does.
    let open = if text.starts_with('{') { 0 } else { text.find("\n{")? + 1 };
    let head = text[..open].trim_end().rfind('\n').map_or(0, |newline| newline + 1);
    let end = open + text[open..].find("\n}")? + 2;
    let end = text[end..].find('\n').map_or(text.len(), |newline| end + newline + 1);
    Some((&text[..head], &text[head..open], &text[open..end], &text[end..]))
}

/// Returns the number of the wasm function that this is: the same in every build.
fn number(head: &str) -> Option<u64> {
    let name = head.split_whitespace().find(|word| matches!(Token::of(word), Token::Function))?;
    name[1..name.find('_')?].parse().ok()
}

/// Returns the hash of an instruction without the numbers of its registers and labels. Of a long list, as in a call or
/// a table, only the kinds of its items count.
fn form(line: &str) -> u64 {
    let mut forms: Vec<_> = tokens(line).map(Token::form).collect();
    if forms.iter().take(4).any(|(_, word, _)| ["call", ".branchtargets", ".callprototype"].contains(word)) {
        forms.sort_unstable();
        forms.dedup();
    }
    let mut hasher = DefaultHasher::new();
    forms.hash(&mut hasher);
    hasher.finish()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// Operations, types, registers, labels.
    Word(&'a str),
    /// A function's own name: `f12_main`.
    Function,
    /// The number of digits: it decides where a number fits; the value does not matter.
    Number(usize),
    Sign(char),
}

impl<'a> Token<'a> {
    fn of(word: &'a str) -> Self {
        let function = |word: &str| {
            let name = word.strip_prefix('f')?.trim_start_matches(|c: char| c.is_ascii_digit());
            (name.len() + 1 < word.len() && name.starts_with('_')).then_some(())
        };
        match word.starts_with(|c: char| c.is_ascii_digit()) {
            true => Token::Number(word.len()),
            false if function(word).is_some() => Token::Function,
            false => Token::Word(word),
        }
    }

    /// For a number, only whether it has so many digits that its width may matter.
    fn shape(self) -> (u8, &'a str, usize) {
        match self {
            Token::Word(word) => (0, word, 0),
            Token::Function => (1, "", 0),
            Token::Number(digits) => (2, "", digits / 5),
            Token::Sign(sign) => (3, "", sign as usize),
        }
    }

    fn form(self) -> (u8, &'a str, usize) {
        match self {
            Token::Word(word) if word.starts_with(['%', '$']) => {
                (0, word.trim_end_matches(|c: char| c.is_ascii_digit()), 0)
            }
            other => other.shape(),
        }
    }
}

fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start();
            match rest.strip_prefix("//") {
                Some(comment) => rest = comment.split_once('\n').map_or("", |(_, after)| after),
                None => break,
            }
        }
        let sign = rest.chars().next()?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '%' | '$');
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length.max(sign.len_utf8()));
        rest = after;
        Some(if length == 0 { Token::Sign(sign) } else { Token::of(word) })
    })
}
