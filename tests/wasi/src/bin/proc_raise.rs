use wasi_programs::*;

fn main() {
    unsafe {
        for signal in [SIGNAL_NONE, SIGNAL_INT, SIGNAL_ABRT, SIGNAL_KILL, SIGNAL_USR1, SIGNAL_SYS] {
            report(signal.name(), code(raw::proc_raise(signal.raw().into())));
        }
    }
}
