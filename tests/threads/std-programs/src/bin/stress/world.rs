//! What the threads share, and what they do with it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, RwLock};
use std::thread;
use std::time::Duration;
use std_programs::Random;

const ACCOUNTS: usize = 64;
const START: i64 = 1000;
const MAX_STEPS: u64 = 16;
const MAX_BYTES: u64 = 4096;
const MAX_TABLE: usize = 64;

/// A thread's part in its pair: how many items it puts into the queue, or takes from it.
#[derive(Clone, Copy)]
pub enum Part {
    Puts(u64),
    Takes(u64),
}

impl Part {
    /// Makes the two threads of a pair draw different numbers.
    pub fn salt(self) -> u64 {
        matches!(self, Part::Takes(_)).into()
    }
}

/// Values, and their sum.
#[derive(Default)]
struct Table {
    values: Vec<u64>,
    sum: u64,
}

pub struct World {
    accounts: Vec<Mutex<i64>>,
    table: RwLock<Table>,
    queue: Mutex<VecDeque<Box<u64>>>,
    is_filled: Condvar,
    put: AtomicU64,
    taken: AtomicU64,
    steps: AtomicU64,
    inner: AtomicU64,
}

impl Default for World {
    fn default() -> Self {
        Self {
            accounts: (0..ACCOUNTS).map(|_| Mutex::new(START)).collect(),
            table: RwLock::default(),
            queue: Mutex::default(),
            is_filled: Condvar::new(),
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            inner: AtomicU64::new(0),
        }
    }
}

impl World {
    pub fn steps(&self) -> u64 {
        self.steps.load(Relaxed)
    }

    /// Threads that threads started.
    pub fn inner(&self) -> u64 {
        self.inner.load(Relaxed)
    }

    /// Checks all sums between two rounds, and empties what holds memory.
    pub fn check(&self) -> Result<(), String> {
        let sum: i64 = self.accounts.iter().map(|account| *account.lock().unwrap()).sum();
        let (put, taken) = (self.put.load(Relaxed), self.taken.load(Relaxed));
        let left = std::mem::take(&mut *self.queue.lock().unwrap()).len();
        let table = std::mem::take(&mut *self.table.write().unwrap());
        if sum != START * ACCOUNTS as i64 {
            return Err(format!("the accounts have {sum}"));
        }
        if put != taken || left != 0 {
            return Err(format!("the items put add up to {put}, the items taken to {taken}, and {left} are left"));
        }
        match table.sum == table.values.iter().sum() {
            true => Ok(()),
            false => Err("the table's sum is wrong".into()),
        }
    }

    /// What a thread of a round does.
    pub fn thread(&self, part: Part, mut random: Random) {
        let (mut items, step): (u64, fn(&Self, &mut Random)) = match part {
            Part::Puts(items) => (items, Self::put),
            Part::Takes(items) => (items, |world, _| world.take()),
        };
        for _ in 0..draw(&mut random, MAX_STEPS) {
            self.step(&mut random);
            if items > 0 && draw(&mut random, 4) == 0 {
                step(self, &mut random);
                items -= 1;
            }
        }
        (0..items).for_each(|_| step(self, &mut random));
    }

    fn step(&self, random: &mut Random) {
        self.steps.fetch_add(1, Relaxed);
        match draw(random, 16) {
            0..4 => self.transfer(random),
            4..8 => allocate(random),
            8..10 => self.write(random),
            10..13 => self.read(),
            13 => thread::yield_now(),
            14 => thread::sleep(Duration::from_micros(draw(random, 100))),
            _ => self.start_another(random),
        }
    }

    fn transfer(&self, random: &mut Random) {
        let [from, to] = [0; 2].map(|_| draw(random, ACCOUNTS as u64) as usize);
        let amount = draw(random, 100) as i64;
        // In the order of the accounts, so that no two threads wait for each other.
        let (low, high, amount) = if from < to { (from, to, amount) } else { (to, from, -amount) };
        if low != high {
            let (mut low, mut high) = (self.accounts[low].lock().unwrap(), self.accounts[high].lock().unwrap());
            *low -= amount;
            *high += amount;
        }
    }

    fn write(&self, random: &mut Random) {
        let value = draw(random, 1000);
        let mut table = self.table.write().unwrap();
        if table.values.len() == MAX_TABLE {
            *table = Table::default();
        }
        table.values.push(value);
        table.sum += value;
    }

    fn read(&self) {
        let table = self.table.read().unwrap();
        assert_eq!(table.sum, table.values.iter().sum::<u64>(), "a reader saw half of a write");
    }

    fn put(&self, random: &mut Random) {
        let item = draw(random, 1000);
        self.put.fetch_add(item, Relaxed);
        self.queue.lock().unwrap().push_back(Box::new(item));
        self.is_filled.notify_one();
    }

    /// Waits for an item: as many are put as are taken, and no thread that puts ever waits for one.
    fn take(&self) {
        let queue = self.queue.lock().unwrap();
        let item = self.is_filled.wait_while(queue, |queue| queue.is_empty()).unwrap().pop_front();
        self.taken.fetch_add(*item.expect("it was waited for"), Relaxed);
    }

    /// Starts a thread and waits for it, parked at first. There may be no place for one.
    fn start_another(&self, random: &mut Random) {
        let (is_done, parent, mut own) = (AtomicBool::new(false), thread::current(), Random::new(random.draw()));
        thread::scope(|scope| {
            let child = || {
                self.transfer(&mut own);
                allocate(&mut own);
                is_done.store(true, Relaxed);
                parent.unpark();
            };
            if let Ok(child) = thread::Builder::new().spawn_scoped(scope, child) {
                self.inner.fetch_add(1, Relaxed);
                while !is_done.load(Relaxed) {
                    thread::park();
                }
                child.join().expect("it does not panic");
            }
        });
    }
}

/// Draws a number below a limit.
fn draw(random: &mut Random, limit: u64) -> u64 {
    (random.draw() >> 20) % limit
}

/// Fills vectors of random lengths, lets them grow, and looks whether they are still what they were.
fn allocate(random: &mut Random) {
    let value = draw(random, 256) as u8;
    let mut bytes = vec![value; 1 + draw(random, MAX_BYTES) as usize];
    let other = vec![!value; 1 + draw(random, MAX_BYTES) as usize];
    bytes.resize(bytes.len() + draw(random, MAX_BYTES) as usize, value);
    let is_kept = bytes.iter().all(|byte| *byte == value) && other.iter().all(|byte| *byte == !value);
    assert!(is_kept, "another thread's memory overlaps with this one's");
}
