//! Sockets, by requests that WASI does not have: reads and writes of a descriptor that no host gives out
//! (`crates/abi/src/extension.rs`). The first argument says what to do, the others say with whom.

use std::io::Write;
use std::net::SocketAddr;
use wasi_programs::*;

const DESCRIPTOR: i32 = 0x6770_7501;

/// The calls as std declares them; only their arguments are special.
mod wasi_calls {
    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    extern "C" {
        pub fn fd_pwrite(fd: i32, vectors: *const Vector, count: i32, offset: i64, written: *mut u32) -> i32;
        pub fn fd_pread(fd: i32, vectors: *const Vector, count: i32, offset: i64, read: *mut u32) -> i32;
    }

    #[repr(C)]
    pub struct Vector(pub *const u8, pub usize);
}
use wasi_calls::Vector;

fn offset(operation: u8, argument: u32, fd: u32) -> i64 {
    (operation as u64 | (argument as u64) << 8 | (fd as u64) << 32) as i64
}

unsafe fn ask(operation: u8, argument: u32, fd: u32, request: &[u8]) -> Result<u32, Errno> {
    let mut result = 0;
    // In two parts, as std sends a datagram's address and its bytes.
    let (head, tail) = request.split_at(request.len().min(28));
    let vectors = [head, tail].map(|part| Vector(part.as_ptr(), part.len()));
    code(wasi_calls::fd_pwrite(DESCRIPTOR, vectors.as_ptr(), 2, offset(operation, argument, fd), &mut result))?;
    Ok(result)
}

unsafe fn fetch(operation: u8, argument: u32, fd: u32) -> Result<Vec<u8>, Errno> {
    let (mut bytes, mut count) = (vec![0; 4096], 0);
    let vector = Vector(bytes.as_mut_ptr(), bytes.len());
    code(wasi_calls::fd_pread(DESCRIPTOR, &vector, 1, offset(operation, argument, fd), &mut count))?;
    bytes.truncate(count as usize);
    Ok(bytes)
}

fn encoded(address: &str) -> Vec<u8> {
    let address: SocketAddr = address.parse().expect(address);
    let (family, ip, scope) = match address {
        SocketAddr::V4(v4) => (4u16, [&v4.ip().octets()[..], &[0; 12]].concat(), 0),
        SocketAddr::V6(v6) => (6, v6.ip().octets().to_vec(), v6.scope_id()),
    };
    [&family.to_le_bytes()[..], &address.port().to_le_bytes(), &ip, &[0; 4], &scope.to_le_bytes()].concat()
}

fn decoded(bytes: &[u8]) -> SocketAddr {
    let port = u16::from_le_bytes([bytes[2], bytes[3]]);
    match bytes[0] {
        4 => SocketAddr::new(<[u8; 4]>::try_from(&bytes[4..8]).expect("four").into(), port),
        _ => SocketAddr::new(<[u8; 16]>::try_from(&bytes[4..20]).expect("sixteen").into(), port),
    }
}

unsafe fn connect(address: &str, timeout: u64) -> Result<u32, Errno> {
    ask(1, 0, 0, &[&encoded(address)[..], &timeout.to_le_bytes()].concat())
}

unsafe fn receive(fd: u32) -> Result<String, Errno> {
    let mut bytes = vec![0; 100];
    let count = fd_read(fd, &[Iovec { buf: bytes.as_mut_ptr(), buf_len: bytes.len() }])?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

/// Says where a socket is, at once: somebody waits for this line.
unsafe fn tell(fd: u32) {
    println!("{}", decoded(&fetch(1, 0, fd).expect("an address")));
    std::io::stdout().flush().expect("stdout");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    unsafe {
        match args[..] {
            ["connect", to, text] => report(
                "connect",
                connect(to, 0).and_then(|fd| {
                    write(fd, text)?;
                    receive(fd)
                }),
            ),
            // A speculative build is not sure about what comes after the answer: a division by zero, and a pointer that is not aligned.
            ["connect and stray", to, text] => report(
                "connect",
                connect(to, 0).and_then(|fd| {
                    write(fd, text)?;
                    let answer = receive(fd)?;
                    let quotient = std::hint::black_box(1.0f64) / std::hint::black_box(0.0);
                    let mut bytes = [0u64; 2];
                    let odd = std::hint::black_box(bytes.as_mut_ptr().cast::<u8>().add(1).cast::<u32>());
                    odd.write_volatile(7);
                    Ok((answer, quotient))
                }),
            ),
            ["listen", at] => report(
                "listen",
                ask(2, 0, 0, &encoded(at)).and_then(|listener| {
                    tell(listener);
                    let fd = sock_accept(listener, 0)?;
                    let text = receive(fd)?;
                    write(fd, &text.to_uppercase())?;
                    Ok(text)
                }),
            ),
            ["send", from, to, text] => report(
                "send",
                ask(3, 0, 0, &encoded(from)).and_then(|fd| {
                    ask(5, 0, fd, &[&encoded(to)[..], text.as_bytes()].concat())?;
                    let answer = fetch(4, 0, fd)?;
                    Ok((decoded(&answer), String::from_utf8_lossy(&answer[28..]).into_owned()))
                }),
            ),
            ["hear", at, from] => report(
                "hear",
                ask(3, 0, 0, &encoded(at)).and_then(|fd| {
                    tell(fd);
                    let heard = fetch(4, 0, fd)?;
                    println!("{}", decoded(&heard));
                    ask(4, 0, fd, &encoded(from))?;
                    write(fd, &String::from_utf8_lossy(&heard[28..]).to_uppercase())
                }),
            ),
            ["timeout", to] => {
                let fd = connect(to, 0).expect("connected");
                report("set", ask(6, 1, fd, &20_000_000u64.to_le_bytes()));
                report("read", receive(fd));
            }
            ["refused", to] => report("refused", connect(to, 1_000_000_000)),
            ["look up", name] => report("look up", {
                let request = [&80u16.to_le_bytes()[..], name.as_bytes()].concat();
                ask(7, 0, 0, &request).and_then(|reply| fetch(5, 0, reply)).map(|bytes| !bytes.is_empty())
            }),
            ["denied", ..] => {
                for to in &args[1..] {
                    report(&format!("connect {to}"), connect(to, 0).map(|_| ()));
                    report(&format!("listen {to}"), ask(2, 0, 0, &encoded(to)).map(|_| ()));
                    report(&format!("bind {to}"), ask(3, 0, 0, &encoded(to)).map(|_| ()));
                }
            }
            ["parallelism"] => report("parallelism", ask(10, 0, 0, b"")),
            ref other => panic!("no such thing to do: {other:?}"),
        }
    }
}
