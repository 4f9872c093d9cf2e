//! Where figures are written: text for people, JSON for programs.

use anyhow::{Context as _, Result};
use gpu_run_console::output::Standard;
use gpu_run_console::terminal::{self, Escaping};
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::PathBuf;

#[derive(Debug)]
pub struct Sheet {
    text: Escaping<Standard>,
    json: Json,
}

#[derive(Debug)]
enum Json {
    None,
    Stdout,
    File(PathBuf),
}

impl Sheet {
    /// `json` is the value of `--json`: a file, or `-` for stdout; with `-`, the text goes to stderr.
    pub fn new(json: Option<PathBuf>) -> io::Result<Self> {
        let json = match json {
            None => Json::None,
            Some(path) if path.as_os_str() == "-" => Json::Stdout,
            Some(path) => Json::File(path),
        };
        let text = if matches!(json, Json::Stdout) { Standard::stderr()? } else { Standard::stdout()? };
        Ok(Self { text: Escaping(text), json })
    }

    pub(crate) fn write(&mut self, text: &str) -> Result<()> {
        self.text.write_all(text.as_bytes())?;
        Ok(self.text.flush()?)
    }

    /// Writes the figures found so far to the JSON file, so that they are kept even if the next measurement never
    /// returns.
    pub(crate) fn keep(&self, figures: impl FnOnce() -> Value) -> Result<()> {
        let Json::File(path) = &self.json else { return Ok(()) };
        let text = format!("{:#}\n", figures());
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes all figures.
    pub(crate) fn end(&self, figures: impl FnOnce() -> Value) -> Result<()> {
        match &self.json {
            Json::Stdout => Ok(terminal::print(&format!("{:#}\n", figures()))?),
            _ => self.keep(figures),
        }
    }
}

/// Named figures, as they are found, and the sheet that they are written to.
pub(crate) struct Record<'a> {
    sheet: &'a mut Sheet,
    figures: Map<String, Value>,
}

impl<'a> Record<'a> {
    pub(crate) fn new(sheet: &'a mut Sheet) -> Self {
        Self { sheet, figures: Map::new() }
    }

    pub(crate) fn line(&mut self, text: &str) -> Result<()> {
        self.sheet.write(&format!("{text}\n"))
    }

    /// Adds a figure and writes it to the file at once.
    pub(crate) fn put(&mut self, key: &str, value: Value) -> Result<()> {
        self.figures.insert(key.to_owned(), value);
        self.sheet.keep(|| Value::Object(self.figures.clone()))
    }

    /// Writes all figures.
    pub(crate) fn end(self) -> Result<()> {
        self.sheet.end(|| Value::Object(self.figures))
    }
}
