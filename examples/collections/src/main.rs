//! `collections [SEED]`: a shortest path, a queue at a counter, an index, a tree with parent links: the standard library's collections at work.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};
use std::env;
use std::fmt::Write;
use std::rc::{Rc, Weak};

struct Random(u32);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_103_515_245).wrapping_add(12345);
        (self.0 >> 8) % limit
    }
}

/// Dijkstra's algorithm over a random graph: `BinaryHeap` as the frontier, `BTreeMap` for the roads.
fn shortest_path(random: &mut Random) {
    const TOWNS: u32 = 40;
    let mut roads: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for town in 0..TOWNS {
        for _ in 0..3 {
            let (to, length) = (random.below(TOWNS), 1 + random.below(50));
            roads.entry(town).or_default().push((to, length));
        }
    }
    let mut best = HashMap::from([(0, (0, 0))]);
    let mut frontier = BinaryHeap::from([Reverse((0, 0))]);
    while let Some(Reverse((distance, town))) = frontier.pop() {
        if distance > best[&town].0 {
            continue;
        }
        for &(to, length) in &roads[&town] {
            let further = distance + length;
            if best.get(&to).is_none_or(|&(known, _)| further < known) {
                best.insert(to, (further, town));
                frontier.push(Reverse((further, to)));
            }
        }
    }
    let farthest = best.iter().max_by_key(|&(&town, &(distance, _))| (distance, town));
    if let Some((&town, &(distance, _))) = farthest {
        let mut path = vec![town];
        while path[path.len() - 1] != 0 {
            path.push(best[&path[path.len() - 1]].1);
        }
        path.reverse();
        println!("{} of {TOWNS} towns reached, the farthest {distance} away by {path:?}", best.len());
    }
}

/// Customers come and go: a `VecDeque` that wraps around many times.
fn queue(random: &mut Random) {
    let mut waiting = VecDeque::with_capacity(8);
    let (mut next, mut served, mut longest, mut total) = (0u32, 0u32, 0, 0u64);
    for minute in 0..500 {
        if random.below(5) < 3 {
            waiting.push_back((next, minute));
            next += 1;
        }
        if random.below(2) == 0
            && let Some((_, since)) = waiting.pop_front()
        {
            served += 1;
            total += minute - since;
        }
        if waiting.len() > 6 && random.below(4) == 0 {
            waiting.rotate_left(1); // someone lets the next one go first
        }
        longest = longest.max(waiting.len());
    }
    let left: Vec<_> = waiting.iter().map(|&(customer, _)| customer).collect();
    println!("served {served} of {next}, the queue was {longest} long at most, {total} minutes waited, left: {left:?}");
}

/// Sets: what primes, squares and random numbers have in common.
fn sets(random: &mut Random) {
    let primes: BTreeSet<u32> = (2..200).filter(|n| (2..*n).all(|d| n % d != 0)).collect();
    let drawn: HashSet<u32> = (0..100).map(|_| random.below(200)).collect();
    let both: BTreeSet<_> = primes.iter().copied().filter(|n| drawn.contains(n)).collect();
    let middle: Vec<_> = both.range(50..120).collect();
    println!("{} drawn, {} of them prime, between 50 and 120: {middle:?}", drawn.len(), both.len());
    println!(
        "first {:?}, last {:?}, {} in neither",
        both.first(),
        both.last(),
        200 - primes.union(&drawn.into_iter().collect()).count()
    );
}

/// A tree whose nodes own their children and know their parent without owning it.
struct Node {
    name: u32,
    parent: RefCell<Weak<Node>>,
    children: RefCell<Vec<Rc<Node>>>,
}

impl Node {
    fn new(name: u32) -> Rc<Self> {
        Rc::new(Self { name, parent: RefCell::default(), children: RefCell::default() })
    }

    fn adopt(self: &Rc<Self>, child: &Rc<Node>) {
        *child.parent.borrow_mut() = Rc::downgrade(self);
        self.children.borrow_mut().push(Rc::clone(child));
    }

    fn write(&self, out: &mut String) {
        let _ = write!(out, "{}", self.name); // writing to a String cannot fail
        let children = self.children.borrow();
        if !children.is_empty() {
            out.push('(');
            for (i, child) in children.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { " " });
                child.write(out);
            }
            out.push(')');
        }
    }
}

fn tree(random: &mut Random) {
    let root = Node::new(0);
    let mut nodes = vec![Rc::clone(&root)];
    for name in 1..20 {
        let node = Node::new(name);
        nodes[random.below(name) as usize].adopt(&node);
        nodes.push(node);
    }
    let mut text = String::new();
    root.write(&mut text);
    println!("{text}");

    let mut ancestors = Vec::new();
    let mut at = Rc::clone(&nodes[19]);
    while let Some(parent) = { at.parent.borrow().upgrade() } {
        ancestors.push(parent.name);
        at = parent;
    }
    println!("above 19: {ancestors:?}; {} hold the root, {} know it", Rc::strong_count(&root), Rc::weak_count(&root));
    let last = Rc::downgrade(&nodes[19]);
    drop((at, nodes, root));
    println!("after the drop, 19 is {}", if last.upgrade().is_some() { "still there" } else { "gone" });
}

fn main() {
    let seed = env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(7);
    let mut random = Random(seed);
    println!("seed {seed}");
    shortest_path(&mut random);
    queue(&mut random);
    sets(&mut random);
    tree(&mut random);
}
