//! Decides which types are equal and which are subtypes of others, across all modules of a program.
//!
//! Types are declared in groups, and equal groups declare equal types, so each distinct type gets one number. Groups
//! are compared by their text, which names types of the same group by their position and all other types by their
//! number.

use std::collections::HashMap;
use std::fmt::Write as _;
use wasmparser::{
    AbstractHeapType, CompositeInnerType, HeapType, PackedIndex, RefType, StorageType, SubType, UnpackedIndex, ValType,
};

/// The distinct types of a program.
#[derive(Debug, Default)]
pub(crate) struct Canonical {
    groups: HashMap<String, u32>,
    /// By type number: the type that this one is declared a subtype of.
    pub(crate) supertypes: Vec<Option<u32>>,
    is_function: Vec<bool>,
}

impl Canonical {
    /// Adds a module's types, group by group, and returns the number of each type.
    pub(crate) fn add(&mut self, groups: &[Vec<SubType>]) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::new();
        for group in groups {
            let namer = Namer { first: numbers.len() as u32, numbers: &numbers };
            let mut text = String::new();
            group.iter().for_each(|ty| namer.declare(&mut text, ty));
            let next = self.supertypes.len() as u32;
            let first = *self.groups.entry(text).or_insert(next);
            if first == next {
                for ty in group {
                    let of = ty.supertype_idx.map(|of| namer.place(of));
                    self.supertypes.push(of.map(|of| match of {
                        Place::Here(at) => first + at,
                        Place::Number(number) => number,
                    }));
                    self.is_function.push(matches!(ty.composite_type.inner, CompositeInnerType::Func(_)));
                }
            }
            numbers.extend(first..first + group.len() as u32);
        }
        numbers
    }

    fn is_subtype(&self, mut ty: u32, of: u32) -> bool {
        while ty != of {
            match self.supertypes.get(ty as usize).copied().flatten() {
                Some(next) => ty = next,
                None => return false,
            }
        }
        true
    }

    /// Returns whether a value of type `a` is also one of type `b`. Each type comes with the type numbers of its
    /// module.
    pub(crate) fn matches(&self, a: ValType, a_types: &[u32], b: ValType, b_types: &[u32]) -> bool {
        match (a, b) {
            (ValType::Ref(a), ValType::Ref(b)) => {
                (b.is_nullable() || !a.is_nullable()) && self.heap_matches(heap(a, a_types), heap(b, b_types))
            }
            _ => a == b,
        }
    }

    fn heap_matches(&self, a: Heap, b: Heap) -> bool {
        use AbstractHeapType::*;
        let is_function = |number: u32| self.is_function.get(number as usize).copied().unwrap_or(false);
        match (a, b) {
            (a, b) if a == b => true,
            (Heap::Type(a), Heap::Type(b)) => self.is_subtype(a, b),
            (Heap::Type(a), Heap::Abstract(b)) => match is_function(a) {
                true => b == Func,
                false => matches!(b, Any | Eq | Struct | Array),
            },
            (Heap::Abstract(a), Heap::Type(b)) => a == if is_function(b) { NoFunc } else { None },
            (Heap::Abstract(a), Heap::Abstract(b)) => match b {
                Func => a == NoFunc,
                Extern => a == NoExtern,
                Exn => a == NoExn,
                Any => matches!(a, Eq | I31 | Struct | Array | None),
                Eq => matches!(a, I31 | Struct | Array | None),
                I31 | Struct | Array => a == None,
                _ => false,
            },
        }
    }

    /// Returns the numbers of the types that a function may have where a call expects type `of`.
    pub(crate) fn subtypes(supertypes: &[Option<u32>], of: u32) -> Vec<u32> {
        let leads = |ty: &u32| {
            let mut chain = std::iter::successors(Some(*ty), |ty| supertypes.get(*ty as usize).copied().flatten());
            chain.any(|ty| ty == of)
        };
        (0..supertypes.len() as u32).filter(leads).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Heap {
    Abstract(AbstractHeapType),
    Type(u32),
}

fn heap(ty: RefType, numbers: &[u32]) -> Heap {
    match ty.heap_type() {
        HeapType::Abstract { ty, .. } => Heap::Abstract(ty),
        HeapType::Concrete(index) | HeapType::Exact(index) => {
            let index = index.as_module_index().unwrap_or(u32::MAX) as usize;
            Heap::Type(numbers.get(index).copied().unwrap_or(u32::MAX))
        }
    }
}

/// A type that a group refers to: by position in the group itself, or by number.
enum Place {
    Here(u32),
    Number(u32),
}

/// Writes a group as text, so that equal groups have equal texts.
struct Namer<'a> {
    /// The module's index of the group's first type.
    first: u32,
    numbers: &'a [u32],
}

impl Namer<'_> {
    fn place(&self, index: PackedIndex) -> Place {
        self.unpacked(index.unpack())
    }

    fn unpacked(&self, index: UnpackedIndex) -> Place {
        match index {
            UnpackedIndex::RecGroup(at) => Place::Here(at),
            UnpackedIndex::Module(index) if index >= self.first => Place::Here(index - self.first),
            UnpackedIndex::Module(index) => Place::Number(self.numbers[index as usize]),
            _ => Place::Number(u32::MAX),
        }
    }

    fn name(&self, out: &mut String, place: Place) {
        let _ = match place {
            Place::Here(at) => write!(out, "@{at}"),
            Place::Number(number) => write!(out, "#{number}"),
        };
    }

    fn value(&self, out: &mut String, ty: ValType) {
        out.push(' ');
        let ValType::Ref(reference) = ty else {
            let _ = write!(out, "{ty}");
            return;
        };
        out.push_str(if reference.is_nullable() { "null " } else { "ref " });
        match reference.heap_type() {
            HeapType::Concrete(index) => self.name(out, self.unpacked(index)),
            HeapType::Exact(index) => {
                out.push('!');
                self.name(out, self.unpacked(index));
            }
            other => {
                let _ = write!(out, "{other:?}");
            }
        }
    }

    fn field(&self, out: &mut String, field: &wasmparser::FieldType) {
        out.push_str(if field.mutable { " var" } else { " const" });
        match field.element_type {
            StorageType::Val(ty) => self.value(out, ty),
            packed => {
                let _ = write!(out, " {packed:?}");
            }
        }
    }

    fn declare(&self, out: &mut String, ty: &SubType) {
        out.push_str(if ty.is_final { "final" } else { "open" });
        if let Some(of) = ty.supertype_idx {
            out.push_str(" of ");
            self.name(out, self.place(of));
        }
        match &ty.composite_type.inner {
            CompositeInnerType::Func(ty) => {
                out.push_str(" func");
                ty.params().iter().for_each(|ty| self.value(out, *ty));
                out.push_str(" to");
                ty.results().iter().for_each(|ty| self.value(out, *ty));
            }
            CompositeInnerType::Struct(ty) => {
                out.push_str(" struct");
                ty.fields.iter().for_each(|field| self.field(out, field));
            }
            CompositeInnerType::Array(ty) => {
                out.push_str(" array");
                self.field(out, &ty.0);
            }
            CompositeInnerType::Cont(ty) => {
                out.push_str(" cont ");
                self.name(out, self.place(ty.0));
            }
        }
        out.push(';');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmparser::{Parser, Payload};

    fn numbers(canonical: &mut Canonical, wat: &str) -> Vec<u32> {
        let wasm = wat::parse_str(wat).expect("it is a module");
        let mut groups = Vec::new();
        for payload in Parser::new(0).parse_all(&wasm) {
            if let Ok(Payload::TypeSection(types)) = payload {
                groups.extend(types.into_iter().map(|group| group.expect("a group").into_types().collect::<Vec<_>>()));
            }
        }
        canonical.add(&groups)
    }

    #[test]
    fn equal_types_have_one_number_across_modules() {
        let mut all = Canonical::default();
        let first = numbers(&mut all, "(module (type (func)) (type (func (param i32))) (type (func)))");
        let second = numbers(&mut all, "(module (type (func (param i32))) (type (func (param (ref 0)))))");
        let third = numbers(&mut all, "(module (type (func)) (type (func (param i32))) (type (func (param (ref 1)))))");
        assert_eq!(first, [0, 1, 0]);
        assert_eq!(second, [1, 2]);
        assert_eq!(third, [0, 1, 2]);
    }

    #[test]
    fn types_of_a_group_differ_from_the_same_alone_and_subtypes_lead_to_their_supertypes() {
        let mut all = Canonical::default();
        let alone = numbers(&mut all, "(module (type (func)))");
        let grouped = numbers(&mut all, "(module (rec (type (func)) (type (func (result (ref null 0))))))");
        let again = numbers(
            &mut all,
            "(module (type (func (param f32))) (rec (type (func)) (type (func (result (ref null 1))))))",
        );
        assert_ne!(alone[0], grouped[0]);
        assert_eq!(again[1..], grouped[..]);
        let open =
            numbers(&mut all, "(module (type $a (sub (func))) (type $b (sub $a (func))) (type (sub final $b (func))))");
        assert_eq!(Canonical::subtypes(&all.supertypes, open[0]), open);
        assert_eq!(Canonical::subtypes(&all.supertypes, open[2]), [open[2]]);
    }
}
