//! Splits one PTX text into several that are assembled side by side, and linked.
//!
//! ptxas has threads of its own, but reads its input on one thread, and finishes a program on few. With `-c`, functions
//! need to know nothing of each other, so the text can be split. Each part contains some of the functions, all visible,
//! and declarations of the others that they name. The first part contains the kernels and the data: there is little of
//! them, and the kernels decide how many registers the whole program may have. Shared memory has no name outside a
//! part, except where its size is part of the launch: [`launched`] makes that of the array of a program with threads. The
//! text of a gang is not split.
//!
//! This relies on the form that `crates/ptx` prints: an item begins at the start of a line, and a function ends with a
//! line `}`. A text of another form is not split.

use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::HashSet;

/// The array in shared memory that a program with threads has, as the text declares it, and as it is declared where its size is
/// part of the launch.
const OF_THREADS: &str = ".shared .align 8 .b8 warp_state[";
const LAUNCHED: &str = ".extern .shared .align 8 .b8 warp_state[];";

/// Returns the text with [`LAUNCHED`], and the array's bytes; `None` if the text does not have the array.
pub(super) fn launched(ptx: &str) -> Option<(String, u32)> {
    let (before, after) = ptx.split_once(&format!("\n{OF_THREADS}"))?;
    let (bytes, after) = after.split_once("];\n")?;
    Some((format!("{before}\n{LAUNCHED}\n{after}"), bytes.parse().ok()?))
}

/// A function in the text.
struct Function<'a> {
    name: &'a str,
    text: &'a str,
    is_kernel: bool,
}

/// The items of a text.
#[derive(Default)]
struct Items<'a> {
    /// `.version` and the like.
    head: Vec<&'a str>,
    /// Name and line of each function declaration.
    declared: Vec<(&'a str, &'a str)>,
    globals: Vec<&'a str>,
    /// The line [`LAUNCHED`].
    shared: Option<&'a str>,
    functions: Vec<Function<'a>>,
}

/// Splits a text into at most `count` parts of about equal size, with the kernels in the first. `None` if the text has
/// another form.
pub(super) fn split(ptx: &str, count: usize) -> Option<Vec<String>> {
    let mut items = Items::read(ptx)?;
    // The largest functions first, each into the smallest part, so that no part becomes much larger than the others.
    items.functions.sort_by_key(|function| (!function.is_kernel, Reverse(function.text.len())));
    let mut parts: Vec<(usize, Vec<&Function<'_>>)> =
        vec![Default::default(); count.clamp(1, items.functions.len().max(1))];
    for function in &items.functions {
        let (bytes, functions) = match function.is_kernel {
            true => parts.first_mut()?,
            false => parts.iter_mut().min_by_key(|(bytes, _)| *bytes)?,
        };
        *bytes += function.text.len();
        functions.push(function);
    }
    let first = |n: usize| n == 0;
    Some(parts.par_iter().enumerate().map(|(n, (_, functions))| items.part(functions, first(n))).collect())
}

impl<'a> Items<'a> {
    fn read(ptx: &'a str) -> Option<Self> {
        let (mut items, mut rest) = (Self::default(), ptx);
        while !rest.is_empty() {
            let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
            let line = rest[..end].trim_end();
            let plain = line.strip_prefix(".visible ").unwrap_or(line);
            let mut taken = end;
            match plain.split_whitespace().next() {
                None => {}
                Some(word) if word.starts_with("//") => {}
                Some(".version" | ".target" | ".address_size") => items.head.push(line),
                Some(".global") if plain.ends_with(';') => items.globals.push(plain),
                Some(_) if plain == LAUNCHED => items.shared = Some(plain),
                Some(".func") if plain.ends_with(';') => items.declared.push((name(plain)?, plain)),
                Some(word @ (".func" | ".entry")) => {
                    taken = rest.find("\n}\n")? + 3;
                    let text = &rest[line.len() - plain.len()..taken];
                    items.functions.push(Function { name: name(plain)?, text, is_kernel: word == ".entry" });
                }
                Some(_) => return None,
            }
            rest = &rest[taken..];
        }
        Some(items)
    }

    fn part(&self, functions: &[&Function<'_>], with_data: bool) -> String {
        let own: HashSet<&str> = functions.iter().map(|function| function.name).collect();
        let mut named = HashSet::new();
        functions.iter().for_each(|function| named.extend(words(function.text)));
        if with_data {
            self.globals.iter().for_each(|global| named.extend(words(global)));
        }
        let mut text =
            String::with_capacity(functions.iter().map(|function| function.text.len()).sum::<usize>() + (1 << 16));
        self.head.iter().for_each(|line| text.extend([line, "\n"]));
        for (name, line) in self.declared.iter().filter(|(name, _)| own.contains(name) || named.contains(name)) {
            text.extend([if own.contains(name) { ".visible " } else { ".extern " }, line, "\n"]);
        }
        self.shared.iter().for_each(|line| text.extend([line, "\n"]));
        for global in &self.globals {
            match global.split_once('=') {
                _ if with_data => text.extend([".visible ", global, "\n"]),
                Some((declaration, _)) => text.extend([".extern ", declaration.trim_end(), ";\n"]),
                None => text.extend([".extern ", global, "\n"]),
            }
        }
        functions.iter().for_each(|function| text.extend([".visible ", function.text]));
        text
    }
}

/// Returns the name in a function's first line, `.func (.reg .b32 %out) f1 (…` or `.entry k (…`.
fn name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(' ')?;
    let rest = if rest.starts_with('(') { rest.split_once(')')?.1 } else { rest };
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$'))).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

/// Returns every word that may be the name of a function or of data.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.')))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

#[cfg(test)]
#[path = "split_tests.rs"]
pub(super) mod tests;
