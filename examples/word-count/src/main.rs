//! `word-count FILE [TOP]`: counts lines, words and bytes, then names the TOP most frequent words.

use std::collections::HashMap;
use std::process::ExitCode;
use std::{env, fs};

struct Counts {
    lines: usize,
    words: usize,
    bytes: usize,
    frequency: HashMap<String, usize>,
}

fn count(text: &str) -> Counts {
    let mut frequency = HashMap::new();
    let mut words = 0;
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '\'') {
        let word = word.trim_matches('\'');
        if !word.is_empty() {
            *frequency.entry(word.to_lowercase()).or_insert(0) += 1;
            words += 1;
        }
    }
    Counts { lines: text.lines().count(), words, bytes: text.len(), frequency }
}

/// The most frequent words first; words as frequent as each other in alphabetical order.
fn ranking(frequency: &HashMap<String, usize>) -> Vec<(&str, usize)> {
    let mut ranked: Vec<_> = frequency.iter().map(|(word, &n)| (word.as_str(), n)).collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    ranked
}

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let Some(path) = args.next() else {
        eprintln!("usage: word-count FILE [TOP]");
        return ExitCode::from(2);
    };
    let top = args.next().and_then(|n| n.parse().ok()).unwrap_or(10);

    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("word-count: {path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let counts = count(&text);
    println!("{path}: {} lines, {} words, {} bytes", counts.lines, counts.words, counts.bytes);
    println!("{} different words", counts.frequency.len());
    for (word, n) in ranking(&counts.frequency).into_iter().take(top) {
        let share = 100.0 * n as f64 / counts.words as f64;
        println!("{n:>6}  {share:>5.2} %  {word}");
    }
    ExitCode::SUCCESS
}
