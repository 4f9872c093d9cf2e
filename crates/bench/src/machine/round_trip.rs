//! The bare round trip to the device: one word each way, without a machine.

use anyhow::{Result, anyhow, bail};
use gpu_run_compiler::Compiler;
use gpu_run_device::Device;
use gpu_run_machine::layout::{C_SLEEP, CONTROL, PING_WORD, PONG_WORD};
use gpu_run_machine::{Kernel, boot};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one round trip may take before it counts as a failure.
const PATIENCE: Duration = Duration::from_secs(5);

/// Measures round trips of one word between one thread of the host and one of the device.
pub(super) fn bare(compiler: &Compiler, device: &Arc<dyn Device>, count: u64) -> Result<Vec<Duration>> {
    let mut gang = boot::gang(compiler, device, &Kernel::measuring(), 1, 32)?;
    let bus = gang.bus().clone();
    bus.store_u64((CONTROL + C_SLEEP * 8) as u64, boot::idle_sleep(&**device, None) as u64);
    let running = gang.launch("ping_pong")?;
    let mut times = Vec::with_capacity(count as usize);
    for number in 1..=count {
        let began = Instant::now();
        bus.store_u64(PING_WORD as u64, number);
        while bus.load_u64(PONG_WORD as u64) != number {
            if began.elapsed() > PATIENCE {
                bail!("the device did not answer one word within {} s", PATIENCE.as_secs());
            }
            relax(&**device);
        }
        times.push(began.elapsed());
    }
    bus.store_u64(PING_WORD as u64, u64::MAX);
    running.wait()?.map_err(|trap| anyhow!("ping_pong failed: {trap}"))?;
    Ok(times)
}

/// Waits a moment for an answer. On `cpu`, yields, because the device needs the core.
pub(super) fn relax(device: &dyn Device) {
    if device.is_gpu() { std::hint::spin_loop() } else { std::thread::yield_now() }
}
