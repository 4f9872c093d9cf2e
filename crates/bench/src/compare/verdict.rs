//! Is the device worth it? Turns the figures of one program into a table, a few sentences and JSON.

use super::{Setting, describe, on_wasmtime, seconds, show_grouped, show_ratio};
use gpu_run_console::units::{show_count, show_duration};
use serde_json::{Value, json};
use std::time::Duration;

/// All results.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) program: String,
    pub(super) setting: Setting,
    pub(super) is_gpu: bool,
    /// The records of the input, at most one batch.
    pub(super) records: u64,
    pub(super) device: Side,
    pub(super) wasmtime: Side,
    pub(super) comparison: Comparison,
}

#[derive(Debug)]
pub(super) struct Side {
    /// Records per second.
    pub(super) rate: f64,
    /// The time of one record, with everything set up.
    pub(super) latency: Duration,
    /// Time until the first record can run, when the program has to be compiled.
    pub(super) first_start: Duration,
    /// The same when the program was compiled before.
    pub(super) later_start: Duration,
    pub(super) curve: Curve,
}

/// How long a given number of records takes, after the start.
#[derive(Debug)]
pub(super) struct Curve {
    /// Measured points (records, seconds), ascending; linear in between.
    points: Vec<(f64, f64)>,
    /// Seconds for each record beyond the last point.
    slope: f64,
}

/// Whether both sides gave the same.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Records that both sides have run.
    pub(super) compared: u64,
    /// How many of those failed.
    pub(super) failed: u64,
    pub(super) different: Vec<Different>,
}

#[derive(Debug)]
pub(super) struct Different {
    pub(super) record: u64,
    /// The device's and Wasmtime's result, for the first record that differs.
    pub(super) shown: Option<[String; 2]>,
}

impl Curve {
    /// Makes a curve from measured points, and a rate in records per second beyond them.
    pub(super) fn new(points: Vec<(u64, Duration)>, rate: f64) -> Self {
        let points = points.into_iter().map(|(records, time)| (records as f64, time.as_secs_f64())).collect();
        Self { points, slope: 1.0 / rate }
    }

    /// Returns the seconds for this many records.
    fn at(&self, records: f64) -> f64 {
        let (mut from, mut time) = (0.0, 0.0);
        for (at, took) in &self.points {
            if records <= *at {
                // Fewer records than the first point take as long as that point.
                return if from == 0.0 { *took } else { time + (took - time) * (records - from) / (at - from) };
            }
            (from, time) = (*at, *took);
        }
        time + (records - from) * self.slope
    }
}

/// Returns from how many records on the device is always faster; `None` if never. Each side begins with its start time.
fn pays_from(device: (&Curve, Duration), wasmtime: (&Curve, Duration)) -> Option<u64> {
    let behind = |records: f64| {
        let time = |(curve, start): (&Curve, Duration)| start.as_secs_f64() + curve.at(records);
        time(device) - time(wasmtime)
    };
    let gain = wasmtime.0.slope - device.0.slope;
    if gain <= 0.0 || !gain.is_finite() {
        return None;
    }
    let mut corners: Vec<f64> = device.0.points.iter().chain(&wasmtime.0.points).map(|(records, _)| *records).collect();
    corners.sort_by(f64::total_cmp);
    // From the last corner on both curves are straight, and the device gains with each record.
    let last = corners.last().copied().unwrap_or(1.0);
    if behind(last) > 0.0 {
        return Some((last + behind(last) / gain).ceil() as u64);
    }
    // Search backwards for where the device was last behind.
    for pair in corners.windows(2).rev() {
        let (from, to) = (behind(pair[0]), behind(pair[1]));
        if from > 0.0 {
            return Some((pair[0] + (pair[1] - pair[0]) * from / (from - to)).ceil() as u64);
        }
    }
    Some(1)
}

impl Verdict {
    fn pays(&self) -> [Option<u64>; 2] {
        let (device, wasmtime) = (&self.device, &self.wasmtime);
        [
            pays_from((&device.curve, device.first_start), (&wasmtime.curve, wasmtime.first_start)),
            pays_from((&device.curve, device.later_start), (&wasmtime.curve, wasmtime.later_start)),
        ]
    }

    pub(super) fn text(&self) -> String {
        let (device, wasmtime) = (&self.device, &self.wasmtime);
        let rows = [
            (
                "records a second",
                show_count(device.rate),
                show_count(wasmtime.rate),
                show_ratio(device.rate / wasmtime.rate),
            ),
            ("one record alone", show_duration(device.latency), show_duration(wasmtime.latency), String::new()),
            (
                "start, first run (compiles)",
                show_duration(device.first_start),
                show_duration(wasmtime.first_start),
                String::new(),
            ),
            ("start, later runs", show_duration(device.later_start), "(none)".into(), String::new()),
        ];
        let line = |(what, ours, theirs, ratio): (&str, String, String, String)| {
            format!("{what:<28}{ours:>12}{theirs:>12}{ratio:>9}").trim_end().to_owned() + "\n"
        };
        let mut text = format!("{}\n\n", describe(&self.setting).join("\n"));
        text += &line(("", self.setting.device.clone(), "Wasmtime".into(), "ratio".into()));
        text += &rows.map(line).concat();
        format!("{text}\n{}\n{}\n{}\n", self.worth(), self.yours(), self.same())
    }

    /// Answers the question in one sentence.
    fn worth(&self) -> String {
        let name = if self.is_gpu { "the GPU" } else { "the device `cpu`" };
        let records =
            |count: u64| if count == 1 { "the first record".into() } else { format!("{} records", grouped(count)) };
        match self.pays() {
            [None, _] | [_, None] => format!(
                "Not worth it: {name} never pays for this program. Wasmtime on all cores does more records a second."
            ),
            [Some(first), Some(later)] if first == later => {
                format!("Worth it: {name} pays from {} on.", records(first))
            }
            [Some(first), Some(later)] => format!(
                "Worth it for many records: {name} pays from {} on, and from {} on once the program is compiled, which gpu-run remembers.",
                records(first),
                records(later)
            ),
        }
    }

    /// Estimates how long the user's own records take.
    fn yours(&self) -> String {
        let records = self.records as f64;
        let time =
            |side: &Side, start: Duration| show_duration(start + Duration::from_secs_f64(side.curve.at(records)));
        format!(
            "{} records like these: about {} here ({} later), {} under Wasmtime ({} later).",
            grouped(self.records),
            time(&self.device, self.device.first_start),
            time(&self.device, self.device.later_start),
            time(&self.wasmtime, self.wasmtime.first_start),
            time(&self.wasmtime, self.wasmtime.later_start),
        )
    }

    /// Says whether both sides print the same.
    fn same(&self) -> String {
        let Comparison { compared, failed, different } = &self.comparison;
        let failures = match failed {
            0 => String::new(),
            failed => format!(" {} of them failed.", grouped(*failed)),
        };
        let Some(first) = different.first() else {
            return format!("Outputs are the same for all {} records compared.{failures}", grouped(*compared));
        };
        let shown = first
            .shown
            .as_ref()
            .map_or(String::new(), |[ours, theirs]| format!("\n  device:   {ours}\n  Wasmtime: {theirs}"));
        format!(
            "Outputs DIFFER for {} of {} records compared, first for record {}.{failures}{shown}",
            grouped(different.len() as u64),
            grouped(*compared),
            first.record
        )
    }

    pub(super) fn json(&self) -> Value {
        let (setting, [first, later]) = (&self.setting, self.pays());
        let side = |side: &Side| {
            json!({
                "per_second": side.rate,
                "latency_seconds": seconds(side.latency),
                "first_start_seconds": seconds(side.first_start),
                "later_start_seconds": seconds(side.later_start),
            })
        };
        json!({
            "gpu_run": env!("CARGO_PKG_VERSION"),
            "program": self.program,
            "device": { "id": setting.device, "name": setting.device_name, "driver": setting.driver },
            "host": { "name": setting.host, "threads": setting.threads, "wasmtime": on_wasmtime::VERSION },
            "records": self.records,
            "records_at_once": setting.instances,
            "on_device": side(&self.device),
            "under_wasmtime": side(&self.wasmtime),
            "ratio": self.device.rate / self.wasmtime.rate,
            "pays_from_records": { "first_run": first, "later_runs": later },
            "compared": self.comparison.compared,
            "failed": self.comparison.failed,
            "different": self.comparison.different.iter().map(|different| different.record).collect::<Vec<_>>(),
        })
    }
}

/// `65,536`
fn grouped(count: u64) -> String {
    u32::try_from(count).map_or_else(|_| show_count(count as f64), show_grouped)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn curve(points: &[(u64, u32)], rate: f64) -> Curve {
        Curve::new(points.iter().map(|(records, ms)| (*records, *ms * MS)).collect(), rate)
    }

    #[test]
    fn time_goes_straight_from_point_to_point_and_on() {
        let curve = curve(&[(1, 10), (101, 20), (1101, 120)], 100_000.0);
        for (records, ms) in [(0.0, 10.0), (1.0, 10.0), (51.0, 15.0), (101.0, 20.0), (601.0, 70.0), (2101.0, 130.0)] {
            assert!((curve.at(records) - ms / 1e3).abs() < 1e-9, "{records}: {}", curve.at(records));
        }
    }

    #[test]
    fn the_device_pays_where_it_overtakes_for_good() {
        let wasmtime = curve(&[(1, 1)], 1000.0); // a millisecond each
        let device = curve(&[(1, 10), (1000, 20)], 100_000.0);
        // It has caught up with what it takes to start by so many records.
        let from = |start: u32| pays_from((&device, start * MS), (&wasmtime, Duration::ZERO));
        assert_eq!(from(0), Some(11));
        assert!(from(500).is_some_and(|records| (510..530).contains(&records)), "{:?}", from(500));
        assert!(from(5000).is_some_and(|records| (5000..5100).contains(&records)), "{:?}", from(5000));
        // A quarter of the rate, whatever it takes to start.
        let slow = curve(&[(1, 10), (1000, 4000)], 250.0);
        assert_eq!(pays_from((&slow, Duration::ZERO), (&wasmtime, 3600 * 1000 * MS)), None);
        // Ahead with the first, because Wasmtime has to compile.
        assert_eq!(pays_from((&device, Duration::ZERO), (&wasmtime, 100 * MS)), Some(1));
    }

    fn verdict(device_rate: f64, different: Vec<Different>) -> Verdict {
        let side = |rate: f64, start: u32| Side {
            rate,
            latency: MS,
            first_start: 10 * start * MS,
            later_start: start * MS,
            curve: Curve::new(vec![(1, MS)], rate),
        };
        Verdict {
            program: "app.wasm".into(),
            setting: super::super::tests::report().setting,
            is_gpu: true,
            records: 1000,
            device: side(device_rate, 100),
            wasmtime: side(1000.0, 0),
            comparison: Comparison { compared: 900, failed: 0, different },
        }
    }

    #[test]
    fn it_is_said_in_plain_words() {
        let text = verdict(10_000.0, Vec::new()).text();
        for part in [
            "Worth it for many records: the GPU pays from 1,113 records on, and from 113 records on once",
            "1,000 records like these: about 1.10 s here (201 ms later), 1.00 s under Wasmtime",
            "Outputs are the same for all 900 records compared.",
            "10.0×",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        let text = verdict(999.0, Vec::new()).text();
        assert!(text.contains("Not worth it: the GPU never pays"), "{text}");
        let different = vec![
            Different { record: 7, shown: Some(["\"a\"".into(), "\"b\"".into()]) },
            Different { record: 9, shown: None },
        ];
        let text = verdict(10_000.0, different).text();
        assert!(
            text.contains("DIFFER for 2 of 900 records compared, first for record 7.\n  device:   \"a\""),
            "{text}"
        );
    }

    #[test]
    fn json_has_null_for_never() {
        let value = verdict(999.0, Vec::new()).json();
        assert_eq!(value["pays_from_records"], json!({ "first_run": null, "later_runs": null }));
        assert_eq!(verdict(10_000.0, Vec::new()).json()["pays_from_records"]["later_runs"], 113);
    }
}
