//! How many calls a second the host answers where every instance of a batch asks at once. The device's part is played by a kernel that copies
//! requests into the ring, and is not measured.
//!
//! `cargo bench -p gpu-run-bench --bench bus`. `gpu-run bench hostcalls` measures both sides together.
#![allow(clippy::unwrap_used)] // a measurement that cannot go on says so by panicking

use gpu_run_abi::bus::Request;
use gpu_run_abi::hostcall::Call;
use gpu_run_device::{Arg, Grid, cpu};
use gpu_run_run::bus::{BatchHost, Bus, Callers};
use gpu_run_wasi::{Builder, Context, Stdio};
use std::sync::Arc;
use std::time::Instant;

const SLOTS: u32 = 65_536;

/// One thread copies so many words.
const COPY: &str = "
.version 7.8
.target sm_75
.address_size 64
.visible .entry copy (.param .u64 p0, .param .u64 p1, .param .u64 p2)
{
    .reg .b64 %d<5>; .reg .pred %p<1>;
    ld.param.u64 %d0, [p0];
    ld.param.u64 %d1, [p1];
    ld.param.u64 %d2, [p2];
$next:
    ld.global.u64 %d3, [%d1];
    st.global.u64 [%d0], %d3;
    add.u64 %d0, %d0, 8;
    add.u64 %d1, %d1, 8;
    sub.u64 %d2, %d2, 1;
    setp.ne.u64 %p0, %d2, 0;
    @%p0 bra $next;
    ret;
}
";

/// Instances that are given nothing.
struct Nothing;

impl BatchHost for Nothing {
    fn heard(&self, _: u32) {}
    fn context(&self, _: u32) -> Option<Context> {
        Some(Builder::new().build(Stdio::null()))
    }
}

fn main() {
    let device = cpu::open();
    let copy = device.load(COPY).unwrap();
    let mut bus = Bus::new(&*device, SLOTS.into()).unwrap();
    assert_eq!(bus.ring_mask() + 1, u64::from(SLOTS), "a round fills the ring");
    let requests = device.allocate(u64::from(SLOTS) * Request::BYTES).unwrap();
    let words = u64::from(SLOTS) * Request::WORDS as u64;
    let args = [bus.ring_address(), requests.address(), words].map(Arg::U64);
    bus.begin(Callers::Batch(SLOTS as usize, Arc::new(Nothing)), None).unwrap();
    for lap in 1..=6 {
        // The first round is each instance's first call.
        let ask = |slot| Request { slot, op: Call::clock_time_get as u16, args: [1, 0] }.pack(lap);
        let bytes: Vec<u8> = (0..SLOTS).flat_map(ask).flat_map(u64::to_le_bytes).collect();
        requests.write(0, &bytes).unwrap();
        copy.run("copy", Grid { workgroups: 1, threads: 1, stack_bytes: 16 << 10 }, &args, &|| false).unwrap();
        let began = Instant::now();
        assert!(bus.service());
        let rate = f64::from(SLOTS) / began.elapsed().as_secs_f64();
        println!("round {lap}: {:.2} million calls a second", rate / 1e6);
    }
    assert_eq!(bus.end().1, 6 * u64::from(SLOTS), "every call was answered");
}
