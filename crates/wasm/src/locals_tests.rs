use super::Locals;
use wasmparser::Operator;

/// The locals in the frame of a function with these operators, as text.
fn in_frame(body: &str, locals: u32) -> Vec<u32> {
    let module = wat::parse_str(format!("(module (func (local {}) {body}))", "i32 ".repeat(locals as usize)));
    let module = module.expect("the test's module is right");
    for payload in wasmparser::Parser::new(0).parse_all(&module) {
        if let Ok(wasmparser::Payload::CodeSectionEntry(body)) = payload {
            let operators: Vec<Operator<'_>> =
                body.get_operators_reader().into_iter().flatten().map_while(Result::ok).collect();
            let mut locals = Locals::new(0);
            operators.iter().for_each(|op| locals.operator(op));
            return locals.in_frame(operators);
        }
    }
    Vec::new()
}

fn nest(locals: u32, loops: usize, inside: impl Fn(u32) -> String) -> String {
    let inside: String = (0..locals).map(inside).collect();
    format!("{}{inside}{}", "(loop ".repeat(loops), "(br_if 0 (local.get 0)))".repeat(loops))
}

fn changed(local: u32) -> String {
    format!("(local.set {local} (i32.add (local.get {local}) (i32.const 1)))")
}

#[test]
fn many_locals_through_many_loops_live_in_the_frame() {
    // The first is read by every loop.
    assert_eq!(in_frame(&nest(300, 300, changed), 300), (1..300).collect::<Vec<_>>());
}

#[test]
fn ordinary_functions_have_none_there() {
    assert_eq!(in_frame(&nest(300, 3, changed), 300), [0u32; 0]);
    assert_eq!(in_frame(&nest(3, 300, changed), 3), [0u32; 0]);
    assert_eq!(in_frame(&nest(40, 40, changed), 40), [0u32; 0]);
}

#[test]
fn locals_that_no_loop_changes_cost_nothing() {
    let read = |local| format!("(drop (local.get {local}))");
    assert_eq!(in_frame(&nest(300, 300, read), 300), [0u32; 0]);
}

#[test]
fn many_ways_out_of_nested_blocks_count_as_loops_do() {
    let (depth, locals) = (300, 300);
    let out: String = (0..depth).map(|n| format!("(br_if {n} (local.get 0))")).collect();
    let inside: String = (0..locals).map(changed).collect();
    let after: String = (0..locals).map(|local| format!("(drop (local.get {local}))")).collect();
    let body = format!("{}{out}{inside}{}{after}", "(block ".repeat(depth), ")".repeat(depth));
    assert!(in_frame(&body, locals).len() > 250);
}

#[test]
fn many_branches_to_one_loop_count_as_well() {
    let branches = "(br_if 0 (local.get 0))".repeat(1000);
    let changes: String = (0..1000).map(changed).collect();
    assert!(in_frame(&format!("(loop {changes}{branches})"), 1000).len() > 900);
}
