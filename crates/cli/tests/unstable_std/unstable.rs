//! Parts of std that only a nightly compiler takes, on wasm32-wasip1 as natively.
#![feature(async_iterator, bstr, derive_from, f16, f128, portable_simd, random, core_intrinsics)]
#![feature(new_range_api, pattern, pattern_types, pattern_type_macro, unsafe_binders)]
#![allow(incomplete_features, internal_features)]

use std::async_iter::AsyncIterator;
use std::bstr::{ByteStr, ByteString};
use std::f16::consts::PI as HALF_PI_TWICE;
use std::from::From as DeriveFrom;
use std::pat::pattern_type;
use std::pin::Pin;
use std::range::Range;
use std::simd::num::SimdFloat;
use std::simd::{f32x4, i32x8, num::SimdInt};
use std::task::{Context, Poll, Waker};
use std::unsafe_binder::{unwrap_binder, wrap_binder};

struct Three(u32);

impl AsyncIterator for Three {
    type Item = u32;
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u32>> {
        self.0 += 1;
        Poll::Ready((self.0 <= 3).then_some(self.0))
    }
}

#[derive(DeriveFrom)]
struct Metres(u32);

fn main() {
    let mut iter = Three(0);
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(number)) = Pin::new(&mut iter).poll_next(&mut context) {
        println!("async_iter {number}");
    }
    println!("bstr {:?} {}", ByteStr::new(b"a\xff\n"), ByteString(b"text".to_vec()));
    let half: f16 = HALF_PI_TWICE / 3.0;
    println!("f16 {half:?} {:#x} {}", half.to_bits(), half as f32);
    let quad: f128 = std::f128::consts::E * 1e30 - 7.0;
    println!("f128 {:#x} {}", quad.to_bits(), quad as f64);
    println!("from {:?}", Metres::from(5).0);
    println!("intrinsics {} {}", std::intrinsics::ctpop(0xffu32), std::intrinsics::rotate_left(1u32, 31));
    type Small = pattern_type!(u32 is 1..=9);
    println!("pat {}", size_of::<Option<Small>>());
    let random: [u64; 4] = std::array::from_fn(|_| std::random::random(..));
    println!("random {}", random.iter().any(|number| *number != random[0]));
    println!("range {:?}", Range { start: 1, end: 5 }.iter().map(|n| n * n).collect::<Vec<i32>>());
    let sum = f32x4::from_array([1.0, 2.0, 3.0, 4.5]) * f32x4::splat(1.25);
    println!("simd {:?} {} {}", sum, sum.reduce_sum(), (i32x8::splat(3) << i32x8::splat(2)).reduce_sum());
    let text = String::from("bound");
    let binder: unsafe<'a> &'a str = unsafe { wrap_binder!(&text[..]) };
    println!("unsafe_binder {}", unsafe { unwrap_binder!(binder) });
}
