//! The functions that threads of a program wait with. They are functions of their own, so that the `cpu` device knows them by
//! their names: there, a thread that waits is taken from its core until another thread wakes it (docs/ptx.md).

/// Waits for a change of a word; see [`gpu_run_abi::intrinsic::Intrinsic::Await`].
pub(crate) const AWAIT: &str = "await_word";
/// Wakes whoever waits for a change of a word; see [`gpu_run_abi::intrinsic::Intrinsic::Wake`].
pub(crate) const WAKE: &str = "wake_word";

/// Reads the stop word; see [`gpu_run_abi::intrinsic::Intrinsic::Tick`]. On `cpu`, all other threads run first: the loop may
/// wait for one of them. On a GPU they run anyway, and an instruction that gives way would make the lanes of a warp take
/// turns in the loop.
pub(crate) const LOOK: &str = "look_word";

pub(crate) fn declare(out: &mut String) {
    out.push_str(".func await_word (.reg .b64 %a0, .reg .b64 %a1, .reg .b64 %a2, .reg .b64 %a3, .reg .b32 %a4);\n");
    out.push_str(".func wake_word (.reg .b64 %a0);\n");
    out.push_str(".func (.reg .b32 %out) look_word (.reg .b64 %a0);\n");
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

.func (.reg .b32 %out) look_word (.reg .b64 %a0)
{
    ld.global.L1::no_allocate.u32 %out, [%a0];
    ret;
}
",
    );
}
