//! Which loops of a module one lane runs alone.
//!
//! A value is followed from the imports that say who a thread is: a test of it for equality holds for one lane, and what is only reached through such a test is that lane's. A
//! loop there is reported, and so is a call of a function that has one. What is kept in memory is followed by its offset.

use libtest_mimic::Failed;
use std::collections::{BTreeMap, BTreeSet};
use wasmparser::{
    FuncToValidate, FuncValidatorAllocations, FunctionBody, KnownCustom, Name, Operator, Parser, Payload, TypeRef,
    ValidPayload, Validator, ValidatorResources, WasmFeatures,
};

/// What is known of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    Nothing,
    /// Another in each lane: the thread's number.
    Number,
    /// The same, from memory: whoever stores it again does not say where numbers are.
    Loaded,
    /// Where things are kept: a parameter, or a place on the stack.
    Base,
    /// True in one lane; true in all others.
    OneLane,
    OtherLanes,
}

use Known::*;

/// What one function does.
#[derive(Default)]
struct Found {
    loops: u32,
    /// Loops and calls that one lane comes to.
    alone: u32,
    alone_calls: Vec<u32>,
    calls: Vec<u32>,
}

/// Names of functions in which one lane runs a loop.
pub(crate) fn loops_of_one_lane(wasm: &[u8]) -> Result<Vec<String>, Failed> {
    let (mut names, mut numbers, mut imports) = (BTreeMap::new(), BTreeSet::new(), 0);
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let mut bodies: Vec<(FuncToValidate<ValidatorResources>, FunctionBody<'_>)> = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        if let ValidPayload::Func(function, body) = validator.payload(&payload)? {
            bodies.push((function, body));
        }
        match payload {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    let TypeRef::Func(_) = import.ty else { continue };
                    if import.module == "gpu" && ["thread", "lane"].contains(&import.name) {
                        numbers.insert(imports);
                    }
                    imports += 1;
                }
            }
            Payload::CustomSection(section) => {
                let KnownCustom::Name(section) = section.as_known() else { continue };
                for name in section {
                    let Name::Function(map) = name? else { continue };
                    for naming in map {
                        let naming = naming?;
                        names.insert(naming.index, naming.name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    // Twice: what is kept in memory is known when all stores were seen.
    let mut offsets = BTreeSet::new();
    let mut found = BTreeMap::new();
    for _ in 0..2 {
        found.clear();
        for (index, (function, body)) in bodies.iter().enumerate() {
            let (resources, index) = (function.resources.clone(), imports + index as u32);
            let to_validate = FuncToValidate { resources, index, ty: function.ty, features: function.features };
            found.insert(index, look(to_validate, body, &numbers, &mut offsets)?);
        }
    }
    let loops = with_loops(&found);
    let alone = found.iter().filter(|(_, f)| f.alone > 0 || f.alone_calls.iter().any(|call| loops.contains(call)));
    Ok(alone.map(|(index, _)| names.get(index).cloned().unwrap_or_else(|| format!("function {index}"))).collect())
}

/// Functions that have a loop, or call one that has.
fn with_loops(found: &BTreeMap<u32, Found>) -> BTreeSet<u32> {
    let mut loops: BTreeSet<u32> = found.iter().filter(|(_, f)| f.loops > 0).map(|(index, _)| *index).collect();
    loop {
        let calls = |f: &Found| f.calls.iter().any(|call| loops.contains(call));
        let more: Vec<u32> = found.iter().filter(|(i, f)| !loops.contains(i) && calls(f)).map(|(i, _)| *i).collect();
        if more.is_empty() {
            return loops;
        }
        loops.extend(more);
    }
}

/// A block that is open.
#[derive(Default)]
struct Block {
    /// Lanes of all kinds come to its end by a branch, or one lane alone does.
    all: bool,
    one: bool,
    is_loop: bool,
    /// What the other half of an `if` is: whether one lane is in it, and whether there is one at all.
    other: Option<bool>,
}

/// Where the reader is: nobody comes there, one lane alone does, or more do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Nobody,
    One,
    All,
}

impl Flow {
    fn alone(alone: bool) -> Self {
        if alone { Flow::One } else { Flow::All }
    }
}

fn branch(blocks: &mut [Block], depth: u32, flow: Flow) {
    let target = blocks.len().saturating_sub(1 + depth as usize);
    if let Some(block) = blocks.get_mut(target).filter(|block| !block.is_loop) {
        block.all |= flow == Flow::All;
        block.one |= flow == Flow::One;
    }
}

fn look(
    function: FuncToValidate<ValidatorResources>,
    body: &FunctionBody<'_>,
    numbers: &BTreeSet<u32>,
    offsets: &mut BTreeSet<u64>,
) -> Result<Found, Failed> {
    let mut validator = function.into_validator(FuncValidatorAllocations::default());
    validator.read_locals(&mut body.get_binary_reader())?;
    let (mut found, mut stack, mut locals) = (Found::default(), Vec::new(), BTreeMap::new());
    // Until they are set, all locals that can be are parameters.
    let parameters = (0..validator.len_locals()).map(|local| (local, Base));
    locals.extend(parameters);
    let (mut blocks, mut flow) = (vec![Block::default()], Flow::All);
    let mut reader = body.get_operators_reader()?;
    while !reader.eof() {
        let offset = reader.original_position();
        let operator = reader.read()?;
        let (takes, gives) = operator.operator_arity(&validator).unwrap_or((0, 0));
        validator.op(offset, &operator)?;
        let taken: Vec<Known> = (0..takes).map(|_| stack.pop().unwrap_or(Nothing)).collect();
        let first = taken.first().copied().unwrap_or(Nothing);
        // A number as a condition holds in all lanes but the first.
        let (holds_in_one, fails_in_one) = (first == OneLane, [OtherLanes, Number, Loaded].contains(&first));
        let alone = flow == Flow::One;
        let mut given = Nothing;
        match &operator {
            Operator::Loop { .. } => {
                found.loops += 1;
                found.alone += alone as u32;
                blocks.push(Block { is_loop: true, ..Block::default() });
            }
            Operator::Block { .. } => blocks.push(Block::default()),
            Operator::If { .. } => {
                blocks.push(Block { other: Some(alone || fails_in_one), ..Block::default() });
                flow = Flow::alone(alone || holds_in_one);
            }
            Operator::Else => {
                branch(&mut blocks, 0, flow);
                let other = blocks.last_mut().and_then(|block| block.other.take());
                flow = Flow::alone(other.unwrap_or(alone));
            }
            Operator::End => {
                let block = blocks.pop().unwrap_or_default();
                let one = block.one || flow == Flow::One || block.other == Some(true);
                let all = block.all || flow == Flow::All || block.other == Some(false);
                flow = if all {
                    Flow::All
                } else if one {
                    Flow::One
                } else {
                    Flow::Nobody
                };
            }
            Operator::BrIf { relative_depth } => {
                branch(&mut blocks, *relative_depth, if holds_in_one { Flow::One } else { flow });
                flow = Flow::alone(alone || fails_in_one);
            }
            Operator::Br { relative_depth } => {
                branch(&mut blocks, *relative_depth, flow);
                flow = Flow::Nobody;
            }
            Operator::BrTable { targets } => {
                targets.targets().flatten().chain([targets.default()]).for_each(|to| branch(&mut blocks, to, flow));
                flow = Flow::Nobody;
            }
            Operator::Return | Operator::Unreachable => flow = Flow::Nobody,
            Operator::Call { function_index } => {
                if numbers.contains(function_index) {
                    given = Number;
                }
                found.calls.push(*function_index);
                found.alone_calls.extend(alone.then_some(*function_index));
            }
            Operator::LocalGet { local_index } => given = locals.get(local_index).copied().unwrap_or(Nothing),
            Operator::LocalSet { local_index } => drop(locals.insert(*local_index, first)),
            Operator::LocalTee { local_index } => {
                locals.insert(*local_index, first);
                given = first;
            }
            Operator::I32Store { memarg } if first == Number => drop(offsets.insert(memarg.offset)),
            Operator::I32Load { memarg } if first == Base && offsets.contains(&memarg.offset) => given = Loaded,
            Operator::GlobalGet { .. } => given = Base,
            Operator::I32Add | Operator::I32Sub if taken.contains(&Base) && !taken.contains(&Number) => given = Base,
            Operator::I32Add if taken.contains(&Number) => given = Number,
            Operator::I32Eqz | Operator::I32Eq | Operator::I32Ne => given = compared(&operator, &taken),
            _ => {}
        }
        stack.extend((0..gives).map(|_| given));
    }
    Ok(found)
}

fn compared(operator: &Operator<'_>, taken: &[Known]) -> Known {
    let one = taken.iter().filter(|known| [Number, Loaded].contains(known)).count() == 1;
    match (operator, taken.first()) {
        (Operator::I32Eqz, Some(OneLane)) => OtherLanes,
        (Operator::I32Eqz, Some(OtherLanes)) => OneLane,
        (Operator::I32Eqz | Operator::I32Eq, _) if one => OneLane,
        (Operator::I32Ne, _) if one => OtherLanes,
        _ => Nothing,
    }
}

pub(crate) fn a_loop_of_one_lane_is_found() -> Result<(), Failed> {
    let module = |body: &str| {
        wat::parse_str(format!(
            r#"(module (import "gpu" "lane" (func $lane (result i32))) (memory 1)
                 (func $inner (loop $again (br_if $again (i32.const 0))))
                 (func $f (local $n i32) {body}))"#
        ))
    };
    let looping = "(loop $again (br_if $again (i32.const 0)))";
    for (body, expected) in [
        (looping.to_owned(), 0),
        (format!("(if (i32.eqz (call $lane)) (then {looping}))"), 1),
        (format!("(block (br_if 0 (call $lane)) {looping})"), 1),
        (format!("(block (br_if 0 (i32.ne (call $lane) (i32.const 31))) {looping})"), 1),
        (format!("(local.set $n (call $lane)) (if (i32.eqz (local.get $n)) (then (call $inner))) {looping}"), 1),
        (format!("(block (block (br_if 1 (call $lane)) (br 1)) {looping}) {looping}"), 0),
        (format!("(block (block (br_if 0 (i32.const 1)) (br_if 1 (call $lane)) (br 1)) {looping})"), 0),
        (format!("(if (i32.lt_u (call $lane) (i32.const 9)) (then {looping}))"), 0),
        (
            format!(
                "(i32.store offset=8 (i32.const 0) (call $lane)) (if (i32.eqz (i32.load offset=8 (local.get $n))) (then {looping}))"
            ),
            1,
        ),
    ] {
        let found = loops_of_one_lane(&module(&body)?)?;
        if found.len() != expected {
            return Err(format!("{body}: {found:?}").into());
        }
    }
    Ok(())
}
