//! Division and square root in speculative builds are the processor's, bit for bit.

use super::*;

/// Pairs of numbers a record has.
const PAIRS: usize = 64;

/// Numbers that only have to differ.
struct Numbers(fastrand::Rng);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    fn bits(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Neither tiny nor huge; fractions of all kinds, such as all ones or a few bits.
    fn ordinary(&mut self) -> f64 {
        let fraction = match self.bits() >> 60 {
            0 => 0,
            1 => u64::MAX,
            2 => u64::MAX << (self.bits() % 52),
            3 => u64::MAX >> (12 + self.bits() % 52),
            4 => 1 << (self.bits() % 52),
            _ => self.bits(),
        };
        let (exponent, sign) = (1023 - 500 + self.bits() % 1000, self.bits() << 63);
        f64::from_bits(sign | exponent << 52 | fraction & ((1 << 52) - 1))
    }

    fn any(&mut self) -> f64 {
        let edges = [0.0, -0.0, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE, 5e-324, f64::MAX, 1e-308, 1e308];
        match self.bits() >> 61 {
            0 => edges[(self.bits() % edges.len() as u64) as usize],
            1 => f64::from_bits(self.bits()),
            _ => self.ordinary(),
        }
    }

    /// A quotient of these is close to the middle between two numbers.
    fn close_to_the_middle(&mut self) -> (f64, f64) {
        let (b, q) = (self.ordinary(), self.ordinary());
        let middle = q + q * (f64::EPSILON / 2.0);
        (f64::mul_add(b, middle, b * q * (f64::EPSILON / 2.0)), b)
    }
}

fn record(pairs: impl Iterator<Item = (f64, f64)>) -> Vec<u8> {
    pairs.take(PAIRS).flat_map(|(a, b)| [a, b]).flat_map(f64::to_le_bytes).collect()
}

fn expected(record: &[u8]) -> Vec<u8> {
    let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap());
    let one = |x: f64| if x.is_nan() { 0x7ff8 << 48 } else { x.to_bits() };
    let of = |pair: &[u8]| {
        let (a, b) = (number(&pair[..8]), number(&pair[8..]));
        [one(a / b), one(a.sqrt())]
    };
    record.chunks(16).flat_map(of).flat_map(u64::to_le_bytes).collect()
}

fn run(program: Arc<Program>, records: &[Vec<u8>]) -> u64 {
    let mapper = Mapper::new(program, Extent { capacity: 256, ..Extent::default() }, None).unwrap();
    let (results, stats) = mapper.run(jobs(records), None).unwrap();
    for (done, record) in results.iter().zip(records) {
        assert_eq!(done.end, &End::Returned);
        for ((got, wanted), pair) in done.stdout.chunks(16).zip(expected(record).chunks(16)).zip(record.chunks(16)) {
            assert_eq!(got, wanted, "of {pair:02x?}");
        }
        assert_eq!(done.stdout.len(), record.len());
    }
    stats.reruns
}

#[test]
fn quick_division_and_roots_of_ordinary_numbers_are_right_and_do_not_run_again() {
    let mut numbers = Numbers::new(1);
    let mut pair = |n: usize| match n % 3 {
        0 => (if n.is_multiple_of(2) { 0.0 } else { -0.0 }, numbers.ordinary()),
        1 => (numbers.ordinary().abs(), numbers.ordinary()),
        _ => {
            let (a, b) = numbers.close_to_the_middle();
            (a.abs().clamp(1e-150, 1e150), b)
        }
    };
    let records: Vec<_> = (0..200).map(|_| record((0..).map(&mut pair))).collect();
    let of = |layout, own| program(wat!("arithmetic"), Build::speculative(layout, own));
    for program in [of(Layout::Linear, 0), of(Layout::Interleaved, 0), of(Layout::Interleaved, 128 << 10)] {
        assert_eq!(run(program, &records), 0);
    }
    assert_eq!(run(program(wat!("arithmetic"), Build::Exact(Layout::Linear)), &records), 0);
}

#[test]
fn numbers_at_the_edges_run_again_and_are_right() {
    let mut numbers = Numbers::new(2);
    let records: Vec<_> =
        (0..100).map(|_| record(std::iter::from_fn(|| Some((numbers.any(), numbers.any()))))).collect();
    let again = run(program(wat!("arithmetic"), Build::Speculative(Placement::Interleaved)), &records);
    assert!(again > 90, "{again} of 100 ran again: hardly any record has ordinary numbers only");
}
