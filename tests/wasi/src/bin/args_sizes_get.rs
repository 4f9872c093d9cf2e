use wasi_programs::*;

fn main() {
    unsafe { report("sizes", args_sizes_get()) };
}
