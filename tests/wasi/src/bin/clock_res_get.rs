use wasi_programs::*;

fn main() {
    unsafe {
        report("realtime", clock_res_get(CLOCKID_REALTIME).map(|ns| ns > 0));
        report("monotonic", clock_res_get(CLOCKID_MONOTONIC).map(|ns| ns > 0));
        report("process cpu time", clock_res_get(CLOCKID_PROCESS_CPUTIME_ID));
        report("thread cpu time", clock_res_get(CLOCKID_THREAD_CPUTIME_ID));
    }
}
