//! Many tasks of an asynchronous program send records one by one; what waits together runs together.
//!
//! `cargo run --release --example service -- FILE.wasm [TASKS]`

use gpu_run::{Config, Engine, Mapper, Module};
use std::time::{Duration, Instant};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("which .wasm file?")?;
    let tasks: u32 = args.next().map_or(Ok(1000), |tasks| tasks.parse())?;

    let engine = Engine::new(&Config::new())?;
    let module = Module::from_file(&engine, &file)?;
    let service = Mapper::builder(&module).arg(&file).batch(4096).build()?.serve()?;

    let request = |task: u32| {
        let service = service.clone();
        async move {
            let began = Instant::now();
            let output = service.run(format!("task {task}\n")).await?;
            Ok::<_, gpu_run::Error>((output.status.success(), began.elapsed()))
        }
    };
    let tasks: Vec<_> = (0..tasks).map(|task| tokio::spawn(request(task))).collect();
    let (mut answered, mut longest) = (0, Duration::ZERO);
    for task in tasks {
        let (success, took) = task.await??;
        answered += u32::from(success);
        longest = longest.max(took);
    }
    println!("{answered} requests answered on {}, the slowest after {longest:.1?}", engine.device());
    Ok(())
}
