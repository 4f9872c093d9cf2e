//! From a record's text to the words of a call, and from the words of its results to text.
//!
//! ```text
//! lines, files   the arguments are words, `2 0.5`            the results are words of one line
//! csv            the fields of a row, `2,0.5`                fields of a row
//! jsonl          an array, `[2, 0.5]`; strings for what JSON cannot say: `"inf"`    a value, or an array
//! ```

use super::{Function, WORD};
use crate::input::{Flaw, separator};
use crate::options::Split;
use bytes::Bytes;
use gpu_run_compiler::{Value, ValueType};
use gpu_run_run::value_text;
use std::borrow::Cow;
use std::ffi::OsString;
use std::str;

/// The argument in whose place a record's own arguments are passed.
const RECORD: &str = "{}";

/// How a map calls a function for each record.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub(crate) function: Function,
    split: Split,
    /// Arguments that all calls have; `{}` stands for those of the record.
    given: Vec<String>,
}

impl Calls {
    /// `given` are the map's ARGS. Without any, the arguments are those of the record.
    pub(crate) fn new(function: Function, split: Split, given: &[OsString]) -> Self {
        let text = |arg: &OsString| arg.to_string_lossy().into_owned();
        let given = if given.is_empty() { vec![RECORD.into()] } else { given.iter().map(text).collect() };
        Self { function, split, given }
    }

    /// Returns the words of the arguments of the call for a record; `header` is CSV's.
    pub(crate) fn words(&self, record: &[u8], header: &[u8]) -> Result<Bytes, Flaw> {
        let own = self.own_arguments(record, header).map_err(Flaw::NoArguments)?;
        let all: Vec<&str> = match &self.given[..] {
            [only] if only == RECORD => own.iter().map(|own| &**own).collect(),
            given => given
                .iter()
                .flat_map(|arg| match arg == RECORD {
                    true => own.iter().map(|own| &**own).collect(),
                    false => vec![&arg[..]],
                })
                .collect(),
        };
        let Function { name, ty, .. } = &self.function;
        let values = value_text::arguments(name, &ty.params, &all).map_err(Flaw::NoArguments)?;
        let mut words = Vec::with_capacity(self.function.argument_bytes());
        values.iter().for_each(|value| words.extend(word(value).to_le_bytes()));
        words.resize(self.function.argument_bytes(), 0);
        Ok(words.into())
    }

    fn own_arguments<'a>(&self, record: &'a [u8], header: &[u8]) -> Result<Vec<Cow<'a, str>>, String> {
        let text = str::from_utf8(record).map_err(|_| "they are not UTF-8".to_owned())?;
        match self.split {
            Split::Lines | Split::Files => Ok(text.split_ascii_whitespace().map(Cow::from).collect()),
            Split::Csv => Ok(fields(text, separator(header).into())),
            Split::Jsonl => elements(text.trim()).ok_or_else(|| "a record is an array of numbers".to_owned()),
        }
    }

    /// Appends the text of a call's results.
    pub(crate) fn show(&self, words: &[[u8; WORD]], text: &mut Vec<u8>) {
        let values = self.function.ty.results.iter().zip(words).map(|(ty, word)| value(*ty, u64::from_le_bytes(*word)));
        let (is_json, separator) = match self.split {
            Split::Jsonl => (true, ", "),
            Split::Csv => (false, ","),
            Split::Lines | Split::Files => (false, " "),
        };
        let shown: Vec<_> = values.map(|value| if is_json { json(&value) } else { value_text::show(&value) }).collect();
        let line = match &shown[..] {
            [] if is_json => "null".to_owned(),
            [] => return,
            [one] => one.clone(),
            several if is_json => format!("[{}]", several.join(separator)),
            several => several.join(separator),
        };
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
}

/// Returns a value as a word: zero-extended, a float's bits.
fn word(value: &Value) -> u64 {
    match *value {
        Value::I32(v) => u64::from(v as u32),
        Value::I64(v) => v as u64,
        Value::F32(bits) => bits.into(),
        Value::F64(bits) => bits,
        // A function of numbers has no others.
        _ => 0,
    }
}

fn value(ty: ValueType, word: u64) -> Value {
    match ty {
        ValueType::I32 => Value::I32(word as i32),
        ValueType::F32 => Value::F32(word as u32),
        ValueType::F64 => Value::F64(word),
        _ => Value::I64(word as i64),
    }
}

/// Returns a number as JSON; a string for what is no number in JSON.
fn json(value: &Value) -> String {
    let is_finite = match *value {
        Value::F32(bits) => f32::from_bits(bits).is_finite(),
        Value::F64(bits) => f64::from_bits(bits).is_finite(),
        _ => true,
    };
    let text = value_text::show(value);
    if is_finite { text } else { format!("\"{text}\"") }
}

/// Returns the fields of a row of CSV, without spaces around them.
fn fields(row: &str, separator: char) -> Vec<Cow<'_, str>> {
    if row.trim().is_empty() {
        return Vec::new();
    }
    parts(row, separator, false).map(|field| unquoted(field.trim())).collect()
}

fn unquoted(field: &str) -> Cow<'_, str> {
    match field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\"").trim().to_owned().into(),
        None => field.into(),
    }
}

/// Returns the elements of an array, numbers and strings, or a number or string alone. The text is known to be JSON.
fn elements(text: &str) -> Option<Vec<Cow<'_, str>>> {
    let inner = match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None => text,
    };
    let element = |text: &str| match text.chars().next()? {
        '"' => serde_json::from_str::<String>(text).ok(),
        '-' | '0'..='9' => Some(text.to_owned()),
        _ => None,
    };
    match inner.trim() {
        "" => Some(Vec::new()),
        inner => parts(inner, ',', true).map(|text| element(text.trim()).map(Cow::from)).collect(),
    }
}

/// Divides a text at its separators, but for those within quotes, where a backslash may hide a quote.
fn parts(text: &str, separator: char, has_escapes: bool) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |c| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted && has_escapes => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
        c == separator && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_run_compiler::{FunctionType, Interface};

    fn calls(params: &[ValueType], results: &[ValueType], split: Split, given: &[&str]) -> Calls {
        let ty = FunctionType { params: params.into(), results: results.into() };
        let types = |types: &[ValueType]| types.iter().map(|ty| format!(" {ty}")).collect::<String>();
        let text = format!(
            "(module (func (export \"f\") (param{}) (result{}) unreachable))",
            types(&ty.params),
            types(&ty.results)
        );
        let interface = Interface::read(&wat::parse_str(text).unwrap()).unwrap();
        let function = Function::find(&interface, "f").unwrap();
        assert_eq!(*function.ty(), ty);
        let given: Vec<_> = given.iter().map(OsString::from).collect();
        Calls::new(function, split, &given)
    }

    fn words(calls: &Calls, record: &str) -> Result<Vec<u64>, String> {
        let bytes = calls.words(record.as_bytes(), b"a,b").map_err(|flaw| flaw.to_string())?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    const NUMBERS: [ValueType; 4] = [ValueType::I32, ValueType::I64, ValueType::F32, ValueType::F64];

    #[test]
    fn every_way_of_splitting_gives_the_same_words() {
        let all = [u32::MAX.into(), u64::MAX, f32::INFINITY.to_bits().into(), 0.1f64.to_bits()];
        for (split, record) in [
            (Split::Lines, "-1 18446744073709551615\tinf  0.1"),
            (Split::Files, "-1\n0xffffffffffffffff\r\ninf\n0.1\n"),
            (Split::Csv, "-1, -1,\"inf\",0.1"),
            (Split::Jsonl, r#" [-1, 18446744073709551615, "in\u0066", 0.1] "#),
        ] {
            assert_eq!(words(&calls(&NUMBERS, &[], split, &[]), record).as_deref(), Ok(&all[..]), "{split}");
        }
        let one = calls(&[ValueType::I32], &[], Split::Jsonl, &[]);
        assert_eq!(words(&one, "7"), Ok(vec![7]));
        let none = calls(&[], &[], Split::Jsonl, &[]);
        assert_eq!(words(&none, "[]"), Ok(vec![0]), "a call has a word");
        assert_eq!(words(&calls(&[], &[], Split::Csv, &[]), ""), Ok(vec![0]));
    }

    #[test]
    fn what_is_wrong_with_arguments_is_said() {
        let lines = calls(&[ValueType::I32; 2], &[], Split::Lines, &[]);
        let said = |record| words(&lines, record).unwrap_err();
        assert_eq!(said("1"), "has wrong arguments: `f` takes 2 arguments (i32, i32), not 1");
        assert!(said("1 2 3").ends_with("not 3") && said("").ends_with("not 0"));
        assert!(said("1 4294967296").contains("argument 2 of `f`, `4294967296`, is not i32: it does not fit"));
        let json = calls(&[ValueType::I32], &[], Split::Jsonl, &[]);
        for record in [r#"{"a": 1}"#, "[[1]]", "[null]", "true", r#"[{"a": 1}]"#] {
            assert_eq!(
                words(&json, record).unwrap_err(),
                "has wrong arguments: a record is an array of numbers",
                "{record}"
            );
        }
        assert!(words(&json, r#"["a,b"]"#).unwrap_err().contains("`a,b`"));
        assert!(words(&json, r#"["a\",b"]"#).unwrap_err().contains("`a\",b`"));
        assert!(lines.words(b"1 \xff", b"").unwrap_err().to_string().contains("not UTF-8"));
    }

    #[test]
    fn arguments_that_all_calls_have_stand_where_they_were_given() {
        let calls = |given: &[&str]| calls(&[ValueType::I32; 3], &[], Split::Lines, given);
        assert_eq!(words(&calls(&["{}", "9"]), "1 2"), Ok(vec![1, 2, 9]));
        assert_eq!(words(&calls(&["9", "{}", "8"]), "1"), Ok(vec![9, 1, 8]));
        assert_eq!(words(&calls(&["{}", "{}", "{}"]), "5"), Ok(vec![5; 3]));
        assert!(words(&calls(&["{}", "x"]), "1 2").unwrap_err().contains("argument 3 of `f`, `x`"));
    }

    #[test]
    fn results_are_a_line() {
        let shown = |results: &[ValueType], split, words: &[u64]| {
            let words: Vec<_> = words.iter().map(|word| word.to_le_bytes()).collect();
            let mut text = Vec::new();
            calls(&[], results, split, &[]).show(&words, &mut text);
            String::from_utf8(text).unwrap()
        };
        let all = [u32::MAX.into(), 1 << 63, f32::NAN.to_bits().into(), f64::NEG_INFINITY.to_bits()];
        assert_eq!(shown(&NUMBERS, Split::Lines, &all), "-1 -9223372036854775808 NaN -inf\n");
        assert_eq!(shown(&NUMBERS, Split::Csv, &all), "-1,-9223372036854775808,NaN,-inf\n");
        assert_eq!(shown(&NUMBERS, Split::Jsonl, &all), "[-1, -9223372036854775808, \"NaN\", \"-inf\"]\n");
        assert_eq!(shown(&[ValueType::F64], Split::Jsonl, &[0.5f64.to_bits()]), "0.5\n");
        assert_eq!(shown(&[], Split::Jsonl, &[]), "null\n");
        assert_eq!(shown(&[], Split::Lines, &[]), "");
    }
}
