//! Makes what the two programs embed: the tokenizer's lexicon and the document's picture. Both are the same in every build.

use std::collections::HashSet;
use std::path::Path;
use std::{env, fs, io};

/// Entries of the lexicon.
const WORDS: usize = 40_000;
const CONSONANTS: &str = "bdfgklmnprstvz";
const VOWELS: &str = "aeiou";
/// Pixels of the picture; each has three bytes.
const WIDTH: u32 = 480;
const HEIGHT: u32 = 416;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    let folder = Path::new(&folder);
    fs::write(folder.join("lexicon.txt"), lexicon())?;
    fs::write(folder.join("picture.rgb"), picture())
}

/// One entry a line, short ones first: the line's number is the token's rank, and lower ranks are merged first.
fn lexicon() -> String {
    let parts: Vec<String> = CONSONANTS.chars().flat_map(|c| VOWELS.chars().map(move |v| format!("{c}{v}"))).collect();
    let closed = parts.iter().flat_map(|part| "nrs".chars().map(move |end| format!("{part}{end}")));
    let mut words: Vec<String> = parts.iter().cloned().chain(closed).collect();
    let pairs = parts.iter().flat_map(|a| parts.iter().map(move |b| format!("{a}{b}")));
    words.extend(pairs);
    // Longer words are some of all there could be, and each has its beginning in the lexicon already.
    let mut known: HashSet<String> = words.iter().cloned().collect();
    let mut random = 0x2545_f491_u32;
    while words.len() < WORDS {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (begin, end) = (random as usize >> 8, random as usize >> 20);
        let word = format!("{}{}", words[begin % words.len()], parts[end % parts.len()]);
        if word.len() <= 12 && known.insert(word.clone()) {
            words.push(word);
        }
    }
    words.join("\n")
}

/// Rings of colour: three bytes a pixel, row by row.
fn picture() -> Vec<u8> {
    let pixel = |x: u32, y: u32| {
        let (dx, dy) = (x.abs_diff(WIDTH / 2), y.abs_diff(HEIGHT / 2));
        let ring = (dx * dx + dy * dy) / 97;
        [ring as u8, (x / 2) as u8, (y / 2) as u8]
    };
    (0..HEIGHT).flat_map(|y| (0..WIDTH).flat_map(move |x| pixel(x, y))).collect()
}
