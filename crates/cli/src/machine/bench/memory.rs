//! The device's memory: the heap beside the device's own `malloc`, and what the L2 cache keeps from launch to launch.

use super::{Bench, Sheet, failure};
use crate::run::is_gpu;
use anyhow::{Result, bail};
use gpu_run_console::units::{show_count, show_size};
use gpu_run_machine::{heap_storm, l2_between_launches, malloc_storm};
use serde_json::json;

/// Rounds of the heap's storm: each thread allocates or frees so often.
const ROUNDS: u32 = 1000;

pub(super) fn heap(bench: &Bench, sheet: &mut Sheet) -> Result<()> {
    let storm = heap_storm(&bench.compiler, &bench.device, None, ROUNDS, 1).map_err(failure)?;
    if (storm.wrong, storm.left) != (0, 0) {
        bail!("the heap lost its way: {storm:?}");
    }
    let ours = storm.allocations as f64 / storm.time.as_secs_f64();
    let threads = storm.threads;
    sheet.line(&format!(
        "heap                         {}/s allocations, each freed, from {threads} threads",
        show_count(ours)
    ))?;
    sheet.put("allocations_per_second", json!(ours))?;
    if !is_gpu(&*bench.device) {
        return sheet.line("the device's malloc          not measured: the cpu device has none");
    }
    let storm = malloc_storm(&bench.device, threads, ROUNDS, 1).map_err(failure)?;
    let theirs = storm.allocations as f64 / storm.time.as_secs_f64();
    let refused = if storm.refused == 0 { String::new() } else { format!(", {} refused", storm.refused) };
    sheet.line(&format!(
        "the device's malloc          {}/s with the same sizes: the heap is {:.2} times as fast{refused}",
        show_count(theirs),
        ours / theirs
    ))?;
    sheet.put("malloc_per_second", json!(theirs))?;
    sheet.put("malloc_refused", json!(storm.refused))
}

pub(super) fn l2(bench: &Bench, sheet: &mut Sheet) -> Result<()> {
    if !is_gpu(&*bench.device) {
        return sheet.line("L2 between launches          not measured: the cpu device has no cache of its own");
    }
    let l2 = l2_between_launches(&bench.device).map_err(failure)?;
    sheet.line(&format!(
        "L2 between launches          {} read at {:.0} GB/s cold, {:.0} again in the same launch, {:.0} in the next, {:.0} in one 8 ms later",
        show_size(l2.bytes),
        l2.cold,
        l2.same_launch,
        l2.next_launch,
        l2.after_a_pause
    ))?;
    sheet.put(
        "l2_gb_per_second",
        json!({
            "bytes": l2.bytes,
            "cold": l2.cold,
            "same_launch": l2.same_launch,
            "next_launch": l2.next_launch,
            "after_8_ms": l2.after_a_pause,
        }),
    )
}
