//! One PTX text as several that are assembled side by side, and linked.
//!
//! ptxas reads its input on one thread, and with threads of its own for the rest (`--split-compile`) compiles each function as if it knew of no other: then more is saved around calls than the callee overwrites, and frames are larger. So a text becomes several, each with some of the functions, all of them visible, and declarations of the others they name; and
//! callers are with their callees where the cuts allow it. Kernels and data are in the first: there is little of them, and how many registers a program may have at all is theirs to say.
//!
//! This knows what `crates/ptx` prints: items begin at the beginning of a line, and a function ends with a line `}`. What it does not know is not split.

use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

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

/// About `count` texts, the first with the kernels; equal texts become equal parts. `None` for a text of another kind.
pub(super) fn split(ptx: &str, count: usize) -> Option<Vec<String>> {
    let items = Items::read(ptx)?;
    let pieces = items.pieces(count);
    let text = |(n, functions): (usize, &Vec<&Function<'_>>)| items.part(functions, n == 0);
    Some(pieces.par_iter().enumerate().map(text).collect())
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

    /// What each function calls or takes the address of, by number, as often as it does.
    fn named(&self) -> Vec<Vec<usize>> {
        let numbers: HashMap<&str, usize> = self.functions.iter().enumerate().map(|(n, f)| (f.name, n)).collect();
        let named = |f: &Function<'a>| words(f.text).filter_map(|word| numbers.get(word).copied()).collect();
        self.functions.par_iter().map(named).collect()
    }

    /// Functions from the kernels on, each followed by those that it is the first to name, and these by theirs; at last what is reached by address only.
    fn by_calls(&self, named: &[Vec<usize>]) -> Vec<usize> {
        let (kernels, others): (Vec<_>, Vec<_>) = (0..named.len()).partition(|&n| self.functions[n].is_kernel);
        let (mut order, mut seen) = (Vec::with_capacity(named.len()), HashSet::new());
        for root in kernels.into_iter().chain(others) {
            // Not by recursion: chains of calls are as long as a program likes.
            let mut open = vec![root];
            while let Some(n) = open.pop() {
                if seen.insert(n) {
                    order.push(n);
                    open.extend(named[n].iter().rev().filter(|callee| !seen.contains(callee)));
                }
            }
        }
        order
    }

    /// The functions of `order` in groups, none larger than `share` if it is of several. What is called from one place only is the first to be with its caller, what is called from everywhere the last.
    fn groups(&self, order: &[usize], named: &[Vec<usize>], share: usize) -> Vec<Vec<usize>> {
        let (mut calls, mut calls_of): (HashMap<_, usize>, _) = (HashMap::new(), vec![0; named.len()]);
        for &caller in order {
            for &callee in named[caller].iter().filter(|callee| **callee != caller) {
                *calls.entry((caller, callee)).or_default() += 1;
                calls_of[callee] += 1;
            }
        }
        let mut calls: Vec<_> = calls.into_iter().collect();
        calls.sort_unstable_by_key(|&(pair, count)| (Reverse(1000 * count / calls_of[pair.1]), pair));
        let mut bytes: Vec<usize> = self.functions.iter().map(|f| f.text.len()).collect();
        let mut group_of: Vec<usize> = (0..named.len()).collect();
        for ((caller, callee), _) in calls {
            let (to, from) = (root(&mut group_of, caller), root(&mut group_of, callee));
            if to != from && bytes[to] + bytes[from] <= share {
                group_of[from] = to;
                bytes[to] += bytes[from];
            }
        }
        let (mut groups, mut places) = (Vec::<Vec<usize>>::new(), HashMap::new());
        for &n in order {
            let place = *places.entry(root(&mut group_of, n)).or_insert(groups.len());
            groups.resize_with(groups.len().max(place + 1), Vec::new);
            groups[place].push(n);
        }
        groups
    }

    /// About equal pieces, in the order of calls. A function that is one by itself is alone: all wait for it.
    fn pieces(&self, count: usize) -> Vec<Vec<&Function<'a>>> {
        let named = self.named();
        let order = self.by_calls(&named);
        if count < 2 {
            return vec![order.into_iter().map(|n| &self.functions[n]).collect()];
        }
        let bytes = |group: &Vec<usize>| group.iter().map(|&n| self.functions[n].text.len()).sum::<usize>();
        let (kernels, others): (Vec<_>, Vec<_>) = order.into_iter().partition(|&n| self.functions[n].is_kernel);
        let share = bytes(&others).div_ceil(count - 1).max(1);
        let (large, small): (Vec<_>, Vec<_>) =
            self.groups(&others, &named, share).into_iter().partition(|group| bytes(group) >= share);
        let (mut pieces, mut before) = (vec![Vec::new(); count], 0);
        for group in small {
            // Where its middle is.
            pieces[(before + bytes(&group) / 2) / share].extend(&group);
            before += bytes(&group);
        }
        pieces.retain(|piece| !piece.is_empty());
        let pieces = [kernels].into_iter().chain(large).chain(pieces);
        pieces.map(|piece| piece.into_iter().map(|n| &self.functions[n]).collect()).collect()
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

/// The one that stands for the group of `n`.
fn root(group_of: &mut [usize], mut n: usize) -> usize {
    while group_of[n] != n {
        group_of[n] = group_of[group_of[n]];
        n = group_of[n];
    }
    n
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
