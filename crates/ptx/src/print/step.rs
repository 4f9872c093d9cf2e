//! The functions by which lanes of a warp come into step.
//!
//! The threads of a program may share warps. Lanes of a warp are *in step* while they execute the same instructions at
//! the same time: then 32 of them are as fast as one. Lanes that are not in step run one after the other, and a lane runs
//! until it sleeps or waits. Threads that start together are in step until two of them take the same lock one after the
//! other; the allocator has such a lock. Nothing in the code that rustc makes brings them together again.
//!
//! So lanes that are not in step meet before a function's outermost loops, and now and then in them: the first one there
//! sleeps, which lets the others run, until all have come or none has come for a while. A lane cannot come if it waits
//! for a lock that a lane holds which waits for it here; how often that happens depends on the place in the program. So
//! each place has a *patience*, for all warps: it is halved twice when less than half of the lanes come, and doubled when all
//! come. Where it has become very short, lanes wait only once in a while. A lane that waits for something else, asleep or for an
//! answer of the host, is not waited for.
//!
//! Lanes that happen to be at the same instruction of a function here may have been called from different places: hardware
//! brings lanes together whenever it can. So lanes that go on together are those with the same place.
//!
//! What the lanes of a warp tell each other is in shared memory, so a workgroup is one warp. The `cpu` device knows these
//! functions by their names, and leaves them out.

use super::text::push_unsigned;

/// See [`gpu_run_abi::intrinsic::Intrinsic::StepClear`] and the ones after it.
pub(crate) const CLEAR: &str = "step_clear";
pub(crate) const JOIN: &str = "step_join";
pub(crate) const LEAVE: &str = "step_leave";
/// Waits for the other lanes at a place in the program, a number other than 0.
pub(crate) const MEET: &str = "step_meet";

/// The array in shared memory that the lanes of a warp share. There is only one, so that a device can give it a place in a
/// launch, whichever functions are assembled together.
///
/// ```text
///   0  u64       lanes that have come to a meeting, one bit each, and above them its place; 0 if there is no meeting
///   8  u32       lanes that are waited for
///  12  u32       0 if all of these are in step, as far as is known; 2 if they have not met since one of them started
///  16  u32[32]   for each lane that waits in a meeting: the lanes it goes on with, once they are known; 0 before
/// 144  u64       when the last meeting ended or a lane last let others run, by the device's timer
/// 152  u64       when the last meeting ended
/// 160            the hot words ([`super::hot`])
/// ```
pub(crate) const STATE: &str = "warp_state";
pub(crate) const HOT_WORDS: u64 = 160;
/// How often the patience of a place was halved, minus how often it was doubled.
const IMPATIENCE: &str = ".global .align 4 .b8 step_impatience[16384];\n";
/// How long a lane waits for the next lane, at a place without bad experience, in nanoseconds. An eighth of the time since
/// the last meeting is added, up to [`MOST_PATIENCE`]: what a meeting may bring grows with it. Threads that have just started
/// take their time: all of them allocate.
const PATIENCE: u32 = 500_000;
const FIRST_PATIENCE: u32 = 20_000_000;
const MOST_PATIENCE: u32 = 10_000_000;
/// At a place whose patience was halved so often, lanes wait only if their warp has not met for [`RETRY`] nanoseconds: the bad
/// experience may be another warp's, or of a time when threads were starting. The patience is then halved [`RETRY_HALVED`] times,
/// and so often as [`RETRIED`] says from then on if all come.
const SELDOM: u32 = 10;
const RETRY: u32 = 50_000_000;
const RETRY_HALVED: u32 = 4;
const RETRIED: u32 = 8;
/// How long a lane sleeps between two looks, in nanoseconds.
const NAP: u32 = 500;

/// Where the place of a meeting is, and where the lanes are that share the warp.
pub(crate) const PLACE: &str = "[warp_state+4]";
pub(crate) const SHARING: &str = "[warp_state+8]";

/// Declares everything; the hot words take so many bytes.
pub(crate) fn declare(out: &mut String, hot_bytes: u64) {
    out.push_str(".shared .align 8 .b8 ");
    out.push_str(STATE);
    out.push('[');
    push_unsigned(out, HOT_WORDS + hot_bytes);
    out.push_str("];\n");
    out.push_str(IMPATIENCE);
    out.push_str(
        ".func step_clear ();
.func step_join (.reg .b32 %a0);
.func (.reg .b32 %out) step_leave ();
.func step_meet (.reg .b32 %a0);
",
    );
}

pub(crate) fn define(out: &mut String) {
    out.push_str(
        "
.func step_clear ()
{
    .reg .b64 %d<3>;
    .reg .b32 %r<1>;
    mov.u32 %r0, %laneid;
    mov.u64 %d0, warp_state;
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d2, %d0, %d1;
    st.shared.u64 [warp_state], 0;
    st.shared.u64 [warp_state+8], 0;
    st.shared.u32 [%d2+16], 0;
    st.shared.u64 [warp_state+144], 0;
    st.shared.u64 [warp_state+152], 0;
    ret;
}

.func step_join (.reg .b32 %a0)
{
    .reg .b32 %r<3>;
    .reg .pred %p<1>;
    setp.eq.u32 %p0, %a0, 0;
    @%p0 bra $done;
    mov.u32 %r0, %laneid;
    shl.b32 %r1, 1, %r0;
    atom.relaxed.cta.shared.or.b32 %r2, [warp_state+8], %r1;
    atom.relaxed.cta.shared.max.u32 %r2, [warp_state+12], %a0;
$done:
    ret;
}

.func (.reg .b32 %out) step_leave ()
{
    .reg .b32 %r<4>;
    .reg .pred %p<1>;
    mov.u32 %r0, %laneid;
    shl.b32 %r1, 1, %r0;
    not.b32 %r2, %r1;
    atom.relaxed.cta.shared.and.b32 %r3, [warp_state+8], %r2;
    and.b32 %r1, %r3, %r1;
    setp.ne.u32 %p0, %r1, 0;
    selp.b32 %out, 1, 0, %p0;
    ret;
}
",
    );
    let meet = format!(
        "
.func step_meet (.reg .b32 %a0)
{{
    .reg .b64 %d<16>;
    .reg .b32 %r<25>;
    .reg .pred %p<12>;
    ld.relaxed.cta.shared.u32 %r0, [warp_state+8];
    activemask.b32 %r1;
    not.b32 %r2, %r1;
    and.b32 %r3, %r0, %r2;
    setp.eq.u32 %p0, %r3, 0;
    @%p0 bra $done;
    mul.lo.u32 %r4, %a0, 0x9e3779b1;
    shr.u32 %r4, %r4, 20;
    mul.wide.u32 %d0, %r4, 4;
    mov.u64 %d1, step_impatience;
    add.u64 %d1, %d1, %d0;
    ld.global.u32 %r5, [%d1];
    setp.ge.u32 %p1, %r5, {SELDOM};
    mov.u64 %d7, %globaltimer;
    ld.relaxed.cta.shared.u64 %d2, [warp_state+144];
    sub.u64 %d2, %d7, %d2;
    ld.relaxed.cta.shared.u64 %d14, [warp_state+152];
    sub.u64 %d14, %d7, %d14;
    setp.lt.u64 %p0, %d14, {RETRY};
    and.pred %p0, %p0, %p1;
    @%p0 bra $done;
    selp.b32 %r23, {RETRY_HALVED}, %r5, %p1;
    shr.u64 %d2, %d2, 3;
    min.u64 %d2, %d2, {MOST_PATIENCE};
    add.u64 %d2, %d2, {PATIENCE};
    ld.relaxed.cta.shared.u32 %r6, [warp_state+12];
    setp.eq.u32 %p0, %r6, 2;
    selp.b64 %d2, {FIRST_PATIENCE}, %d2, %p0;
    shr.u64 %d2, %d2, %r23;
    activemask.b32 %r8;
    brev.b32 %r9, %r8;
    clz.b32 %r9, %r9;
    shfl.sync.idx.b32 %r9, %a0, %r9, 31, %r8;
    setp.eq.u32 %p0, %r9, %a0;
    vote.sync.ballot.b32 %r1, %p0, %r8;
    @!%p0 bra $done;
    mov.u32 %r7, %laneid;
    mov.u64 %d12, warp_state;
    mul.wide.u32 %d13, %r7, 4;
    add.u64 %d13, %d12, %d13;
    cvt.u64.u32 %d3, %r1;
    cvt.u64.u32 %d4, %a0;
    shl.b64 %d4, %d4, 32;
    or.b64 %d4, %d4, %d3;
    mov.u32 %r10, %lanemask_lt;
    and.b32 %r10, %r10, %r1;
    setp.ne.u32 %p2, %r10, 0;
    @%p2 bra $wait;
$come:
    ld.relaxed.cta.shared.u64 %d5, [warp_state];
    setp.ne.u64 %p3, %d5, 0;
    @%p3 bra $theirs;
    atom.relaxed.cta.shared.cas.b64 %d6, [warp_state], 0, %d4;
    setp.ne.u64 %p4, %d6, 0;
    @%p4 bra $come;
    mov.b32 %r11, %r1;
$gather:
    nanosleep.u32 {NAP};
    ld.relaxed.cta.shared.u32 %r12, [warp_state];
    ld.relaxed.cta.shared.u32 %r0, [warp_state+8];
    not.b32 %r13, %r12;
    and.b32 %r13, %r0, %r13;
    setp.eq.u32 %p5, %r13, 0;
    @%p5 bra $all;
    mov.u64 %d8, %globaltimer;
    setp.ne.u32 %p6, %r12, %r11;
    selp.b64 %d7, %d8, %d7, %p6;
    mov.b32 %r11, %r12;
    sub.u64 %d9, %d8, %d7;
    setp.lt.u64 %p7, %d9, %d2;
    @%p7 bra $gather;
    popc.b32 %r14, %r12;
    popc.b32 %r15, %r0;
    shl.b32 %r14, %r14, 1;
    setp.ge.u32 %p8, %r14, %r15;
    or.pred %p8, %p8, %p1;
    @%p8 bra $begin;
    atom.relaxed.gpu.global.add.u32 %r17, [%d1], 2;
    bra $begin;
$all:
    st.relaxed.cta.shared.u32 [warp_state+12], 0;
    setp.eq.u32 %p8, %r5, 0;
    @%p8 bra $begin;
    add.u32 %r16, %r5, -1;
    min.u32 %r16, %r16, {RETRIED};
    atom.relaxed.gpu.global.cas.b32 %r17, [%d1], %r5, %r16;
$begin:
    atom.relaxed.cta.shared.min.u32 %r17, [warp_state+12], 1;
    mov.u64 %d8, %globaltimer;
    st.relaxed.cta.shared.u64 [warp_state+144], %d8;
    st.relaxed.cta.shared.u64 [warp_state+152], %d8;
    atom.relaxed.cta.shared.exch.b64 %d10, [warp_state], 0;
    cvt.u32.u64 %r18, %d10;
    bra $tell;
$theirs:
    shr.u64 %d11, %d5, 32;
    cvt.u32.u64 %r19, %d11;
    mov.b32 %r18, %r1;
    setp.ne.u32 %p9, %r19, %a0;
    @%p9 bra $tell;
    or.b64 %d11, %d5, %d3;
    atom.relaxed.cta.shared.cas.b64 %d6, [warp_state], %d5, %d11;
    setp.ne.u64 %p9, %d6, %d5;
    @%p9 bra $come;
    bra $wait;
$tell:
    shl.b32 %r20, 1, %r7;
    not.b32 %r20, %r20;
    and.b32 %r21, %r18, %r20;
$next:
    setp.eq.u32 %p10, %r21, 0;
    @%p10 bra $go;
    brev.b32 %r22, %r21;
    clz.b32 %r22, %r22;
    mul.wide.u32 %d14, %r22, 4;
    add.u64 %d14, %d12, %d14;
    st.relaxed.cta.shared.u32 [%d14+16], %r18;
    add.u32 %r24, %r21, -1;
    and.b32 %r21, %r21, %r24;
    bra $next;
$wait:
    ld.relaxed.cta.shared.u32 %r18, [%d13+16];
    setp.ne.u32 %p11, %r18, 0;
    @%p11 bra $told;
    nanosleep.u32 {NAP};
    bra $wait;
$told:
    st.relaxed.cta.shared.u32 [%d13+16], 0;
$go:
    bar.warp.sync %r18;
$done:
    ret;
}}
"
    );
    out.push_str(&meet);
}
