//! `gpu-run explain FILE [FUNC]`: a function as wasm, as CLIF and as PTX.
//!
//! The three forms are printed side by side if stdout is a terminal that is wide enough for three columns, otherwise
//! one after the other.

use crate::args::{BuildChoice, CacheArgs, ChecksChoice, ExplainArgs};
use crate::program::offline_options;
use crate::source;
use crate::surface::{Surface, nearest};
use anyhow::Result;
use gpu_run_compiler::{Entry, Explained, printable};
use gpu_run_console::failure::Failure;
use gpu_run_console::output::Standard;
use gpu_run_console::progress::Progress;
use gpu_run_map::GPU_BATCH;
use std::io::{self, IsTerminal, Write};

/// From this width on, three columns fit.
const WIDE: usize = 160;
const GAP: &str = " │ ";

pub(crate) fn explain(args: &ExplainArgs) -> Result<u8> {
    let source = source::load(&args.file, args.codegen.bin.as_deref(), &CacheArgs::default())?;
    let surface = Surface::read(&source.wasm, &source.name)?;
    if let Some(wanted) = &args.func {
        check_function(&surface, &source.name, wanted)?;
    }
    let options = match args.build {
        BuildChoice::Run => {
            let layout = args.codegen.layout.resolve(false, 1);
            offline_options(&args.codegen, Entry::Exports, layout, ChecksChoice::Exact)
        }
        BuildChoice::Map => {
            surface.check_command(&source.name)?;
            let layout = args.codegen.layout.resolve(true, GPU_BATCH);
            offline_options(&args.codegen, Entry::Start, layout, ChecksChoice::Speculative)
        }
    };
    let options = surface.settle(options);
    let progress = Progress::start(format!("compiling {}", source.name));
    let (func, limit) = (args.func.as_deref(), args.codegen.compile_timeout);
    let functions = gpu_run_compiler::explain_within(&source.name, source.wasm.clone(), &options, func, limit)
        .map_err(|error| Failure::compiler(&source.name, error))?;
    drop(progress);
    if let (Some(wanted), true) = (&args.func, functions.is_empty()) {
        return Err(Failure::usage(format!(
            "`{wanted}` of {} is not compiled: {} reaches it",
            source.name,
            if args.build == BuildChoice::Map { "`_start` never" } else { "no exported function" }
        ))
        .into());
    }
    let page = Page::for_stdout();
    let mut stdout = Standard::stdout()?;
    for function in exact_first(functions, args.func.as_deref()) {
        stdout.write_all(page.show(&function).as_bytes())?;
    }
    Ok(0)
}

/// Checks that some function matches `wanted`, and else suggests similar names. This needs no compiling.
fn check_function(surface: &Surface, file: &str, wanted: &str) -> Result<()> {
    let count = surface.function_count();
    if let Ok(index) = wanted.parse::<u32>() {
        if index < count {
            return Ok(());
        }
        return Err(Failure::usage(format!(
            "{file} has no function {index}: its functions are numbered from 0 to {}",
            i64::from(count) - 1
        ))
        .into());
    }
    let names = || surface.function_list().map(|(_, name)| name).chain(surface.exported_functions());
    if names().any(|name| name.contains(wanted)) {
        return Ok(());
    }
    let failure = Failure::usage(format!("{file} has no function whose name contains `{wanted}`"));
    let near: Vec<_> =
        nearest(wanted, names()).into_iter().map(|near| format!("`{}`", printable::name(near))).collect();
    Err(match (near.is_empty(), surface.function_list().next()) {
        (false, _) => failure.hint(format!("similar names: {}", near.join(", "))).into(),
        (true, None) => failure.hint(format!("the module has no names; pass an index below {count}")).into(),
        (true, Some(_)) => failure.hint("leave the name out to see all functions").into(),
    })
}

/// If a function has exactly the wanted name, keeps only that one, although other names contain it.
fn exact_first(functions: Vec<Explained>, wanted: Option<&str>) -> Vec<Explained> {
    let is_exact = |function: &Explained| wanted.is_some_and(|wanted| function.name == wanted);
    if functions.iter().any(is_exact) { functions.into_iter().filter(is_exact).collect() } else { functions }
}

/// How the output is laid out.
#[derive(Debug)]
struct Page {
    /// The terminal's width in columns; `None` if stdout is no terminal.
    width: Option<usize>,
    colour: bool,
}

impl Page {
    fn for_stdout() -> Self {
        let terminal = io::stdout().is_terminal();
        let width = terminal_size::terminal_size().filter(|_| terminal).map(|(width, _)| width.0.into());
        Self { width, colour: terminal && std::env::var_os("NO_COLOR").is_none() }
    }

    fn show(&self, function: &Explained) -> String {
        let wasm: Vec<String> =
            function.wasm.iter().map(|(offset, text)| plain(&format!("{offset:6x}  {text}"))).collect();
        let clif: Vec<String> = function.clif.lines().map(plain).collect();
        let ptx: Vec<String> = function.ptx.lines().map(plain).collect();
        let parts = [("wasm", wasm), ("CLIF", clif), ("PTX", ptx)];
        let heading = self.bold(&format!("{} (function {})", printable::name(&function.name), function.index));
        let body = match self.width {
            Some(width) if width >= WIDE => self.columns(&parts, width),
            _ => self.stacked(&parts),
        };
        format!("{heading}\n{body}\n")
    }

    fn stacked(&self, parts: &[(&str, Vec<String>)]) -> String {
        let part = |(title, lines): &(&str, Vec<String>)| {
            let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
            format!("{}\n{lines}", self.dim(&format!("-- {title} --")))
        };
        parts.iter().map(part).collect()
    }

    /// Wasm lines are short: that column is as wide as it needs to be, at most a third, and the other two share the
    /// rest.
    fn columns(&self, parts: &[(&str, Vec<String>); 3], width: usize) -> String {
        let room = width - 2 * GAP.chars().count();
        let longest = parts[0].1.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let first = longest.clamp(10, room / 3);
        let second = (room - first) / 2;
        let widths = [first, second, room - first - second];
        let rows = parts.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
        let row = |cells: [&str; 3]| {
            let cells: Vec<_> = cells.iter().zip(widths).map(|(cell, width)| fit(cell, width)).collect();
            cells.join(GAP).trim_end().to_owned()
        };
        let title = self.dim(&row([parts[0].0, parts[1].0, parts[2].0]));
        let cell = |part: usize, at: usize| parts[part].1.get(at).map_or("", String::as_str);
        let body: String = (0..rows).map(|at| row([cell(0, at), cell(1, at), cell(2, at)]) + "\n").collect();
        format!("{title}\n{body}")
    }

    fn bold(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn dim(&self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Replaces tabs, whose width is unknown, by spaces, and other control characters by escapes.
fn plain(line: &str) -> String {
    printable::name(&line.replace('\t', "    ")).into_owned()
}

/// Cuts off text with `…`, or pads it, to exactly `width` columns.
fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return format!("{text:width$}");
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str) -> Explained {
        Explained {
            index: 3,
            name: name.into(),
            wasm: vec![(0x2a, "local.get 0".into()), (0x2c, "end".into())],
            clif: "block0(v0: i32):\n\treturn v0".into(),
            ptx: format!("{};\nret;\nextra;", "x".repeat(300)),
        }
    }

    #[test]
    fn without_a_terminal_the_forms_stand_one_after_the_other() {
        let text = Page { width: None, colour: false }.show(&function("f"));
        assert!(text.starts_with("f (function 3)\n-- wasm --\n    2a  local.get 0\n"), "{text}");
        assert!(text.contains("-- CLIF --\nblock0(v0: i32):\n    return v0\n-- PTX --\nxxx"), "{text}");
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn columns_fit_the_terminal() {
        let text = Page { width: Some(160), colour: false }.show(&function("f"));
        assert!(text.lines().all(|line| line.chars().count() <= 160), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains(GAP)).count(), 4, "a title and three rows: {text}");
        assert!(text.contains('…'), "{text}");
    }

    #[test]
    fn narrow_terminals_get_no_columns() {
        assert!(Page { width: Some(159), colour: true }.show(&function("f")).contains("-- PTX --"));
    }

    #[test]
    fn a_whole_name_beats_names_that_contain_it() {
        let all = || vec![function("main"), function("main::inner")];
        let names = |wanted| exact_first(all(), wanted).into_iter().map(|f| f.name).collect::<Vec<_>>();
        assert_eq!(names(Some("main")), ["main"]);
        assert_eq!(names(Some("mai")), ["main", "main::inner"]);
        assert_eq!(names(None), ["main", "main::inner"]);
    }

    #[test]
    fn a_name_that_is_not_there_brings_near_ones() {
        let wasm = wat::parse_str(r#"(module (func $add_one) (func (export "sub")))"#).unwrap();
        let surface = Surface::read(&wasm, "a.wasm").unwrap();
        for good in ["0", "1", "add_one", "add", "sub"] {
            check_function(&surface, "a.wasm", good).unwrap();
        }
        let refusal = |wanted| check_function(&surface, "a.wasm", wanted).unwrap_err().to_string();
        assert!(refusal("ad_one").contains("`add_one`"));
        assert!(refusal("2").contains("from 0 to 1"));
        assert!(refusal("zzz").contains("leave the name out"));
    }
}
