//! Branches and loops.

use super::*;

#[test]
fn branch_tables_go_to_their_targets() {
    let body = kernel(
        "mov.b32 %r1, 0;
    mov.b64 %d1, %d0;
$next:
    setp.ge.u32 %p1, %r1, 4;
    @%p1 bra $out;
    $T1: .branchtargets $a, $b, $a, $c;
    brx.idx %r1, $T1;
$a:
    mov.b32 %r2, 10;
    bra $join;
$b:
    mov.b32 %r2, 20;
    bra $join;
$c:
    mov.b32 %r2, 30;
$join:
    st.global.u32 [%d1], %r2;
    add.u64 %d1, %d1, 8;
    add.u32 %r1, %r1, 1;
    bra $next;
$out:",
    );
    assert_eq!(on_memory(&body, &[0; 4]), [10, 20, 10, 30]);
}

#[test]
fn loops_carry_values_and_predicates() {
    // The sum of the odd numbers below 1000, the parity kept in a predicate.
    let body = kernel(
        "mov.b32 %r1, 0;
    mov.b32 %r2, 0;
    setp.ne.u32 %p1, %r1, 0;
$loop:
    @%p1 add.u32 %r2, %r2, %r1;
    not.pred %p1, %p1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, 1000;
    @%p2 bra $loop;
    st.global.u32 [%d0], %r2;",
    );
    assert_eq!(on_memory(&body, &[0]), [250000]);
}
