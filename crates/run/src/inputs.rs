//! What instances get on the device before a launch: stdin, arguments, environment, and a key for random bytes.
//!
//! The stdin of a whole batch is one copy to the device: an address and a length for each instance, then the bytes. All
//! cores write it into shared memory, from which the device copies it.

use crate::launcher::LaunchSlot;
use bytes::Bytes;
use gpu_run_abi::Launch;
use gpu_run_abi::launch::answers;
use gpu_run_abi::layout::WORD;
use gpu_run_compiler::Error;
use gpu_run_device::{Buffer, Device, Shared};
use gpu_run_wasi::Builder;
use rayon::prelude::*;
use std::sync::Arc;

/// One instance to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Arguments, environment and directories; jobs may share them.
    pub context: Arc<Builder>,
    /// The value of the instance's variable `GPU_RUN_INSTANCE`.
    pub number: u64,
    pub stdin: Bytes,
}

/// The environment variable that holds an instance's number.
pub const INSTANCE: &str = "GPU_RUN_INSTANCE";
/// Jobs whose stdin one core copies at a time.
const CHUNK: usize = 2048;
/// Bytes of the address and the length of an instance's stdin.
const PLACE: u64 = 2 * WORD;

/// What is kept from launch to launch.
#[derive(Default)]
pub struct Inputs {
    /// Arguments and environment on the device, and the builder they come from.
    strings: Option<(Arc<Builder>, Arc<Strings>)>,
    /// Shared memory in which stdin is put together; grows.
    staging: Option<Shared>,
}

impl Inputs {
    /// Copies the inputs of these jobs to the device. Returns a `Launch` with their addresses.
    pub fn write(&mut self, device: &dyn Device, launch_slot: &mut LaunchSlot, jobs: &[Job]) -> Result<Launch, Error> {
        let ((outbox, outbox_bytes), (annex, annex_bytes)) =
            (launch_slot.outboxes.place(), launch_slot.outboxes.annex());
        let mut launch = Launch {
            outbox,
            outbox_bytes,
            annex,
            annex_bytes,
            answers: answers::STREAMS.iter().sum(),
            ..Launch::default()
        };
        launch.stdin = self.write_stdin(device, &mut launch_slot.inputs, jobs)?;
        let mut key = [0; 16];
        if getrandom::fill(&mut key).is_ok() {
            launch.key = bytemuck::cast(key);
            launch.answers |= answers::RANDOM;
        }
        let Some(first) = jobs.first() else { return Ok(launch) };
        let alike = |(job, number): (&Job, u64)| Arc::ptr_eq(&job.context, &first.context) && job.number == number;
        if jobs.iter().zip(first.number..).all(alike) {
            if self.strings.as_ref().is_none_or(|(builder, _)| !Arc::ptr_eq(builder, &first.context)) {
                self.strings = Some((first.context.clone(), Arc::new(Strings::new(device, &first.context)?)));
            }
            if let Some((_, strings)) = &self.strings {
                launch_slot.strings = Some(strings.clone());
                launch.answers |= answers::STRINGS;
                launch.first = first.number;
                strings.describe(&mut launch);
            }
        }
        Ok(launch)
    }

    fn write_stdin(&mut self, device: &dyn Device, inputs: &mut Buffer, jobs: &[Job]) -> Result<u64, Error> {
        let head = jobs.len() as u64 * PLACE;
        let mut total = head;
        let starts: Vec<u64> = jobs
            .chunks(CHUNK)
            .map(|chunk| {
                let start = total;
                total += chunk.iter().map(padded).sum::<u64>();
                start
            })
            .collect();
        if inputs.len() < total {
            *inputs = device.allocate(total.next_power_of_two())?;
        }
        let staging = match self.staging.take().filter(|staging| staging.len() >= total) {
            Some(staging) => staging,
            None => device.share(total.next_power_of_two())?,
        };
        let staging = self.staging.insert(staging);
        let base = inputs.address();
        jobs.par_chunks(CHUNK).zip(starts).enumerate().for_each(|(chunk, (jobs, start))| {
            let mut place = (chunk * CHUNK) as u64 * PLACE;
            let mut at = start;
            for job in jobs {
                staging.store_u64(place, base + at);
                staging.store_u64(place + WORD, job.stdin.len() as u64);
                staging.write(at, &job.stdin);
                place += PLACE;
                at += padded(job);
            }
        });
        inputs.write_from(0, staging, 0, total)?;
        Ok(base)
    }
}

/// Returns the bytes that a job's stdin takes on the device.
fn padded(job: &Job) -> u64 {
    (job.stdin.len() as u64).next_multiple_of(WORD)
}

/// Arguments and environment in device memory.
pub struct Strings {
    buffer: Buffer,
    args: (u64, u64),
    env: (u64, u64),
    env_at: u64,
}

impl Strings {
    fn new(device: &dyn Device, builder: &Builder) -> Result<Self, Error> {
        let block = |(starts, bytes): (&[u32], &[u8])| {
            let starts = starts.iter().flat_map(|start| start.to_le_bytes());
            starts.chain(bytes.iter().copied()).collect::<Vec<u8>>()
        };
        let sizes = |(starts, bytes): (&[u32], &[u8])| (starts.len() as u64, bytes.len() as u64);
        // The instance's number is the value of the last variable. It is not stored here: the device appends it.
        let (starts, bytes) = builder.env_strings();
        let starts = [starts, &[bytes.len() as u32]].concat();
        let bytes = [bytes, INSTANCE.as_bytes(), b"="].concat();
        let env = (starts.as_slice(), bytes.as_slice());
        let mut all = block(builder.arg_strings());
        all.resize(all.len().next_multiple_of(WORD as usize), 0);
        let env_at = all.len() as u64;
        all.extend(block(env));
        Ok(Self { buffer: device.allocate_filled(&all)?, args: sizes(builder.arg_strings()), env: sizes(env), env_at })
    }

    fn describe(&self, launch: &mut Launch) {
        (launch.args_count, launch.args_bytes) = self.args;
        (launch.env_count, launch.env_bytes) = self.env;
        launch.args = self.buffer.address();
        launch.env = self.buffer.address() + self.env_at;
    }
}
