//! The command line.

use crate::case::Generator;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Seeds, the last one excluded.
    pub(crate) seeds: std::ops::Range<u64>,
    pub(crate) jobs: usize,
    pub(crate) limit: Option<Duration>,
    pub(crate) artifacts: PathBuf,
    pub(crate) generators: Vec<Generator>,
    /// A module to be compared, and nothing else.
    pub(crate) file: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64);
        let mut options = Self {
            seeds: clock()..u64::MAX,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            limit: None,
            artifacts: "artifacts".into(),
            generators: Generator::ALL.into(),
            file: None,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let Some(name) = arg.strip_prefix("--") else {
                options.file = Some(arg.into());
                continue;
            };
            let value = args.next().ok_or_else(|| format!("--{name} takes a value"))?;
            let number = || value.parse::<u64>().map_err(|e| format!("--{name} {value}: {e}"));
            match name {
                "seeds" => options.seeds = range(value)?,
                "jobs" => options.jobs = number()?.clamp(1, 1024) as usize,
                "seconds" => options.limit = Some(Duration::from_secs(number()?)),
                "artifacts" => options.artifacts = value.into(),
                "generator" => {
                    let known = Generator::ALL.map(Generator::name).join(", ");
                    let found = crate::worker::named(value);
                    options.generators = vec![found.ok_or_else(|| format!("--{name} {value}: there are {known}"))?];
                }
                _ => return Err(format!("--{name}: there are --seeds, --jobs, --seconds, --artifacts, --generator")),
            }
        }
        Ok(options)
    }
}

/// `7`, `7..`, or `7..9`: one seed, all from it, two.
fn range(text: &str) -> Result<std::ops::Range<u64>, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|e| format!("--seeds {text}: {e}"));
    match text.split_once("..") {
        None => number(text).map(|seed| seed..seed.saturating_add(1)),
        Some((first, "")) => Ok(number(first)?..u64::MAX),
        Some((first, end)) => Ok(number(first)?..number(end)?),
    }
}
