//! A shard: one of several parts of an input, each of which may be mapped on a machine of its own.
//!
//! Which records a shard has depends on the input and on the shard's two numbers alone, not on what its neighbours do.
//! Each shard has an equal share of the input's bytes, and the records that begin in it: so each record is in one shard,
//! and no shard begins within a record.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Shards of one input, at most.
pub const MAX_SHARDS: u32 = 1_000_000;

/// The shard `index` of `count`, which are numbered from 0. It is written `3/64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    index: u32,
    count: u32,
}

/// Why a text is no shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    #[error("a shard is two numbers, I/N: the first of four shards is 0/4")]
    NotTwoNumbers,
    #[error("there can be 1 to {MAX_SHARDS} shards, not {0}")]
    Count(u32),
    #[error("the last of {count} shards is {}/{count}, because the first is 0/{count}", count - 1)]
    Index { count: u32 },
}

impl Shard {
    pub fn new(index: u32, count: u32) -> Result<Self, ShardError> {
        match count {
            0 => Err(ShardError::Count(count)),
            _ if count > MAX_SHARDS => Err(ShardError::Count(count)),
            _ if index >= count => Err(ShardError::Index { count }),
            _ => Ok(Self { index, count }),
        }
    }

    pub fn index(self) -> u32 {
        self.index
    }

    pub fn count(self) -> u32 {
        self.count
    }

    pub(crate) fn first(count: u32) -> Self {
        Self { index: 0, count }
    }

    /// Returns all shards that belong together, in order.
    pub(crate) fn all(count: u32) -> impl Iterator<Item = Self> {
        (0..count).map(move |index| Self { index, count })
    }

    /// Returns the shard's share of `total` bytes. The shares of all shards follow each other without a gap.
    pub(crate) fn share(self, total: u64) -> Range<u64> {
        // At most `total`, because the index is at most the count.
        let border = |index: u32| (u128::from(total) * u128::from(index) / u128::from(self.count)) as u64;
        border(self.index)..border(self.index + 1)
    }

    /// Returns the name of the shard's file, `3-of-64`.
    pub(crate) fn file_name(self) -> String {
        format!("{}-of-{}", self.index, self.count)
    }

    /// Returns the shard whose file has this name.
    pub(crate) fn of_file_name(name: &str) -> Option<Self> {
        let (index, count) = name.split_once("-of-")?;
        let shard = Self::new(index.parse().ok()?, count.parse().ok()?).ok()?;
        // Not `+1-of-02`.
        (shard.file_name() == name).then_some(shard)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let (index, count) = text.split_once('/').ok_or(ShardError::NotTwoNumbers)?;
        let number = |text: &str| text.parse().map_err(|_| ShardError::NotTwoNumbers);
        Self::new(number(index)?, number(count)?)
    }
}

impl TryFrom<String> for Shard {
    type Error = ShardError;

    fn try_from(text: String) -> Result<Self, ShardError> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_shares_of_all_shards_are_the_whole(total in any::<u64>(), count in 1..2000_u32) {
            let shares: Vec<_> = Shard::all(count).map(|shard| shard.share(total)).collect();
            prop_assert_eq!((shares[0].start, shares[count as usize - 1].end), (0, total));
            prop_assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
            let lengths = shares.iter().map(|share| share.end - share.start);
            prop_assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
        }

        #[test]
        fn a_shard_is_read_as_it_is_written(count in 1..=MAX_SHARDS, at in any::<prop::sample::Index>()) {
            let shard = Shard::new(at.index(count as usize) as u32, count).unwrap();
            prop_assert_eq!(shard.to_string().parse(), Ok(shard));
            prop_assert_eq!(Shard::of_file_name(&shard.file_name()), Some(shard));
        }
    }

    #[test]
    fn what_is_no_shard_is_refused_with_the_reason() {
        for (text, error) in [
            ("3", ShardError::NotTwoNumbers),
            ("a/4", ShardError::NotTwoNumbers),
            ("-1/4", ShardError::NotTwoNumbers),
            ("0/0", ShardError::Count(0)),
            ("0/1000001", ShardError::Count(1_000_001)),
            ("4/4", ShardError::Index { count: 4 }),
        ] {
            assert_eq!(text.parse::<Shard>(), Err(error), "{text}");
        }
        for name in ["", "0-of-", "4-of-4", "00-of-4", "+0-of-4", "0-of-4.gpu-run-map", "0/4"] {
            assert_eq!(Shard::of_file_name(name), None, "{name}");
        }
    }
}
