//! Assembles a program for a small stack machine and interprets it: the lengths of Collatz sequences.

use bench_programs::instance;
use std::collections::HashMap;
use std::process::ExitCode;

/// For each number from FIRST to LAST: how long its sequence down to 1 is. Prints the longest length and the sum.
const COLLATZ: &str = "
        push FIRST
        store start
next:   load start
        store n
        push 1
        store length
step:   load n
        push 1
        equal
        jump_if done
        load length
        push 1
        add
        store length
        load n
        odd
        jump_if odd
        load n
        halve
        store n
        jump step
odd:    load n
        push 3
        multiply
        push 1
        add
        store n
        jump step
done:   load sum
        load length
        add
        store sum
        load longest
        load length
        less
        jump_if longer
        jump on
longer: load length
        store longest
on:     load start
        push LAST
        equal
        jump_if end
        load start
        push 1
        add
        store start
        jump next
end:    load longest
        print
        load sum
        print
        halt
";

#[derive(Clone, Copy)]
enum Op {
    Push(u64),
    Load(usize),
    Store(usize),
    Add,
    Multiply,
    Halve,
    Odd,
    Equal,
    Less,
    Jump(usize),
    JumpIf(usize),
    Print,
    Halt,
}

/// The operations, and how many variables they use. The error is the line that is wrong.
fn assemble(text: &str) -> Result<(Vec<Op>, usize), &str> {
    let mut labels = HashMap::new();
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let code = match line.split_once(':') {
            Some((label, code)) => {
                labels.insert(label, lines.len());
                code
            }
            None => line,
        };
        lines.push(code.trim());
    }
    let mut variables = HashMap::new();
    let mut ops = Vec::new();
    for line in lines {
        let (name, operand) = line.split_once(' ').unwrap_or((line, ""));
        let label = || labels.get(operand).copied().ok_or(line);
        let mut variable = || {
            let free = variables.len();
            *variables.entry(operand).or_insert(free)
        };
        ops.push(match name {
            "push" => Op::Push(operand.parse().map_err(|_| line)?),
            "load" => Op::Load(variable()),
            "store" => Op::Store(variable()),
            "add" => Op::Add,
            "multiply" => Op::Multiply,
            "halve" => Op::Halve,
            "odd" => Op::Odd,
            "equal" => Op::Equal,
            "less" => Op::Less,
            "jump" => Op::Jump(label()?),
            "jump_if" => Op::JumpIf(label()?),
            "print" => Op::Print,
            "halt" => Op::Halt,
            _ => return Err(line),
        });
    }
    Ok((ops, variables.len()))
}

/// Runs until `halt`: what was printed, and how many operations it took. `None` where the program takes from an empty
/// stack or has no end.
fn run(program: &[Op], variables: usize) -> Option<(Vec<u64>, u64)> {
    let mut stack: Vec<u64> = Vec::new();
    let mut variables = vec![0; variables];
    let mut printed = Vec::new();
    let mut operations = 0;
    let mut at = 0;
    loop {
        let op = *program.get(at)?;
        at += 1;
        operations += 1;
        match op {
            Op::Push(value) => stack.push(value),
            Op::Load(variable) => stack.push(variables[variable]),
            Op::Store(variable) => variables[variable] = stack.pop()?,
            Op::Add => binary(&mut stack, u64::wrapping_add)?,
            Op::Multiply => binary(&mut stack, u64::wrapping_mul)?,
            Op::Halve => *stack.last_mut()? /= 2,
            Op::Odd => *stack.last_mut()? %= 2,
            Op::Equal => binary(&mut stack, |a, b| u64::from(a == b))?,
            Op::Less => binary(&mut stack, |a, b| u64::from(a < b))?,
            Op::Jump(target) => at = target,
            Op::JumpIf(target) => {
                if stack.pop()? != 0 {
                    at = target;
                }
            }
            Op::Print => printed.push(stack.pop()?),
            Op::Halt => return Some((printed, operations)),
        }
    }
}

fn binary(stack: &mut Vec<u64>, operation: impl Fn(u64, u64) -> u64) -> Option<()> {
    let right = stack.pop()?;
    let left = stack.last_mut()?;
    *left = operation(*left, right);
    Some(())
}

fn main() -> ExitCode {
    let first = 1000 + u64::from(instance());
    let text = COLLATZ.replace("FIRST", &first.to_string()).replace("LAST", &(first + 59).to_string());
    let (program, variables) = match assemble(&text) {
        Ok(assembled) => assembled,
        Err(line) => {
            eprintln!("interpreter: cannot assemble {line:?}");
            return ExitCode::FAILURE;
        }
    };
    let Some((printed, operations)) = run(&program, variables) else {
        eprintln!("interpreter: the program is wrong");
        return ExitCode::FAILURE;
    };
    println!("longest {}, sum {}, {operations} operations", printed[0], printed[1]);
    ExitCode::SUCCESS
}
