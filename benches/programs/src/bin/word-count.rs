//! Counts the words of a text of some 2 KB and prints the ten most frequent.

use bench_programs::{Random, instance};
use std::collections::HashMap;

const WORDS: [&str; 40] = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "he",
    "his",
    "but",
    "at",
    "are",
    "this",
    "have",
    "from",
    "whale",
    "harpoon",
    "captain",
    "Nantucket",
    "leviathan",
    "sea",
    "ship",
    "sailor",
    "voyage",
    "ocean",
    "mast",
    "storm",
    "Queequeg",
    "Ishmael",
    "Starbuck",
];

/// Words in lines, with punctuation and capitals here and there; the first ones of the list come more often.
fn text(random: &mut Random) -> String {
    let mut text = String::new();
    while text.len() < 2048 {
        let last = 1 + random.below(WORDS.len() as u32);
        let word = WORDS[random.below(last) as usize];
        match random.below(12) {
            0 => text.push_str(&word.to_uppercase()),
            _ => text.push_str(word),
        }
        text.push_str(random.pick(&[" ", " ", " ", " ", " ", ", ", ". ", ";\n", "\n", " -- "]));
    }
    text
}

fn main() {
    let text = text(&mut Random::new(instance()));
    let mut counts: HashMap<String, usize> = HashMap::new();
    for word in text.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if !word.is_empty() {
            *counts.entry(word).or_default() += 1;
        }
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let top: Vec<String> = counts.iter().take(10).map(|(word, count)| format!("{word} {count}")).collect();
    println!("{} bytes, {} words: {}", text.len(), counts.len(), top.join(", "));
}
