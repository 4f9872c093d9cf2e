//! Functions made with the crate arrow-udf, called for columns.

use crate::answers::{Answer, Whole, whole};
use crate::arguments::{self, Argument};
use crate::array::Array;
use crate::capsule;
use crate::failure;
use crate::fit::{self, Fit};
use crate::of_python;
use crate::work;
use arrow_array::{Array as _, ArrayRef, UInt32Array};
use arrow_schema::{DataType, Field};
use arrow_select::take::take;
use gpu_run::arrow::arrow_array::{ArrayRef as UdfArrayRef, RecordBatch};
use gpu_run::arrow::{Functions, Signature, signatures};
use gpu_run::{Error, Interrupt, MapperBuilder, Module};
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A function made with arrow-udf; several, if they have one name.
#[pyclass(frozen, module = "gpu_run._native")]
pub(crate) struct ArrowFunction {
    name: String,
    signatures: Vec<Signature>,
    builder: MapperBuilder,
    /// Compiled, and on the device.
    functions: Arc<Mutex<Option<(Functions, Interrupt)>>>,
}

/// A column, as the function takes it.
enum Column {
    Parts(Vec<ArrayRef>),
    /// One value, which is the same in each row.
    Constant(ArrayRef),
}

/// What a column was given as.
enum Given<'py> {
    Arrays(Vec<ArrayRef>),
    Values(Vec<Bound<'py, PyAny>>),
    Constant(Bound<'py, PyAny>),
}

impl<'py> Given<'py> {
    fn of(argument: Argument<'py>) -> PyResult<Self> {
        Ok(match argument {
            Argument::Column(arrays) => Self::Arrays(arrays),
            Argument::Iterable(values) => Self::Values(values.try_iter()?.collect::<PyResult<_>>()?),
            Argument::Constant(value) => Self::Constant(value),
        })
    }

    /// Returns the field that a parameter of this type is, if it can be given this.
    fn field(&self, parameter: &str) -> Option<Field> {
        match self {
            Self::Arrays(arrays) => fit::parameter(parameter, arrays.first()?.data_type()),
            _ => fit::parameter(parameter, &DataType::Null),
        }
    }

    fn fit(&self, parameter: &str) -> Option<Fit> {
        let field = self.field(parameter)?;
        match self {
            Self::Arrays(arrays) => fit::fit(arrays.first()?.data_type(), &field),
            Self::Values(values) => of_python::fit(values, &field),
            Self::Constant(value) => of_python::fit(std::slice::from_ref(value), &field),
        }
    }

    fn column(self, parameter: &str, place: &str) -> PyResult<Column> {
        let Some(field) = self.field(parameter) else {
            return Err(PyTypeError::new_err(format!("{place} is {parameter}, but got something else")));
        };
        match self {
            Self::Arrays(arrays) => {
                let mut first = 0;
                let part = |array: &ArrayRef| {
                    let part = fit::cast(array, &field, place, first);
                    first += array.len();
                    part
                };
                Ok(Column::Parts(arrays.iter().map(part).collect::<PyResult<_>>()?))
            }
            Self::Values(values) => Ok(Column::Parts(vec![of_python::array(&values, &field, place)?])),
            Self::Constant(value) => Ok(Column::Constant(of_python::array(&[value], &field, place)?)),
        }
    }

    fn ty(&self) -> String {
        match self {
            Self::Arrays(arrays) => arrays.first().map_or_else(String::new, |array| array.data_type().to_string()),
            Self::Values(values) => match values.iter().find(|value| !value.is_none()) {
                Some(value) => format!("iterable of {}", value.get_type()),
                None => "iterable of None".into(),
            },
            Self::Constant(value) => value.get_type().to_string(),
        }
    }
}

impl ArrowFunction {
    /// Looks for functions of this name or signature. `None` if a function of another kind has it, or nothing was made with arrow-udf.
    pub(crate) fn find(
        py: Python<'_>,
        module: &Module,
        builder: MapperBuilder,
        interrupt: Interrupt,
        name: &str,
    ) -> PyResult<Option<Self>> {
        let all = signatures(module).map_err(failure::of)?;
        let (named, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|signature| signature.is_called(name));
        let Some(first) = named.first() else {
            if others.is_empty() || module.functions().any(|function| function.name == name) {
                return Ok(None);
            }
            let (module, list) = (module.name(), list(&others));
            return Err(failure::error(format!("{module} has no function `{name}`; it has {list}")));
        };
        let (name, made, of) = (first.name.clone(), builder.clone(), texts(&named));
        let functions = work::wait(py, &interrupt, move || compiled(made, &of))?.map_err(failure::of)?;
        Ok(Some(Self {
            name,
            signatures: named,
            builder,
            functions: Arc::new(Mutex::new(Some((functions, interrupt)))),
        }))
    }

    /// Chooses the function that columns fit best, and makes them what it takes.
    fn chosen(&self, given: Vec<Given<'_>>) -> PyResult<(&Signature, Vec<Column>)> {
        let fits = |signature: &&Signature| {
            let parameters = parameters(signature, given.len())?;
            let fits = given.iter().zip(&parameters).map(|(given, parameter)| given.fit(parameter));
            let fits = fits.collect::<Option<Vec<Fit>>>()?;
            Some(fits.into_iter().max())
        };
        let best = self.signatures.iter().filter_map(|signature| fits(&signature)).min();
        let chosen: Vec<_> = match &self.signatures[..] {
            // Its parameters say what is wrong with the columns.
            [only] if parameters(only, given.len()).is_some() => vec![only],
            all => all.iter().filter(|signature| best.is_some() && fits(signature) == best).collect(),
        };
        let [signature] = chosen[..] else {
            let types = given.iter().map(Given::ty).collect::<Vec<_>>().join(", ");
            let what = match &chosen[..] {
                [] => format!("takes no columns ({types}); there is {}", list(&self.signatures)),
                several => format!("takes columns ({types}) as {}: name one by its signature", list(several)),
            };
            return Err(PyTypeError::new_err(format!("`{}` {what}", self.name)));
        };
        let parameters = parameters(signature, given.len()).unwrap_or_default();
        let column = |(i, (given, parameter)): (usize, (Given<'_>, &str))| {
            given.column(parameter, &format!("parameter {i} of `{}`", self.name))
        };
        let columns = given.into_iter().zip(parameters).enumerate().map(column);
        Ok((signature, columns.collect::<PyResult<_>>()?))
    }

    /// Calls the function; returns its answer for each batch.
    fn run(&self, py: Python<'_>, signature: &Signature, batches: &[RecordBatch]) -> PyResult<Vec<Answer>> {
        let kept = self.functions.lock().take();
        let interrupt = kept.as_ref().map_or_else(Interrupt::new, |(_, interrupt)| interrupt.clone());
        // Another thread has it, or it was interrupted.
        let builder = kept.is_none().then(|| self.builder.clone().interrupt(&interrupt));
        let (of, batches) = (texts(&self.signatures), batches.to_vec());
        let (name, is_table) = (signature.to_string(), signature.is_table);
        let ran = work::wait(py, &interrupt, move || {
            let mut functions = match (kept, builder) {
                (Some((functions, _)), _) => functions,
                (None, Some(builder)) => compiled(builder, &of)?,
                (None, None) => return Err(Error::Internal("a function without a mapper".into())),
            };
            let answers = called(&mut functions, &name, is_table, &batches)?;
            Ok((answers, functions))
        })?;
        let (answers, functions) = ran.map_err(failure::of)?;
        *self.functions.lock() = Some((functions, interrupt));
        Ok(answers)
    }
}

fn compiled(builder: MapperBuilder, names: &[String]) -> Result<Functions, Error> {
    builder.arrow_only(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn called(
    functions: &mut Functions,
    name: &str,
    is_table: bool,
    batches: &[RecordBatch],
) -> Result<Vec<Answer>, Error> {
    match (batches, is_table) {
        // The groups of one batch are as large as its device likes them.
        ([batch], false) => functions.call(name, batch).map(|called| vec![(Some(called.batch), called.failures)]),
        ([batch], true) => functions.call_table(name, batch).map(|called| vec![(called.batch, called.failures)]),
        (batches, false) => {
            let called = functions.map(name, batches.iter().cloned());
            called.map(|called| called.map(|called| (Some(called.batch), called.failures))).collect()
        }
        (batches, true) => {
            let called = functions.map_table(name, batches.iter().cloned());
            called.map(|called| called.map(|called| (called.batch, called.failures))).collect()
        }
    }
}

fn texts(signatures: &[Signature]) -> Vec<String> {
    signatures.iter().map(ToString::to_string).collect()
}

fn list<T: ToString>(signatures: &[T]) -> String {
    signatures.iter().map(|signature| format!("`{}`", signature.to_string())).collect::<Vec<_>>().join(", ")
}

/// Returns the types of so many parameters, if the function can have them.
fn parameters(signature: &Signature, count: usize) -> Option<Vec<&str>> {
    let named = signature.parameters.iter().map(String::as_str);
    match signature.parameters.split_last() {
        Some((last, others)) if last == "..." && count >= others.len() => {
            Some(named.take(others.len()).chain(std::iter::repeat("...")).take(count).collect())
        }
        _ => (signature.parameters.len() == count).then(|| named.collect()),
    }
}

/// Cuts columns, which have parts of their own each, into batches; there is at least one.
fn batches(columns: &[Column], rows: usize) -> PyResult<Vec<RecordBatch>> {
    let mut ends = BTreeSet::from([rows]);
    for column in columns {
        if let Column::Parts(parts) = column {
            let mut end = 0;
            ends.extend(parts.iter().map(|part| {
                end += part.len();
                end
            }));
        }
    }
    if rows > 0 {
        ends.remove(&0);
    }
    let mut cursors = vec![(0, 0); columns.len()];
    let (mut start, mut batches) = (0, Vec::new());
    for end in ends {
        let mut slices = Vec::new();
        for (column, (part, at)) in columns.iter().zip(&mut cursors) {
            let slice = match column {
                Column::Constant(value) => {
                    let rows = UInt32Array::from(vec![0; end - start]);
                    take(value, &rows, None).map_err(capsule::of_arrow)?
                }
                Column::Parts(parts) => {
                    while *at == parts[*part].len() && *part + 1 < parts.len() {
                        (*part, *at) = (*part + 1, 0);
                    }
                    let slice = parts[*part].slice(*at, end - start);
                    *at += end - start;
                    slice
                }
            };
            let name = slices.len().to_string();
            slices.push((name, capsule::to_udf(&slice)?, true));
        }
        batches.push(batch(slices)?);
        start = end;
    }
    Ok(batches)
}

fn batch(columns: Vec<(String, UdfArrayRef, bool)>) -> PyResult<RecordBatch> {
    RecordBatch::try_from_iter_with_nullable(columns).map_err(capsule::of_arrow)
}

#[pymethods]
impl ArrowFunction {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Each with the types of its parameters and of its result.
    #[getter]
    fn signatures(&self) -> Vec<(String, Vec<String>, String)> {
        let parts =
            |signature: &Signature| (signature.to_string(), signature.parameters.clone(), signature.result.clone());
        self.signatures.iter().map(parts).collect()
    }

    /// Calls the function for each row of columns; returns the column of its results.
    #[pyo3(signature = (*columns, returns_errors=false))]
    fn call(&self, py: Python<'_>, columns: &Bound<'_, PyTuple>, returns_errors: bool) -> PyResult<Vec<Array>> {
        let takes_struct =
            self.signatures.iter().flat_map(|signature| &signature.parameters).any(|ty| ty.starts_with("struct "));
        let given = arguments::arguments(py, columns, takes_struct)?;
        let given = given.into_iter().map(Given::of).collect::<PyResult<Vec<_>>>()?;
        let (signature, columns) = self.chosen(given)?;
        let length = |column: &Column| match column {
            Column::Parts(parts) => Some(parts.iter().map(|part| part.len()).sum()),
            Column::Constant(_) => None,
        };
        let rows = arguments::rows(&self.name, &columns.iter().map(length).collect::<Vec<_>>())?;
        let batches = batches(&columns, rows)?;
        drop(columns);
        let answers = self.run(py, signature, &batches)?;
        let Whole { column, mut errors } = whole(py, signature, &batches, answers)?;
        errors.sort_by_key(|(row, _)| *row);
        if !returns_errors && !errors.is_empty() {
            return Err(errors.remove(0).1);
        }
        let errors = errors.into_iter().map(|(_, error)| error.into_value(py).into_any());
        Ok(vec![Array::new(column, errors.collect())])
    }
}
