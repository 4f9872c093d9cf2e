//! Uses every function of the crate, and says what each returned.
use gpu_run_guest::shared::{self, U32, U64};
use gpu_run_guest::{self as gpu, Frame, fast, reduce};

fn main() {
    let me = gpu::instance();
    println!("instance {me} of {:?}, thread {} of {}", gpu::instances(), gpu::thread(), gpu::threads());
    let (lane, active) = (gpu::lane(), gpu::active());
    println!("lane is active: {}, lanes: {}", active >> lane & 1, gpu::lanes());
    println!("time goes on: {}", gpu::device_time() <= gpu::device_time());
    println!("ballots: {} {}", gpu::ballot(true) >> lane & 1, gpu::ballot(false));
    println!("shuffles: {} {}", gpu::shuffle(7, lane), gpu::shuffle(8, 99));
    let reduced = [reduce::add(5), reduce::min(6), reduce::max(7), reduce::and(8), reduce::or(9), reduce::xor(10)];
    println!("reduced: {reduced:?}");
    // On `cpu` and elsewhere, computed in f64 and rounded.
    let all = |is_right: &dyn Fn(f32, f64) -> bool| (1..200).map(|n| n as f32 * 0.37).all(|x| is_right(x, x.into()));
    let near = |a: f32, b: f64, bound: f64| (f64::from(a) / b - 1.0).abs() <= bound * 0.5f64.powi(24);
    let fasts = [
        all(&|x, wide| fast::sin(x) == wide.sin() as f32),
        all(&|x, wide| fast::cos(x) == wide.cos() as f32),
        all(&|x, wide| near(fast::exp(x), wide.exp(), 1.3 * wide + 1.0)),
        all(&|x, wide| fast::exp2(x) == wide.exp2() as f32),
        all(&|x, wide| near(fast::log(x), wide.ln(), 2.1)),
        all(&|x, wide| fast::log2(x) == wide.log2() as f32),
        all(&|x, wide| fast::rsqrt(x) == (1.0 / wide.sqrt()) as f32),
    ];
    println!("fast: {fasts:?}");
    println!("buffer: {}", shared::bytes());

    // Each instance has values of its own, and all have some in common.
    let own = |n: usize| U32::new(64 + 16 * me as usize + n);
    own(0).store(12);
    own(0).add(3);
    own(1).store(9);
    own(1).min(4);
    own(1).max(6);
    own(2).store(0b1100);
    own(2).and(0b0110);
    own(2).or(0b0011);
    own(2).xor(0b0001);
    own(3).swap(5);
    let swapped = (own(3).swap(6), own(3).compare_exchange(6, 7), own(3).compare_exchange(6, 8));
    println!("u32: {:?} {swapped:?}", [0, 1, 2, 3].map(|n| own(n).load()));
    let own = |n: usize| U64::new(36 + 8 * me as usize + n);
    own(0).store(12 << 40);
    own(0).add(3);
    own(1).store(9 << 40);
    own(1).min(4 << 40);
    own(1).max(6 << 40);
    own(2).store(0b1100 << 40);
    own(2).and(0b0110 << 40);
    own(2).or(0b0011 << 40);
    own(2).xor(0b0001 << 40);
    own(3).swap(5 << 40);
    let swapped = (own(3).swap(6), own(3).compare_exchange(6, 7 << 40), own(3).compare_exchange(6, 8));
    println!("u64: {:?} {swapped:?}", [0, 1, 2, 3].map(|n| own(n).load()));

    gpu::gpu_println!("{} and {}", 1, 2);
    gpu::gpu_println!();
    println!("dbg: {}", gpu::gpu_dbg!(1 + 1));
    let (four, text) = gpu::gpu_dbg!(2 + 2, "text".to_owned());
    assert_eq!((four, &text[..]), (4, "text"));
    gpu::gpu_dbg!();
    let frame = Frame::new(8, 4);
    println!("picture: {} × {}, pixels {}", frame.width(), frame.height(), frame.pixels().count());
    println!("time: {}", gpu::time());
    for (x, y) in frame.pixels() {
        frame.set_pixel(x, y, [x as u8 * 30, y as u8 * 60, me as u8]);
    }
    frame.set_pixel(8, 0, [255; 3]);

    let (sum, ended) = (U64::new(0), U32::new(2));
    sum.add(me + 1);
    shared::fence();
    // `map` tells nobody how many there are, and whether several run at once.
    if let Some(all) = gpu::instances()
        && u64::from(ended.add(1)) + 1 == all
    {
        shared::fence();
        println!("sum is right: {}", sum.load() == all * (all + 1) / 2);
    }
    match std::env::args().nth(1).as_deref() {
        Some("grow") => drop(Frame::new(9, 4)),
        Some("large") => drop(Frame::new(8193, 8192)),
        Some(_) => drop(U32::new(1 << 30).load()),
        None => {}
    }
}
