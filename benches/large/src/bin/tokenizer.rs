//! Turns each line of stdin into the numbers of its tokens, as language models' tokenizers do: words that are in the
//! lexicon have one token, all others are merged from bytes, pair by pair.
//!
//! The lexicon is embedded. The map that is made of it at the start takes about 2 MB.

use rustc_hash::FxHashMap;
use std::io::{self, BufWriter, Read, Write};

const LEXICON: &str = include_str!(concat!(env!("OUT_DIR"), "/lexicon.txt"));
/// Tokens below this are single bytes.
const BYTES: u32 = 256;

/// From a token's bytes to its number, which is also its rank.
type Lexicon = FxHashMap<Vec<u8>, u32>;

fn main() -> io::Result<()> {
    let lexicon = lexicon();
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut tokens = Vec::new();
    for line in text.lines() {
        tokens.clear();
        for word in words(line) {
            encode(&lexicon, word.as_bytes(), &mut tokens);
        }
        let numbers: Vec<String> = tokens.iter().map(u32::to_string).collect();
        writeln!(out, "{}", numbers.join(" "))?;
    }
    out.flush()
}

fn lexicon() -> Lexicon {
    let mut lexicon = Lexicon::default();
    for byte in 0..=u8::MAX {
        lexicon.insert(vec![byte], u32::from(byte));
    }
    for (word, rank) in LEXICON.lines().zip(BYTES..) {
        lexicon.insert(word.as_bytes().to_vec(), rank);
    }
    lexicon
}

/// Runs of letters, and everything between them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let letters = rest.chars().next()?.is_alphabetic();
        let end = rest.find(|c: char| c.is_alphabetic() != letters).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// Byte-pair encoding: of all neighbours that make a token together, those of the lowest rank are merged, until none are.
fn encode(lexicon: &Lexicon, word: &[u8], tokens: &mut Vec<u32>) {
    if let Some(token) = lexicon.get(word) {
        tokens.push(*token);
        return;
    }
    // Where each part begins, and the end.
    let mut parts: Vec<usize> = (0..=word.len()).collect();
    loop {
        let merged = |at: &usize| Some((*lexicon.get(&word[parts[*at]..parts[at + 2]])?, *at));
        let Some((_, at)) = (0..parts.len().saturating_sub(2)).filter_map(|at| merged(&at)).min() else { break };
        parts.remove(at + 1);
    }
    tokens.extend(parts.windows(2).map(|part| lexicon[&word[part[0]..part[1]]]));
}
