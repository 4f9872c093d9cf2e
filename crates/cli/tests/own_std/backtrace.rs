use std::backtrace::Backtrace;

#[inline(never)]
fn inner() -> Backtrace {
    Backtrace::capture()
}

#[inline(never)]
fn outer(n: u32) -> Backtrace {
    let trace = if n == 0 { inner() } else { outer(n - 1) };
    std::hint::black_box(&trace);
    trace
}

fn main() {
    let trace = outer(1);
    println!("{:?}", trace.status());
    println!("{}", trace.to_string().trim_end());
    let forced = Backtrace::force_capture();
    let first = forced.to_string().lines().find_map(|line| Some(line.split_once("0: ")?.1.to_owned()));
    println!("forced: {:?}, {} first", forced.status(), first.as_deref().unwrap_or("nothing"));
}
