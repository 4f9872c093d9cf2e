//! Calls an exported function for each row of two columns.
//!
//! `cargo run --release --example column -- [ROWS]`

use gpu_run::{Config, Engine, Mapper, Module};

/// How many steps a number takes to 1, if each even number is halved, and an odd one tripled and increased by one.
///
/// In Rust, for wasm32-unknown-unknown or wasm32-wasip1, in a library with `crate-type = ["cdylib"]`:
///
/// ```ignore
/// #[unsafe(no_mangle)]
/// pub extern "C" fn steps(n: u64, most: u32) -> u32 { … }
/// ```
const GUEST: &str = r#"
    (module
        (func (export "steps") (param $n i64) (param $most i32) (result i32)
            (local $steps i32)
            (block $done
                (loop $next
                    (br_if $done (i64.le_u (local.get $n) (i64.const 1)))
                    (br_if $done (i32.ge_u (local.get $steps) (local.get $most)))
                    (local.set $n (if (result i64) (i64.eqz (i64.and (local.get $n) (i64.const 1)))
                        (then (i64.shr_u (local.get $n) (i64.const 1)))
                        (else (i64.add (i64.mul (local.get $n) (i64.const 3)) (i64.const 1)))))
                    (local.set $steps (i32.add (local.get $steps) (i32.const 1)))
                    (br $next)))
            (local.get $steps)))
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows = std::env::args().nth(1).map_or(Ok(1_000_000), |rows| rows.parse())?;
    let engine = Engine::new(&Config::new())?;
    let module = Module::new(&engine, GUEST)?;
    let mut steps = Mapper::builder(&module).function::<(u64, u32), u32>("steps")?;

    let mut longest = (0, 0);
    for (n, steps) in (1..).zip(steps.map((1..=rows).map(|n: u64| (n, 10_000)))) {
        let steps = steps?.map_err(|status| status.to_string())?;
        if steps > longest.1 {
            longest = (n, steps);
        }
    }
    println!("up to {rows}, {} takes the most steps: {}", longest.0, longest.1);
    Ok(())
}
