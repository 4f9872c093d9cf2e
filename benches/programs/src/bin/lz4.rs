//! Compresses log lines with LZ4, three blocks of 8 KB; decompresses them and compares.

use bench_programs::{Random, checksum, instance};
use std::process::ExitCode;

fn log(random: &mut Random) -> Vec<u8> {
    let mut log = String::new();
    let mut time = 0;
    while log.len() < 8192 {
        time += random.below(2000);
        let level = random.pick(&["INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"]);
        let event = random.pick(&["request served", "cache miss", "connection opened", "connection closed", "retry"]);
        log += &format!("{time:>9} {level:<5} worker-{} {event} in {} us\n", random.below(16), random.below(10_000));
    }
    log.truncate(8192);
    log.into_bytes()
}

/// Compresses and decompresses; what the compressed bytes are like.
fn round_trip(log: &[u8]) -> Result<(usize, u32), String> {
    let compressed = lz4_flex::compress_prepend_size(log);
    let back = lz4_flex::decompress_size_prepended(&compressed).map_err(|error| error.to_string())?;
    if back != log {
        return Err("not the same bytes after decompressing".to_owned());
    }
    Ok((compressed.len(), checksum(&compressed)))
}

fn main() -> ExitCode {
    let mut random = Random::new(instance());
    for _ in 0..3 {
        let log = log(&mut random);
        match round_trip(&log) {
            Ok((length, checksum)) => println!("{} to {length} bytes, checksum {checksum:08x}", log.len()),
            Err(error) => {
                eprintln!("lz4: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
