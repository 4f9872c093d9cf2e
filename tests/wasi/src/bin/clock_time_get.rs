use wasi_programs::*;

fn main() {
    unsafe {
        // Between 2024 and 2100.
        let present = 1_704_067_200_000_000_000..4_102_444_800_000_000_000;
        report("realtime", clock_time_get(CLOCKID_REALTIME, 1).map(|ns| present.contains(&ns)));
        let first = clock_time_get(CLOCKID_MONOTONIC, 0).expect("a clock");
        report("monotonic goes on", clock_time_get(CLOCKID_MONOTONIC, 0).map(|ns| ns >= first));
        report("any precision", clock_time_get(CLOCKID_MONOTONIC, u64::MAX).map(|ns| ns >= first));
        report("process cpu time", clock_time_get(CLOCKID_PROCESS_CPUTIME_ID, 1));
        report("thread cpu time", clock_time_get(CLOCKID_THREAD_CPUTIME_ID, 1));
    }
}
