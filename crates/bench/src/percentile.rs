//! The one statistic that all measurements share.

/// Sorts the values and returns the one that `part` percent of them do not exceed.
pub(crate) fn percentile<T: Copy + Default + Ord>(values: &mut [T], part: usize) -> T {
    values.sort_unstable();
    values.get((values.len().max(1) - 1) * part / 100).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn percentiles_are_of_what_there_is() {
        let mut times: Vec<_> = (1..=5).rev().map(Duration::from_secs).collect();
        let parts = [0, 50, 99, 100].map(|part| percentile(&mut times, part).as_secs());
        assert_eq!(parts, [1, 3, 4, 5]);
        assert_eq!(percentile::<Duration>(&mut [], 50), Duration::ZERO);
    }
}
