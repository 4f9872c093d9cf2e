//! Durations, sizes and PTX targets: parsing them from the command line, and printing them.

use std::time::Duration;

/// Parses an age: `30d`, `12h`, or any [`duration`].
pub fn age(text: &str) -> Result<Duration, String> {
    match text.trim().strip_suffix(['d', 'D']).and_then(split) {
        Some((days, "")) => Duration::try_from_secs_f64(days * 86_400.0).map_err(|_| "too long".into()),
        _ => duration(text).map_err(|what| what.replace("or `h`", "`h` or `d`")),
    }
}

/// Parses a duration: `500ms`, `10s`, `2m`, `1h`, `250us`; a plain number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "expected a number with `us`, `ms`, `s`, `m` or `h`, as in `500ms` or `1.5`";
    let (number, unit) = split(text).ok_or(EXPECTED)?;
    let seconds = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("unknown unit `{unit}`: {EXPECTED}")),
    };
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(Duration::ZERO) => Err("0 would end every program at once; leave the option out for no limit".into()),
        Ok(duration) => Ok(duration),
        Err(_) => Err("too long".into()),
    }
}

/// Parses a size in bytes: `64MiB`, `1G`, `65536`. K, M, G, T and KiB … TiB are powers of 1024, KB … TB powers of 1000.
pub fn size(text: &str) -> Result<u64, String> {
    const EXPECTED: &str = "expected bytes, or a number with a unit, as in `64MiB` or `1G`";
    let (number, unit) = split(text).ok_or(EXPECTED)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return Err(format!("unknown unit `{unit}`: {EXPECTED}")),
    };
    let bytes = number * factor;
    if bytes < 1.0 {
        return Err("no program fits in 0 bytes; leave the option out for no limit".into());
    }
    // Above 2^53 a float cannot represent every integer, and no computer has that much memory.
    if bytes > (1u64 << 53) as f64 { Err("too large".into()) } else { Ok(bytes as u64) }
}

/// Like [`size`], but also accepts 0.
pub fn size_or_none(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text) }
}

/// Parses a PTX target: `sm_75` or `75`.
pub fn target(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("sm_").unwrap_or(text);
    match digits.parse() {
        Ok(sm @ 70..=130) => Ok(sm),
        Ok(sm) if sm < 70 => Err(format!("sm_{sm} is too old: gpu-run needs sm_70 (Volta) or newer")),
        _ => Err("expected a compute capability, as in `sm_75` or `sm_90`".into()),
    }
}

/// Splits off a non-negative decimal number at the beginning.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim_start()))
}

/// Prints bytes as `512 B` or `1.5 MiB`.
pub fn show_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let step = ((bytes.ilog2() / 10) as usize).min(UNITS.len());
    let value = bytes as f64 / (1u64 << (10 * step)) as f64;
    let decimals = usize::from(value.fract() >= 0.05);
    format!("{value:.decimals$} {}", UNITS[step - 1])
}

/// Prints a duration with three significant digits: `1.20 ms`.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Prints a count with its noun: `1 instance`, `2 instances`, `2 launches`.
pub fn count(number: u64, noun: &str) -> String {
    let ending = match number {
        1 => "",
        _ if noun.ends_with("ch") || noun.ends_with("ss") => "es",
        _ => "s",
    };
    format!("{number} {noun}{ending}")
}

/// Prints a large count with three significant digits: `887 k`, `1.23 M`.
pub fn show_count(count: f64) -> String {
    let (value, unit) = match count {
        c if c >= 999.5e6 => (c / 1e9, " G"),
        c if c >= 999.5e3 => (c / 1e6, " M"),
        c if c >= 999.5 => (c / 1e3, " k"),
        c => (c, ""),
    };
    format!("{}{unit}", three_digits(value))
}

/// Prints a number with as many decimals as make three significant digits, but at most three.
pub fn three_digits(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.0995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_also_in_days() {
        assert_eq!(age("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(age("0d"), Ok(Duration::ZERO));
        assert_eq!(age("12h"), Ok(Duration::from_secs(12 * 3600)));
        assert!(age("soon").unwrap_err().contains("`d`") && age("1e99d").is_err());
    }

    #[test]
    fn durations_in_every_unit() {
        for (text, millis) in
            [("500ms", 500), ("10s", 10_000), ("2m", 120_000), ("1.5", 1_500), ("1h", 3_600_000), (" 3 s ", 3_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
    }

    #[test]
    fn bad_durations_are_refused_not_guessed() {
        for text in ["", "s", "-1s", "1.2.3", "10x", "1e9", "nan", "inf", "0", "0ms", "99999999999999999999h", "١s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_in_every_unit() {
        for (text, bytes) in
            [("65536", 65536), ("64MiB", 64 << 20), ("1G", 1 << 30), ("1.5k", 1536), ("2MB", 2_000_000), ("7b", 7)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn bad_sizes_are_refused_not_guessed() {
        for text in ["", "MiB", "-1", "0", "0.1", "1Q", "1e3", "99999999T", "one"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn targets() {
        assert_eq!(target("sm_75"), Ok(75));
        assert_eq!(target("90"), Ok(90));
        for text in ["sm_35", "sm_", "turing", "sm_999"] {
            assert!(target(text).is_err(), "{text}");
        }
    }

    #[test]
    fn figures_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (3 << 30, "3 GiB"),
            (1 << 52, "4096 TiB"),
        ] {
            assert_eq!(show_size(bytes), text);
        }
        for (nanos, text) in
            [(1_500, "1.50 µs"), (12_340_000, "12.3 ms"), (2_000_000_000, "2.00 s"), (250_000_000, "250 ms")]
        {
            assert_eq!(show_duration(Duration::from_nanos(nanos)), text);
        }
        assert_eq!(count(1, "launch") + ", " + &count(2, "launch"), "1 launch, 2 launches");
        assert_eq!(count(0, "instance"), "0 instances");
    }
}
