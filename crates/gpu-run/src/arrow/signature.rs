//! The names that functions made with arrow-udf are exported under, and the types in them.

use crate::error::{Error, Result};
use crate::module::Module;
use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use std::fmt;

/// The only version of the protocol that is spoken here.
const VERSION: &str = "3";
/// What an export begins with that says the version.
pub(super) const VERSION_EXPORT: &str = "ARROWUDF_VERSION_";

/// A function that a module made with arrow-udf exports: `gcd(int32,int32)->int32`, or, if it is a table function,
/// `range(int32)->>int32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub name: String,
    /// The types of the columns it takes, as arrow-udf writes them.
    pub parameters: Vec<String>,
    pub result: String,
    /// Whether it returns any number of values for a row.
    pub is_table: bool,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = if self.is_table { "->>" } else { "->" };
        write!(f, "{}({}){arrow}{}", self.name, self.parameters.join(","), self.result)
    }
}

impl Signature {
    /// Whether the function has this name or signature. Types can be written as for arrow-udf's macro, and the result can be left out:
    /// `gcd(int, int) -> int`, `gcd(int, int)`.
    pub fn is_called(&self, name: &str) -> bool {
        let Some((head, rest)) = name.split_once('(') else { return self.name == name };
        let Some((parameters, result)) = rest.split_once(')') else { return false };
        let mut parameters = parameters.split(',').map(usual_type).filter(|ty| !ty.is_empty());
        let has_parameters = self.parameters.iter().all(|ty| parameters.next().as_ref() == Some(ty));
        let has_result = match result.trim().strip_prefix("->").map(str::trim) {
            None => result.trim().is_empty(),
            Some(result) => {
                let of_table = result.strip_prefix('>').or_else(|| result.strip_prefix("setof "));
                (of_table.is_some(), usual_type(of_table.unwrap_or(result))) == (self.is_table, self.result.clone())
            }
        };
        self.name == head.trim() && has_parameters && parameters.next().is_none() && has_result
    }

    fn parse(text: &str) -> Option<Self> {
        let (head, result) = text.split_once(")->")?;
        let (name, parameters) = head.split_once('(')?;
        let (result, is_table) = match result.strip_prefix('>') {
            Some(result) => (result, true),
            None => (result, false),
        };
        let parameters = parameters.split(',').filter(|ty| !ty.is_empty()).map(String::from).collect();
        Some(Self { name: name.into(), parameters, result: result.into(), is_table })
    }

    /// Returns whether the function takes columns of these types. A column of text is a `decimal` or `json` if its metadata says so;
    /// with `loosely`, any text is, and any struct is the struct that the function names.
    pub(super) fn takes(&self, schema: &Schema, loosely: bool) -> bool {
        let (parameters, takes_more) = match self.parameters.split_last() {
            Some((last, others)) if last == "..." => (others, true),
            _ => (&self.parameters[..], false),
        };
        let fields = schema.fields();
        if fields.len() < parameters.len() || (fields.len() > parameters.len() && !takes_more) {
            return false;
        }
        fields.iter().zip(parameters).all(|(field, parameter)| {
            let is_like = match field.data_type() {
                DataType::Utf8 => matches!(&parameter[..], "decimal" | "json"),
                DataType::Struct(_) => parameter.starts_with("struct "),
                _ => false,
            };
            type_name(field) == *parameter || (loosely && is_like)
        })
    }
}

/// Returns the name that signatures have for a type; arrow-udf's macro knows several for some.
fn usual_type(ty: &str) -> String {
    let ty = ty.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(element) = ty.strip_suffix("[]") {
        return usual_type(element) + "[]";
    }
    let usual = match &ty[..] {
        "bool" => "boolean",
        "smallint" => "int16",
        "int" | "integer" => "int32",
        "bigint" => "int64",
        "real" => "float32",
        "double precision" => "float64",
        "numeric" => "decimal",
        "varchar" | "character varying" => "string",
        "bytea" => "binary",
        "jsonb" => "json",
        "date" => "date32",
        "time" => "time64",
        _ => return ty,
    };
    usual.to_owned()
}

/// Returns the functions that a module made with arrow-udf exports, each with the name it is exported under.
pub(super) fn exports(module: &Module) -> Result<Vec<(Signature, String)>> {
    let invalid = |message: String| Error::Module { name: module.name().into(), message };
    let version = module.export_names().find_map(|name| name.strip_prefix(VERSION_EXPORT));
    let Some(version) = version else {
        return Err(invalid("it was not made with arrow-udf: it exports no ARROWUDF_VERSION".into()));
    };
    if version.split('_').next() != Some(VERSION) {
        let version = version.replace('_', ".");
        let message = format!("its version of arrow-udf's protocol is {version}, but only {VERSION}.x can be called");
        return Err(invalid(message));
    }
    let mut functions = Vec::new();
    for export in module.export_names() {
        let Some(encoded) = export.strip_prefix("arrowudf_") else { continue };
        let signature = decode(encoded).and_then(|text| Signature::parse(&text));
        let signature = signature.ok_or_else(|| invalid(format!("the export {export} names no signature")))?;
        functions.push((signature, export.to_owned()));
    }
    functions.sort_by_key(|(signature, _)| (signature.is_table, signature.to_string()));
    Ok(functions)
}

/// Decodes base64 without padding, and with characters that names of symbols can have.
fn decode(encoded: &str) -> Option<String> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for c in encoded.bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'$' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns arrow-udf's name for the type of a column; Arrow's, if arrow-udf has none.
pub(super) fn type_name(field: &Field) -> String {
    if let Some(name) = field.metadata().get("ARROW:extension:name").and_then(|name| name.strip_prefix("arrowudf.")) {
        return name.to_owned();
    }
    let name = match field.data_type() {
        DataType::Null => "null",
        DataType::Boolean => "boolean",
        DataType::Int8 => "int8",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::UInt8 => "uint8",
        DataType::UInt16 => "uint16",
        DataType::UInt32 => "uint32",
        DataType::UInt64 => "uint64",
        DataType::Float32 => "float32",
        DataType::Float64 => "float64",
        DataType::Date32 => "date32",
        DataType::Time64(TimeUnit::Microsecond) => "time64",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp",
        DataType::Interval(IntervalUnit::MonthDayNano) => "interval",
        DataType::Utf8 => "string",
        DataType::Binary => "binary",
        DataType::LargeUtf8 => "largestring",
        DataType::LargeBinary => "largebinary",
        DataType::List(element) => return format!("{}[]", type_name(element)),
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|field| format!("{}:{}", field.name(), type_name(field))).collect();
            return format!("struct<{}>", fields.join(","));
        }
        other => return other.to_string(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read_as_they_are_written() {
        for text in
            ["zero()->int32", "gcd(int32,int32)->int32", "range(int32)->>int32", "f(struct Pair,binary[])->null"]
        {
            assert_eq!(Signature::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "f", "f(", "f)->int32"] {
            assert_eq!(Signature::parse(text), None, "{text}");
        }
    }

    #[test]
    fn functions_are_called_by_names_and_by_signatures_as_the_macro_has_them() {
        let is_called = |signature: &str, name: &str| Signature::parse(signature).unwrap().is_called(name);
        let gcd = "gcd(int32,int32)->int32";
        for name in [gcd, "gcd", "gcd(int, integer)->int", " gcd ( int , int ) -> int ", "gcd(int,int)"] {
            assert!(is_called(gcd, name.trim()), "{name}");
        }
        for name in ["", "gc", "gcd(", "gcd()", "gcd(int)", "gcd(int,int,int)", "gcd(int,bigint)", "gcd(int,int)->>int"]
        {
            assert!(!is_called(gcd, name), "{name}");
        }
        for name in ["gcd(int,int) int", "gcd(int,int)->", "gcd(int,int)->bigint", "gcd(int,int)->setof int"] {
            assert!(!is_called(gcd, name), "{name}");
        }
        assert!(is_called("words(string)->>string", "words(character  varying) -> setof varchar"));
        assert!(is_called("f(struct Pair,float64[][])->null", "f(struct  Pair, double precision[][])"));
        assert!(is_called("zero()->int32", "zero()") && !is_called("zero()->int32", "zero(int)"));
    }

    #[test]
    fn names_of_exports_are_decoded() {
        assert_eq!(decode("Z2NkKGludDMyLGludDMyKS0$aW50MzI").unwrap(), "gcd(int32,int32)->int32");
        assert_eq!(decode("").unwrap(), "");
        assert_eq!((decode("Z2-k"), decode("____")), (None, None));
    }
}
