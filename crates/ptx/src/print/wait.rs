//! The functions that threads of a program wait with. They are functions of their own, so that the `cpu` device knows them by
//! their names: there, a thread that waits is taken from its core until another thread wakes it (docs/ptx.md).

/// Waits for a change of a word; see [`gpu_run_abi::intrinsic::Intrinsic::Await`].
pub(crate) const AWAIT: &str = "await_word";
/// Wakes whoever waits for a change of a word; see [`gpu_run_abi::intrinsic::Intrinsic::Wake`].
pub(crate) const WAKE: &str = "wake_word";

/// Reads the stop word, every some iterations of a loop; see [`gpu_run_abi::intrinsic::Intrinsic::Tick`]. The arguments are
/// its address, the place in the program, and the lanes that are in step there. The place is 0 or 1 in a loop within a
/// loop, where lanes do not meet: some may wait at its end. It is odd in a loop that may wait for another thread.
///
/// On `cpu`, all other threads run first: the loop may wait for one of them. On a GPU, lanes that are not in step meet
/// ([`super::step`]). They let others run for a moment, because a GPU need not: always in a loop that may wait, and
/// every 5 ms in others. Lanes that are in step must stay so: some of them may wait at the loop's end for those that call this
/// function. A lane that sleeps lets go of them, and so does an assembler where it finds a load that orders something, or
/// a volatile one; so the loads here are plain ones.
pub(crate) const LOOK: &str = "look_word";

/// Sleeps for a moment, once in eight calls or so; see [`gpu_run_abi::intrinsic::Intrinsic::GiveWay`]. A lane that gives back a
/// lock and takes it again in a loop would otherwise have it whenever another lane of its warp gets its turn: lanes take
/// turns where they sleep, and a loop's own sleep may be where it has the lock. Lanes in step sleep together.
pub(crate) const GIVE_WAY: &str = "give_way";

pub(crate) fn declare(out: &mut String) {
    out.push_str(".func await_word (.reg .b64 %a0, .reg .b64 %a1, .reg .b64 %a2, .reg .b64 %a3, .reg .b32 %a4);\n");
    out.push_str(".func wake_word (.reg .b64 %a0);\n");
    out.push_str(".func (.reg .b32 %out) look_word (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2);\n");
    out.push_str(".func give_way ();\n");
}

/// On a GPU, a thread that waits looks at its word again and again. It sleeps in between: 1/64 of the given nap
/// at first, each time a quarter longer, up to that nap. A thread that is woken has slept for half of that too long, on average.
pub(crate) fn define(out: &mut String) {
    out.push_str(
        "
.func await_word (.reg .b64 %a0, .reg .b64 %a1, .reg .b64 %a2, .reg .b64 %a3, .reg .b32 %a4)
{
    .reg .b64 %d<5>;
    .reg .b32 %r<4>;
    .reg .pred %p<4>;
    mov.u64 %d0, %globaltimer;
    shr.u32 %r0, %a4, 6;
    call (%r3), step_leave, ();
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
    call step_join, (%r3);
    ret;
}

.func wake_word (.reg .b64 %a0)
{
    ret;
}

.func (.reg .b32 %out) look_word (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
{
    .reg .b64 %d<3>;
    .reg .b32 %r<4>;
    .reg .pred %p<4>;
    ld.global.L1::no_allocate.u32 %out, [%a0];
    activemask.b32 %r0;
    or.b32 %r0, %r0, %a2;
    ld.shared.u32 %r1, [warp_state+8];
    not.b32 %r2, %r0;
    and.b32 %r3, %r1, %r2;
    setp.eq.u32 %p0, %r3, 0;
    @%p0 bra $done;
    and.b32 %r0, %a1, 1;
    setp.ne.u32 %p1, %r0, 0;
    setp.le.u32 %p2, %a1, 1;
    @%p2 bra $within;
    ld.shared.u32 %r1, [warp_state+12];
    max.u32 %r1, %r1, 1;
    st.shared.u32 [warp_state+12], %r1;
    call step_meet, (%a1);
    @!%p1 bra $done;
    bra $nap;
$within:
    @%p1 bra $nap;
    ld.shared.u32 %r1, [warp_state+12];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra $done;
    mov.u64 %d0, %globaltimer;
    ld.shared.u64 %d1, [warp_state+144];
    sub.u64 %d2, %d0, %d1;
    setp.lt.u64 %p3, %d2, 5000000;
    @%p3 bra $done;
    st.shared.u64 [warp_state+144], %d0;
$nap:
    nanosleep.u32 1000;
$done:
    ret;
}

.func give_way ()
{
    .reg .b64 %d<1>;
    .reg .b32 %r<4>;
    .reg .pred %p<1>;
    mov.u64 %d0, %clock64;
    cvt.u32.u64 %r0, %d0;
    mul.lo.u32 %r1, %r0, 0x9e3779b1;
    shr.u32 %r2, %r1, 29;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra $done;
    shr.u32 %r3, %r1, 17;
    nanosleep.u32 %r3;
$done:
    ret;
}
",
    );
}
