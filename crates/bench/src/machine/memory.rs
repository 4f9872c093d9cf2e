//! The device's memory: the machine's heap compared with the device's own `malloc`, and what the L2 cache keeps between
//! launches.

use super::{Bench, Record, l2, malloc, storm};
use anyhow::{Result, bail};
use gpu_run_console::units::{show_count, show_size};
use serde_json::json;

/// How often each thread allocates or frees in the heap's storm.
const ROUNDS: u32 = 1000;

pub(super) fn heap(bench: &Bench, record: &mut Record<'_>) -> Result<()> {
    let storm = storm::heap(bench.compiler, &bench.device, None, ROUNDS, 1)?;
    if (storm.wrong, storm.left) != (0, 0) {
        bail!("the heap is inconsistent: {storm:?}");
    }
    let ours = storm.allocations as f64 / storm.time.as_secs_f64();
    let threads = storm.threads;
    record.line(&format!(
        "heap                         {}/s allocations, each freed, from {threads} threads",
        show_count(ours)
    ))?;
    record.put("allocations_per_second", json!(ours))?;
    if !bench.device.is_gpu() {
        return record.line("the device's malloc          not measured: the cpu device has none");
    }
    let storm = malloc::storm(&bench.device, threads, ROUNDS, 1)?;
    let theirs = storm.allocations as f64 / storm.time.as_secs_f64();
    let refused = if storm.refused == 0 { String::new() } else { format!(", {} refused", storm.refused) };
    record.line(&format!(
        "the device's malloc          {}/s with the same sizes: the heap is {:.2} times as fast{refused}",
        show_count(theirs),
        ours / theirs
    ))?;
    record.put("malloc_per_second", json!(theirs))?;
    record.put("malloc_refused", json!(storm.refused))
}

pub(super) fn cache(bench: &Bench, record: &mut Record<'_>) -> Result<()> {
    if !bench.device.is_gpu() {
        return record.line("L2 between launches          not measured: the cpu device has no cache of its own");
    }
    let rates = l2::between_launches(&bench.device)?;
    record.line(&format!(
        "L2 between launches          {} read at {:.0} GB/s cold, {:.0} again in the same launch, {:.0} in the next, {:.0} in one 8 ms later",
        show_size(rates.bytes),
        rates.cold,
        rates.same_launch,
        rates.next_launch,
        rates.after_a_pause
    ))?;
    record.put(
        "l2_gb_per_second",
        json!({
            "bytes": rates.bytes,
            "cold": rates.cold,
            "same_launch": rates.same_launch,
            "next_launch": rates.next_launch,
            "after_8_ms": rates.after_a_pause,
        }),
    )
}
