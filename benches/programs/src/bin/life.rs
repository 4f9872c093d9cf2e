//! Conway's Game of Life: 100 generations on a torus of 64×64 cells.

use bench_programs::{Random, checksum, instance};

const SIZE: usize = 64;
const GENERATIONS: usize = 100;

type Board = Vec<[u8; SIZE]>;

fn next(board: &Board) -> Board {
    let mut next = vec![[0; SIZE]; SIZE];
    for y in 0..SIZE {
        let rows = [&board[(y + SIZE - 1) % SIZE], &board[y], &board[(y + 1) % SIZE]];
        for x in 0..SIZE {
            let columns = [(x + SIZE - 1) % SIZE, x, (x + 1) % SIZE];
            let around: u8 = rows.iter().map(|row| columns.iter().map(|column| row[*column]).sum::<u8>()).sum();
            // The cell itself is among the nine.
            next[y][x] = match (board[y][x], around) {
                (1, 3 | 4) | (0, 3) => 1,
                _ => 0,
            };
        }
    }
    next
}

fn main() {
    let mut random = Random::new(instance());
    let mut board: Board = vec![[0; SIZE]; SIZE];
    for cell in board.iter_mut().flatten() {
        *cell = u8::from(random.below(3) == 0);
    }
    for _ in 0..GENERATIONS {
        board = next(&board);
    }
    let cells = board.concat();
    let alive = cells.iter().filter(|cell| **cell == 1).count();
    println!("{alive} alive, checksum {:08x}", checksum(&cells));
}
