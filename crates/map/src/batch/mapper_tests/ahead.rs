//! Loads that are printed before stores: whatever lies where, speculative builds find what exact ones do.

use super::*;

fn mapper(wat: &str, build: Build) -> Mapper {
    let program = program(wat, build);
    let wants_local = matches!(build, Build::Speculative(Placement::Local { .. }));
    assert_eq!(program.compiled().slots.is_local(), wants_local, "it does not fit");
    Mapper::new(program, Extent { capacity: 128, ..Extent::default() }, None).unwrap()
}

/// What each job printed, and how many had to run again.
fn run(mapper: &Mapper, stdin: &[[u8; 2]]) -> (Vec<Vec<u8>>, u64) {
    let (results, stats) = mapper.run(jobs(stdin), None).unwrap();
    (results.iter().map(|done| done.stdout.to_vec()).collect(), stats.reruns)
}

/// `rounds.wat` with this code for a round, and these numbers.
fn rounds(body: &str, scale: u32, step: u32) -> String {
    let text = wat!("rounds").replace("\n      nop\n", &format!("\n{body}\n"));
    let text = text.replace("1 (; scale ;)", &scale.to_string()).replace("4 (; step ;)", &step.to_string());
    assert!(text.contains(body) && !text.contains("(;"), "rounds.wat has other marks");
    text
}

/// Elements a round takes: enough for it to pay.
const ELEMENTS: u32 = 12;

/// So many times: the second array's element becomes the sum of both.
fn sums(ty: &str, load: &str, store: &str, bytes: u32) -> String {
    (0..ELEMENTS)
        .map(|k| 1024 + k * bytes)
        .map(|at| {
            let load = |from: &str| format!("({ty}.{} (local.get {from}))", load.replace('@', &format!("offset={at}")));
            let store = store.replace('@', &format!("offset={at}"));
            format!(
                "({ty}.{store} (local.get $q) ({ty}.add ({ty}.const 1) ({ty}.add {} {})))\n",
                load("$p"),
                load("$q")
            )
        })
        .collect()
}

/// The first array's place from 40 below the second's to 40 above.
fn distances() -> Vec<[u8; 2]> {
    (0..=80).map(|p| [p, 40]).collect()
}

fn same_as_exact(body: &str, scale: u32, step: u32) {
    let wat = rounds(body, scale, step);
    let inputs = distances();
    let (exact, _) = run(&mapper(&wat, Build::Exact(Layout::Interleaved)), &inputs);
    assert!(exact.iter().all(|printed| printed.len() == 1024));
    for (layout, own) in [(Layout::Linear, 0), (Layout::Interleaved, 0), (Layout::Interleaved, 256 << 10)] {
        let (fast, again) = run(&mapper(&wat, Build::speculative(layout, own)), &inputs);
        for ((fast, exact), input) in fast.iter().zip(&exact).zip(&inputs) {
            assert!(fast == exact, "{layout:?}, local {own}: the places {input:?}, times {scale}");
        }
        assert_eq!(again, 0, "{layout:?}, local {own}: the speculative build did not finish");
    }
}

#[test]
fn bytes_that_overlap_or_not() {
    same_as_exact(&sums("i32", "load8_u @", "store8 @", 1), 1, 12);
}

#[test]
fn words_that_overlap_by_any_number_of_bytes() {
    same_as_exact(&sums("i32", "load @ align=1", "store @ align=1", 4), 2, 48);
}

#[test]
fn aligned_words_that_overlap_or_not() {
    same_as_exact(&sums("i32", "load @", "store @", 4), 4, 48);
}

#[test]
fn aligned_words_of_64_bits_that_overlap_or_not() {
    same_as_exact(&sums("i64", "load @", "store @", 8), 8, 96);
}

/// Wide loads that begin before, in or behind what a narrow store writes, and the other way round.
#[test]
fn accesses_of_different_sizes() {
    // One access, by its place: of the wide ones 16 bytes apart, of the narrow ones 3.
    let body = |wide: &str, narrow: &str| -> String {
        (0..ELEMENTS)
            .map(|k| {
                let (first, byte) = (1024 + 16 * k, 1030 + 3 * k);
                format!(
                    "(i64.store offset={first} align=1 (local.get {wide}) (i64.load8_u offset={byte} (local.get {narrow})))
                     (i64.store16 offset={} align=1 (local.get {narrow}) (i64.load offset={} align=1 (local.get {wide})))\n",
                    byte + 1,
                    first + 7,
                )
            })
            .collect()
    };
    same_as_exact(&body("$p", "$q"), 3, 5);
    same_as_exact(&body("$q", "$p"), 3, 5);
}

/// The first to touch each array is a store, whose test of bounds the loads rely on.
#[test]
fn loads_behind_the_store_that_tests_for_them() {
    let body: String = (0..ELEMENTS)
        .map(|k| {
            let at = 1024 + 8 * k;
            format!(
                "(i32.store offset={at} (local.get $q) (i32.xor (local.get $p) (local.get $i)))
                 (i32.store offset={} (local.get $p) (i32.add (i32.load offset={} (local.get $q)) (i32.load offset={} (local.get $p))))\n",
                at + 4,
                at + 4,
                at + 8,
            )
        })
        .collect();
    same_as_exact(&body, 4, 32);
}

/// Stores at constant places, which loads by a root may be of.
#[test]
fn constant_places_that_are_read_by_a_root() {
    let body: String = (0..ELEMENTS)
        .map(|k| {
            let (from, to) = (1024 + k, 1060 + 2 * k);
            format!(
                "(i32.store8 (i32.const {to}) (i32.add (i32.const 5) (i32.load8_u offset={from} (local.get $p))))\n"
            )
        })
        .collect();
    same_as_exact(&body, 1, 4);
}

/// An index that is itself loaded is no root that could be compared.
#[test]
fn places_that_the_round_itself_looks_up() {
    let body: String = (0..ELEMENTS)
        .map(|k| {
            let (from, to) = (1024 + k, 1100 + k);
            format!(
                "(i32.store8 offset=1024 (i32.load8_u offset={to} (local.get $q))
                   (i32.load8_u offset=1024 (i32.load8_u offset={from} (local.get $p))))\n"
            )
        })
        .collect();
    same_as_exact(&body, 1, 4);
}

/// Quotients in both copies of a block: what must hold for them is looked at in each.
#[test]
fn what_is_divided_between_loads_and_stores() {
    let body: String = (0..ELEMENTS)
        .map(|k| {
            let number =
                |from: &str| format!("(f64.convert_i32_u (i32.load offset={} (local.get {from})))", 1024 + 4 * k);
            let quotient = format!("(f64.div (f64.mul (f64.const 1e6) {}) {})", number("$p"), number("$q"));
            format!("(i32.store offset={} (local.get $q) (i32.trunc_sat_f64_u {quotient}))\n", 1024 + 4 * k)
        })
        .collect();
    same_as_exact(&body, 4, 48);
}
