//! Exported functions of numbers, called for each row of columns.

use crate::arguments::{self, Argument};
use crate::array::Array;
use crate::failure;
use crate::numbers::{self, Number, Words};
use crate::work;
use arrow_array::ArrayRef;
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use gpu_run::{FunctionMapper, Interrupt, MapperBuilder, Module, Status};
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

type RowMapper = FunctionMapper<gpu_run::Words, gpu_run::Words>;

/// An exported function of numbers, called for each row of columns.
#[pyclass(frozen, module = "gpu_run._native")]
pub(crate) struct Function {
    name: String,
    params: Vec<Number>,
    results: Vec<Number>,
    builder: MapperBuilder,
    /// Compiled, and on the device.
    mapper: Arc<Mutex<Option<(RowMapper, Interrupt)>>>,
}

/// What the rows came to.
struct Ran {
    rows: usize,
    /// Words of each result.
    found: Vec<Vec<u64>>,
    failed: Vec<(usize, Status)>,
}

impl Function {
    pub(crate) fn new(
        py: Python<'_>,
        module: &Module,
        builder: MapperBuilder,
        interrupt: Interrupt,
        name: String,
        params: Option<Vec<String>>,
        results: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let Some(ty) = module.functions().find(|function| function.name == name).map(|function| function.ty.clone())
        else {
            let what = format!("{} exports no function `{name}`", module.name());
            return Err(failure::error(what));
        };
        let numbers = |names: Option<Vec<String>>, types: &[gpu_run::ValueType]| match names {
            None => Ok(types.iter().map(|ty| Number::usual(*ty)).collect()),
            Some(names) if names.len() == types.len() => {
                names.iter().zip(types).map(|(name, ty)| Number::named(name, *ty)).collect()
            }
            Some(_) => Err(PyTypeError::new_err(format!("`{name}` has type {ty}"))),
        };
        let (params, results) = (numbers(params, &ty.params)?, numbers(results, &ty.results)?);
        let (made, of) = (builder.clone(), name.clone());
        let mapper = work::wait(py, &interrupt, move || made.function_of_words(&of))?.map_err(failure::of)?;
        Ok(Self { name, params, results, builder, mapper: Arc::new(Mutex::new(Some((mapper, interrupt)))) })
    }

    /// Reads the arguments of a call.
    fn columns(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Vec<Words>> {
        let arguments = arguments::arguments(py, args, false)?;
        if arguments.len() != self.params.len() {
            let (params, columns) = (self.params.len(), arguments.len());
            let what = format!("`{}` has {params} parameters, but got {columns} columns", self.name);
            return Err(PyTypeError::new_err(what));
        }
        let (mut columns, mut lengths) = (Vec::new(), Vec::new());
        for (i, (argument, number)) in arguments.into_iter().zip(&self.params).enumerate() {
            let place = format!("parameter {i} of `{}`", self.name);
            let column = match argument {
                Argument::Constant(value) => {
                    let word = numbers::of_object(&value, *number, &place, 0)?.unwrap_or_default();
                    columns.push(Words { words: vec![word], nulls: None });
                    lengths.push(None);
                    continue;
                }
                Argument::Column(arrays) => of_arrays(&arrays, *number, &place)?,
                Argument::Iterable(values) => of_values(&values, *number, &place)?,
            };
            lengths.push(Some(column.words.len()));
            columns.push(column);
        }
        let rows = arguments::rows(&self.name, &lengths)?;
        for (column, _) in columns.iter_mut().zip(&lengths).filter(|(_, length)| length.is_none()) {
            column.words = vec![column.words[0]; rows];
        }
        Ok(columns)
    }
}

fn of_arrays(arrays: &[ArrayRef], number: Number, place: &str) -> PyResult<Words> {
    let (mut words, mut valid) = (Vec::new(), NullBufferBuilder::new(0));
    for array in arrays {
        let part = numbers::of_array(array, number, place)?;
        match part.nulls {
            Some(nulls) => valid.append_buffer(&nulls),
            None => valid.append_n_non_nulls(part.words.len()),
        }
        words.extend(part.words);
    }
    Ok(Words { words, nulls: valid.finish() })
}

fn of_values(values: &Bound<'_, PyAny>, number: Number, place: &str) -> PyResult<Words> {
    let (mut words, mut valid) = (Vec::new(), NullBufferBuilder::new(0));
    for (row, value) in values.try_iter()?.enumerate() {
        let word = numbers::of_object(&value?, number, place, row)?;
        valid.append(word.is_some());
        words.push(word.unwrap_or_default());
    }
    Ok(Words { words, nulls: valid.finish() })
}

/// Calls the function for each row without nulls.
fn run(
    mapper: &mut RowMapper,
    interrupt: &Interrupt,
    columns: &[Words],
    nulls: Option<&NullBuffer>,
    results: usize,
) -> Result<Ran, gpu_run::Error> {
    let rows = columns.first().map_or(0, |column| column.words.len());
    let is_there = |row: &usize| nulls.is_none_or(|nulls| nulls.is_valid(*row));
    let words = (0..rows).filter(is_there).map(|row| columns.iter().map(|column| column.words[row]).collect());
    let mut outcomes = mapper.map(words);
    let (mut found, mut failed) = (vec![Vec::with_capacity(rows); results], Vec::new());
    for row in 0..rows {
        let outcome = if is_there(&row) && !interrupt.is_raised() { outcomes.next().transpose()? } else { None };
        match outcome {
            Some(Ok(words)) => found.iter_mut().zip(&*words).for_each(|(column, word)| column.push(*word)),
            outcome => {
                found.iter_mut().for_each(|column| column.push(0));
                if let Some(Err(status)) = outcome {
                    failed.push((row, status));
                }
            }
        }
    }
    Ok(Ran { rows, found, failed })
}

#[pymethods]
impl Function {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// With the types of its parameters and results.
    #[getter]
    fn signatures(&self) -> Vec<(String, Vec<&'static str>, Vec<&'static str>)> {
        let names = |numbers: &[Number]| numbers.iter().map(|number| number.name()).collect::<Vec<_>>();
        let (params, results) = (names(&self.params), names(&self.results));
        vec![(format!("{}({})->({})", self.name, params.join(","), results.join(",")), params, results)]
    }

    /// Calls the function for each row of columns; returns a column for each result.
    #[pyo3(signature = (*columns, returns_errors=false))]
    fn call(&self, py: Python<'_>, columns: &Bound<'_, PyTuple>, returns_errors: bool) -> PyResult<Vec<Array>> {
        let columns = self.columns(py, columns)?;
        let nulls = columns.iter().fold(None, |all, column| NullBuffer::union(all.as_ref(), column.nulls.as_ref()));
        let kept = self.mapper.lock().take();
        let (interrupt, given) = match &kept {
            Some((_, interrupt)) => (interrupt.clone(), None),
            // Another thread has it, or it was interrupted.
            None => {
                let interrupt = Interrupt::new();
                let builder = self.builder.clone().interrupt(&interrupt);
                (interrupt, Some((builder, self.name.clone())))
            }
        };
        let (results, seen, flag) = (self.results.len(), nulls.clone(), interrupt.clone());
        let ran = work::wait(py, &interrupt, move || {
            let mut mapper = match (kept, given) {
                (Some((mapper, _)), _) => mapper,
                (None, Some((builder, name))) => builder.function_of_words(&name)?,
                (None, None) => return Err(gpu_run::Error::Internal("a function without a mapper".into())),
            };
            let ran = run(&mut mapper, &flag, &columns, seen.as_ref(), results)?;
            Ok((ran, mapper))
        })?;
        let (Ran { rows, found, failed }, mapper) = ran.map_err(failure::of)?;
        *self.mapper.lock() = Some((mapper, interrupt));
        let mut errors = Vec::new();
        for (row, status) in &failed {
            let error = failure::of_status(py, *row as u64, status, &[], &[])?;
            if !returns_errors {
                return Err(error);
            }
            errors.push(error.into_value(py).into_any());
        }
        let nulls = without(nulls, rows, &failed);
        let columns = found.into_iter().zip(&self.results).map(|(words, number)| number.column(words, nulls.clone()));
        let arrays = columns.map(|column| Array::new(column, errors.iter().map(|error| error.clone_ref(py)).collect()));
        Ok(arrays.collect())
    }
}

/// Adds the rows that failed to the nulls.
fn without(nulls: Option<NullBuffer>, rows: usize, failed: &[(usize, Status)]) -> Option<NullBuffer> {
    if failed.is_empty() {
        return nulls;
    }
    let mut is_valid = vec![true; rows];
    failed.iter().for_each(|(row, _)| is_valid[*row] = false);
    NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::from(is_valid)))
}
