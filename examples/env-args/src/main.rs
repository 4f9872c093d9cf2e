//! `env-args NAME…`: shows its arguments, and the environment variables they name. When a thousand instances of a program
//! run side by side, `GPU_RUN_INSTANCE` tells each which one it is.

use std::env;

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    println!("{} arguments", args.len());
    for (i, arg) in args.iter().enumerate() {
        println!("  {}: {arg:?}, {} bytes, {} characters", i + 1, arg.len(), arg.chars().count());
    }
    for name in &args {
        match env::var(name) {
            Ok(value) => println!("{name}={value}"),
            Err(env::VarError::NotPresent) => println!("{name} is not set"),
            Err(env::VarError::NotUnicode(raw)) => println!("{name} is not UTF-8: {} bytes", raw.len()),
        }
    }
    match env::var("GPU_RUN_INSTANCE").ok().and_then(|n| n.parse::<u64>().ok()) {
        Some(n) => println!("instance {n}, after it comes {}", n + 1),
        None => println!("not one of many"),
    }
}
