//! The kernels in a PTX text, and their parameters.
//!
//! The driver reads as many arguments as the kernel has parameters, however many it was given, and older drivers cannot
//! be asked for the number. So the parameters are read from the kernel's declaration: `.entry name (.param .u64 p0,
//! .param .u32 p1)`.

use crate::{Arg, Error, Result};

/// A kernel's declaration.
#[derive(Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Size of each parameter in bytes: 4 or 8.
    pub(super) parameters: Vec<u8>,
    /// Bytes of shared memory that a launch asks for.
    pub(super) shared_bytes: u32,
}

impl Entry {
    /// Returns the arguments in cells of eight bytes, if they match the kernel's parameters.
    pub(super) fn cells(&self, args: &[Arg]) -> Result<Vec<u64>> {
        let bytes = |arg: &Arg| match arg {
            Arg::U32(_) => 4,
            Arg::U64(_) => 8,
        };
        if !args.iter().map(bytes).eq(self.parameters.iter().copied()) {
            let Self { name, parameters, .. } = self;
            let message =
                format!("the kernel `{name}` takes arguments of {parameters:?} bytes, but was given {args:?}");
            return Err(Error::Unavailable(message));
        }
        let cell = |arg: &Arg| match *arg {
            Arg::U32(n) => u64::from(n),
            Arg::U64(n) => n,
        };
        Ok(args.iter().map(cell).collect())
    }
}

/// Finds all kernels in a PTX text.
pub(super) fn entries(ptx: &str) -> Result<Vec<Entry>> {
    let mut lines = ptx.lines().enumerate();
    let mut found = Vec::new();
    while let Some((index, text)) = lines.next() {
        let Some((_, after)) = code(text).split_once(".entry ") else { continue };
        let refuse = |message: &str| Error::Ptx { line: index + 1, message: message.into(), text: text.trim().into() };
        let mut declaration = after.to_owned();
        while !declaration.contains(['{', ')']) {
            let Some((_, more)) = lines.next() else { return Err(refuse("the text ends in a kernel's declaration")) };
            declaration.push(' ');
            declaration.push_str(code(more));
        }
        found.push(entry(&declaration).map_err(refuse)?);
    }
    Ok(found)
}

/// Returns a line without its comment.
fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// Parses `name (.param .u64 p0, …)` or `name {`.
fn entry(declaration: &str) -> Result<Entry, &'static str> {
    let end = declaration.find(['(', '{', ' ']).unwrap_or(declaration.len());
    let (name, after) = declaration.split_at(end);
    let list = after.trim_start().strip_prefix('(').and_then(|l| l.split_once(')')).map_or("", |(list, _)| list);
    let parameters = list.split(',').map(str::trim).filter(|p| !p.is_empty()).map(parameter);
    Ok(Entry { name: name.to_owned(), parameters: parameters.collect::<Result<_, _>>()?, shared_bytes: 0 })
}

fn parameter(text: &str) -> Result<u8, &'static str> {
    let mut words = text.split_whitespace();
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(".param"), Some(ty), Some(name), None) if !name.contains('[') => match ty {
            ".u32" | ".s32" | ".b32" | ".f32" => Ok(4),
            ".u64" | ".s64" | ".b64" | ".f64" => Ok(8),
            _ => Err("a kernel's parameters are `.u32` or `.u64`"),
        },
        _ => Err("a kernel's parameters are written `.param .u64 name`"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn kernels_and_their_parameters_are_found() {
        let ptx = ".version 7.8\n// .entry comment ()\n.visible .entry batch (.param .u64 p0, .param .u32 p1)\n{\n ret;\n}\n\
                   .entry bare\n{\n}\n.visible .entry long(\n  .param .u32 a, // first\n  .param .f64 b\n)\n{\n}\n";
        let found = entries(ptx).unwrap();
        let shapes: Vec<_> = found.iter().map(|e| (e.name.as_str(), e.parameters.as_slice())).collect();
        assert_eq!(shapes, [("batch", &[8, 4][..]), ("bare", &[]), ("long", &[4, 8])]);
    }

    #[test]
    fn a_parameter_of_unknown_size_is_refused_with_its_line() {
        for list in [".param .u8 a", ".param .align 8 .b8 a[16]", ".reg .u32 a"] {
            let error = entries(&format!(".version 7.8\n.entry k ({list})\n{{\n}}\n")).unwrap_err();
            assert!(matches!(error, Error::Ptx { line: 2, .. }), "{list}: {error}");
        }
        assert!(matches!(entries(".entry k (.param .u32 a,").unwrap_err(), Error::Ptx { line: 1, .. }));
    }

    #[test]
    fn arguments_the_kernel_does_not_take_never_reach_the_driver() {
        let entry = Entry { name: "k".into(), parameters: vec![8, 4], shared_bytes: 0 };
        assert_eq!(entry.cells(&[Arg::U64(1 << 40), Arg::U32(7)]).unwrap(), [1 << 40, 7]);
        for args in [&[][..], &[Arg::U64(1)], &[Arg::U32(1), Arg::U64(2)], &[Arg::U64(1), Arg::U32(2), Arg::U32(3)]] {
            assert!(entry.cells(args).is_err(), "{args:?}");
        }
    }
}
