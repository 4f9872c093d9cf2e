use super::*;

fn read(text: &str) -> Surface {
    Surface::read(&wat::parse_str(text).unwrap(), "a.wasm").unwrap()
}

fn refusal(result: Result<impl std::fmt::Debug>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn an_unknown_import_is_named_with_its_type() {
    let surface = read(r#"(module (import "env" "sin" (func (param f64) (result f64))))"#);
    let text = refusal(surface.check_imports("a.wasm"));
    assert!(
        text.starts_with("a.wasm imports `env.sin` (function, type (f64) -> f64), which nothing provides"),
        "{text}"
    );
    assert!(text.contains("hint: gpu-run provides wasi_snapshot_preview1"), "{text}");
}

#[test]
fn an_import_with_the_wrong_type_is_refused() {
    let wrong = read(r#"(module (import "wasi_snapshot_preview1" "fd_write" (func (param i32) (result i32))))"#);
    let text = refusal(wrong.check_imports("a.wasm"));
    assert!(text.contains("(i32) -> i32, but its type is (i32, i32, i32, i32) -> i32"), "{text}");
    let right = read(include_str!("../tests/wat/surface/provided.wat"));
    right.check_imports("a.wasm").unwrap();
}

#[test]
fn imported_memory_is_refused() {
    let text = refusal(read(r#"(module (import "env" "memory" (memory 1)))"#).check_imports("a.wasm"));
    assert!(text.contains("`env.memory` (memory)"), "{text}");
}

#[test]
fn missing_start_lists_the_exports() {
    let surface =
        read(r#"(module (memory (export "memory") 1) (func (export "add") (param i32 i64) (result f32) unreachable))"#);
    let text = refusal(surface.check_command("a.wasm"));
    assert!(text.contains("memory (memory), add (i32, i64) -> f32"), "{text}");
    assert!(text.contains("--invoke add"), "{text}");
    let text = refusal(read("(module)").check_command("a.wasm"));
    assert!(text.contains("it exports nothing"), "{text}");
    read(r#"(module (func (export "_start")))"#).check_command("a.wasm").unwrap();
}

#[test]
fn the_hint_passes_what_the_function_takes() {
    let text = r#"(module (func (export "main") (param i32 f64 v128 funcref)))"#;
    let text = refusal(read(text).check_command("a.wasm"));
    assert!(text.contains("`gpu-run --invoke main a.wasm 0 0 i32x4:0,0,0,0 null`"), "{text}");
}

#[test]
fn a_memory_named_main_is_no_function() {
    let text = refusal(read(r#"(module (memory (export "main") 1))"#).check_command("a.wasm"));
    assert!(text.contains("it exports main (memory)") && !text.contains("--invoke"), "{text}");
    assert!(text.contains("hint: a program has one: build a binary for wasm32-wasip1"), "{text}");
}

#[test]
fn wasm_bindgen_is_named() {
    for (module, name) in [
        ("wbg", "f"),
        ("__wbindgen_placeholder__", "f"),
        ("./app_bg.js", "__wbg_log_1d990106d99dacb7"),
        ("./app_bg.js", "__wbindgen_throw"),
    ] {
        let text = format!(r#"(module (import "{module}" "{name}" (func)))"#);
        let text = refusal(read(&text).check_imports("a.wasm"));
        assert!(text.contains("hint: it was built for a browser with wasm-bindgen"), "{text}");
    }
}

#[test]
fn main_is_found_where_there_is_no_start() {
    let parameters = |text: &str| read(text).main_parameters();
    assert_eq!(parameters(r#"(module (func (export "main") (result i32) unreachable))"#), Some(0));
    assert_eq!(parameters(r#"(module (func (export "main") (param i32 i32) (result i32) unreachable))"#), Some(2));
    assert_eq!(parameters(r#"(module (func (export "main")))"#), None);
    assert_eq!(parameters(r#"(module (global (export "main") i32 (i32.const 0)))"#), None);
    let both = r#"(module (func (export "_start")) (func (export "main") (result i32) unreachable))"#;
    assert_eq!(parameters(both), None);
}

#[test]
fn signatures_come_from_the_type_section() {
    let surface = read(include_str!("../tests/wat/surface/signatures.wat"));
    let (params, results) = surface.signature("a.wasm", "swap").unwrap();
    assert_eq!(params, [ValueType::I32, ValueType::F64]);
    assert_eq!(results, [ValueType::F64, ValueType::I32]);
    assert!(refusal(surface.signature("a.wasm", "v")).contains("anyref"));
    assert!(refusal(surface.signature("a.wasm", "swp")).contains("did you mean `swap`?"));
}

#[test]
fn a_damaged_module_says_at_which_offset() {
    let module =
        wat::parse_str(r#"(module (memory 1) (func (export "_start")) (data (i32.const 0) "abcdefgh"))"#).unwrap();
    for end in 0..module.len() {
        // Some prefixes are whole modules: those that end between sections. None may panic.
        if let Err(error) = Surface::read(&module[..end], "a.wasm") {
            let text = error.to_string();
            assert!(text.contains("cut short") || text.contains("at offset"), "{end}: {text}");
        }
    }
}

#[test]
fn components_and_unknown_versions_are_told_apart() {
    let text = refusal(Surface::read(b"\0asm\x0d\0\x01\0", "a.wasm"));
    assert!(text.contains("component") && text.contains("wasm32-wasip1"), "{text}");
    let text = refusal(Surface::read(b"\0asm\x02\0\0\0", "a.wasm"));
    assert!(text.contains("version 0x2"), "{text}");
}

#[test]
fn memory_beyond_the_limit_is_refused_before_anything_runs() {
    let surface = read("(module (memory 32))");
    surface.check_memory("a.wasm", None).unwrap();
    surface.check_memory("a.wasm", Some(2 << 20)).unwrap();
    let text = refusal(surface.check_memory("a.wasm", Some(1 << 20)));
    assert!(text.contains("2 MiB") && text.contains("--max-memory 1 MiB"), "{text}");
}

#[test]
fn near_names_look_at_the_last_part_of_a_path() {
    let names = ["hello::main", "core::fmt::write", "std::rt::lang_start"];
    assert_eq!(nearest("mian", names.into_iter()), ["hello::main"]);
    assert!(nearest("zzz", names.into_iter()).is_empty());
}
