use wasi_programs::*;

fn main() {
    unsafe { report("sizes", environ_sizes_get()) };
}
