//! Makes JSON documents of some 4 KB, parses them, adds up what is in them and writes them anew: two of them.

use bench_programs::{Random, checksum, instance};
use serde_json::Value;

fn document(random: &mut Random) -> String {
    let mut records = Vec::new();
    for id in 0..28 {
        let name = random.pick(&["Ada", "Grace", "Edsger", "Barbara \\\"B\\\"", "Zo\\u00eb", "John"]);
        let tags: Vec<String> = (0..random.below(5)).map(|_| format!("\"tag-{}\"", random.below(100))).collect();
        records.push(format!(
            "{{\"id\": {id}, \"name\": \"{name}\", \"balance\": {}.{:02}, \"active\": {}, \"tags\": [{}], \
             \"place\": {{\"x\": -{}, \"y\": {:.6}, \"note\": null}}}}",
            random.below(100_000),
            random.below(100),
            random.below(2) == 0,
            tags.join(", "),
            random.below(1000),
            random.unit(),
        ));
    }
    format!("{{\"version\": 3, \"records\": [\n  {}\n]}}", records.join(",\n  "))
}

/// The sum of all numbers, and how many values there are.
fn sum(value: &Value) -> (f64, usize) {
    match value {
        Value::Number(number) => (number.as_f64().unwrap_or(0.0), 1),
        Value::Array(values) => add(values.iter()),
        Value::Object(fields) => add(fields.values()),
        Value::Null | Value::Bool(_) | Value::String(_) => (0.0, 1),
    }
}

fn add<'a>(values: impl Iterator<Item = &'a Value>) -> (f64, usize) {
    values.map(sum).fold((0.0, 1), |(total, count), (more, inner)| (total + more, count + inner))
}

fn main() -> Result<(), serde_json::Error> {
    let mut random = Random::new(instance());
    for _ in 0..2 {
        let document = document(&mut random);
        let value: Value = serde_json::from_str(&document)?;
        let (total, count) = sum(&value);
        let written = checksum(serde_json::to_string(&value)?.as_bytes());
        println!("{} bytes, {count} values, sum {total:.6}, written as {written:08x}", document.len());
    }
    Ok(())
}
