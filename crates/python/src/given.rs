//! What a program is given, as Python says it.

use crate::failure;
use gpu_run::{Access, Command, Interrupt, Mapper, MapperBuilder, Module, Wasi};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments, environment, folders and limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Given {
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Where it is, what the program calls it, and whether the program can change it.
    pub(crate) dirs: Vec<(PathBuf, String, bool)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_memory: Option<u64>,
    pub(crate) batch: Option<u32>,
}

/// A tuple, as the Python side makes it.
impl FromPyObject<'_, '_> for Given {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let (args, env, dirs, timeout, max_memory, batch) = given.extract()?;
        let seconds: Option<f64> = timeout;
        let timeout = seconds.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|error| pyo3::exceptions::PyValueError::new_err(format!("timeout: {error}")))?;
        Ok(Self { args, env, dirs, timeout, max_memory, batch })
    }
}

/// Gives a command or a mapper what both can be given: the library's builders have these methods, but no trait, in common.
macro_rules! limited {
    ($builder:expr, $given:expr, $name:expr, $interrupt:expr) => {{
        let mut builder = $builder.wasi($given.wasi($name)?).interrupt($interrupt);
        if let Some(timeout) = $given.timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(bytes) = $given.max_memory {
            builder = builder.max_memory(bytes);
        }
        builder
    }};
}

impl Given {
    fn wasi(&self, name: &str) -> PyResult<Wasi> {
        let mut wasi = Wasi::new().arg(name).args(&self.args);
        for (name, value) in &self.env {
            wasi = wasi.env(name, value);
        }
        for (host, guest, writes) in &self.dirs {
            let access = if *writes { Access::ReadWrite } else { Access::ReadOnly };
            wasi = wasi.dir(host, guest, access).map_err(failure::of)?;
        }
        Ok(wasi)
    }

    /// `name` is what the program finds in front of its arguments.
    pub(crate) fn command(&self, module: &Module, name: &str, interrupt: &Interrupt) -> PyResult<Command> {
        Ok(limited!(Command::new(module), self, name, interrupt))
    }

    pub(crate) fn mapper(&self, module: &Module, name: &str, interrupt: &Interrupt) -> PyResult<MapperBuilder> {
        let builder = limited!(Mapper::builder(module), self, name, interrupt);
        Ok(match self.batch {
            Some(records) => builder.batch(records),
            None => builder,
        })
    }
}
