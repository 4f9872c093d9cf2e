//! A function of scalars, called for each of many rows.
//!
//! Rows travel as records do: the stdin of an instance has a group of rows, a word for each parameter, and its stdout a word for each result.
//! What reads and writes them is an adapter, a few instructions that are linked with the module ([`adapter_text`]). If an instance with a group
//! fails, each of its rows runs again alone, so that only the row fails that is at fault.

use crate::adapter;
use crate::command::{Output, Status};
use crate::error::{Error, Result};
use crate::mapper::{Mapper, MapperBuilder, Outputs};
use crate::module::Module;
use crate::value::{Parameters, ResultWords, Results, RowWords};
use bytes::Bytes;
use gpu_run_compiler::{ADAPTED, Adapter, FunctionType, Memories, ValueType};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

const WORD: usize = 8;
/// Bytes of a page of memory.
const PAGE: usize = 64 << 10;
/// Rows of a group. An instance takes some microseconds to begin and to end.
const ROWS: usize = 64;
/// Rows that run alone at once, when their groups have failed.
const ALONE: u32 = 256;

/// Calls an exported function for each of many rows; [`MapperBuilder::function`] makes one.
pub struct FunctionMapper<P, R> {
    groups: Mapper,
    /// From the first group on that fails.
    alone: Option<Mapper>,
    builder: MapperBuilder,
    adapter: Adapter,
    words: WordsOfRow,
    types: PhantomData<fn(P) -> R>,
}

/// Words of a row in a group, and of its results.
#[derive(Clone, Copy)]
struct WordsOfRow {
    params: usize,
    results: usize,
}

/// The parameters or the results of a row of a function whose types are known only at run time: a word for each, as
/// [`Scalar::to_word`](crate::Scalar::to_word) makes it. A row with too few words has zeros, one with too many loses the last ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(SmallVec<[u64; 4]>);

impl Deref for Words {
    type Target = [u64];
    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl FromIterator<u64> for Words {
    fn from_iter<I: IntoIterator<Item = u64>>(words: I) -> Self {
        Self(words.into_iter().collect())
    }
}

impl<const N: usize> From<[u64; N]> for Words {
    fn from(words: [u64; N]) -> Self {
        words.into_iter().collect()
    }
}

impl RowWords for Words {
    fn put_words(self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    }
}

impl ResultWords for Words {
    fn of_words(words: &[[u8; WORD]]) -> Option<Self> {
        Some(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }
}

impl<P: Parameters, R: Results> FunctionMapper<P, R> {
    pub(crate) fn new(builder: MapperBuilder, name: &str) -> Result<Self> {
        let wanted = FunctionType { params: P::types(), results: R::types() };
        let found = type_of(&builder, name)?;
        if found != wanted {
            let (function, expected) = (name.into(), found.to_string());
            return Err(Error::Signature { function, expected, found: wanted.to_string() });
        }
        Self::of_type(builder, name, &wanted)
    }
}

impl FunctionMapper<Words, Words> {
    pub(crate) fn of_words(builder: MapperBuilder, name: &str) -> Result<Self> {
        let ty = type_of(&builder, name)?;
        if let Some(other) = ty.params.iter().chain(&ty.results).find(|ty| !is_scalar(**ty)) {
            return Err(Error::Limit(format!("`{name}` has type {ty}: {other} is no number")));
        }
        Self::of_type(builder, name, &ty)
    }
}

fn is_scalar(ty: ValueType) -> bool {
    matches!(ty, ValueType::I32 | ValueType::I64 | ValueType::F32 | ValueType::F64)
}

fn type_of(builder: &MapperBuilder, name: &str) -> Result<FunctionType> {
    let module = &builder.module;
    let missing = || Error::MissingExport(format!("{} exports no function `{name}`", module.name()));
    Ok(module.function(name).ok_or_else(missing)?.ty.clone())
}

impl<P: RowWords, R: ResultWords> FunctionMapper<P, R> {
    fn of_type(builder: MapperBuilder, name: &str, ty: &FunctionType) -> Result<Self> {
        let module = &builder.module;
        let memory = match module.memories() {
            Memories::None => "(memory 0)".to_owned(),
            Memories::First => format!("(import {ADAPTED:?} \"memory\" (memory 0))"),
            Memories::Other => {
                let name = module.name();
                return Err(Error::Limit(format!(
                    "{name} has a memory with 64-bit addresses, or one that threads share"
                )));
            }
        };
        let text = adapter_text(module, name, ty, &memory);
        let adapter = wat::parse_str(&text).map_err(|error| Error::Internal(format!("{error}, in\n{text}")))?;
        let adapter = Adapter::new(adapter);
        let groups = builder.clone().adapted(Some(adapter.clone()))?;
        let words = WordsOfRow { params: ty.params.len().max(1), results: ty.results.len() };
        Ok(Self { groups, alone: None, builder, adapter, words, types: PhantomData })
    }

    /// Calls the function for each row, and returns its results in the rows' order. The inner `Err` says how a row failed; the outer is a
    /// failure of the device or of gpu-run, and the last item.
    pub fn map<I: IntoIterator<Item = P>>(&mut self, rows: I) -> Rows<'_, I::IntoIter, P, R> {
        let Self { groups, alone, builder, adapter, words, .. } = self;
        let words = *words;
        let sent = Sent::default();
        let outputs = groups.map(Groups { rows: rows.into_iter(), words, sent: sent.clone() });
        Rows { outputs, sent, alone, builder, adapter, words, ready: VecDeque::new(), types: PhantomData }
    }
}

impl<P, R> fmt::Debug for FunctionMapper<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionMapper").field("groups", &self.groups).finish_non_exhaustive()
    }
}

/// Puts rows into groups, and keeps those whose results have not come.
struct Groups<I> {
    rows: I,
    words: WordsOfRow,
    sent: Sent,
}

type Sent = Arc<Mutex<VecDeque<Bytes>>>;

impl<P: RowWords, I: Iterator<Item = P>> Iterator for Groups<I> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut group = Vec::new();
        for row in self.rows.by_ref().take(ROWS) {
            let before = group.len();
            row.put_words(&mut group);
            // A row has a word even if the function has no parameters.
            group.resize(before + self.words.params * WORD, 0);
        }
        let group = Bytes::from(group);
        (!group.is_empty()).then(|| {
            self.sent.lock().push_back(group.clone());
            group
        })
    }
}

/// The results of a function's rows, in their order.
pub struct Rows<'m, I, P, R> {
    outputs: Outputs<'m, Groups<I>>,
    sent: Sent,
    alone: &'m mut Option<Mapper>,
    builder: &'m MapperBuilder,
    adapter: &'m Adapter,
    words: WordsOfRow,
    ready: VecDeque<Result<R, Status>>,
    types: PhantomData<fn(P)>,
}

impl<I: Iterator<Item = P>, P: RowWords, R: ResultWords> Rows<'_, I, P, R> {
    /// Takes the results of the next group. Returns whether there was one.
    fn take_group(&mut self) -> Result<bool> {
        let Some(output) = self.outputs.next().transpose()? else { return Ok(false) };
        let group = self.sent.lock().pop_front().unwrap_or_default();
        let rows = group.len() / (self.words.params * WORD);
        match results::<R>(&output, rows, self.words) {
            Some(results) => self.ready.extend(results.into_iter().map(Ok)),
            None if rows == 1 => self.ready.push_back(Err(failed(output.status))),
            None => self.run_alone(group)?,
        }
        Ok(true)
    }

    fn run_alone(&mut self, mut group: Bytes) -> Result<()> {
        let mapper = match &mut self.alone {
            Some(mapper) => mapper,
            none => none.insert(self.builder.clone().batch(ALONE).adapted(Some(self.adapter.clone()))?),
        };
        let mut rows = Vec::new();
        while !group.is_empty() {
            rows.push(group.split_to(self.words.params * WORD));
        }
        for output in mapper.map(rows) {
            let output = output?;
            let result = results::<R>(&output, 1, self.words).and_then(|mut results| results.pop());
            self.ready.push_back(result.ok_or_else(|| failed(output.status)));
        }
        Ok(())
    }
}

/// Returns the results of a group, if it did not fail.
fn results<R: ResultWords>(output: &Output, rows: usize, words: WordsOfRow) -> Option<Vec<R>> {
    let words = words.results;
    let (all, rest) = output.stdout.as_chunks::<WORD>();
    if !output.status.success() || !rest.is_empty() || all.len() != rows * words {
        return None;
    }
    (0..rows).map(|row| R::of_words(&all[row * words..][..words])).collect()
}

/// Returns how a row failed that has no results.
fn failed(status: Status) -> Status {
    match status {
        Status::Exited(0) => {
            let function = "stdout".to_owned();
            Status::Failed { function, source: "the function printed, where its results go".into() }
        }
        status => status,
    }
}

impl<I: Iterator<Item = P>, P: RowWords, R: ResultWords> Iterator for Rows<'_, I, P, R> {
    type Item = Result<Result<R, Status>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(result) = self.ready.pop_front() {
                return Some(Ok(result));
            }
            match self.take_group() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<I, P, R> fmt::Debug for Rows<'_, I, P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("outputs", &self.outputs).finish_non_exhaustive()
    }
}

/// Returns the adapter, as WebAssembly text: a program that reads words of rows from stdin, calls the function for each row, and writes the
/// words of its results to stdout. It puts them behind the end of the guest's memory, which nobody else uses.
fn adapter_text(module: &Module, name: &str, ty: &FunctionType, memory: &str) -> String {
    let types = |word: &str, types: &[ValueType]| match types {
        [] => String::new(),
        types => format!(" ({word} {})", types.iter().map(ValueType::to_string).collect::<Vec<_>>().join(" ")),
    };
    let (from_bytes, to_bytes) = (ty.params.len().max(1) * WORD, ty.results.len() * WORD);
    let (rows, head) = (ROWS, 2 * WORD);
    let input = rows * from_bytes;
    let pages = (head + input + rows * to_bytes).div_ceil(PAGE);
    let place = |local: &str, i: usize| format!("offset={} (local.get ${local})", i * WORD);
    let params: String = (0..).zip(&ty.params).map(|(i, ty)| format!(" ({ty}.load {})", place("row", i))).collect();
    // The last result is on top. An i32 or f32 takes half of its word; the other half stays zero.
    let stores: String = ty
        .results
        .iter()
        .enumerate()
        .rev()
        .map(|(i, ty)| {
            format!(
                "(local.set ${ty})\n                ({ty}.store {} (local.get ${ty}))\n                ",
                place("result", i)
            )
        })
        .collect();
    let (initialize, call) = adapter::initialize(module);
    let function = adapter::import(name, "function", &(types("param", &ty.params) + &types("result", &ty.results)));
    let (streams, mover) = (adapter::STREAMS, adapter::MOVE);
    format!(
        r#"(module
    {function}{streams}
    {initialize}
    {memory}{mover}
    (func (export "_start")
        (local $base i32) (local $row i32) (local $end i32) (local $result i32)
        (local $i32 i32) (local $i64 i64) (local $f32 f32) (local $f64 f64)
        (local.set $base (memory.grow (i32.const {pages})))
        (if (i32.eq (local.get $base) (i32.const -1)) (then unreachable))
        (local.set $base (i32.shl (local.get $base) (i32.const 16)))
        {call}
        (local.set $row (i32.add (local.get $base) (i32.const {head})))
        (local.set $result (i32.add (local.get $row) (i32.const {input})))
        (local.set $end (i32.add (local.get $row)
            (call $move (local.get $base) (local.get $row) (i32.const {input}) (i32.const 0))))
        (block $done
            (loop $next
                (br_if $done (i32.ge_u (local.get $row) (local.get $end)))
                (call $function{params})
                {stores}(local.set $row (i32.add (local.get $row) (i32.const {from_bytes})))
                (local.set $result (i32.add (local.get $result) (i32.const {to_bytes})))
                (br $next)))
        (local.set $row (i32.add (local.get $base) (i32.const {first_result})))
        (drop (call $move (local.get $base) (local.get $row)
            (i32.sub (local.get $result) (local.get $row)) (i32.const 1)))))
"#,
        first_result = head + input,
    )
}
