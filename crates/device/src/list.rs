//! Devices by name, one or several.

use crate::{CPU, Device, Error, Result, cpu, cuda, scarce};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

const AUTO: &str = "auto";
const CUDA: &str = "cuda";
const ALL: &str = "all";

/// The devices that a text names: `auto`, `cpu`, `cuda`, `cuda:2`, `cuda:0,2`, `cuda:all`, `cpu:0,1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceList {
    /// The first usable GPU, else `cpu`.
    Auto,
    /// `cpu`, with all cores.
    Cpu,
    /// Devices with these numbers, which divide the cores among them.
    Cpus(Vec<u32>),
    /// GPUs by their numbers.
    Cuda(Vec<u32>),
    /// All usable GPUs.
    AllCuda,
}

impl FromStr for DeviceList {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || {
            let known = "`cpu`, `cuda`, `cuda:N`, `cuda:N,M`, `cuda:all`, `cpu:N,M` and `auto`";
            Error::Unavailable(format!("there is no device `{text}`: devices are {known}"))
        };
        match text.split_once(':') {
            None if text == AUTO => Ok(Self::Auto),
            None if text == CPU => Ok(Self::Cpu),
            None if text == CUDA => Ok(Self::Cuda(vec![0])),
            Some((CUDA, ALL)) => Ok(Self::AllCuda),
            Some((CUDA, list)) => numbers(CUDA, list).map(Self::Cuda),
            Some((CPU, list)) => {
                let numbers = numbers(CPU, list)?;
                match numbers.iter().find(|number| **number >= cpu::MAX_DEVICES) {
                    Some(number) => {
                        let last = cpu::MAX_DEVICES - 1;
                        Err(Error::Unavailable(format!("there is no `cpu:{number}`: the last one is `cpu:{last}`")))
                    }
                    None => Ok(Self::Cpus(numbers)),
                }
            }
            _ if text.split(',').any(|name| name == CPU || name == CUDA) => Err(mixed(text)),
            _ => Err(unknown()),
        }
    }
}

fn mixed(text: &str) -> Error {
    Error::Unavailable(format!(
        "`{text}` mixes devices of several kinds, of which the faster ones would wait: name GPUs, as in `cuda:0,2`, or `cpu`"
    ))
}

/// Returns the numbers after `kind:`.
fn numbers(kind: &str, list: &str) -> Result<Vec<u32>> {
    if list.is_empty() {
        return Err(Error::Unavailable(format!("`{kind}:` lacks a number, as in `{kind}:0` or `{kind}:0,1`")));
    }
    let mut seen = BTreeSet::new();
    let number = |name: &str| match name.parse() {
        Ok(number) if name.bytes().all(|byte| byte.is_ascii_digit()) => match seen.insert(number) {
            true => Ok(number),
            false => Err(Error::Unavailable(format!("`{kind}:{list}` names {kind}:{number} twice"))),
        },
        _ if name == CPU || name == CUDA => Err(mixed(&format!("{kind}:{list}"))),
        _ => Err(Error::Unavailable(format!(
            "`{kind}:{list}`: `{name}` is not the number of a device, as in `{kind}:0` or `{kind}:0,1`"
        ))),
    };
    list.split(',').map(number).collect()
}

impl fmt::Display for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbered = |f: &mut fmt::Formatter<'_>, kind: &str, numbers: &[u32]| {
            let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
            write!(f, "{kind}:{}", numbers.join(","))
        };
        match self {
            Self::Auto => f.write_str(AUTO),
            Self::Cpu => f.write_str(CPU),
            Self::Cpus(numbers) => numbered(f, CPU, numbers),
            Self::Cuda(numbers) => numbered(f, CUDA, numbers),
            Self::AllCuda => write!(f, "{CUDA}:{ALL}"),
        }
    }
}

impl DeviceList {
    /// Whether the list can name several devices.
    pub fn is_of_several(&self) -> bool {
        match self {
            Self::Auto | Self::Cpu => false,
            Self::Cpus(numbers) | Self::Cuda(numbers) => numbers.len() > 1,
            Self::AllCuda => true,
        }
    }

    /// Opens the devices, of which there is at least one. All that have a number must open; of `cuda:all`, those that
    /// do not are left out with a warning.
    pub fn open(&self) -> Result<Vec<Arc<dyn Device>>> {
        match self {
            Self::Auto => Ok(vec![cuda::first().unwrap_or_else(|_| cpu::open())]),
            Self::Cpu => Ok(vec![scarce::planned().unwrap_or_else(cpu::open)]),
            Self::Cpus(numbers) => Ok(cpu::open_several(numbers)),
            Self::Cuda(numbers) => numbers.iter().map(|number| cuda::open(*number as usize)).collect(),
            Self::AllCuda => self.open_usable(),
        }
    }

    /// Like [`DeviceList::open`], but leaves out all that cannot be opened, with a warning, as long as one can: for a
    /// process that continues where another one has lost some.
    pub fn open_usable(&self) -> Result<Vec<Arc<dyn Device>>> {
        let numbers = match self {
            Self::Cuda(numbers) => numbers.clone(),
            Self::AllCuda => {
                cuda::probe()?.iter().filter_map(|found| found.id.strip_prefix("cuda:")?.parse().ok()).collect()
            }
            _ => return self.open(),
        };
        let (mut devices, mut refused) = (Vec::new(), Vec::new());
        for number in numbers {
            match cuda::open(number as usize) {
                Ok(device) => devices.push(device),
                Err(error) => refused.push((number, error)),
            }
        }
        match refused.first() {
            Some((_, error)) if devices.is_empty() => return Err(error.clone()),
            // No GPU was found that is supported: this says why.
            None if devices.is_empty() => return cuda::first().map(|device| vec![device]),
            _ => {}
        }
        for (number, error) in refused {
            tracing::warn!("cuda:{number} is left out: {error}");
        }
        Ok(devices)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_list_is_what_it_was_parsed_from() {
        for text in ["auto", "cpu", "cpu:0", "cpu:1,0", "cuda:3", "cuda:0,2", "cuda:all"] {
            assert_eq!(text.parse::<DeviceList>().unwrap().to_string(), text);
        }
        assert_eq!("cuda".parse::<DeviceList>().unwrap(), DeviceList::Cuda(vec![0]));
    }

    #[test]
    fn a_wrong_list_is_refused_with_what_is_wrong_in_it() {
        for (text, part) in [
            ("", "there is no device ``"),
            ("gpu", "`cuda:all`"),
            ("cuda:", "`cuda:` lacks a number"),
            ("cpu:", "`cpu:` lacks a number"),
            ("cuda:0,0", "`cuda:0,0` names cuda:0 twice"),
            ("cuda:0,00", "names cuda:0 twice"),
            ("cuda:0,", "`` is not the number of a device"),
            ("cuda:+1", "`+1` is not the number of a device"),
            ("cuda:0,all", "`all` is not the number of a device"),
            ("cuda:4294967296", "is not the number of a device"),
            ("cuda:0,cpu", "`cuda:0,cpu` mixes devices"),
            ("cpu,cuda", "`cpu,cuda` mixes devices"),
            ("cpu,cuda:1", "`cpu,cuda:1` mixes devices"),
            ("cuda:0,cuda:1", "`cuda:1` is not the number of a device, as in `cuda:0` or `cuda:0,1`"),
            ("cpu:64", "the last one is `cpu:63`"),
        ] {
            let error = text.parse::<DeviceList>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn several_of_cpu_have_their_numbers_and_all_cores_together() {
        let cores = |devices: &[Arc<dyn Device>]| -> Vec<_> {
            devices.iter().map(|device| device.properties().processors).collect()
        };
        let all = cores(&[cpu::open()])[0];
        let list: DeviceList = "cpu:4,0".parse().unwrap();
        let devices = list.open().unwrap();
        assert_eq!([&devices[0].properties().id, &devices[1].properties().id], ["cpu:4", "cpu:0"]);
        assert!(devices.iter().all(|device| !device.is_gpu()));
        assert_eq!(cores(&devices).iter().sum::<u32>(), all.max(2));
        // Each has at least one core, so many as there may be.
        let many = DeviceList::Cpus((0..cpu::MAX_DEVICES).collect()).open().unwrap();
        assert_eq!(cores(&many).iter().sum::<u32>(), all.max(cpu::MAX_DEVICES));
    }
}
