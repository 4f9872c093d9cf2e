//! `std::sync`, `sync::mpsc` and `sync::atomic`.

use std::mem::MaybeUninit;
use std::sync::atomic::{self, AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError, TrySendError};
use std::sync::{
    Arc, Barrier, Condvar, LazyLock, LockResult, Mutex, Once, OnceLock, PoisonError, RwLock, RwLockWriteGuard,
    TryLockError, TryLockResult, Weak,
};
use std::thread;
use std::time::Duration;
use uses_std::show;

const PAUSE: Duration = Duration::from_millis(20);

fn main() {
    shared();
    weak();
    mutexes();
    read_write();
    conditions();
    once();
    lazy();
    barriers();
    channels();
    numbers();
    booleans();
    pointers();
}

fn shared() {
    let one = Arc::new(5);
    let other = one.clone();
    show!(Arc::strong_count(&one), Arc::weak_count(&one), Arc::ptr_eq(&one, &other), Arc::try_unwrap(one));
    show!(Arc::into_inner(other), Arc::unwrap_or_clone(Arc::new(6)), *Arc::pin(7));
    let mut value = Arc::new(vec![1]);
    Arc::make_mut(&mut value).push(2);
    show!(Arc::get_mut(&mut value).map(|value| value.len()), value);
    let raw = Arc::into_raw(value);
    // SAFETY: `raw` is of `into_raw`, and as many references are given back as were taken.
    let value = unsafe {
        Arc::increment_strong_count(raw);
        Arc::decrement_strong_count(raw);
        Arc::from_raw(raw)
    };
    show!(Arc::as_ptr(&value) == raw, Arc::strong_count(&value));
    let cyclic = Arc::new_cyclic(|weak: &Weak<usize>| weak.strong_count());
    show!(cyclic, Arc::downgrade(&value).upgrade());
    let mut later = Arc::<u32>::new_uninit();
    Arc::get_mut(&mut later).expect("nobody else has it").write(3);
    let mut laters = Arc::<[u32]>::new_uninit_slice(2);
    Arc::get_mut(&mut laters).expect("nobody else has it").fill(MaybeUninit::new(4));
    // SAFETY: both were written, and zero is a number.
    unsafe {
        show!(later.assume_init(), laters.assume_init(), Arc::<u32>::new_zeroed().assume_init());
        show!(Arc::<[u32]>::new_zeroed_slice(3).assume_init());
    }
    let any: Arc<dyn std::any::Any + Send + Sync> = Arc::new(8_u8);
    show!(any.clone().downcast::<u8>().ok(), any.downcast::<u16>().is_err());
}

fn weak() {
    let strong = Arc::new("value");
    let weak = Arc::downgrade(&strong);
    show!(weak.upgrade(), weak.strong_count(), weak.weak_count(), weak.ptr_eq(&Arc::downgrade(&strong)));
    show!(weak.as_ptr() == Arc::as_ptr(&strong));
    let raw = weak.into_raw();
    // SAFETY: it is of `into_raw`.
    let weak = unsafe { Weak::from_raw(raw) };
    drop(strong);
    show!(weak.upgrade(), Weak::<u8>::new().upgrade());
}

fn mutexes() {
    let mut mutex = Mutex::new(1);
    let guard: LockResult<_> = mutex.lock();
    *guard.expect("not poisoned") += 1;
    let held = mutex.lock();
    let tried: TryLockResult<_> = mutex.try_lock();
    show!(tried.err().map(|error| matches!(error, TryLockError::WouldBlock)));
    drop(held);
    show!(mutex.try_lock().map(|value| *value).ok(), mutex.is_poisoned());
    mutex.clear_poison();
    show!(mutex.get_mut().map(|value| *value).ok(), mutex.into_inner().ok());
    // Where a panic ends the program, nothing can be poisoned, and `new` panics.
    if cfg!(panic = "unwind") {
        let mut error = PoisonError::new(3);
        *error.get_mut() += 1;
        assert_eq!((*error.get_ref(), error.into_inner()), (4, 4));
    }
}

fn read_write() {
    let mut lock = RwLock::new(1);
    let (one, other) = (lock.read().expect("not poisoned"), lock.try_read().ok().map(|value| *value));
    show!(*one, other, lock.try_write().is_err());
    drop(one);
    let mut writer = lock.write().expect("not poisoned");
    *writer += 1;
    show!(lock.try_read().is_err());
    let reader = RwLockWriteGuard::downgrade(writer);
    show!(*reader, lock.try_read().is_ok());
    drop(reader);
    show!(lock.try_write().map(|value| *value).ok(), lock.is_poisoned());
    lock.clear_poison();
    show!(lock.get_mut().map(|value| *value).ok(), lock.into_inner().ok());
}

#[allow(deprecated)]
fn conditions() {
    let (pair, condvar) = (Mutex::new(0), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3 {
                *pair.lock().expect("not poisoned") += 1;
                condvar.notify_one();
                condvar.notify_all();
            }
        });
        let mut number = pair.lock().expect("not poisoned");
        while *number == 0 {
            number = condvar.wait(number).expect("not poisoned");
        }
        let number = condvar.wait_while(number, |number| *number < 3).expect("not poisoned");
        show!(*number);
    });
    let (number, result) = condvar.wait_timeout(pair.lock().expect("not poisoned"), PAUSE).expect("not poisoned");
    show!(*number, result.timed_out());
    let (number, result) = condvar.wait_timeout_while(number, PAUSE, |number| *number < 4).expect("not poisoned");
    show!(*number, result.timed_out(), condvar.wait_timeout_ms(number, 20).map(|(_, in_time)| in_time).ok());
}

fn once() {
    let (once, mut calls) = (Once::new(), 0);
    once.call_once(|| calls += 1);
    once.call_once(|| calls += 1);
    show!(calls, once.is_completed());
    let forced = Once::new();
    forced.call_once_force(|state| show!(state.is_poisoned()));
    forced.wait();
    forced.wait_force();
    #[allow(deprecated)]
    let constant = std::sync::ONCE_INIT;
    show!(forced.is_completed(), constant.is_completed());
}

fn lazy() {
    let mut cell = OnceLock::new();
    show!(cell.get(), cell.get_or_init(|| 5), cell.set(6), cell.wait(), cell.get_mut(), cell.take());
    show!(cell.set(7), cell.into_inner());
    static LAZY: LazyLock<u32> = LazyLock::new(|| 8);
    show!(*LAZY, LazyLock::force(&LAZY));
    let mut lazy = LazyLock::new(|| 9);
    show!(LazyLock::get(&lazy), LazyLock::get_mut(&mut lazy));
    *LazyLock::force_mut(&mut lazy) += 1;
    show!(LazyLock::get(&lazy));
}

fn barriers() {
    let barrier = Barrier::new(4);
    let leaders = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| barrier.wait().is_leader())).collect();
        threads.into_iter().map(|thread| thread.join()).filter(|leads| matches!(leads, Ok(true))).count()
    });
    show!(leaders);
}

fn channels() {
    let (sender, receiver) = mpsc::channel();
    show!(receiver.try_recv() == Err(TryRecvError::Empty));
    show!(receiver.recv_timeout(PAUSE) == Err::<u32, _>(RecvTimeoutError::Timeout));
    thread::scope(|scope| {
        for number in 0..3 {
            let sender = sender.clone();
            scope.spawn(move || sender.send(number));
        }
    });
    let mut got = vec![receiver.recv().expect("a number")];
    got.extend(receiver.try_iter());
    got.sort();
    show!(got, sender.send(4), sender.send(5), receiver.iter().take(1).collect::<Vec<_>>());
    drop(sender);
    show!(receiver.recv_timeout(PAUSE), receiver.try_recv(), receiver.recv(), receiver.into_iter().count());

    let (sender, receiver) = mpsc::sync_channel(1);
    show!(sender.try_send(1), sender.try_send(2) == Err(TrySendError::Full(2)), receiver.recv());
    thread::scope(|scope| {
        scope.spawn(move || (0..5).try_for_each(|number| sender.send(number)));
        show!(receiver.iter().collect::<Vec<_>>());
    });
    let (sender, receiver) = mpsc::sync_channel(0);
    drop(receiver);
    show!(sender.send(1), sender.try_send(1), mpsc::RecvError.to_string());
}

/// Every method of an atomic number.
macro_rules! number {
    ($type:ident, $number:ty) => {{
        use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
        let mut it = atomic::$type::new(5);
        println!("{}", stringify!($type));
        show!(it.load(Acquire), it.swap(6, AcqRel), it.compare_exchange(6, 7, SeqCst, Relaxed));
        it.store(9, Release);
        show!(it.compare_exchange(6, 7, SeqCst, Relaxed));
        while it.compare_exchange_weak(9, 10, SeqCst, Relaxed).is_err() {}
        #[allow(deprecated)]
        let before = it.compare_and_swap(10, 12, SeqCst);
        show!(
            before,
            it.fetch_add(3, SeqCst),
            it.fetch_sub(1, SeqCst),
            it.fetch_and(6, SeqCst),
            it.fetch_nand(3, SeqCst)
        );
        show!(it.fetch_or(8, SeqCst), it.fetch_xor(1, SeqCst), it.fetch_max(9, SeqCst), it.fetch_min(4, SeqCst));
        show!(it.fetch_update(SeqCst, Relaxed, |it: $number| it.checked_add(1)), it.load(Relaxed));
        show!(it.try_update(SeqCst, Relaxed, |it: $number| it.checked_div(0)), it.update(SeqCst, Relaxed, |_| 3));
        *it.get_mut() += 1;
        // SAFETY: nobody else uses it.
        show!(unsafe { *it.as_ptr() }, unsafe { atomic::$type::from_ptr(it.as_ptr()) }.load(SeqCst), it.into_inner());
    }};
}

fn numbers() {
    number!(AtomicI8, i8);
    number!(AtomicI16, i16);
    number!(AtomicI32, i32);
    number!(AtomicI64, i64);
    number!(AtomicU8, u8);
    number!(AtomicU16, u16);
    number!(AtomicU32, u32);
    number!(AtomicU64, u64);
    // Printed where they are negative: they have 32 bits here, and natively 64.
    let (signed, unsigned) = (atomic::AtomicIsize::new(5), AtomicUsize::new(5));
    show!(signed.fetch_nand(3, Ordering::SeqCst), signed.load(Ordering::SeqCst));
    show!(unsigned.fetch_max(9, Ordering::SeqCst), unsigned.load(Ordering::SeqCst));
    #[allow(deprecated)]
    let constants = (atomic::ATOMIC_BOOL_INIT, atomic::ATOMIC_ISIZE_INIT, atomic::ATOMIC_USIZE_INIT);
    show!(constants);
    atomic::fence(Ordering::SeqCst);
    atomic::compiler_fence(Ordering::SeqCst);
    #[allow(deprecated)]
    atomic::spin_loop_hint();
}

fn booleans() {
    use Ordering::{Relaxed, SeqCst};
    let mut it = AtomicBool::new(true);
    show!(it.load(SeqCst), it.swap(false, SeqCst), it.compare_exchange(true, false, SeqCst, Relaxed));
    while it.compare_exchange_weak(false, true, SeqCst, Relaxed).is_err() {}
    #[allow(deprecated)]
    let before = it.compare_and_swap(true, false, SeqCst);
    it.store(true, SeqCst);
    show!(before, it.fetch_and(false, SeqCst), it.fetch_nand(true, SeqCst), it.fetch_or(true, SeqCst));
    show!(it.fetch_xor(true, SeqCst), it.fetch_not(SeqCst), it.fetch_update(SeqCst, Relaxed, |it| Some(!it)));
    show!(it.try_update(SeqCst, Relaxed, |_| None), it.update(SeqCst, Relaxed, |it| !it));
    *it.get_mut() = false;
    // SAFETY: nobody else uses it.
    show!(unsafe { *it.as_ptr() }, unsafe { AtomicBool::from_ptr(it.as_ptr()) }.load(SeqCst), it.into_inner());
}

fn pointers() {
    use Ordering::{Relaxed, SeqCst};
    let mut array = [1_u32, 2, 3, 4];
    let first = array.as_mut_ptr();
    // SAFETY: it is in the array.
    let third = unsafe { first.add(2) };
    let mut it = AtomicPtr::new(first);
    show!(
        it.load(SeqCst) == first,
        it.swap(third, SeqCst) == first,
        it.compare_exchange(third, first, SeqCst, Relaxed).is_ok()
    );
    while it.compare_exchange_weak(first, third, SeqCst, Relaxed).is_err() {}
    #[allow(deprecated)]
    let before = it.compare_and_swap(third, first, SeqCst);
    show!(before == third, it.fetch_ptr_add(3, SeqCst) == first, it.fetch_ptr_sub(1, SeqCst) == third.wrapping_add(1));
    show!(it.fetch_byte_add(4, SeqCst) == third, it.fetch_byte_sub(4, SeqCst) == third.wrapping_add(1));
    show!(it.fetch_or(0, SeqCst) == third, it.fetch_and(usize::MAX, SeqCst) == third, it.fetch_xor(0, SeqCst) == third);
    show!(
        it.fetch_update(SeqCst, Relaxed, |_| Some(first)) == Ok(third),
        it.try_update(SeqCst, Relaxed, |_| None).is_err()
    );
    show!(it.update(SeqCst, Relaxed, |it| it) == first);
    it.store(third, SeqCst);
    *it.get_mut() = first;
    // SAFETY: nobody else uses it, and the array is there.
    unsafe {
        show!(*it.as_ptr() == first, AtomicPtr::from_ptr(it.as_ptr()).load(SeqCst) == first, *it.into_inner());
    }
}
