use wasi_programs::*;

fn main() {
    unsafe {
        let random = |count: usize| {
            let mut bytes = vec![0u8; count + 1];
            random_get(bytes.as_mut_ptr(), count).map(|()| bytes)
        };
        report("none", random(0));
        report("nothing beyond", random(16).map(|bytes| bytes[16]));
        report("differ", random(32).and_then(|first| random(32).map(|second| first != second)));
        report("many", random(100_000).map(|bytes| (0..=255).all(|byte| bytes.contains(&byte))));
    }
}
