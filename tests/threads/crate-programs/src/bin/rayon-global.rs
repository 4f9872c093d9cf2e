//! `rayon-global`: the global pool, whose size is the environment variable RAYON_NUM_THREADS.

use rayon::prelude::*;

fn main() {
    let text: String = (0..3000).map(|i| format!("word{} ", i * i % 977)).collect();
    let (count, bytes) =
        text.par_split_whitespace().map(|word| (1usize, word.len())).reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    println!("{count} words, {bytes} bytes, {} threads", rayon::current_num_threads());
    let mut rows: Vec<Vec<u32>> = (0..100).map(|row| (0..100).map(|i| (row * i) % 101).collect()).collect();
    rows.par_iter_mut().for_each(|row| row.sort_unstable());
    let checksum =
        rows.concat().into_par_iter().zip(0u32..10_000).map(|(a, b)| u64::from(a) * u64::from(b)).sum::<u64>();
    println!("checksum {checksum}");
    let chunks: Vec<u32> = rows.concat().par_chunks(7).map(|chunk| chunk.iter().sum()).collect();
    println!("{} chunks, {:?}", chunks.len(), chunks.par_iter().position_first(|sum| *sum == 0));
}
