use super::*;

fn frames(names: &[&str]) -> Vec<Frame> {
    let name = |name: &&str| Some((*name).to_owned()).filter(|name| !name.is_empty());
    names.iter().map(|n| Frame { function: Some(3), name: name(n), offset: 0x1a2, source: None }).collect()
}

fn kept(names: &[&str]) -> Vec<String> {
    let all = frames(names);
    all[interesting(&all)].iter().map(|frame| frame.name.clone().unwrap_or_default()).collect()
}

#[test]
fn a_ring_gives_the_innermost_calls_first() {
    let words = |depth: u64, places: &[u32]| {
        let mut ring = [0; KEPT_CALLS as usize];
        ring[..places.len()].copy_from_slice(places);
        let pairs = ring.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
        std::iter::once(depth).chain(pairs).collect::<Vec<_>>()
    };
    assert_eq!(NotedCalls::of_words(&[]), None);
    assert_eq!(NotedCalls::of_words(&words(0, &[9])), Some(NotedCalls { places: vec![], lost: 0 }));
    assert_eq!(NotedCalls::of_words(&words(3, &[7, 8, 9, 10])), Some(NotedCalls { places: vec![9, 8, 7], lost: 0 }));
    // Calls 64 and 65 have replaced calls 0 and 1.
    let places: Vec<u32> = [64, 65].into_iter().chain(2..64).collect();
    let expected = NotedCalls { places: (2..66).rev().collect(), lost: 2 };
    assert_eq!(NotedCalls::of_words(&words(66, &places)), Some(expected));
    // Whatever a slot holds: nothing is read beyond it.
    assert_eq!(NotedCalls::of_words(&[u64::MAX]).map(|calls| calls.places.len()), Some(0));
}

#[test]
fn what_a_panic_goes_through_and_what_leads_to_main_is_left_out() {
    let panic = [
        "abort",
        "std::sys::pal::wasi::helpers::abort_internal",
        "std::process::abort",
        "__rustc::__rust_abort",
        "__rustc::__rust_start_panic",
        "__rustc::rust_panic",
        "std::panicking::panic_with_hook",
        "std::panicking::panic_handler::{closure#0}",
        "std::sys::backtrace::__rust_end_short_backtrace::<std::panicking::panic_handler::{closure#0}, !>",
        "__rustc::rust_begin_unwind",
        "core::panicking::panic_fmt",
    ];
    let own = ["core::result::unwrap_failed", "app::parse", "app::main"];
    let start = [
        "call_once<fn(), ()>",
        "std::sys::backtrace::__rust_begin_short_backtrace",
        "std::rt::lang_start::{{closure}}",
        "std::rt::lang_start_internal",
        "__main_void",
        "_start",
    ];
    let all = [&panic[..], &own, &start].concat();
    assert_eq!(kept(&all), own);
    // Without a panic, and where the start is not kept.
    assert_eq!(kept(&[&own[..], &start].concat()), own);
    assert_eq!(kept(&[&panic[..], &own].concat()), own);
    // A program that is nothing but its start is shown whole.
    assert_eq!(kept(&["_start"]), ["_start"]);
    assert_eq!(kept(&panic), panic);
    assert_eq!(kept(&["", "main", "__main_void", "_start"]), ["", "main"]);
    assert_eq!(kept(&[]), [""; 0]);
}

#[test]
fn the_last_part_of_a_path_has_no_parameters() {
    for (name, last) in [
        ("abort", "abort"),
        ("a::b::c", "c"),
        ("a::b::<C::D<E>>", "b"),
        ("call_once<fn(), ()>", "call_once"),
        ("<&dyn Fn<(), Output = i32> as FnOnce<()>>::call_once", "call_once"),
        ("<a as b>", ""),
        (">>", ">>"),
        ("", ""),
    ] {
        assert_eq!(last_part(name), last, "{name}");
    }
}

#[test]
fn a_backtrace_looks_as_the_standard_library_prints_it() {
    let source = |file: &str, column| Some(Source { file: file.into(), line: 42, column });
    let mut all = frames(&["app::parse", "app\x1b::main", ""]);
    (all[0].source, all[1].source) = (source("/home/me/app/src/main.rs", Some(13)), source("/else/where.rs", None));
    let folder = Some("/home/me/app".into());
    let short = Backtrace { frames: all, lost: 2, is_short: true, detail: Detail::Short, folder };
    let expected = "stack backtrace:
   0: app::parse
             at src/main.rs:42:13
   1: app\\u001b::main
             at /else/where.rs:42
   2: <unknown> (function 3)
      [... 2 outer calls are not shown ...]
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.";
    assert_eq!(short.to_string(), expected);
    let full = Backtrace { frames: frames(&["f"]), lost: 0, is_short: false, detail: Detail::Full, folder: None };
    assert_eq!(full.to_string(), "stack backtrace:\n   0: 0x000001a2 - f");
}

#[test]
fn a_long_backtrace_is_cut() {
    let frames = frames(&["f"; MAX_FRAMES + 10]);
    let text = Backtrace { frames, lost: 5, is_short: false, detail: Detail::Short, folder: None }.to_string();
    assert_eq!(text.lines().count(), MAX_FRAMES + 2);
    assert!(text.ends_with("[... 15 outer calls are not shown ...]"), "{text}");
}
