//! Formats what `gpu-run cache` prints.

use anyhow::Result;
use gpu_run_cache::{Check, Listed, ModelStats, Remote, Stats};
use gpu_run_compiler::printable;
use gpu_run_console::units::{show_duration, show_size};
use gpu_run_sysroot::Kept;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) fn stats(stats: &Stats, stds: Kept, path: Option<&Path>, remote: Option<&Remote>) -> String {
    let mut text = path.map_or_else(String::new, |path| format!("{}\n", path.display()));
    text += &format!("{} of {} at most\n", show_size(stats.total.bytes), show_size(stats.limit));
    if stds.stds > 0 {
        text += &format!("stds: {}, {}\n", stds.stds, show_size(stds.bytes));
    }
    if let Some(remote) = remote {
        let (fetched, sent) = (stats.total.counts.fetched, stats.total.counts.sent);
        text += &format!("remote: {}, {fetched} fetched, {sent} sent\n", printable::name(remote.name()));
    }
    text += "\n";
    let headings = ["MODEL", "ENTRIES", "SIZE", "HITS", "MISSES", "HIT RATE", "EVICTED", "REPAIRED", "SAVED"];
    let mut rows = vec![headings.map(String::from)];
    rows.extend(stats.models.iter().map(|(model, stats)| row(model, stats)));
    if stats.models.len() != 1 {
        rows.push(row("total", &stats.total));
    }
    text + &table(&rows)
}

pub(super) fn stats_json(stats: &Stats, stds: Kept, remote: Option<&Remote>) -> Result<String> {
    let mut object = serde_json::to_value(stats)?;
    object["stds"] = json!({ "stds": stds.stds, "bytes": stds.bytes });
    object["remote"] = remote.map(Remote::name).into();
    Ok(format!("{object}\n"))
}

fn row(name: &str, stats: &ModelStats) -> [String; 9] {
    let counts = &stats.counts;
    [
        name.to_owned(),
        stats.entries.to_string(),
        show_size(stats.bytes),
        counts.hits.to_string(),
        counts.misses.to_string(),
        stats.hit_rate.map_or_else(|| "-".into(), |rate| format!("{:.1} %", rate * 100.0)),
        counts.evictions.to_string(),
        counts.repaired.to_string(),
        match counts.saved_ms {
            0 => "-".into(),
            saved => show_duration(Duration::from_millis(saved)),
        },
    ]
}

pub(super) fn list(entries: &[Listed]) -> String {
    let headings = ["PROGRAM", "MODEL", "SIZE", "UNPACKED", "COMPILED IN", "USED", "KEY"];
    let mut rows = vec![headings.map(String::from)];
    rows.extend(entries.iter().map(|entry| {
        [
            // The name comes from a file's name, which may contain anything.
            printable::name(&entry.label).into_owned(),
            entry.model.clone(),
            show_size(entry.bytes),
            show_size(entry.unpacked_bytes),
            show_duration(entry.took),
            ago(entry.used),
            entry.key[..12].to_owned(),
        ]
    }));
    table(&rows)
}

/// One object per line; times are seconds since 1970.
pub(super) fn list_json(entries: &[Listed]) -> String {
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let object = |entry: &Listed| {
        let object = json!({
            "program": entry.label,
            "model": entry.model,
            "key": entry.key,
            "bytes": entry.bytes,
            "unpacked_bytes": entry.unpacked_bytes,
            "compile_seconds": entry.took.as_secs_f64(),
            "made": seconds(entry.made),
            "used": seconds(entry.used),
        });
        format!("{object}\n")
    };
    entries.iter().map(object).collect()
}

pub(super) fn check(check: &Check) -> String {
    let mut text: String =
        check.damaged.iter().map(|(path, damage)| format!("damaged: {}: {damage}\n", printable::path(path))).collect();
    text += &format!("{} intact, {} damaged", check.whole, check.damaged.len());
    if check.repaired > 0 {
        text += &format!(", of which {} set aside", check.repaired);
    }
    text + "\n"
}

/// Says how long ago a time was, in the largest unit of which there are at least two.
fn ago(time: SystemTime) -> String {
    let seconds = time.elapsed().unwrap_or_default().as_secs();
    let (value, unit) = match seconds {
        s if s >= 2 * 86_400 => (s / 86_400, "days"),
        s if s >= 2 * 3600 => (s / 3600, "hours"),
        s if s >= 120 => (s / 60, "minutes"),
        s => (s, "seconds"),
    };
    format!("{value} {unit} ago")
}

fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
