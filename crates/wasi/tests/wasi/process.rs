use crate::guest::*;
use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::stdio::Null;
use gpu_run_wasi::{Builder, Errno, Reply};

#[test]
fn arguments_are_pointers_and_then_strings() {
    let mut guest = Guest::with(Null, |builder| {
        builder.args(["app", "", "héllo"]).unwrap();
    });
    assert_eq!(guest.call(Call::args_sizes_get, &[], b"").unwrap(), [3, 0, 0, 0, 12, 0, 0, 0]);
    let out = guest.call(Call::args_get, &[100, 0x2000], b"").unwrap().to_vec();
    assert_eq!(guest.out.split, 12);
    assert_eq!([u32_at(&out, 0), u32_at(&out, 4), u32_at(&out, 8)], [0x2000, 0x2004, 0x2005]);
    assert_eq!(&out[12..], "app\0\0héllo\0".as_bytes());
}

#[test]
fn environment_is_keys_and_values() {
    let mut guest = Guest::with(Null, |builder| {
        builder.env("A", "1").unwrap().env("LANG", "").unwrap();
    });
    assert_eq!(guest.call(Call::environ_sizes_get, &[], b"").unwrap(), [2, 0, 0, 0, 10, 0, 0, 0]);
    let out = guest.call(Call::environ_get, &[0, 8], b"").unwrap();
    assert_eq!(out, b"\x08\0\0\0\x0c\0\0\0A=1\0LANG=\0");
}

#[test]
fn nothing_given_is_nothing() {
    let mut guest = Guest::new();
    assert_eq!(guest.call(Call::args_sizes_get, &[], b"").unwrap(), [0; 8]);
    assert_eq!(guest.call(Call::environ_get, &[0, 0], b"").unwrap(), b"");
    assert_eq!(guest.out.split, 0);
}

#[test]
fn strings_with_nul_are_refused() {
    assert!(Builder::new().arg("a\0b").is_err());
    assert!(Builder::new().env("a", "\0").is_err());
}

#[test]
fn a_clone_does_not_change_its_origin() {
    let mut builder = Builder::new();
    builder.arg("app").unwrap();
    builder.clone().arg("more").unwrap();
    let mut context = builder.build(gpu_run_wasi::Stdio::null());
    let mut out = gpu_run_wasi::Out::default();
    context.call(Call::args_sizes_get, &[], b"", &mut out);
    assert_eq!(out.bytes[0], 1);
}

#[test]
fn clocks_go_forward() {
    let mut guest = Guest::new();
    let mut now = |id| guest.call(Call::clock_time_get, &[id, 0], b"").map(|out| u64_at(out, 0));
    let first = now(1).unwrap();
    assert!(now(1).unwrap() >= first);
    let host = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    assert!(now(0).unwrap().abs_diff(host) < 1_000_000_000);
    assert_eq!(now(2), Err(Errno::Badf));
    assert_eq!(now(3), Err(Errno::Badf));
    assert_eq!(now(4), Err(Errno::Inval));
    assert_eq!(now(u64::MAX), Err(Errno::Inval));
    let resolution = u64_at(guest.call(Call::clock_res_get, &[1], b"").unwrap(), 0);
    assert!((1..=100_000_000).contains(&resolution));
    assert_eq!(guest.call(Call::clock_res_get, &[2], b""), Err(Errno::Badf));
}

#[test]
fn exit_yield_raise() {
    let mut guest = Guest::new();
    assert_eq!(guest.try_call(Call::proc_exit, &[3], b""), Reply::Exit(3));
    assert_eq!(guest.call(Call::sched_yield, &[], b"").unwrap(), b"");
    assert_eq!(guest.call(Call::proc_raise, &[6], b""), Err(Errno::Notsup));
}

#[test]
fn random_fills_all_of_it() {
    let mut guest = Guest::new();
    let bytes = guest.call(Call::random_get, &[3 << 20], b"").unwrap();
    assert_eq!(bytes.len(), 3 << 20);
    assert!(bytes.rchunks(64).all(|chunk| chunk.iter().any(|byte| *byte != 0)));
    assert_eq!(guest.call(Call::random_get, &[0], b"").unwrap(), b"");
    assert_eq!(guest.call(Call::random_get, &[u32::MAX.into()], b""), Err(Errno::Nomem));
}

#[test]
fn the_test_suites_printers_are_answered() {
    let mut guest = Guest::new();
    assert_eq!(guest.try_call(Call::print_i32, &[1], b""), Reply::Done(Errno::Success));
    assert_eq!(guest.try_call(Call::print, &[], b""), Reply::Done(Errno::Success));
}
