//! The threads proposal's instructions, each in a function of its own, in two versions: as they are, and made of ordinary ones.
//!
//! The Wasmtime that is compared with does not know them. One thread cannot tell an atomic access from an ordinary one that traps where it is not aligned, so it gets the second
//! version, in which such a trap is `unreachable`.

use std::fmt::Write;

/// What a module takes for these instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Atomic { shared: bool },
    Plain { shared: bool },
}

const OPERATIONS: [&str; 6] = ["add", "sub", "and", "or", "xor", "xchg"];

/// One instruction: its name, the type of its values, log2 of its width, how many values it takes besides the address.
#[derive(Clone, Debug)]
pub(crate) struct Atomic {
    pub(crate) name: String,
    pub(crate) ty: &'static str,
    pub(crate) log2: usize,
    pub(crate) values: usize,
    what: &'static str,
}

/// All that give a value of this type; with none, stores.
pub(crate) fn all(ty: &'static str, stores: bool) -> Vec<Atomic> {
    let widest = if ty == "i32" { 2 } else { 3 };
    let mut all = Vec::new();
    for log2 in 0..=widest {
        let bits = if log2 == widest { String::new() } else { (8 << log2).to_string() };
        let narrow = if log2 == widest { "" } else { "_u" };
        let mut add = |name: String, what, values| all.push(Atomic { name, ty, log2, values, what });
        if stores {
            add(format!("{ty}.atomic.store{bits}"), "store", 1);
            continue;
        }
        add(format!("{ty}.atomic.load{bits}{narrow}"), "load", 0);
        for what in OPERATIONS {
            add(format!("{ty}.atomic.rmw{bits}.{what}{narrow}"), what, 1);
        }
        add(format!("{ty}.atomic.rmw{bits}.cmpxchg{narrow}"), "cmpxchg", 2);
    }
    all
}

impl Atomic {
    fn plain_name(&self, what: &str) -> String {
        let is_widest = (self.log2 == 2 && self.ty == "i32") || self.log2 == 3;
        let bits = if is_widest { String::new() } else { (8 << self.log2).to_string() };
        let sign = if is_widest || what == "store" { "" } else { "_u" };
        format!("{}.{what}{bits}{sign}", self.ty)
    }

    /// Some have an offset.
    fn offset(&self) -> usize {
        if self.name.len().is_multiple_of(2) { 3 << self.log2 } else { 0 }
    }

    fn plain(&self) -> String {
        let (ty, place) = (self.ty, format!("offset={} (local.get 0)", self.offset()));
        let old = format!("({} {place})", self.plain_name("load"));
        let new = match self.what {
            "load" => return old,
            "store" => return format!("({} {place} (local.get 1))", self.plain_name("store")),
            "xchg" => "(local.get 1)".to_owned(),
            "cmpxchg" => {
                let mask = if self.log2 == 3 { -1 } else { (1i64 << (8 << self.log2)) - 1 };
                let mask = if ty == "i32" { i64::from(mask as i32) } else { mask };
                let expected = format!("({ty}.and (local.get 1) ({ty}.const {mask}))");
                format!("(select (local.get 2) (local.get $old) ({ty}.eq (local.get $old) {expected}))")
            }
            what => format!("({ty}.{what} (local.get $old) (local.get 1))"),
        };
        format!("(local.set $old {old}) ({} {place} {new}) (local.get $old)", self.plain_name("store"))
    }

    fn function(&self, version: Version) -> String {
        let Self { name, ty, values, .. } = self;
        let params = format!("i32{}", format!(" {ty}").repeat(*values));
        let result = if self.what == "store" { String::new() } else { format!(" (result {ty})") };
        let body = match version {
            Version::Atomic { .. } => {
                let values: String = (1..=*values).map(|i| format!(" (local.get {i})")).collect();
                format!("({name} offset={} (local.get 0){values})", self.offset())
            }
            Version::Plain { .. } => format!("(local $old {ty}) {} {}", aligned(self.log2), self.plain()),
        };
        format!("  (func ${name} (param {params}){result} {body})\n")
    }
}

fn aligned(log2: usize) -> String {
    format!("(if (i32.and (local.get 0) (i32.const {})) (then (unreachable)))", (1 << log2) - 1)
}

/// The functions, named as the instructions.
pub(crate) fn functions(version: Version) -> String {
    let mut text = String::new();
    for ty in ["i32", "i64"] {
        for stores in [false, true] {
            all(ty, stores).iter().for_each(|atomic| text += &atomic.function(version));
        }
    }
    for (name, ty, log2, timeout) in [("wait32", "i32", 2, 2000), ("wait64", "i64", 3, 0)] {
        let body = match version {
            Version::Atomic { .. } => {
                format!("(memory.atomic.{name} (local.get 0) (local.get 1) (i64.const {timeout}))")
            }
            Version::Plain { shared: true } => format!(
                "{} (select (i32.const 2) (i32.const 1) ({ty}.eq ({ty}.load (local.get 0)) (local.get 1)))",
                aligned(log2)
            ),
            Version::Plain { shared: false } => {
                format!("{} (drop ({ty}.load (local.get 0))) (unreachable)", aligned(log2))
            }
        };
        _ = writeln!(text, "  (func $memory.atomic.{name} (param i32 {ty}) (result i32) {body})");
    }
    let notify = match version {
        Version::Atomic { .. } => "(memory.atomic.notify (local.get 0) (local.get 1)) (atomic.fence)".to_owned(),
        Version::Plain { .. } => format!("{} (drop (i32.load (local.get 0))) (i32.const 0)", aligned(2)),
    };
    _ = writeln!(text, "  (func $memory.atomic.notify (param i32 i32) (result i32) {notify})");
    text
}

/// ` shared`, of the memory.
pub(crate) fn sharing(version: Version) -> &'static str {
    if version == (Version::Atomic { shared: true }) { " shared" } else { "" }
}
