//! Modules of loops that count: what a compiler believes of a counter's range decides which accesses it does not check.
//!
//! Counters begin, step and end at constants, small ones and those at the edges of the memory and of 32 bits; they are tested before or after they
//! are counted up, in all the ways a compiler writes it. Addresses are made of the counter, of pointers that the memory holds, of masked bits and bytes.

use crate::random::Random;
use std::fmt::Write;

const FUNCTIONS: usize = 6;
/// Rounds of a loop at most: where its own test does not end it, another does.
const ROUNDS: u32 = 300;
/// Where the memory holds pointers.
const POINTERS: u32 = 64;
const PAGE: u32 = 1 << 16;

/// A loop's counter.
struct Counter {
    first: i32,
    step: i32,
    end: i32,
    /// How it is compared with the end for the loop to go on.
    while_: &'static str,
    /// Whether it is compared after it is counted up.
    counted: bool,
}

impl Counter {
    fn new(random: &mut Random) -> Self {
        let step = random.pick(&[1, 1, 1, 2, 4, 4, 4, 8, 12, -1, -1, -4, -8, 3, 0x1000]);
        let first = match random.below(5) {
            0 | 1 => 0,
            2 => random.below(300) as i32 * random.pick(&[1, 4, -4]),
            3 => PAGE as i32 - random.below(300) as i32,
            _ => random.i32(),
        };
        let rounds = random.below(260) as i32;
        let end = match random.below(6) {
            0 => random.i32(),
            1 => first.wrapping_add(rounds),
            _ => first.wrapping_add(rounds.wrapping_mul(step)),
        };
        let while_ = random.pick(&["ne", "ne", "ne", "lt_u", "lt_u", "lt_s", "gt_u", "gt_s", "le_u", "ge_s"]);
        Self { first, step, end, while_, counted: random.one_in(2) }
    }

    fn goes_on(&self, value: i32) -> bool {
        let (a, b) = (value as u32, self.end as u32);
        match self.while_ {
            "ne" => a != b,
            "lt_u" => a < b,
            "gt_u" => a > b,
            "le_u" => a <= b,
            "lt_s" => value < self.end,
            "gt_s" => value > self.end,
            _ => value >= self.end,
        }
    }

    /// What it is in the last round, if it ends the loop soon.
    fn last(&self) -> Option<i32> {
        let values = std::iter::successors(Some(self.first), |value| Some(value.wrapping_add(self.step)));
        let tested = |value: i32| if self.counted { value.wrapping_add(self.step) } else { value };
        values.take(ROUNDS as usize).find(|value| !self.goes_on(tested(*value)))
    }

    /// Where its last round, or its first, is at the end of a memory, or just not.
    fn edge(&self, random: &mut Random) -> i32 {
        let round = if random.one_in(4) { Some(self.first) } else { self.last() };
        (PAGE as i32).wrapping_sub(round.unwrap_or(0)).wrapping_sub(random.below(10) as i32)
    }
}

/// The text of a seed's module.
pub(crate) fn module(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = String::from("(module\n  (memory (export \"memory\") 1 2)\n");
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:02x}")).collect::<String>();
    for place in [0x1000, PAGE - 512] {
        let content = random.bytes(512);
        _ = writeln!(text, "  (data (i32.const {place}) \"{}\")", bytes(&content));
    }
    let mut pointers = Vec::new();
    for number in 0..FUNCTIONS {
        let (function, pointer) = function(&mut random, number);
        text += &function;
        pointers.extend(pointer.to_le_bytes());
    }
    _ = writeln!(text, "  (data (i32.const {POINTERS}) \"{}\")", bytes(&pointers));
    text + ")\n"
}

/// Mostly something that a loop can walk through.
fn pointer(random: &mut Random) -> u32 {
    match random.below(6) {
        0 => PAGE - random.below(1200) as u32,
        1 => random.i32() as u32,
        2 => random.below(16) as u32,
        _ => (0x800 + random.below(0xc000) as u32) & !3,
    }
}

/// A function, and what its pointer is.
fn function(random: &mut Random, number: usize) -> (String, u32) {
    let counter = Counter::new(random);
    let Counter { first, step, end, while_, counted } = counter;
    let mut body = String::new();
    for _ in 0..1 + random.below(3) {
        let address = address(random);
        let offset = match u32::try_from(counter.edge(random)) {
            Ok(edge) if edge <= PAGE && random.one_in(3) => edge,
            _ => random.pick(&[0u32, 0, 0, 4, 8, 60, 1024, 0x1000, PAGE - 600, PAGE - 4, PAGE]),
        };
        if random.one_in(3) {
            let store = random.pick(&["i32.store", "i32.store8", "i32.store16"]);
            _ = writeln!(body, "      ({store} offset={offset} {address} (local.get $sum))");
        } else {
            let load = random.pick(&["i32.load", "i32.load", "i32.load8_u", "i32.load8_s", "i32.load16_u", "i64.load"]);
            let value = format!("({load} offset={offset} {address})");
            let value = if load == "i64.load" { format!("(i32.wrap_i64 {value})") } else { value };
            let sum = "(i32.mul (local.get $sum) (i32.const 31))";
            _ = writeln!(body, "      (local.set $sum (i32.add {sum} {value}))");
        }
    }
    if random.one_in(4) {
        _ = writeln!(body, "      (br_if $out (i32.eq (local.get $sum) (i32.const {})))", random.i32());
    }
    if counter.last().is_none() {
        let left = "(local.tee $left (i32.sub (local.get $left) (i32.const 1)))";
        _ = writeln!(body, "      (br_if $out (i32.eqz {left}))");
    }
    let next = format!("(i32.add (local.get $i) (i32.const {step}))");
    let goes_on = |value: &str| format!("(i32.{while_} {value} (i32.const {end}))");
    let test = match (counted, random.one_in(2)) {
        (true, true) => format!("(br_if $again {})", goes_on(&format!("(local.tee $i {next})"))),
        (true, false) => {
            format!("(br_if $out (i32.eqz {})) (br $again)", goes_on(&format!("(local.tee $i {next})")))
        }
        (false, _) => {
            format!("(br_if $out (i32.eqz {})) (local.set $i {next}) (br $again)", goes_on("(local.get $i)"))
        }
    };
    let pointer = if random.one_in(2) { counter.edge(random) as u32 } else { pointer(random) };
    let place = POINTERS + 4 * number as u32;
    let text = format!(
        "  (func (export \"f{number}\") (param $x i32) (result i32)
    (local $base i32) (local $i i32) (local $sum i32) (local $left i32)
    (local.set $base (i32.load (i32.const {place})))
    (local.set $left (i32.const {ROUNDS}))
    (local.set $i (i32.const {first}))
    (block $out (loop $again
{body}      {test}))
    (i32.xor (local.get $sum) (local.get $i)))\n"
    );
    (text, pointer)
}

fn address(random: &mut Random) -> String {
    let scaled = |random: &mut Random| match random.below(4) {
        0 => format!("(i32.shl (local.get $i) (i32.const {}))", 1 + random.below(4)),
        1 => format!("(i32.mul (local.get $i) (i32.const {}))", random.pick(&[3, 4, 12, 24])),
        _ => "(local.get $i)".to_owned(),
    };
    let index = match random.below(7) {
        0 => {
            format!("(i32.and (local.get $x) (i32.const {}))", random.pick(&[0xff, 0xfc, 0x3fc, 0xfff0, 0x1_fffc, -4]))
        }
        1 => format!("(i32.rem_u (local.get $x) (i32.const {}))", random.pick(&[1, 7, 1000, 70_000])),
        2 => format!("(i32.shr_u (local.get $x) (i32.const {}))", random.pick(&[16, 17, 24, 31])),
        3 => "(i32.load8_u offset=4096 (i32.and (local.get $x) (i32.const 255)))".to_owned(),
        _ => scaled(random),
    };
    let by = random.pick(&[4, 8, 256, -4, -16, -256, 0x7fff_0000]);
    match random.below(5) {
        0 | 1 => index,
        2 => format!("(i32.add {index} (i32.const {by}))"),
        3 => format!("(i32.add (local.get $base) {index})"),
        _ => format!("(i32.add (i32.add {index} (i32.const {by})) (local.get $base))"),
    }
}
