//! The functions that threads of a program wait with. They are functions of their own, so that the `cpu` device knows them by
//! their names: there, a thread that waits is taken from its core until another thread wakes it (docs/ptx.md).

use gpu_run_abi::layout::field;
use gpu_run_abi::threads::Warp;
use std::mem::offset_of;

/// Waits for a change of a word; see [`gpu_run_abi::intrinsic::Intrinsic::Await`].
pub(crate) const AWAIT: &str = "await_word";
/// Wakes whoever waits for a change of a word; see [`gpu_run_abi::intrinsic::Intrinsic::Wake`].
pub(crate) const WAKE: &str = "wake_word";

/// Reads the stop word, every some thousand iterations of a loop; see [`gpu_run_abi::intrinsic::Intrinsic::Tick`].
///
/// On `cpu`, all other threads run first: the loop may wait for one of them. On a GPU, the threads that
/// share a warp wait for each other, if they are not in step, so that they are from there on: each of them runs through the
/// same loop, but after the first lock that two of them took one after the other, nothing else brings them together.
/// Lanes that are not in step take turns, so a lane that waits costs no time as long as the others have something to do.
/// The first lanes to come wait for at most [`MEETING_NANOSECONDS`]. In a loop that itself waits for another thread (place
/// 0), lanes that are not in step just give way for a moment.
pub(crate) const LOOK: &str = "look_word";

/// How long lanes wait for the other lanes of their warp, in nanoseconds.
const MEETING_NANOSECONDS: u32 = 50_000;

pub(crate) fn declare(out: &mut String) {
    out.push_str(".func await_word (.reg .b64 %a0, .reg .b64 %a1, .reg .b64 %a2, .reg .b64 %a3, .reg .b32 %a4);\n");
    out.push_str(".func wake_word (.reg .b64 %a0);\n");
    out.push_str(".func (.reg .b32 %out) look_word (.reg .b64 %a0, .reg .b64 %a1, .reg .b32 %a2);\n");
}

/// On a GPU, a thread that waits looks at its word again and again. It sleeps in between: 1/64 of the given nap
/// at first, each time a quarter longer, up to that nap. A thread that is woken has slept for half of that too long, on average.
pub(crate) fn define(out: &mut String) {
    out.push_str(
        "
.func await_word (.reg .b64 %a0, .reg .b64 %a1, .reg .b64 %a2, .reg .b64 %a3, .reg .b32 %a4)
{
    .reg .b64 %d<5>;
    .reg .b32 %r<3>;
    .reg .pred %p<4>;
    mov.u64 %d0, %globaltimer;
    shr.u32 %r0, %a4, 6;
$look:
    ld.relaxed.gpu.global.u64 %d1, [%a0];
    setp.ne.u64 %p0, %d1, %a1;
    @%p0 bra $done;
    ld.relaxed.gpu.global.u64 %d2, [%a2];
    setp.ne.u64 %p1, %d2, 0;
    @%p1 bra $done;
    mov.u64 %d3, %globaltimer;
    sub.u64 %d4, %d3, %d0;
    setp.ge.u64 %p2, %d4, %a3;
    @%p2 bra $done;
    nanosleep.u32 %r0;
    shr.u32 %r1, %r0, 2;
    add.u32 %r2, %r0, %r1;
    min.u32 %r0, %r2, %a4;
    bra $look;
$done:
    ret;
}

.func wake_word (.reg .b64 %a0)
{
    ret;
}

",
    );
    let [lanes, meeting, go] = [offset_of!(Warp, lanes), offset_of!(Warp, meeting), offset_of!(Warp, go)];
    let warp = field::WARP;
    // (the stop word's address, the instance, the place in the program)
    let look = format!(
        "
.func (.reg .b32 %out) look_word (.reg .b64 %a0, .reg .b64 %a1, .reg .b32 %a2)
{{
    .reg .b64 %d<12>;
    .reg .b32 %r<16>;
    .reg .pred %p<12>;
    ld.global.L1::no_allocate.u32 %out, [%a0];
    ld.global.u64 %d0, [%a1+{warp}];
    setp.eq.u64 %p0, %d0, 0;
    @%p0 bra $done;
    ld.relaxed.gpu.global.u32 %r0, [%d0+{lanes}];
    activemask.b32 %r1;
    not.b32 %r2, %r1;
    and.b32 %r3, %r0, %r2;
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra $done;
    setp.eq.u32 %p11, %a2, 0;
    @%p11 bra $nap;
    mov.u32 %r4, %laneid;
    mul.wide.u32 %d1, %r4, 4;
    add.u64 %d1, %d0, %d1;
    mov.u32 %r5, %lanemask_lt;
    and.b32 %r6, %r5, %r1;
    setp.ne.u32 %p2, %r6, 0;
    @%p2 bra $wait;
    cvt.u64.u32 %d2, %a2;
    shl.b64 %d2, %d2, 32;
    cvt.u64.u32 %d3, %r1;
    or.b64 %d2, %d2, %d3;
$join:
    ld.relaxed.gpu.global.u64 %d4, [%d0+{meeting}];
    setp.ne.u64 %p3, %d4, 0;
    @%p3 bra $theirs;
    atom.relaxed.gpu.global.cas.b64 %d5, [%d0+{meeting}], 0, %d2;
    setp.ne.u64 %p4, %d5, 0;
    @%p4 bra $join;
    mov.u64 %d6, %globaltimer;
$gather:
    nanosleep.u32 500;
    ld.relaxed.gpu.global.u32 %r7, [%d0+{meeting}];
    ld.relaxed.gpu.global.u32 %r0, [%d0+{lanes}];
    not.b32 %r8, %r7;
    and.b32 %r8, %r0, %r8;
    setp.eq.u32 %p5, %r8, 0;
    @%p5 bra $begin;
    mov.u64 %d7, %globaltimer;
    sub.u64 %d7, %d7, %d6;
    setp.lt.u64 %p6, %d7, {MEETING_NANOSECONDS};
    @%p6 bra $gather;
$begin:
    atom.relaxed.gpu.global.exch.b64 %d4, [%d0+{meeting}], 0;
    cvt.u32.u64 %r9, %d4;
    bra $tell;
$theirs:
    shr.u64 %d8, %d4, 32;
    cvt.u32.u64 %r10, %d8;
    mov.b32 %r9, %r1;
    setp.ne.u32 %p7, %r10, %a2;
    @%p7 bra $tell;
    or.b64 %d9, %d4, %d3;
    atom.relaxed.gpu.global.cas.b64 %d5, [%d0+{meeting}], %d4, %d9;
    setp.ne.u64 %p8, %d5, %d4;
    @%p8 bra $join;
    bra $wait;
$tell:
    mov.b32 %r11, 1;
    shl.b32 %r11, %r11, %r4;
    not.b32 %r11, %r11;
    and.b32 %r12, %r9, %r11;
$next:
    setp.eq.u32 %p9, %r12, 0;
    @%p9 bra $meet;
    brev.b32 %r13, %r12;
    clz.b32 %r13, %r13;
    mul.wide.u32 %d10, %r13, 4;
    add.u64 %d10, %d0, %d10;
    st.relaxed.gpu.global.u32 [%d10+{go}], %r9;
    add.u32 %r14, %r12, -1;
    and.b32 %r12, %r12, %r14;
    bra $next;
$wait:
    ld.relaxed.gpu.global.u32 %r9, [%d1+{go}];
    setp.ne.u32 %p10, %r9, 0;
    @%p10 bra $came;
    nanosleep.u32 500;
    bra $wait;
$came:
    st.relaxed.gpu.global.u32 [%d1+{go}], 0;
$meet:
    bar.warp.sync %r9;
    bra $done;
$nap:
    nanosleep.u32 1000;
$done:
    ret;
}}
"
    );
    out.push_str(&look);
}
