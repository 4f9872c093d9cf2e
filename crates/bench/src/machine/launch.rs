//! The cost of launching a kernel that does nothing: every strategy except `resident` pays it repeatedly.

use anyhow::Result;
use gpu_run_device::{Device, Error as DeviceError, Grid};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const PTX: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .entry nothing ()
{
    ret;
}
";

/// How often each measurement is repeated.
const ROUNDS: usize = 500;
/// How long each measurement may take.
const LIMIT: Duration = Duration::from_secs(1);
/// How many launches are queued at once.
const QUEUED: u32 = 50;

#[derive(Clone, Copy, Debug)]
pub(super) struct BareLaunch {
    /// The median time from the launch until the host knows that it finished.
    pub(super) waited: Duration,
    /// The median time per launch when many are queued one behind the other.
    pub(super) queued: Duration,
}

pub(super) fn bare(device: &Arc<dyn Device>) -> Result<BareLaunch> {
    Ok(measure(device)?)
}

fn measure(device: &Arc<dyn Device>) -> Result<BareLaunch, DeviceError> {
    let module = device.load(PTX)?;
    let grid = Grid { workgroups: 1, threads: 32, stack_bytes: device.properties().stack_bytes };
    let waited = median(|| module.run("nothing", grid, &[], &|| false))?;
    let mut queue = Arc::clone(&module).queue()?;
    let queued = median(|| {
        let mut last = None;
        for _ in 0..QUEUED {
            last = Some(queue.launch("nothing", grid, &[])?);
        }
        last.map_or(Ok(()), |launched| launched.wait())
    })?;
    Ok(BareLaunch { waited, queued: queued / QUEUED })
}

/// Returns the median time. The first run is not counted: it sets up what the others reuse.
fn median(mut once: impl FnMut() -> Result<(), DeviceError>) -> Result<Duration, DeviceError> {
    let (began, mut times) = (Instant::now(), Vec::new());
    while times.len() < ROUNDS && (times.len() < 2 || began.elapsed() < LIMIT) {
        let start = Instant::now();
        once()?;
        times.push(start.elapsed());
    }
    let times = &mut times[1..];
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_takes_time_and_one_in_a_queue_too() {
        let device: Arc<dyn Device> = gpu_run_device::cpu::open();
        let cost = bare(&device).unwrap();
        assert!(cost.waited > Duration::ZERO && cost.queued > Duration::ZERO, "{cost:?}");
        assert!(cost.waited < LIMIT && cost.queued < LIMIT, "{cost:?}");
    }
}
