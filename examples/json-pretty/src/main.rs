//! `json-pretty [INDENT] <FILE`: pretty-prints JSON from standard input and tells what was in it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};
use std::env;
use std::io::{self, Read, Write};
use std::process::ExitCode;

#[derive(Default, Serialize)]
struct Summary {
    nulls: usize,
    booleans: usize,
    numbers: usize,
    strings: usize,
    arrays: usize,
    objects: usize,
    deepest: usize,
    sum_of_numbers: f64,
    longest_string: String,
}

impl Summary {
    fn add(&mut self, value: &Value, depth: usize) {
        self.deepest = self.deepest.max(depth);
        match value {
            Value::Null => self.nulls += 1,
            Value::Bool(_) => self.booleans += 1,
            Value::Number(number) => {
                self.numbers += 1;
                self.sum_of_numbers += number.as_f64().unwrap_or(0.0);
            }
            Value::String(text) => {
                self.strings += 1;
                if text.chars().count() > self.longest_string.chars().count() {
                    self.longest_string.clone_from(text);
                }
            }
            Value::Array(items) => {
                self.arrays += 1;
                items.iter().for_each(|item| self.add(item, depth + 1));
            }
            Value::Object(fields) => {
                self.objects += 1;
                fields.values().for_each(|field| self.add(field, depth + 1));
            }
        }
    }
}

/// What the program understands of its input, if the input has it; everything else passes through untyped.
#[derive(Deserialize)]
struct Catalogue {
    title: String,
    books: Vec<Book>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Book {
    title: String,
    #[serde(default)]
    authors: Vec<String>,
    first_published: i32,
    rating: Option<f32>,
}

fn print_pretty(value: &impl Serialize, indent: usize) -> io::Result<()> {
    let indent = " ".repeat(indent);
    let mut out = io::stdout().lock();
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    value.serialize(&mut Serializer::with_formatter(&mut out, formatter)).map_err(io::Error::from)?;
    writeln!(out)
}

fn run(indent: usize) -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let value: Value = serde_json::from_str(&text)?;
    print_pretty(&value, indent)?;

    let mut summary = Summary::default();
    summary.add(&value, 0);
    print_pretty(&summary, indent)?;

    if let Ok(mut catalogue) = serde_json::from_value::<Catalogue>(value) {
        catalogue.books.sort_by_key(|book| book.first_published);
        println!("{}, by year:", catalogue.title);
        for Book { title, authors, first_published, rating } in &catalogue.books {
            let rating = rating.map_or("unrated".to_owned(), |stars| format!("{stars:.1} stars"));
            println!("  {first_published}  {title} ({}), {rating}", authors.join(" and "));
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let indent = env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2);
    match run(indent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("json-pretty: {error}");
            ExitCode::FAILURE
        }
    }
}
