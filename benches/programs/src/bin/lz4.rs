//! Compresses 8 KB of log lines with LZ4, decompresses them and compares.

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

fn main() -> ExitCode {
    let log = log(&mut Random::new(instance()));
    let compressed = lz4_flex::compress_prepend_size(&log);
    match lz4_flex::decompress_size_prepended(&compressed) {
        Ok(back) if back == log => {
            println!("{} to {} bytes, checksum {:08x}", log.len(), compressed.len(), checksum(&compressed));
            ExitCode::SUCCESS
        }
        Ok(_) => {
            eprintln!("lz4: not the same bytes after decompressing");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("lz4: {error}");
            ExitCode::FAILURE
        }
    }
}
