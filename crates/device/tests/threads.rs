//! Many threads: barriers, warps, atomics, the host's answers, and ends of all kinds.

#![allow(clippy::unwrap_used)]

mod support;

use gpu_run_device::cpu::{Options, open_with};
use gpu_run_device::{Arg, Error, Grid};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{grid, load, run, strict, words, words32};

/// A kernel around statements that find `p0` in `%d0`, the thread's number in the grid in `%r0`, in its block in `%r1`, and the
/// address of the grid-wide thread's 8-byte cell in `%d1`.
fn kernel(statements: &str) -> String {
    format!(
        ".shared .align 8 .b8 scratch[1024];
.visible .entry k (.param .u64 p0)
{{
    .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<9>;
    ld.param.u64 %d0, [p0];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %ctaid.x;
    mad.lo.u32 %r0, %r2, %r3, %r1;
    mad.wide.u32 %d1, %r0, 8, %d0;
    {statements}
    ret;
}}
"
    )
}

fn cells_after(statements: &str, shape: Grid) -> Vec<u64> {
    let device = strict();
    let module = load(&device, &kernel(statements));
    let count = (shape.workgroups * shape.threads) as usize;
    let buffer = device.allocate(count as u64 * 8).unwrap();
    run(&module, "k", shape, &[Arg::U64(buffer.address())]).unwrap();
    words(&buffer, count)
}

#[test]
fn special_registers_say_who_a_thread_is() {
    let cells = cells_after(
        "mov.u32 %r4, %laneid;
    mov.u32 %r5, %warpid;
    mov.u32 %r6, %nctaid.x;
    mov.u32 %r7, %lanemask_lt;
    mov.u32 %r8, %tid.y;
    mov.u32 %r9, %ntid.z;
    shl.b32 %r5, %r5, 8;
    shl.b32 %r6, %r6, 16;
    or.b32 %r4, %r4, %r5;
    or.b32 %r4, %r4, %r6;
    shl.b32 %r9, %r9, 24;
    or.b32 %r4, %r4, %r9;
    or.b32 %r4, %r4, %r8;
    st.global.u32 [%d1], %r4;
    st.global.u32 [%d1+4], %r7;",
        grid(3, 70),
    );
    for (n, cell) in cells.iter().enumerate() {
        let thread = n as u64 % 70;
        let expected = (thread % 32) | (thread / 32) << 8 | 3 << 16 | 1 << 24 | ((1 << (thread % 32)) - 1) << 32;
        assert_eq!(*cell, expected, "thread {n}");
    }
}

#[test]
fn a_barrier_lets_128_threads_exchange_through_shared_memory() {
    // Each writes its number, and reads its mirror image's; three times over, so the barrier is used again.
    let cells = cells_after(
        "mov.u64 %d2, scratch;
    mul.wide.u32 %d3, %r1, 8;
    add.u64 %d2, %d2, %d3;
    mov.u64 %d4, scratch;
    xor.b32 %r4, %r1, 127;
    mul.wide.u32 %d5, %r4, 8;
    add.u64 %d4, %d4, %d5;
    cvt.u64.u32 %d6, %r0;
    mov.b32 %r5, 0;
$again:
    st.shared.u64 [%d2], %d6;
    bar.sync 0;
    ld.shared.u64 %d6, [%d4];
    bar.sync 0;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 3;
    @%p1 bra $again;
    st.global.u64 [%d1], %d6;",
        grid(3, 128),
    );
    let expected: Vec<u64> = (0..3 * 128).map(|n| n / 128 * 128 + (127 - n % 128)).collect();
    assert_eq!(cells, expected);
}

#[test]
fn shuffles_read_the_lanes_the_manual_says() {
    type Source = fn(u32) -> (u32, bool);
    let modes: [(&str, Source); 6] = [
        ("shfl.sync.idx.b32 %r4|%p1, %r0, 3, 31, 0xffffffff;", |_| (3, true)),
        ("shfl.sync.up.b32 %r4|%p1, %r0, 2, 0, 0xffffffff;", |l| if l >= 2 { (l - 2, true) } else { (l, false) }),
        (
            "shfl.sync.down.b32 %r4|%p1, %r0, 5, 31, 0xffffffff;",
            |l| if l + 5 < 32 { (l + 5, true) } else { (l, false) },
        ),
        ("shfl.sync.bfly.b32 %r4|%p1, %r0, 9, 31, 0xffffffff;", |l| (l ^ 9, true)),
        // Segments of 8 lanes.
        ("shfl.sync.idx.b32 %r4|%p1, %r0, 1, 0x1807, 0xffffffff;", |l| (l & 24 | 1, true)),
        ("shfl.sync.down.b32 %r4|%p1, %r0, 3, 0x1807, 0xffffffff;", |l| {
            if l % 8 + 3 < 8 { (l + 3, true) } else { (l, false) }
        }),
    ];
    for (shuffle, expected) in modes {
        let cells = cells_after(
            &format!("{shuffle}\nselp.b32 %r5, 1, 0, %p1;\nst.global.u32 [%d1], %r4;\nst.global.u32 [%d1+4], %r5;"),
            grid(1, 64),
        );
        for (n, cell) in cells.iter().enumerate() {
            let (lane, inside) = expected(n as u32 % 32);
            let wanted = (n as u64 / 32 * 32 + lane as u64) | (inside as u64) << 32;
            assert_eq!(*cell, wanted, "{shuffle} thread {n}");
        }
    }
}

#[test]
fn votes_count_the_lanes_of_their_mask() {
    // Lanes 8 and up take part in one group, the others in another; both under way at once.
    let cells = cells_after(
        "mov.u32 %r4, %laneid;
    setp.lt.u32 %p1, %r4, 8;
    mov.b32 %r5, 0xff;
    mov.b32 %r6, 0xffffff00;
    selp.b32 %r5, %r5, %r6, %p1;
    and.b32 %r6, %r4, 1;
    setp.ne.u32 %p2, %r6, 0;
    vote.sync.ballot.b32 %r7, %p2, %r5;
    vote.sync.any.pred %p3, %p1, %r5;
    vote.sync.all.pred %p4, !%p1, %r5;
    vote.sync.uni.pred %p5, %p2, %r5;
    bar.warp.sync %r5;
    selp.b32 %r8, 1, 0, %p3;
    selp.b32 %r9, 2, 0, %p4;
    or.b32 %r8, %r8, %r9;
    selp.b32 %r9, 4, 0, %p5;
    or.b32 %r8, %r8, %r9;
    activemask.b32 %r10;
    and.b32 %r10, %r10, 0;
    or.b32 %r8, %r8, %r10;
    st.global.u32 [%d1], %r7;
    st.global.u32 [%d1+4], %r8;",
        grid(1, 32),
    );
    for (lane, cell) in cells.iter().enumerate() {
        let expected = if lane < 8 { 0xaa | 1 << 32 } else { 0xaaaa_aa00 | 2 << 32 };
        assert_eq!(*cell, expected, "lane {lane}");
    }
}

#[test]
fn atomics_of_4_blocks_of_256_threads_add_up() {
    let device = strict();
    let module = load(
        &device,
        &kernel(
            "mov.b32 %r5, 0;
$again:
    atom.relaxed.gpu.global.add.u32 %r4, [%d0], 1;
    atom.relaxed.gpu.global.add.u64 %d2, [%d0+8], 3;
    atom.relaxed.gpu.shared.add.u32 %r6, [scratch], 1;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 100;
    @%p1 bra $again;
    bar.sync 0;
    ld.shared.u32 %r6, [scratch];
    atom.relaxed.gpu.global.max.u32 %r7, [%d0+16], %r6;",
        ),
    );
    let buffer = device.allocate(24).unwrap();
    run(&module, "k", grid(4, 256), &[Arg::U64(buffer.address())]).unwrap();
    assert_eq!(words(&buffer, 3), [102_400, 307_200, 25_600]);
}

#[test]
fn exit_from_depth_ends_one_thread_and_no_other() {
    let function = ".func dive (.reg .b32 %a0);
.func dive (.reg .b32 %a0)
{
    .reg .b32 %r<2>; .reg .pred %p<1>;
    setp.eq.u32 %p0, %a0, 0;
    @%p0 exit;
    sub.u32 %r0, %a0, 1;
    call dive, (%r0);
    ret;
}
";
    let statements = "and.b32 %r4, %r1, 1;
    setp.ne.u32 %p1, %r4, 0;
    @!%p1 bra $stay;
    call dive, (20);
    st.global.u64 [%d1], %d1;
$stay:
    bar.sync 0;
    mov.b64 %d2, 5;
    st.global.u64 [%d1], %d2;";
    let device = strict();
    let module = load(&device, &format!("{function}{}", kernel(statements)));
    let buffer = device.allocate(64 * 8).unwrap();
    run(&module, "k", grid(2, 32), &[Arg::U64(buffer.address())]).unwrap();
    let expected: Vec<u64> = (0..64).map(|n| if n % 2 == 0 { 5 } else { 0 }).collect();
    assert_eq!(words(&buffer, 64), expected);
}

#[test]
fn a_warp_operation_does_not_wait_for_lanes_that_ended() {
    let cells = cells_after(
        "setp.lt.u32 %p1, %r1, 4;
    @%p1 exit;
    vote.sync.ballot.b32 %r4, %p1, 0xffffffff;
    not.b32 %r4, %r4;
    st.global.u32 [%d1], %r4;",
        grid(1, 32),
    );
    assert_eq!(cells[..4], [0; 4]);
    assert!(cells[4..].iter().all(|c| *c == 0xffff_ffff));
}

#[test]
fn a_divergent_barrier_is_a_fault_and_not_a_hang() {
    let device = strict();
    let module = load(
        &device,
        &kernel(
            "setp.lt.u32 %p1, %r1, 4;
    @%p1 bra $other;
    bar.sync 0;
    ret;
$other:
    bar.warp.sync 0xffffffff;",
        ),
    );
    let error = run(&module, "k", grid(1, 32), &[Arg::U64(0)]).unwrap_err();
    assert!(matches!(&error, Error::Fault(m) if m.contains("deadlock") && m.contains("bar.sync")), "{error}");
}

/// A bus of one word each way: the kernel asks at `p0`, sleeps, and looks for the answer at `p0 + 8`.
const ASK: &str = "ld.global.u64 %d3, [%d0+16];
    mov.b64 %d2, 0;
$ask:
    add.u64 %d2, %d2, 1;
    st.release.sys.global.u64 [%d0], %d2;
$look:
    nanosleep.u32 100;
    ld.acquire.sys.global.u64 %d4, [%d0+8];
    setp.ne.u64 %p1, %d4, %d2;
    @%p1 bra $look;
    setp.lt.u64 %p1, %d2, %d3;
    @%p1 bra $ask;";

#[test]
fn the_host_answers_while_the_kernel_sleeps() {
    let device = strict();
    let module = load(&device, &kernel(ASK));
    let bus = device.share(64).unwrap();
    let rounds = 10_000;
    bus.store_u64(16, rounds);
    let service = || {
        let asked = bus.load_u64(0);
        if bus.load_u64(8) == asked {
            return false;
        }
        bus.store_u64(8, asked);
        true
    };
    module.run("k", grid(1, 1), &[Arg::U64(bus.address())], &service).unwrap();
    assert_eq!(bus.load_u64(8), rounds);
}

#[test]
fn an_answer_that_another_worker_fetched_wakes_the_sleeper() {
    // Two blocks ask for themselves; whoever serves, serves both.
    let device = strict();
    let statements = "mul.wide.u32 %d5, %r3, 64;\nadd.u64 %d0, %d0, %d5;\n".to_owned() + ASK;
    let module = load(&device, &kernel(&statements));
    let bus = device.share(128).unwrap();
    bus.store_u64(16, 3000);
    bus.store_u64(64 + 16, 3000);
    let lock = std::sync::Mutex::new(());
    let service = || {
        let _one_at_a_time = lock.lock().unwrap();
        let mut served = false;
        for port in [0, 64] {
            let asked = bus.load_u64(port);
            served |= bus.load_u64(port + 8) != asked;
            bus.store_u64(port + 8, asked);
        }
        served
    };
    module.run("k", grid(2, 1), &[Arg::U64(bus.address())], &service).unwrap();
    assert_eq!((bus.load_u64(8), bus.load_u64(64 + 8)), (3000, 3000));
}

#[test]
fn service_comes_around_while_every_worker_computes() {
    let device = strict();
    let module =
        load(&device, &kernel("$spin:\nld.volatile.global.u32 %r4, [%d0];\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 bra $spin;"));
    let stop = device.share(8).unwrap();
    let calls = AtomicU32::new(0);
    let service = || {
        if calls.fetch_add(1, Ordering::Relaxed) == 5 {
            stop.store_u32(0, 1);
        }
        false
    };
    module.run("k", grid(2, 1), &[Arg::U64(stop.address())], &service).unwrap();
    assert!(calls.into_inner() > 5);
}

#[test]
fn an_idle_kernel_costs_next_to_nothing() {
    let device = open_with(Options { workers: 1, ..Options::default() });
    let module = load(
        &device,
        &kernel(
            "$look:\nnanosleep.u32 500;\nld.volatile.global.u32 %r4, [%d0];\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 bra $look;",
        ),
    );
    let word = device.share(8).unwrap();
    let looks = AtomicU32::new(0);
    let service = || {
        if looks.fetch_add(1, Ordering::Relaxed) == 6000 {
            word.store_u32(0, 1);
        }
        false
    };
    let began = Instant::now();
    module.run("k", grid(1, 32), &[Arg::U64(word.address())], &service).unwrap();
    // Without pauses that grow, they take some ten milliseconds; where others have the cores, longer in any case.
    let took = began.elapsed();
    assert!(took > Duration::from_millis(100), "6000 looks in {took:?}");
}

#[test]
fn a_panic_in_service_comes_out_of_run() {
    let device = strict();
    let module = load(&device, &kernel("nanosleep.u32 100;\nnanosleep.u32 100;"));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        module.run("k", grid(4, 8), &[Arg::U64(0)], &|| panic!("service gave up"))
    }));
    assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"service gave up"));
    module.run("k", grid(4, 8), &[Arg::U64(0)], &|| false).unwrap();
}

#[test]
fn a_hundred_thousand_threads_run() {
    let device = strict();
    // Every thread sleeps once, so that whole blocks are under way at the same time.
    let module = load(&device, &kernel("nanosleep.u32 10;\ncvt.u64.u32 %d2, %r0;\nst.global.u64 [%d1], %d2;"));
    let shape = Grid { workgroups: 392, threads: 256, stack_bytes: 64 << 10 };
    let buffer = device.allocate(392 * 256 * 8).unwrap();
    run(&module, "k", shape, &[Arg::U64(buffer.address())]).unwrap();
    assert!(words(&buffer, 392 * 256).iter().enumerate().all(|(n, w)| n as u64 == *w));
}

#[test]
fn launches_from_several_threads_do_not_mix() {
    let device = strict();
    let module = load(&device, &kernel("bar.sync 0;\natom.relaxed.gpu.global.add.u32 %r4, [%d0], 1;"));
    let total = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let buffer = device.allocate(8).unwrap();
                for _ in 0..50 {
                    run(&module, "k", grid(5, 33), &[Arg::U64(buffer.address())]).unwrap();
                }
                total.fetch_add(words32(&buffer, 1)[0] as u64, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(total.into_inner(), 4 * 50 * 5 * 33);
}

#[test]
fn more_blocks_than_workers_can_wait_for_each_other() {
    // A barrier of the whole grid, by polling: needs all 8 blocks under way on 2 workers.
    let cells = cells_after(
        "setp.ne.u32 %p1, %r1, 0;
    @%p1 bra $wait;
    atom.acq_rel.gpu.global.add.u32 %r4, [%d0], 1;
$wait:
    nanosleep.u32 50;
    ld.acquire.sys.global.u32 %r4, [%d0];
    setp.lt.u32 %p2, %r4, 8;
    @%p2 bra $wait;",
        grid(8, 4),
    );
    assert_eq!(cells[0], 8);
}

#[test]
fn timers_go_forward() {
    let cells = cells_after(
        "mov.u64 %d2, %globaltimer;
    mov.u64 %d3, %clock64;
    nanosleep.u32 1000;
    mov.u64 %d4, %globaltimer;
    mov.u64 %d5, %clock64;
    setp.lt.u64 %p1, %d2, %d4;
    setp.lt.u64 %p2, %d3, %d5;
    and.pred %p1, %p1, %p2;
    selp.b64 %d6, 1, 0, %p1;
    st.global.u64 [%d1], %d6;",
        grid(1, 1),
    );
    assert_eq!(cells, [1]);
}
