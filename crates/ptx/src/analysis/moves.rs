//! The order of a parallel move.
//!
//! On an edge, all parameters of the target block take their arguments at once. An argument may be another parameter of
//! the same block (in a loop that swaps two variables). So the moves need an order in which no register is overwritten
//! before it is read and, where they form a cycle, one more register to save a value in.

/// One step of the sequence. Numbers are positions in the parameter list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Parameter `.0` takes its argument.
    Move(usize),
    /// Parameter `.0` is saved: a cycle begins.
    Save(usize),
    /// Parameter `.0` takes the saved value: the cycle ends.
    Restore(usize),
}

/// The kind of argument `i`; nothing else about it matters for the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Parameter `i` itself: nothing to do.
    Itself,
    /// Another parameter of the target.
    Parameter(usize),
    /// Something no move writes.
    Other,
}

/// Puts the moves in order, in linear time.
pub(crate) fn sequence(sources: &[Source], steps: &mut Vec<Step>) {
    steps.clear();
    if sources.iter().all(|s| !matches!(s, Source::Parameter(_))) {
        steps.extend((0..sources.len()).filter(|&i| sources[i] == Source::Other).map(Step::Move));
        return;
    }
    let mut readers = vec![0u32; sources.len()];
    for source in sources {
        if let Source::Parameter(j) = *source {
            readers[j] += 1;
        }
    }
    let mut done: Vec<bool> = sources.iter().map(|s| *s == Source::Itself).collect();
    // A move is ready once no other move still reads the parameter it overwrites.
    let mut ready: Vec<usize> = (0..sources.len()).rev().filter(|&i| !done[i] && readers[i] == 0).collect();
    while let Some(i) = ready.pop() {
        steps.push(Step::Move(i));
        done[i] = true;
        if let Source::Parameter(j) = sources[i] {
            readers[j] -= 1;
            if readers[j] == 0 && !done[j] {
                ready.push(j);
            }
        }
    }
    // Only cycles are left: each parameter is read by exactly one other.
    for start in 0..sources.len() {
        if done[start] {
            continue;
        }
        steps.push(Step::Save(start));
        let mut i = start;
        loop {
            done[i] = true;
            match sources[i] {
                Source::Parameter(j) if j != start => {
                    steps.push(Step::Move(i));
                    i = j;
                }
                _ => {
                    steps.push(Step::Restore(i));
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the steps on registers that hold their own number, and compares with all moves made at once.
    fn check(sources: &[Source]) {
        let mut steps = Vec::new();
        sequence(sources, &mut steps);
        let mut registers: Vec<usize> = (0..sources.len()).collect();
        let argument = |registers: &[usize], i: usize| match sources[i] {
            Source::Itself => registers[i],
            Source::Parameter(j) => registers[j],
            Source::Other => 1000 + i,
        };
        let want: Vec<usize> = (0..sources.len()).map(|i| argument(&registers, i)).collect();
        let mut saved = None;
        for step in &steps {
            match *step {
                Step::Move(i) => registers[i] = argument(&registers, i),
                Step::Save(i) => saved = Some(registers[i]),
                Step::Restore(i) => registers[i] = saved.take().expect("something was put aside"),
            }
        }
        assert_eq!(registers, want, "{sources:?} {steps:?}");
        assert!(steps.len() <= sources.len() * 3 / 2 + 1, "too many moves for {sources:?}");
    }

    #[test]
    fn every_assignment_of_four_parameters() {
        for code in 0..6usize.pow(4) {
            let sources: Vec<Source> = (0..4)
                .map(|i| match code / 6usize.pow(i) % 6 {
                    5 => Source::Other,
                    j if j == i as usize || j == 4 => Source::Itself,
                    j => Source::Parameter(j),
                })
                .collect();
            check(&sources);
        }
    }

    #[test]
    fn random_assignments_of_many_parameters() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let n = random.usize(1..=40);
            let mut sources: Vec<Source> = (0..n).map(Source::Parameter).collect();
            random.shuffle(&mut sources);
            for (i, source) in sources.iter_mut().enumerate() {
                match random.u8(..8) {
                    0 => *source = Source::Other,
                    1 => *source = Source::Parameter(random.usize(..n)),
                    _ => {}
                }
                if *source == Source::Parameter(i) {
                    *source = Source::Itself;
                }
            }
            check(&sources);
        }
    }
}
