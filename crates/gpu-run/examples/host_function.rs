//! A guest calls functions of this program, which keep something for it from call to call.
//!
//! `cargo run --example host_function`

use gpu_run::{Caller, Config, Engine, Linker, Module, Store};

/// In Rust, for wasm32-unknown-unknown or wasm32-wasip1, the imports are:
///
/// ```ignore
/// #[link(wasm_import_module = "shop")]
/// unsafe extern "C" {
///     fn price(name: *const u8, length: usize) -> f64;
///     fn put_into_basket(name: *const u8, length: usize, count: u32);
/// }
/// ```
const GUEST: &str = r#"
    (module
        (import "shop" "price" (func $price (param i32 i32) (result f64)))
        (import "shop" "put_into_basket" (func $put (param i32 i32 i32)))
        (memory (export "memory") 1)
        (data (i32.const 0) "pears")
        ;; Buys so many pears, and returns what they cost.
        (func (export "buy_pears") (param $count i32) (result f64)
            (call $put (i32.const 0) (i32.const 5) (local.get $count))
            (f64.mul (f64.convert_i32_u (local.get $count)) (call $price (i32.const 0) (i32.const 5)))))
"#;

fn main() -> gpu_run::Result<()> {
    let engine = Engine::new(&Config::new())?;
    let mut linker = Linker::new(&engine);
    linker.function("shop", "price", |name: String| match &name[..] {
        "pears" => Ok(0.4),
        _ => Err(format!("there are no {name}")),
    })?;
    let put = |mut caller: Caller<'_, Vec<String>>, name: String, count: u32| {
        caller.data_mut().push(format!("{count} {name}"));
    };
    linker.function("shop", "put_into_basket", put)?;

    let module = Module::new(&engine, GUEST)?;
    let mut store = Store::new(&engine, Vec::new());
    let instance = linker.instantiate(&mut store, &module)?;
    let buy_pears = instance.typed::<u32, f64>(&store, "buy_pears")?;
    for count in [1, 5, 10] {
        println!("{count} pears cost {}", buy_pears.call(&mut store, count)?);
    }
    println!("in the basket: {}", store.into_data().join(", "));
    Ok(())
}
