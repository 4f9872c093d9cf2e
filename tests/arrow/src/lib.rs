//! Functions of every kind that arrow-udf knows: over each of its types, with nulls, errors, lists, structs and tables; and some that
//! end badly.

use arrow_udf::function;
use arrow_udf::types::{Decimal, Interval, NaiveDate, NaiveDateTime, NaiveTime, StructType};
use serde_json::Value;
use sha2::{Digest, Sha256};

// Numbers.

#[function("gcd(int, int) -> int")]
fn gcd(a: i32, b: i32) -> i32 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i32
}

#[function("score(float64, float64) -> float64")]
fn score(x: f64, y: f64) -> f64 {
    let mut score = 0.0;
    for step in 1..=20 {
        let step = f64::from(step);
        score += (x * step).sin() / step + (y.abs() + step).sqrt().ln();
    }
    score
}

/// Steps until a point leaves the Mandelbrot set, at most 1000.
#[function("steps(float64, float64) -> int")]
fn steps(x: f64, y: f64) -> i32 {
    let (mut re, mut im) = (0.0, 0.0);
    for step in 0..1000 {
        if re * re + im * im > 4.0 {
            return step;
        }
        (re, im) = (re * re - im * im + x, 2.0 * re * im + y);
    }
    1000
}

#[function("div(int, int) -> int")]
fn div(a: i32, b: i32) -> Result<i32, &'static str> {
    if b == 0 { Err("division by zero") } else { a.checked_div(b).ok_or("the quotient does not fit") }
}

#[function("add_or(int, int) -> int")]
fn add_or(a: i32, b: Option<i32>) -> i32 {
    a.wrapping_add(b.unwrap_or(1000))
}

#[function("even_half(int) -> int")]
fn even_half(x: i32) -> Result<Option<i32>, String> {
    match x {
        ..0 => Err(format!("{x} is negative")),
        x if x % 2 == 0 => Ok(Some(x / 2)),
        _ => Ok(None),
    }
}

#[function("total(decimal, decimal) -> decimal")]
fn total(a: Decimal, b: Decimal) -> Option<Decimal> {
    a.checked_add(b)
}

// Every type, unchanged.

#[function("same(boolean) -> boolean")]
#[function("same(int8) -> int8")]
#[function("same(int16) -> int16")]
#[function("same(int32) -> int32")]
#[function("same(int64) -> int64")]
#[function("same(uint8) -> uint8")]
#[function("same(uint16) -> uint16")]
#[function("same(uint32) -> uint32")]
#[function("same(uint64) -> uint64")]
#[function("same(float32) -> float32")]
#[function("same(float64) -> float64")]
#[function("same(date32) -> date32")]
#[function("same(time64) -> time64")]
#[function("same(timestamp) -> timestamp")]
#[function("same(interval) -> interval")]
#[function("same(decimal) -> decimal")]
#[function("same(json) -> json")]
#[function("same(string) -> string")]
#[function("same(binary) -> binary")]
#[function("same(largestring) -> largestring")]
#[function("same(largebinary) -> largebinary")]
fn same<T>(x: T) -> T {
    x
}

#[function("as_text(int) -> string")]
#[function("as_text(int) -> largestring")]
fn as_text(x: i32, output: &mut impl std::fmt::Write) {
    let _ = write!(output, "{x}");
}

// Text and bytes.

#[function("length(varchar) -> int")]
#[function("length(bytea) -> int")]
fn length(bytes: impl AsRef<[u8]>) -> i32 {
    bytes.as_ref().len() as i32
}

#[function("sha256(varchar) -> bytea")]
fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

#[function("upper(varchar) -> varchar")]
fn upper(text: &str) -> String {
    text.to_uppercase()
}

#[function("parse_date(varchar) -> date")]
fn parse_date(text: &str) -> Result<NaiveDate, String> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|error| format!("{text:?}: {error}"))
}

// Time.

#[function("datetime(date, time) -> timestamp")]
fn datetime(date: NaiveDate, time: NaiveTime) -> NaiveDateTime {
    NaiveDateTime::new(date, time)
}

#[function("months(interval) -> int")]
fn months(interval: Interval) -> i32 {
    interval.months
}

// Lists, structs, JSON.

#[function("list_sum(int[]) -> int")]
fn list_sum(numbers: &[i32]) -> i32 {
    numbers.iter().fold(0, |sum, x| sum.wrapping_add(*x))
}

#[function("split(varchar, varchar) -> varchar[]")]
fn split<'a>(text: &'a str, at: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
    text.split(at)
}

#[function("joined(varchar[], varchar) -> varchar")]
fn joined(parts: &arrow_array::StringArray, with: &str) -> String {
    parts.iter().map(|part| part.unwrap_or("null")).collect::<Vec<_>>().join(with)
}

#[derive(StructType)]
struct KeyValue<'a> {
    key: &'a str,
    value: &'a str,
}

#[function("key_value(varchar) -> struct KeyValue")]
fn key_value(text: &str) -> Option<KeyValue<'_>> {
    let (key, value) = text.split_once('=')?;
    Some(KeyValue { key, value })
}

#[derive(StructType)]
struct Statistics {
    count: i32,
    sum: i64,
    mean: Option<f64>,
}

#[function("statistics(int[]) -> struct Statistics")]
fn statistics(numbers: &[i32]) -> Statistics {
    let (count, sum) = (numbers.len() as i32, numbers.iter().copied().map(i64::from).sum::<i64>());
    Statistics { count, sum, mean: (count > 0).then(|| sum as f64 / f64::from(count)) }
}

#[function("member(jsonb, varchar) -> jsonb")]
fn member(value: Value, name: &str) -> Option<Value> {
    value.get(name).cloned()
}

#[function("count_of(jsonb) -> int")]
fn count_of(value: Value) -> Result<i32, String> {
    match value {
        Value::Array(items) => Ok(items.len() as i32),
        Value::Object(members) => Ok(members.len() as i32),
        other => Err(format!("{other} has no members")),
    }
}

// Tables.

#[function("range(int) -> setof int")]
fn range(end: i32) -> impl Iterator<Item = i32> {
    0..end
}

#[function("words(varchar) -> setof varchar")]
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

#[function("pairs(varchar) -> setof struct KeyValue")]
fn pairs(text: &str) -> impl Iterator<Item = KeyValue<'_>> {
    text.split(',').filter_map(key_value)
}

#[function("digits(varchar) -> setof int")]
fn digits(text: &str) -> Result<impl Iterator<Item = Result<i32, String>> + use<'_>, &'static str> {
    let digit = |c: char| c.to_digit(10).map(|digit| digit as i32).ok_or_else(|| format!("{c:?} is no digit"));
    if text.is_empty() { Err("nothing") } else { Ok(text.chars().map(digit)) }
}

// Without columns, and without a result.

#[function("seven() -> int")]
fn seven() -> i32 {
    7
}

#[function("nothing(int)")]
fn nothing(_: i32) {}

// Bad ends.

#[function("oom() -> int")]
fn oom() -> i32 {
    Vec::<u8>::with_capacity(usize::MAX).capacity() as i32
}

#[function("picky(int) -> int")]
fn picky(x: i32) -> Option<i32> {
    assert!(x % 100 != 13, "{x} is unlucky");
    (x % 7 != 0).then_some(x)
}

#[function("picky_error(int) -> int")]
fn picky_error(x: i32) -> Result<i32, String> {
    assert!(x % 100 != 13, "{x} is unlucky");
    if x % 7 == 0 { Err(format!("{x} is a multiple of 7")) } else { Ok(x) }
}

#[function("picky_range(int) -> setof int")]
fn picky_range(x: i32) -> impl Iterator<Item = i32> {
    (0..x).inspect(|i| assert!(i % 100 != 13, "{i} is unlucky"))
}

#[function("leave(int) -> int")]
fn leave(x: Option<i32>) -> Option<i32> {
    let x = x?;
    if x >= 1000 {
        std::process::exit(x % 256);
    }
    Some(x)
}

#[function("spin(int) -> int")]
fn spin(x: Option<i32>) -> Option<i32> {
    while std::hint::black_box(x) == Some(13) {}
    x
}

#[function("fill(int) -> bytea")]
fn fill(count: Option<i32>) -> Option<Vec<u8>> {
    Some(vec![7; usize::try_from(count?).ok()?])
}

#[function("chatty(int) -> int")]
fn chatty(x: Option<i32>) -> Option<i32> {
    println!("GRaf, and the row has {x:?}");
    print!("{}", "GRaf".repeat(3));
    x
}
