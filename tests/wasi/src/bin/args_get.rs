use wasi_programs::*;

fn main() {
    unsafe {
        let (count, size) = args_sizes_get().expect("sizes");
        let (mut pointers, mut buffer) = (vec![std::ptr::null_mut(); count], vec![0xaau8; size + 1]);
        report("get", args_get(pointers.as_mut_ptr(), buffer.as_mut_ptr()));
        let offsets: Vec<usize> = pointers.iter().map(|p: &*mut u8| *p as usize - buffer.as_ptr() as usize).collect();
        report("offsets", Ok(offsets));
        report("bytes", Ok(text(&buffer[..size])));
        report("nothing beyond", Ok(buffer[size] == 0xaa));
        report("again", args_get(pointers.as_mut_ptr(), buffer.as_mut_ptr()));
    }
}
