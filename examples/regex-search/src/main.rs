//! `regex-search FILE PATTERN…`: prints the lines each pattern matches, with what its groups captured.

use regex::Regex;
use std::process::ExitCode;
use std::{env, fs};

/// Prints the matches of one pattern and returns their number.
fn search(pattern: &Regex, text: &str) -> usize {
    let mut matches = 0;
    for (number, line) in text.lines().enumerate() {
        for captures in pattern.captures_iter(line) {
            matches += 1;
            let whole = &captures[0];
            println!("  {:>3}: {whole}", number + 1);
            for (name, group) in pattern.capture_names().zip(captures.iter()).skip(1) {
                if let Some(group) = group {
                    println!("       {} = {:?} at {}", name.unwrap_or("group"), group.as_str(), group.start());
                }
            }
        }
    }
    matches
}

fn run(path: &str, patterns: &[String]) -> Result<usize, Box<dyn std::error::Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let mut total = 0;
    for pattern in patterns {
        let pattern = Regex::new(pattern)?;
        println!("{pattern}");
        let matches = search(&pattern, &text);
        println!("  {matches} matches");
        total += matches;
    }
    // Redacted text: the replacement may refer to the groups.
    let address = Regex::new(r"\b(?<net>\d{1,3}\.\d{1,3})\.\d{1,3}\.\d{1,3}\b")?;
    if let Some(line) = text.lines().find(|line| address.is_match(line)) {
        println!("redacted: {}", address.replace_all(line, "$net.x.x"));
    }
    Ok(total)
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let Some((path, patterns)) = args.split_first() else {
        eprintln!("usage: regex-search FILE PATTERN...");
        return ExitCode::from(2);
    };
    match run(path, patterns) {
        Ok(0) => ExitCode::FAILURE, // as grep does
        Ok(total) => {
            println!("{total} matches in all");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("regex-search: {error}");
            ExitCode::from(2)
        }
    }
}
