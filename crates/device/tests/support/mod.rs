//! What the tests of the `cpu` device share: a device, launches without a host, and NVIDIA's assembler as a judge where there is one.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use gpu_run_device::cpu::{Options, open_with};
use gpu_run_device::{Arg, Buffer, Device, Error, Grid, Module};
use std::sync::Arc;

pub const HEADER: &str = ".version 7.8\n.target sm_75\n.address_size 64\n";

/// Two workers, alignment checked.
pub fn strict() -> Arc<dyn Device> {
    open_with(Options { workers: 2, strict: true })
}

pub fn grid(blocks: u32, threads: u32) -> Grid {
    Grid { blocks, threads, stack_bytes: 16 << 10 }
}

/// Loads PTX without its header.
pub fn load(device: &Arc<dyn Device>, body: &str) -> Arc<dyn Module> {
    let ptx = format!("{HEADER}{body}");
    assemble(&ptx);
    match device.load(&ptx) {
        Ok(module) => module,
        Err(error) => panic!("{error}"),
    }
}

pub fn run(module: &Arc<dyn Module>, kernel: &str, grid: Grid, args: &[Arg]) -> Result<(), Error> {
    module.run(kernel, grid, args, &|| false)
}

pub fn words(buffer: &Buffer, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; count * 8];
    buffer.read(0, &mut bytes).unwrap();
    bytes.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect()
}

pub fn words32(buffer: &Buffer, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; count * 4];
    buffer.read(0, &mut bytes).unwrap();
    bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

pub fn buffer_of(device: &Arc<dyn Device>, words: &[u64]) -> Buffer {
    let buffer = device.allocate(words.len() as u64 * 8).unwrap();
    buffer.write(0, &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>()).unwrap();
    buffer
}

/// `GPU_RUN_PTXAS`, or `ptxas` where the shell would find it.
pub fn ptxas() -> Option<std::path::PathBuf> {
    if let Some(path) = std::env::var_os("GPU_RUN_PTXAS") {
        return Some(path.into());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|p| p.join("ptxas")).find(|p| p.is_file())
}

/// What the tests run has to be PTX to NVIDIA too.
fn assemble(ptx: &str) {
    use std::hash::{BuildHasher, RandomState};
    let Some(ptxas) = ptxas() else { return };
    let name = format!("gpu-run-test-{}-{:x}.ptx", std::process::id(), RandomState::new().hash_one(ptx));
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, ptx).unwrap();
    let output = std::process::Command::new(ptxas)
        .args(["-arch=sm_75", "-c", "-o", "/dev/null"])
        .arg(&file)
        .output()
        .expect("ptxas runs");
    std::fs::remove_file(&file).unwrap();
    assert!(output.status.success(), "{}\n{ptx}", String::from_utf8_lossy(&output.stderr));
}
