//! Multiplies 64×64 matrices, in f32 and in f64.

use bench_programs::{Random, instance};
use std::iter::Sum;
use std::ops::{Add, Mul};

const SIZE: usize = 64;

struct Matrix<T>(Vec<T>);

impl<T: Copy + Default + Add<Output = T> + Mul<Output = T> + Sum> Matrix<T> {
    fn new(mut element: impl FnMut() -> T) -> Self {
        Self((0..SIZE * SIZE).map(|_| element()).collect())
    }

    fn multiply(&self, other: &Self) -> Self {
        let mut product = vec![T::default(); SIZE * SIZE];
        for (row, out) in self.0.chunks_exact(SIZE).zip(product.chunks_exact_mut(SIZE)) {
            for (factor, other_row) in row.iter().zip(other.0.chunks_exact(SIZE)) {
                for (sum, element) in out.iter_mut().zip(other_row) {
                    *sum = *sum + *factor * *element;
                }
            }
        }
        Self(product)
    }

    fn trace(&self) -> T {
        (0..SIZE).map(|i| self.0[i * SIZE + i]).sum()
    }

    fn sum(&self) -> T {
        self.0.iter().copied().sum()
    }
}

fn main() {
    let mut random = Random::new(instance());
    let [a, b] = [(); 2].map(|()| Matrix::new(|| random.unit() as f32 - 0.5));
    let product = a.multiply(&b);
    println!("f32: trace {:.4}, sum {:.4}", product.trace(), product.sum());
    let [a, b] = [(); 2].map(|()| Matrix::new(|| random.unit() - 0.5));
    let product = a.multiply(&b);
    println!("f64: trace {:.9}, sum {:.9}", product.trace(), product.sum());
}
