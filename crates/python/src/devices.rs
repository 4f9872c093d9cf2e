//! The devices of this machine.

use gpu_run_device::{Properties, cpu, cuda};
use pyo3::prelude::*;

/// Name, description, target, processors and bytes of memory.
type Row = (String, String, u32, u32, u64);

/// Returns all devices, and why there are no GPUs, if there are none.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> (Vec<Row>, Option<String>) {
    py.detach(|| {
        let mut rows = vec![row(cpu::open().properties())];
        match cuda::probe() {
            Ok(found) => {
                rows.extend(found.iter().map(row));
                (rows, None)
            }
            Err(error) => (rows, Some(error.to_string())),
        }
    })
}

fn row(device: &Properties) -> Row {
    (device.id.clone(), device.name.clone(), device.target, device.processors, device.memory_bytes)
}
