//! `interpreter [N] <PROGRAM`: runs a program in a small language; the variable `n` holds N.
//!
//! ```text
//! statement  = NAME "=" expr | "print" expr | "while" expr block | "if" expr block ["else" block]
//! block      = "{" statement* "}"
//! expr       = sum [("<" | "==") sum];  sum = product (("+" | "-") product)*
//! product    = atom (("*" | "/" | "%") atom)*;  atom = NUMBER | NAME | "-" atom | "(" expr ")"
//! ```
//! Every node of the program is a trait object that knows how to evaluate or to execute itself.

use std::collections::HashMap;
use std::io::{self, Read};
use std::iter::Peekable;
use std::process::ExitCode;
use std::{env, vec};

type Variables = HashMap<String, i64>;
type Outcome<T> = Result<T, String>;

trait Expr {
    fn eval(&self, variables: &Variables) -> Outcome<i64>;
}

trait Statement {
    fn run(&self, variables: &mut Variables) -> Outcome<()>;
}

struct Number(i64);
struct Name(String);
struct Binary {
    apply: fn(i64, i64) -> Option<i64>,
    symbol: String,
    left: Box<dyn Expr>,
    right: Box<dyn Expr>,
}

impl Expr for Number {
    fn eval(&self, _: &Variables) -> Outcome<i64> {
        Ok(self.0)
    }
}

impl Expr for Name {
    fn eval(&self, variables: &Variables) -> Outcome<i64> {
        variables.get(&self.0).copied().ok_or_else(|| format!("`{}` has no value", self.0))
    }
}

impl Expr for Binary {
    fn eval(&self, variables: &Variables) -> Outcome<i64> {
        let (left, right) = (self.left.eval(variables)?, self.right.eval(variables)?);
        (self.apply)(left, right).ok_or_else(|| format!("{left} {} {right} has no result", self.symbol))
    }
}

struct Assign(String, Box<dyn Expr>);
struct Print(Box<dyn Expr>);
struct While(Box<dyn Expr>, Vec<Box<dyn Statement>>);
struct If(Box<dyn Expr>, Vec<Box<dyn Statement>>, Vec<Box<dyn Statement>>);

fn run_all(statements: &[Box<dyn Statement>], variables: &mut Variables) -> Outcome<()> {
    statements.iter().try_for_each(|statement| statement.run(variables))
}

impl Statement for Assign {
    fn run(&self, variables: &mut Variables) -> Outcome<()> {
        let value = self.1.eval(variables)?;
        variables.insert(self.0.clone(), value);
        Ok(())
    }
}

impl Statement for Print {
    fn run(&self, variables: &mut Variables) -> Outcome<()> {
        println!("{}", self.0.eval(variables)?);
        Ok(())
    }
}

impl Statement for While {
    fn run(&self, variables: &mut Variables) -> Outcome<()> {
        while self.0.eval(variables)? != 0 {
            run_all(&self.1, variables)?;
        }
        Ok(())
    }
}

impl Statement for If {
    fn run(&self, variables: &mut Variables) -> Outcome<()> {
        run_all(if self.0.eval(variables)? != 0 { &self.1 } else { &self.2 }, variables)
    }
}

/// Words, numbers, `==` and single symbols; `#` begins a comment.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or("")) {
        let mut joins = false; // whether the next character continues the last token
        for c in line.chars() {
            let word = c.is_alphanumeric() || c == '_';
            match tokens.last_mut() {
                Some(last) if joins && (word || (last == "=" && c == '=')) => last.push(c),
                _ if c.is_whitespace() => {}
                _ => tokens.push(c.to_string()),
            }
            joins = word || c == '=';
        }
    }
    tokens
}

struct Parser(Peekable<vec::IntoIter<String>>);

impl Parser {
    fn accept(&mut self, token: &str) -> bool {
        self.0.next_if(|next| next == token).is_some()
    }

    fn expect(&mut self, token: &str) -> Outcome<()> {
        if self.accept(token) { Ok(()) } else { Err(format!("expected `{token}`, found {:?}", self.0.peek())) }
    }

    fn block(&mut self) -> Outcome<Vec<Box<dyn Statement>>> {
        self.expect("{")?;
        let mut statements = Vec::new();
        while !self.accept("}") {
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Outcome<Box<dyn Statement>> {
        let word = self.0.next().ok_or("the program ends too early")?;
        Ok(match word.as_str() {
            "print" => Box::new(Print(self.expr()?)),
            "while" => Box::new(While(self.expr()?, self.block()?)),
            "if" => {
                let (condition, then) = (self.expr()?, self.block()?);
                let otherwise = if self.accept("else") { self.block()? } else { Vec::new() };
                Box::new(If(condition, then, otherwise))
            }
            _ => {
                self.expect("=")?;
                Box::new(Assign(word, self.expr()?))
            }
        })
    }

    fn binary(&mut self, symbols: &[&str], operand: fn(&mut Self) -> Outcome<Box<dyn Expr>>) -> Outcome<Box<dyn Expr>> {
        let mut left = operand(self)?;
        while let Some(symbol) = self.0.next_if(|next| symbols.contains(&next.as_str())) {
            let apply: fn(i64, i64) -> Option<i64> = match symbol.as_str() {
                "+" => i64::checked_add,
                "-" => i64::checked_sub,
                "*" => i64::checked_mul,
                "/" => i64::checked_div,
                "%" => i64::checked_rem,
                "<" => |a, b| Some((a < b).into()),
                _ => |a, b| Some((a == b).into()),
            };
            left = Box::new(Binary { apply, symbol, left, right: operand(self)? });
        }
        Ok(left)
    }

    fn expr(&mut self) -> Outcome<Box<dyn Expr>> {
        self.binary(&["<", "=="], |p| p.binary(&["+", "-"], |p| p.binary(&["*", "/", "%"], Self::atom)))
    }

    fn atom(&mut self) -> Outcome<Box<dyn Expr>> {
        let token = self.0.next().ok_or("the program ends too early")?;
        match token.as_str() {
            "(" => {
                let inner = self.expr()?;
                self.expect(")").map(|()| inner)
            }
            "-" => {
                let (left, right) = (Box::new(Number(0)), self.atom()?);
                Ok(Box::new(Binary { apply: i64::checked_sub, symbol: token, left, right }))
            }
            _ => match token.parse() {
                Ok(number) => Ok(Box::new(Number(number))),
                Err(_) if token.starts_with(char::is_alphabetic) => Ok(Box::new(Name(token))),
                Err(_) => Err(format!("expected a value, found `{token}`")),
            },
        }
    }
}

fn interpret(text: &str, n: i64) -> Outcome<()> {
    let mut parser = Parser(tokens(text).into_iter().peekable());
    let mut program = Vec::new();
    while parser.0.peek().is_some() {
        program.push(parser.statement()?);
    }
    run_all(&program, &mut Variables::from([("n".to_owned(), n)]))
}

fn main() -> ExitCode {
    let n = env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(27);
    let mut text = String::new();
    if let Err(error) = io::stdin().read_to_string(&mut text) {
        eprintln!("interpreter: standard input: {error}");
        return ExitCode::FAILURE;
    }
    match interpret(&text, n) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("interpreter: {message}");
            ExitCode::FAILURE
        }
    }
}
