//! A call in one line, as `strace` prints it: `fd_write(1, [{"hello\n", 6}]) = 0 (6)`.
//!
//! Everything follows from the call's row in [`gpu_run_abi::hostcall`]: what each parameter is, which bytes are input and
//! which are output.

use crate::extension::{Ask, Fetch, is_extension};
use crate::{Errno, Out, Reply};
use gpu_run_abi::hostcall::{Call, HostFunction, Move, ValType};
use std::fmt::Write;
use std::sync::Arc;

/// How many bytes of data are shown, and how many of a path.
const MAX_DATA: usize = 32;
const MAX_PATH: usize = 256;

/// Takes the lines of a context's calls.
#[derive(Clone)]
pub(crate) struct Trace {
    /// Says who calls; in front of each line.
    pub(crate) caller: String,
    pub(crate) print: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Trace {
    pub(crate) fn call(&self, call: Call, words: &[u64], input: &[u8], reply: Reply, out: &Out) {
        if let Some(line) = line(call, words, input, reply, out) {
            (self.print)(&format!("{}{line}\n", self.caller));
        }
    }
}

/// Returns the line of a call; `None` if it was not answered yet.
fn line(call: Call, words: &[u64], input: &[u8], reply: Reply, out: &Out) -> Option<String> {
    if let Some(line) = extension_line(call, words, input, reply, out) {
        return line;
    }
    let row = call.function();
    let is_done = reply == Reply::Done(Errno::Success);
    let (mut words, mut input, mut output) = (words.iter().copied(), input, &out.bytes[..]);
    let mut results = Vec::new();
    // Results come before all other output.
    for step in row.moves {
        if let Move::Result { bytes, align, .. } = step
            && is_done
        {
            results.push(result(take(&mut output, *bytes as usize), *align));
        }
    }
    let mut arguments = Vec::new();
    for step in row.moves.iter().filter(|step| step.has_word()) {
        let word = words.next().unwrap_or(0);
        let bytes = usize::try_from(word).unwrap_or(usize::MAX);
        match *step {
            Move::Value(at) => arguments.push((at, value(row, at, word))),
            Move::Input { ptr, size: 1, .. } => arguments.push((ptr, quoted(take(&mut input, bytes), MAX_PATH))),
            Move::Input { ptr, size, .. } => {
                arguments.push((ptr, several(row, ptr, take(&mut input, bytes).len(), size)))
            }
            Move::Gather { iovs, .. } => arguments.push((iovs, vector(take(&mut input, bytes)))),
            Move::Output { ptr, .. } | Move::Scatter { iovs: ptr, .. } if !is_done => {
                arguments.push((ptr, format!("<{word} bytes>")))
            }
            Move::Output { ptr, size: 1, .. } => arguments.push((ptr, quoted(output, MAX_DATA))),
            Move::Output { ptr, size, .. } => arguments.push((ptr, several(row, ptr, output.len(), size))),
            Move::Scatter { iovs, .. } => arguments.push((iovs, vector(output))),
            // The first answer of two is a list of addresses.
            Move::Answer { align: 1, .. } if is_done => {
                results.push(strings(output.get(out.split as usize..).unwrap_or_default()))
            }
            Move::Answer { .. } | Move::Result { .. } => {}
        }
    }
    // A row lists what the device sends before what it receives; people expect the order of the parameters.
    arguments.sort_by_key(|(parameter, _)| *parameter);
    let arguments: Vec<_> = arguments.into_iter().map(|(_, text)| text).collect();
    let ended = match reply {
        Reply::Again { .. } => return None,
        Reply::Exit(_) | Reply::Refused => "?".to_owned(),
        Reply::Done(Errno::Success) if results.is_empty() => "0".to_owned(),
        Reply::Done(Errno::Success) => format!("0 ({})", results.join(", ")),
        Reply::Done(errno) => format!("{errno:?}").to_lowercase(),
    };
    Some(format!("{}({}) = {ended}", row.name, arguments.join(", ")))
}

/// Returns the line of a request that is none of WASI's, under its own name; `None` if the call is not one, or cannot be
/// decoded.
fn extension_line(call: Call, words: &[u64], input: &[u8], reply: Reply, out: &Out) -> Option<Option<String>> {
    let request = match (call, words) {
        (Call::fd_pwrite, [fd, _, offset]) if is_extension(*fd) => Ask::decode(*offset, input).ok()?.to_string(),
        (Call::fd_pread, [fd, _, offset]) if is_extension(*fd) => {
            Fetch::decode(*offset).ok()?.show(out.bytes.get(4..).unwrap_or_default())
        }
        _ => return None,
    };
    let result = match reply {
        Reply::Done(Errno::Success) => format!("0 ({})", result(out.bytes.get(..4).unwrap_or_default(), 4)),
        Reply::Done(errno) => format!("{errno:?}").to_lowercase(),
        Reply::Again { .. } | Reply::Exit(_) | Reply::Refused => return Some(None),
    };
    Some(Some(format!("{request} = {result}")))
}

/// Returns bytes in quotes, the first of them if there are many.
pub(crate) fn data(bytes: &[u8]) -> String {
    quoted(bytes, MAX_DATA)
}

/// Takes up to `count` bytes from the front.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count.min(bytes.len()));
    *bytes = rest;
    taken
}

fn value(row: &HostFunction, at: u8, word: u64) -> String {
    let Some((name, ty)) = row.params.get(usize::from(at)) else { return word.to_string() };
    match (*name, ty) {
        ("whence", _) => ["set", "cur", "end"].get(word as usize).map_or(word.to_string(), |name| name.to_string()),
        ("base" | "inheriting", _) => format!("{word:#x}"),
        (name, _) if name.ends_with("flags") => format!("{word:#x}"),
        ("offset", _) => (word as i64).to_string(),
        (_, ValType::F32) => f32::from_bits(word as u32).to_string(),
        (_, ValType::F64) => f64::from_bits(word).to_string(),
        _ => word.to_string(),
    }
}

/// Returns a result of fixed size.
fn result(bytes: &[u8], align: u32) -> String {
    let number = |at: usize, count: usize| {
        let part = bytes.get(at..at + count).unwrap_or_default();
        part.iter().rev().fold(0, |number: u64, byte| number << 8 | u64::from(*byte))
    };
    match (bytes.len(), align) {
        // prestat, fdstat, filestat
        (8, 4) => format!("{{directory, name of {} bytes}}", number(4, 4)),
        (24, _) => {
            let (ty, flags, base, inheriting) = (kind(number(0, 1)), number(2, 2), number(8, 8), number(16, 8));
            format!("{{{ty}, flags {flags:#x}, rights {base:#x}, inheriting {inheriting:#x}}}")
        }
        (64, _) => format!("{{{}, size {}}}", kind(number(16, 1)), number(32, 8)),
        (count, _) => number(0, count.min(8)).to_string(),
    }
}

/// Names a type of file.
fn kind(number: u64) -> &'static str {
    const KINDS: [&str; 8] =
        ["unknown", "block device", "character device", "directory", "file", "datagram socket", "socket", "link"];
    KINDS.get(number as usize).unwrap_or(&KINDS[0])
}

/// `[2 subscriptions]`
fn several(row: &HostFunction, at: u8, bytes: usize, size: u32) -> String {
    let name = row.params.get(usize::from(at)).map_or("", |(name, _)| name);
    format!("[{} {name}]", bytes / size.max(1) as usize)
}

/// `["app", "--verbose"]`, of strings that end with a NUL byte each.
fn strings(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(MAX_PATH)];
    let all: Vec<_> =
        shown.split_inclusive(|byte| *byte == 0).map(|s| quoted(s.strip_suffix(&[0]).unwrap_or(s), MAX_PATH)).collect();
    format!("[{}{}]", all.join(", "), if bytes.len() > MAX_PATH { "..." } else { "" })
}

/// `[{"hello\n", 6}]`: the host does not see how the guest divided its bytes.
fn vector(bytes: &[u8]) -> String {
    format!("[{{{}, {}}}]", quoted(bytes, MAX_DATA), bytes.len())
}

/// Returns the first bytes in quotes, with `...` behind them if there are more.
fn quoted(bytes: &[u8], most: usize) -> String {
    let mut text = String::from('"');
    for chunk in bytes[..bytes.len().min(most)].utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' => text.push(c),
                '\0' => text.push_str("\\x00"),
                c => text.extend(c.escape_debug()),
            }
        }
        chunk.invalid().iter().for_each(|byte| write!(text, "\\x{byte:02x}").expect("a string takes everything"));
    }
    text.push('"');
    if bytes.len() > most {
        text += "...";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(call: Call, words: &[u64], input: &[u8], reply: Reply, output: &[u8]) -> String {
        line(call, words, input, reply, &Out { bytes: output.to_vec(), split: 0 }).unwrap_or_default()
    }

    const DONE: Reply = Reply::Done(Errno::Success);

    #[test]
    fn a_write_shows_its_bytes_and_how_many_were_taken() {
        let text = shown(Call::fd_write, &[1, 6], b"hello\n", DONE, &6u32.to_le_bytes());
        assert_eq!(text, r#"fd_write(1, [{"hello\n", 6}]) = 0 (6)"#);
    }

    #[test]
    fn a_read_shows_what_was_read() {
        let output = [&3u32.to_le_bytes()[..], b"a\xff\x1b"].concat();
        assert_eq!(shown(Call::fd_read, &[0, 99], b"", DONE, &output), r#"fd_read(0, [{"a\xff\u{1b}", 3}]) = 0 (3)"#);
        let failed = Reply::Done(Errno::Badf);
        assert_eq!(shown(Call::fd_read, &[9, 99], b"", failed, b""), "fd_read(9, <99 bytes>) = badf");
    }

    #[test]
    fn arguments_are_in_the_order_of_the_parameters() {
        let words = [3, 1, 5, 0x9, u64::MAX, 2, 4];
        let text = shown(Call::path_open, &words, b"a\"'.t", Reply::Done(Errno::Noent), b"");
        assert_eq!(text, r#"path_open(3, 0x1, "a\"'.t", 0x9, 0xffffffffffffffff, 0x2, 0x4) = noent"#);
        let text = shown(Call::path_rename, &[3, 1, 4, 2], b"abc", DONE, b"");
        assert_eq!(text, r#"path_rename(3, "a", 4, "bc") = 0"#);
        let text = shown(Call::fd_seek, &[3, -8i64 as u64, 2], b"", DONE, &7u64.to_le_bytes());
        assert_eq!(text, "fd_seek(3, -8, end) = 0 (7)");
    }

    #[test]
    fn lists_of_strings_are_lists() {
        let out = Out { bytes: b"\x10\0\0\0\x14\0\0\0app\x004\0".to_vec(), split: 8 };
        let text = line(Call::args_get, &[0, 16], b"", DONE, &out);
        assert_eq!(text.as_deref(), Some(r#"args_get() = 0 (["app", "4"])"#));
        let data = shown(Call::fd_write, &[1, 2], b"\x004", DONE, &2u32.to_le_bytes());
        assert_eq!(data, r#"fd_write(1, [{"\x004", 2}]) = 0 (2)"#);
    }

    #[test]
    fn long_data_is_cut() {
        let text = shown(Call::fd_write, &[1, 100], &[b'x'; 100], DONE, &100u32.to_le_bytes());
        assert_eq!(text, format!("fd_write(1, [{{\"{}\"..., 100}}]) = 0 (100)", "x".repeat(32)));
    }

    #[test]
    fn requests_beyond_wasi_are_shown_by_name() {
        use crate::extension::encode_address;
        use gpu_run_abi::extension::{DESCRIPTOR, ask, fetch, offset, option};
        let fd = u64::from(DESCRIPTOR);
        let asked = |operation, argument, about, input: &[u8], reply| {
            let words = [fd, input.len() as u64, offset(operation, argument, about)];
            shown(Call::fd_pwrite, &words, input, reply, &7u32.to_le_bytes())
        };
        let address = encode_address(([127, 0, 0, 1], 80).into());
        let connect = [&address[..], &1_500_000_000u64.to_le_bytes()].concat();
        assert_eq!(asked(ask::TCP_CONNECT, 0, 0, &connect, DONE), "tcp_connect(127.0.0.1:80, 1.5s) = 0 (7)");
        let denied = Reply::Done(Errno::Acces);
        assert_eq!(asked(ask::TCP_LISTEN, 0, 0, &address, denied), "tcp_listen(127.0.0.1:80) = acces");
        let datagram = [&address[..], b"a\x1b"].concat();
        assert_eq!(
            asked(ask::UDP_SEND_TO, 0, 4, &datagram, DONE),
            r#"udp_send_to(4, 127.0.0.1:80, "a\u{1b}") = 0 (7)"#
        );
        let second = 1_000_000_000u64.to_le_bytes();
        assert_eq!(
            asked(ask::SET_OPTION, option::READ_TIMEOUT, 4, &second, DONE),
            "set_option(4, read_timeout, 1s) = 0 (7)"
        );
        assert_eq!(asked(ask::LOOK_UP, 0, 0, b"\x50\0a.org", DONE), r#"look_up("a.org", 80) = 0 (7)"#);
        // What cannot be decoded is shown as the call that it is.
        assert!(asked(99, 0, 0, b"", denied).starts_with("fd_pwrite("));
        let fetched = |operation, number, bytes: &[u8]| {
            let output = [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
            shown(Call::fd_pread, &[fd, 100, offset(operation, 0, number)], b"", DONE, &output)
        };
        assert_eq!(fetched(fetch::LOCAL_ADDRESS, 4, &address), "local_address(4, 127.0.0.1:80) = 0 (28)");
        assert_eq!(fetched(fetch::RECEIVE_FROM, 4, &datagram), r#"receive_from(4, 127.0.0.1:80, "a\u{1b}") = 0 (30)"#);
        let both = [address, encode_address((std::net::Ipv6Addr::LOCALHOST, 80).into())].concat();
        assert_eq!(fetched(fetch::REPLY, 9, &both), "reply(9, [127.0.0.1:80, [::1]:80]) = 0 (56)");
    }

    #[test]
    fn an_exit_has_no_result_and_a_call_that_waits_no_line() {
        assert_eq!(shown(Call::proc_exit, &[3], b"", Reply::Exit(3), b""), "proc_exit(3) = ?");
        assert_eq!(shown(Call::fd_read, &[0, 9], b"", Reply::Again { at: None }, b""), "");
    }

    /// A guest decides what words and bytes come.
    #[test]
    fn every_call_is_shown_whatever_its_words_and_bytes_are() {
        for call in Call::ALL {
            for words in [&[][..], &[u64::MAX; 7], &[0; 7]] {
                for bytes in [&b""[..], &[0xff; 200]] {
                    let text = shown(*call, words, bytes, DONE, bytes);
                    assert!(text.starts_with(call.function().name) && text.len() < 2000, "{text}");
                }
            }
        }
    }
}
