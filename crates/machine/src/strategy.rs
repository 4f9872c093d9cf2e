//! Strategies: how many ticks a launch does, and who starts the next launch.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How a machine is kept running. The machine computes the same under every strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// One launch, which never returns.
    Resident,
    /// This many ticks per launch.
    Mega(u32),
    /// One tick per launch.
    Redispatch,
    /// One tick per launch, with this many launches in flight or queued.
    Buffered(u32),
    /// A launch leaves before this time limit, the host keeps its state, and the next launch continues.
    Checkpointed(Duration),
}

impl Strategy {
    /// Ticks per launch; 0 means no limit.
    pub(crate) fn ticks(self) -> u32 {
        match self {
            Self::Mega(ticks) => ticks,
            Self::Redispatch | Self::Buffered(_) => 1,
            Self::Resident | Self::Checkpointed(_) => 0,
        }
    }

    /// How long a launch may take, if the strategy limits it.
    pub(crate) fn limit(self) -> Option<Duration> {
        match self {
            Self::Checkpointed(limit) => Some(limit),
            _ => None,
        }
    }

    /// How many launches are in flight or queued.
    pub(crate) fn depth(self) -> u32 {
        match self {
            Self::Buffered(depth) => depth,
            _ => 1,
        }
    }
}

/// Default time limit of a checkpointed launch: below the two seconds after which a display driver's watchdog stops a
/// kernel.
const LIMIT: Duration = Duration::from_millis(1500);
const MEGA: u32 = 64;

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let count = |default: u32, most: u32| match number.map(str::parse) {
            None => Ok(default),
            Some(Ok(count)) if (1..=most).contains(&count) => Ok(count),
            _ => Err(format!("`{name}:N` takes a number from 1 to {most}")),
        };
        match name {
            "resident" if number.is_none() => Ok(Self::Resident),
            "redispatch" if number.is_none() => Ok(Self::Redispatch),
            "mega" => count(MEGA, 1 << 20).map(Self::Mega),
            "buffered" => count(2, 16).map(Self::Buffered),
            "checkpointed" => {
                count(LIMIT.as_millis() as u32, 600_000).map(|ms| Self::Checkpointed(Duration::from_millis(ms as u64)))
            }
            _ => Err("expected `resident`, `mega[:TICKS]`, `redispatch`, `buffered[:LAUNCHES]` or \
                      `checkpointed[:MILLISECONDS]`"
                .to_owned()),
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resident => write!(f, "resident"),
            Self::Mega(ticks) => write!(f, "mega:{ticks}"),
            Self::Redispatch => write!(f, "redispatch"),
            Self::Buffered(depth) => write!(f, "buffered:{depth}"),
            Self::Checkpointed(limit) => write!(f, "checkpointed:{}", limit.as_millis()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_is_read_as_it_is_written() {
        for text in ["resident", "mega:64", "redispatch", "buffered:3", "checkpointed:1500"] {
            assert_eq!(text.parse::<Strategy>().unwrap().to_string(), text);
        }
        assert_eq!("buffered".parse(), Ok(Strategy::Buffered(2)));
        for text in ["", "residen", "resident:1", "mega:0", "buffered:x", "buffered:17", "mega:"] {
            assert!(text.parse::<Strategy>().is_err(), "{text}");
        }
    }
}
