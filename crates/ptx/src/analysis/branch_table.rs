//! A table of branches with few targets, as tests of the index.
//!
//! Compilers make a table of every `match`, though most of its entries lead to the same two or three places. Tests are
//! cheaper there than an indexed branch, and ptxas, which sees where each test leads, can tell where lanes meet again.
//! (The ptxas of CUDA 13.0 has crashed on indexed branches of this kind, too.)

/// With more tests, an indexed branch is shorter.
const MAX_TESTS: usize = 4;

/// Which indices lead to a target. None of those beyond the table does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Is(i64),
    /// From 0 to before this.
    Below(i64),
    /// So many from the first on.
    From(i64, i64),
    /// Those whose bit is set.
    In(u32),
}

/// For each target but the default one, which all other indices lead to, a test. `None` if there are too many, or one
/// is not as simple as that.
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

/// The indices ascend.
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
