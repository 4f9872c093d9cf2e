//! Parses PTX text into the [`ast`](super::ast).
//!
//! One pass over the text finds the declarations and where each body begins and ends ([`parse`]). The bodies, nearly
//! all of the text, are read one by one when they are compiled ([`Text::read`]), in parallel, so that no more than one
//! for each core is in memory. Nothing is copied: names are slices of the text. Anything outside the dialect of
//! `docs/ptx.md` is an [`Error::Ptx`](crate::Error::Ptx) with its line; no text makes this panic.

mod body;
mod cursor;
mod mnemonic;
mod names;
#[cfg(test)]
mod tests;

pub(super) use cursor::at_line;
pub(super) use names::Map;

use super::ast::{Body, Function, Global, Initial, LocalArray, Module, Returns, SharedArray, Signature, Type};
use crate::Result;
use cursor::Cursor;

/// The most elements an array may declare: more is a mistake, not a program.
const DATA_LIMIT: u64 = 1 << 32;

/// The text between a function's braces.
#[derive(Debug)]
pub(crate) struct Text<'a>(Cursor<'a>);

impl<'a> Text<'a> {
    pub(crate) fn read(&self, function: &Function<'a>) -> Result<Body<'a>> {
        body::parse(function, self.0.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.rest().len()
    }
}

/// Returns the declarations, and the text of each of `Module::functions`.
pub(crate) fn parse(ptx: &str) -> Result<(Module<'_>, Vec<Text<'_>>)> {
    let mut text = Cursor::new(ptx);
    let mut module = Module::default();
    let mut bodies = Vec::new();
    while !text.at_end() {
        item(&mut text, &mut module, &mut bodies)?;
    }
    Ok((module, bodies))
}

fn item<'a>(text: &mut Cursor<'a>, module: &mut Module<'a>, bodies: &mut Vec<Text<'a>>) -> Result<()> {
    let mut word = text.word();
    if matches!(word, ".visible" | ".extern" | ".weak") {
        word = text.word();
    }
    match word {
        ".version" | ".target" => text.skip_line(),
        ".address_size" => {
            if text.integer()? != 64 {
                return Err(text.error("only 64-bit addresses are supported"));
            }
        }
        ".func" | ".entry" => {
            let function = header(text, word == ".entry")?;
            if !text.accept(b';') {
                bodies.push(Text(braces(text)?));
                module.functions.push(function);
            }
        }
        ".global" => module.globals.push(global(text)?),
        ".shared" => module.shared.push(shared(text)?),
        "" => return Err(text.error("expected a directive: `.func`, `.entry`, `.global`, `.shared`")),
        other => return Err(text.error(format!("the directive `{other}` is not known"))),
    }
    Ok(())
}

/// Moves past `{ … }` and returns what is between the braces.
fn braces<'a>(text: &mut Cursor<'a>) -> Result<Cursor<'a>> {
    text.expect(b'{')?;
    let start = text.clone();
    let rest = text.rest();
    let (mut depth, mut lines, mut at) = (1, 0, 0);
    while at < rest.len() {
        match rest[at] {
            b'\n' => lines += 1,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    let body = text.split_off(at, lines);
                    text.expect(b'}')?;
                    return Ok(body);
                }
            }
            b'/' if rest.get(at + 1) == Some(&b'/') => {
                while at + 1 < rest.len() && rest[at + 1] != b'\n' {
                    at += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    Err(start.error("this body is not closed with `}`"))
}

/// Parses from after `.func` or `.entry` to before `;` or `{`.
fn header<'a>(text: &mut Cursor<'a>, entry: bool) -> Result<Function<'a>> {
    let line = text.line();
    let (mut result, mut result_name) = (Returns::Nothing, "");
    if text.accept(b'(') {
        (result_name, result) = returns(text)?;
    }
    let name = text.name()?;
    let mut parameter_names = Vec::new();
    let mut parameters = Vec::new();
    if text.accept(b'(') {
        while text.peek() != b')' {
            text.expect_word(if entry { ".param" } else { ".reg" })?;
            parameters.push(if entry { parameter_type(text)? } else { register_type(text, false)? });
            parameter_names.push(text.name()?);
            if !text.accept(b',') {
                break;
            }
        }
        text.expect(b')')?;
    }
    if entry && result != Returns::Nothing {
        return Err(text.error("a kernel has no result"));
    }
    let signature = Signature { parameters, result };
    Ok(Function { name, line, entry, signature, parameter_names, result_name })
}

/// Parses a result in parentheses: one register, or cells of `.param`.
fn returns<'a>(text: &mut Cursor<'a>) -> Result<(&'a str, Returns)> {
    let found = match text.word() {
        ".reg" => {
            let ty = register_type(text, false)?;
            (text.name()?, Returns::Register(ty))
        }
        ".param" => {
            let (name, bytes) = cells(text)?;
            (name, Returns::Cells(bytes))
        }
        other => return Err(text.error(format!("expected `.reg` or `.param`, found `{other}`"))),
    };
    text.expect(b')')?;
    Ok(found)
}

/// Parses from after `.param`: `.align 8 .b8 name[16]`.
fn cells<'a>(text: &mut Cursor<'a>) -> Result<(&'a str, u32)> {
    text.expect_word(".align")?;
    text.expect_word("8")?;
    text.expect_word(".b8")?;
    let name = text.name()?;
    text.expect(b'[')?;
    let bytes = text.small()?;
    text.expect(b']')?;
    if bytes == 0 || !bytes.is_multiple_of(8) || bytes > 1 << 16 {
        return Err(text.error(format!("{bytes} bytes are not a number of 8-byte cells")));
    }
    Ok((name, bytes))
}

/// Maximum bytes of a `.local` array.
const MAX_LOCAL: u32 = 1 << 20;

/// Parses from after `.local`: `.align 16 .b8 name[65536]`.
fn local<'a>(text: &mut Cursor<'a>) -> Result<LocalArray<'a>> {
    text.expect_word(".align")?;
    text.expect_word("16")?;
    text.expect_word(".b8")?;
    let name = text.name()?;
    text.expect(b'[')?;
    let bytes = text.small()?;
    text.expect(b']')?;
    match bytes {
        1..=MAX_LOCAL => Ok(LocalArray { name, bytes }),
        _ => Err(text.error(format!("`{name}` has {bytes} bytes; a thread's own memory has 1 to {MAX_LOCAL}"))),
    }
}

/// Parses from after `.callprototype`: `(.reg .b32 _) _ (.reg .b64 _, .reg .b32 _)`.
fn prototype(text: &mut Cursor<'_>) -> Result<Signature> {
    Ok(header(text, false)?.signature)
}

/// Parses the type of a register.
fn register_type(text: &mut Cursor<'_>, predicate: bool) -> Result<Type> {
    let word = text.word();
    match word.strip_prefix('.').and_then(Type::named) {
        Some(ty) if ty.is_bits() || ty.is_float() || (predicate && ty == Type::Pred) => Ok(ty),
        _ => Err(text.error(format!("`{word}` is not a type of a register here"))),
    }
}

fn parameter_type(text: &mut Cursor<'_>) -> Result<Type> {
    let word = text.word();
    match word.strip_prefix('.').and_then(Type::named) {
        Some(ty) if !ty.is_narrow() => Ok(ty),
        _ => Err(text.error(format!("`{word}` is not a type of a kernel's parameter"))),
    }
}

/// Parses `.align 8 .u64 name[3]` into name, alignment, element size and count; the count is absent in `name[]`.
fn array<'a>(text: &mut Cursor<'a>) -> Result<(&'a str, u32, u32, Option<u64>)> {
    let mut word = text.word();
    let mut align = 0;
    if word == ".align" {
        align = text.small()?;
        if !align.is_power_of_two() || align > 128 {
            return Err(text.error(format!("{align} is not an alignment")));
        }
        word = text.word();
    }
    let element = match word {
        ".b8" => 1,
        ".b16" => 2,
        _ => match word.strip_prefix('.').and_then(Type::named) {
            Some(ty) if ty != Type::Pred => ty.bytes(),
            _ => return Err(text.error(format!("`{word}` is not a type of data"))),
        },
    };
    let name = text.name()?;
    let mut count = Some(1);
    if text.accept(b'[') {
        count = if text.peek() == b']' { None } else { Some(text.integer()? as u64) };
        text.expect(b']')?;
    }
    if count.is_some_and(|n| n == 0 || n > DATA_LIMIT) {
        return Err(text.error(format!("`{name}` has an impossible length")));
    }
    Ok((name, align.max(element), element, count))
}

fn global<'a>(text: &mut Cursor<'a>) -> Result<Global<'a>> {
    let line = text.line();
    let (name, align, element, count) = array(text)?;
    let mut initial = Vec::new();
    if text.accept(b'=') {
        if text.accept(b'{') {
            while text.peek() != b'}' {
                initial.push(initializer(text, element)?);
                if !text.accept(b',') {
                    break;
                }
            }
            text.expect(b'}')?;
        } else {
            initial.push(initializer(text, element)?);
        }
    }
    text.expect(b';')?;
    let count = count.unwrap_or(initial.len() as u64);
    if count == 0 || (initial.len() as u64) > count {
        return Err(text.error(format!("`{name}` has {count} elements and {} initial values", initial.len())));
    }
    Ok(Global { name, line, align, bytes: count * element as u64, element, initial })
}

fn initializer<'a>(text: &mut Cursor<'a>, element: u32) -> Result<Initial<'a>> {
    if matches!(text.peek(), b'0'..=b'9' | b'-') {
        return Ok(Initial::Bits(text.integer()? as u64));
    }
    let name = text.name()?;
    if element != 8 {
        return Err(text.error(format!("the address of `{name}` needs an element of 64 bits")));
    }
    Ok(Initial::Symbol(name))
}

fn shared<'a>(text: &mut Cursor<'a>) -> Result<SharedArray<'a>> {
    let line = text.line();
    let (name, align, element, count) = array(text)?;
    text.expect(b';')?;
    match count {
        Some(count) if count * element as u64 <= 1 << 24 => {
            Ok(SharedArray { name, line, align, bytes: count * element as u64 })
        }
        _ => Err(text.error(format!("`{name}` takes more shared memory than a block can have"))),
    }
}
