//! Turns a branch table with few targets into tests of the index.
//!
//! Compilers make a table of every `match`, though most entries lead to the same two or three targets. Tests are then
//! cheaper than an indexed branch. ptxas sees where each test leads, so it can tell where the lanes of a warp meet
//! again. (The ptxas of CUDA 13.0 has also crashed on indexed branches of this kind.)

/// The most tests for one table: with more, an indexed branch is shorter.
const MAX_TESTS: usize = 4;

/// A set of indices that lead to one target. Indices beyond the table are in no such set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Is(i64),
    /// All indices below this.
    Below(i64),
    /// `From(first, count)`: `count` indices from `first` on.
    From(i64, i64),
    /// The indices whose bit is set.
    In(u32),
}

/// Returns a test for each target except the default, to which all other indices lead. Returns `None` if there are too
/// many targets, or if no [`Test`] describes the indices of one.
pub(crate) fn tests<Label: Copy + PartialEq>(entries: &[Label], default: Label) -> Option<Vec<(Label, Test)>> {
    let mut targets: Vec<(Label, Vec<i64>)> = Vec::new();
    for (index, &label) in entries.iter().enumerate().filter(|(_, label)| **label != default) {
        match targets.iter().position(|(target, _)| *target == label) {
            Some(at) => targets[at].1.push(index as i64),
            None if targets.len() == MAX_TESTS => return None,
            None => targets.push((label, vec![index as i64])),
        }
    }
    targets.into_iter().map(|(label, indices)| Some((label, test(&indices)?))).collect()
}

/// Returns the test for ascending indices, if there is one.
fn test(indices: &[i64]) -> Option<Test> {
    let (first, last, count) = (*indices.first()?, *indices.last()?, indices.len() as i64);
    Some(match count {
        1 => Test::Is(first),
        _ if last - first >= count && last >= 32 => return None,
        _ if last - first >= count => Test::In(indices.iter().map(|index| 1 << index).sum()),
        _ if first == 0 => Test::Below(count),
        _ => Test::From(first, count),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Test {
        fn holds(self, index: i64) -> bool {
            match self {
                Test::Is(number) => index == number,
                Test::Below(end) => index < end,
                Test::From(first, count) => (first..first + count).contains(&index),
                Test::In(set) => index < 32 && set >> index & 1 == 1,
            }
        }
    }

    /// Every table of six entries with up to six targets: each index goes where the table says.
    #[test]
    fn tests_lead_where_the_table_does() {
        let mut tested = 0;
        for code in 0..6u32.pow(6) {
            let table: Vec<u32> = (0..6).map(|entry| code / 6u32.pow(entry) % 6).collect();
            let Some(tests) = tests(&table, 0) else { continue };
            tested += 1;
            for index in 0..8 {
                let expected = table.get(index).copied().unwrap_or(0);
                let found = tests.iter().filter(|(_, test)| test.holds(index as i64)).map(|(label, _)| *label);
                let expected = (expected != 0).then_some(expected);
                assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(expected), "{table:?} at {index}");
            }
        }
        assert!(tested > 40_000, "only {tested} tables became tests");
    }

    #[test]
    fn what_is_not_simple_stays_a_table() {
        assert_eq!(tests(&[1, 2, 3, 4, 5], 0), None, "five targets");
        let mut far = [0; 40];
        (far[3], far[39]) = (1, 1);
        assert_eq!(tests(&far, 0), None, "a set that 32 bits cannot hold");
        far[3] = 0;
        assert_eq!(tests(&far, 0), Some(vec![(1, Test::Is(39))]));
        assert_eq!(tests(&[1; 100], 0), Some(vec![(1, Test::Below(100))]));
    }
}
