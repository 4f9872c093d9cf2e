//! `std-modules THREADS`: a line for each module of std that no other program shows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::any::Any;
use std::borrow::Cow;
use std::ffi::{CStr, CString, OsString};
use std::future::Future;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::marker::PhantomPinned;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZero, Wrapping};
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant, SystemTime};
use std_programs::threads;

/// The system's allocator, counted.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: `System` does all of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, and the memory came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A future that another thread completes.
struct Elsewhere(Option<thread::JoinHandle<u64>>, u64);

impl Future for Elsewhere {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<u64> {
        match self.0.take() {
            Some(handle) if handle.is_finished() => Poll::Ready(handle.join().expect("it returns")),
            Some(handle) => {
                self.0 = Some(handle);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None => {
                let (waker, number) = (context.waker().clone(), self.1);
                self.0 = Some(thread::spawn(move || {
                    waker.wake();
                    number * number
                }));
                Poll::Pending
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

fn main() {
    let before = ALLOCATED.load(Ordering::Relaxed);
    let bytes = std::hint::black_box(vec![7_u8; 1000]);
    println!("alloc: {}", ALLOCATED.load(Ordering::Relaxed) - before >= bytes.len());
    let values: [Box<dyn Any>; 3] = [Box::new(1_i32), Box::new("two"), Box::new('3')];
    println!("any: {:?}", values.each_ref().map(|value| value.downcast_ref::<&str>()));
    println!("array: {:?}", std::array::from_fn::<usize, 5, _>(|index| index * index));
    println!("ascii, char: {} {:?}", "tab\tä".escape_default(), 'ß'.to_uppercase().collect::<String>());
    println!("borrow: {}", matches!(String::from_utf8_lossy(b"plain"), Cow::Borrowed("plain")));
    println!("convert: {:?} {}", u8::try_from(300), i64::from(-5_i32));
    let text = CString::new("C").expect("no zero in it");
    println!("ffi: {:?} {:?}", CStr::from_bytes_with_nul(text.as_bytes_with_nul()), OsString::from("os"));
    let squares = (0..threads() as u64).map(|number| block_on(Elsewhere(None, number)));
    println!("future, task: {}", squares.sum::<u64>());
    let mut hasher = DefaultHasher::new();
    "the same everywhere".hash(&mut hasher);
    println!("hash: {:x} {}", hasher.finish(), RandomState::new().hash_one(1) != RandomState::new().hash_one(1));
    println!("iter: {:?}", std::iter::successors(Some(1_u32), |n| n.checked_mul(10)).last());
    let mut room = MaybeUninit::<u64>::uninit();
    println!("mem, ptr: {} {}", room.write(9), size_of_val(&PhantomPinned));
    let address: SocketAddr = "[::1]:80".parse().expect("an address");
    println!("net: {address} {}", IpAddr::from([127, 0, 0, 1]).is_loopback());
    println!("num: {:?} {}", NonZero::new(0_u8), Wrapping(200_u8) + Wrapping(100));
    let found = (1..).try_for_each(|n| if n * n > 50 { ControlFlow::Break(n) } else { ControlFlow::Continue(()) });
    println!("ops: {found:?} {:?}", (Bound::Excluded(1), Bound::Unbounded::<i32>).contains(&1));
    println!("panic: {}", Location::caller().file().ends_with("std-modules.rs"));
    println!("path: {:?}", Path::new("a/./b/../c.tar.gz").components().collect::<PathBuf>().extension());
    println!("slice: {:?}", [5, 3, 8, 1].select_nth_unstable(1).1);
    println!("str, string: {:?}", "a=1;b=2".split(';').filter_map(|pair| pair.split_once('=')).collect::<Vec<_>>());
    let (begin, day) = (Instant::now(), SystemTime::now().duration_since(SystemTime::UNIX_EPOCH));
    thread::sleep(Duration::from_millis(20));
    println!("time: {} {}", begin.elapsed() >= Duration::from_millis(20), day.is_ok_and(|day| day.as_secs() > 1 << 30));
    println!("vec: {:?}", vec![1, 2, 3, 4].extract_if(.., |n| *n % 2 == 0).collect::<Vec<_>>());
}
