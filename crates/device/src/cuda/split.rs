//! One PTX text as several that are assembled side by side, and linked.
//!
//! ptxas has threads of its own, but reads its input on one, and what is left of a program at the end on few. Assembled with `-c`, functions need to know nothing of each other, so that a text can as well be several: each with some of the functions,
//! all of them visible, and declarations of the others they name. Kernels and data are in the first: there is little of them, and how many registers a program may have at all is the kernels' to say.
//!
//! This knows what `crates/ptx` prints: items begin at the beginning of a line, and a function ends with a line `}`. What it does not know is not split.

use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::HashSet;

/// A function of the text.
struct Function<'a> {
    name: &'a str,
    text: &'a str,
    is_kernel: bool,
}

/// What a text consists of.
#[derive(Default)]
struct Items<'a> {
    /// `.version` and the like.
    head: Vec<&'a str>,
    /// Functions that are declared: name, line.
    declared: Vec<(&'a str, &'a str)>,
    globals: Vec<&'a str>,
    functions: Vec<Function<'a>>,
}

/// At most `count` texts, with about as much to do in each, the first with the kernels. `None` for a text of another kind.
pub(super) fn split(ptx: &str, count: usize) -> Option<Vec<String>> {
    let mut items = Items::read(ptx)?;
    // The largest first, each to where the least is: so none is much larger than the others.
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
                Some(".func") if plain.ends_with(';') => items.declared.push((name(plain)?, plain)),
                Some(word @ (".func" | ".entry")) => {
                    taken = rest.find("\n}\n")? + 3;
                    items.functions.push(Function {
                        name: name(plain)?,
                        text: &rest[line.len() - plain.len()..taken],
                        is_kernel: word == ".entry",
                    });
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

/// The name in the line a function begins with, `.func (.reg .b32 %out) f1 (…` or `.entry k (…`.
fn name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(' ')?;
    let rest = if rest.starts_with('(') { rest.split_once(')')?.1 } else { rest };
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$'))).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

/// Everything that may be the name of a function or of data.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.')))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

#[cfg(test)]
#[path = "split_tests.rs"]
pub(super) mod tests;
