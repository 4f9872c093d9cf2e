//! The figures as JSON: in seconds, bytes and instances per second, `null` where there is none.

use super::set::{Report, Row};
use super::{hostcalls, on_wasmtime, seconds};
use serde_json::{Value, json};

pub(super) fn value(report: &Report) -> Value {
    let setting = &report.setting;
    json!({
        "gpu_run": env!("CARGO_PKG_VERSION"),
        "device": { "id": setting.device, "name": setting.device_name, "driver": setting.driver },
        "host": { "name": setting.host, "threads": setting.threads, "wasmtime": on_wasmtime::VERSION },
        "instances": setting.instances,
        "programs": report.rows.iter().map(row).collect::<Vec<_>>(),
        "geometric_mean": report.geometric_mean(),
        "host_calls": report.host_calls.as_ref().map(hostcalls::json),
    })
}

fn row(row: &Row) -> Value {
    let figures = row.figures.as_ref().ok();
    json!({
        "name": row.name,
        "error": row.figures.as_ref().err(),
        "wasm_bytes": row.wasm_bytes,
        "device_per_second": figures.map(|f| f.device_rate),
        "wasmtime_per_second": figures.map(|f| f.wasmtime_rate),
        "ratio": figures.map(|f| f.ratio()),
        "handwritten_cuda_per_second": figures.and_then(|f| f.handwritten_rate),
        "device_latency_seconds": figures.map(|f| seconds(f.device_latency)),
        "wasmtime_latency_seconds": figures.map(|f| seconds(f.wasmtime_latency)),
        "to_ptx_seconds": figures.map(|f| seconds(f.to_ptx)),
        "load_seconds": figures.map(|f| seconds(f.load)),
        "build": figures.and_then(|f| f.build.as_deref()),
        "warm_start_seconds": figures.and_then(|f| f.warm_start).map(seconds),
    })
}
