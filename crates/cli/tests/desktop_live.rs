//! `gpu-run desktop --listen`: the real binary on `cpu`, or on the device under test, and viewers that are not browsers.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use support::Place;
use support::tested::device;
use tempfile::TempDir;
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

/// One cache for all: the kernel is compiled once.
static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

const SCRIPT: &str = "window w \"W\" left=10 top=10\nbutton b in w \"Go\"\nfield f in w\n";
/// Ends what hangs.
const PATIENCE: Duration = Duration::from_secs(120);

// Kinds of events.
const CREATE: u16 = 32;
const MOVE: u16 = 48;
const PRESS: u16 = 49;
const RELEASE: u16 = 50;

/// A desktop of 160 by 100 pixels that is shown.
struct Shown {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// Host and port, and the query with the token.
    host: String,
    query: String,
    _place: Place,
}

impl Shown {
    fn at(listen: &str) -> Self {
        let place = Place::new().with("script", SCRIPT);
        let line =
            format!("desktop --device {} --effects all --script script --size 160x100 --listen {listen}", device());
        let mut command = place.command(&line);
        command.env("GPU_RUN_CACHE", CACHE.path()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        stderr.read_line(&mut said).unwrap();
        let url = said.split_once("http://").unwrap_or_else(|| panic!("{said}")).1;
        let (host, query) = url.split_whitespace().next().unwrap().split_once('/').unwrap();
        Self { child, host: host.to_owned(), query: query.to_owned(), stderr, _place: place }
    }

    fn new() -> Self {
        Self::at("127.0.0.1:0")
    }

    fn port(&self) -> &str {
        self.host.rsplit_once(':').unwrap().1
    }

    /// The status and the headers with which a request is answered, and what follows them.
    fn get(&self, path: &str, headers: &[(&str, &str)]) -> String {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port())).unwrap();
        let mut request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n");
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        std::io::Write::write_all(&mut stream, (request + "\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn view(&self) -> Viewer {
        let mut request = format!("ws://{}/socket{}", self.host, self.query).into_client_request().unwrap();
        request.headers_mut().insert("origin", format!("http://{}", self.host).parse().unwrap());
        let stream = TcpStream::connect(format!("127.0.0.1:{}", self.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, _) = tungstenite::client(request, stream).unwrap();
        Viewer { socket, width: 0, height: 0, pixels: Vec::new() }
    }

    /// The status of an attempt to open a WebSocket.
    fn knock(&self, host: &str, origin: &str, query: &str) -> String {
        let headers = [
            ("Host", host),
            ("Origin", origin),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let headers: Vec<_> = headers.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port())).unwrap();
        let mut request = format!("GET /socket{query} HTTP/1.1\r\nConnection: Upgrade\r\n");
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        std::io::Write::write_all(&mut stream, (request + "\r\n").as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        String::from_utf8_lossy(&status[9..]).into_owned()
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// CPU time so far of the threads that run now, those of the machine and of the `cpu` device included.
    fn time(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        // A thread may end while its folder is read.
        let schedstat =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok());
        schedstat.filter_map(|stat| stat.split_whitespace().next()?.parse().ok()).map(Duration::from_nanos).sum()
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Viewer {
    socket: WebSocket<TcpStream>,
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Viewer {
    fn send(&mut self, bytes: &[u8]) {
        self.socket.send(Message::binary(bytes.to_vec())).unwrap();
    }

    fn input(&mut self, number: u32, kind: u16, x: u32, y: u32) {
        let mut bytes = vec![2];
        bytes.extend(number.to_le_bytes());
        bytes.extend([kind, 0].iter().flat_map(|half| half.to_le_bytes()));
        bytes.extend([0, x * 256, y * 256].iter().flat_map(|word: &u32| word.to_le_bytes()));
        self.send(&bytes);
    }

    fn click(&mut self, number: u32, x: u32, y: u32) {
        self.input(number, MOVE, x, y);
        self.input(number, PRESS, x, y);
        self.input(number, RELEASE, x, y);
    }

    fn resize(&mut self, width: u16, height: u16) {
        self.send(&[&[4][..], &width.to_le_bytes(), &height.to_le_bytes(), &256u16.to_le_bytes()].concat());
    }

    /// The next frame, if one comes within this time. Pings come too.
    fn next(&mut self, time: Duration) -> Option<Vec<u8>> {
        let began = Instant::now();
        loop {
            // A time of 0 would mean none.
            let left = time.checked_sub(began.elapsed()).filter(|left| !left.is_zero())?;
            self.socket.get_ref().set_read_timeout(Some(left)).unwrap();
            match self.socket.read() {
                Ok(Message::Binary(bytes)) if bytes[0] == 1 => return Some(bytes.to_vec()),
                Ok(Message::Close(reason)) => panic!("{reason:?}"),
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Draws the next frame. Returns its number, and the number of the last input that it shows.
    fn draw(&mut self) -> (u32, u32) {
        let frame = self.next(PATIENCE).expect("no frame came");
        self.show(&frame)
    }

    fn show(&mut self, bytes: &[u8]) -> (u32, u32) {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]) as usize;
        let word = |at: usize| (half(at) | half(at + 2) << 16) as u32;
        if (self.width, self.height) != (half(12), half(14)) {
            (self.width, self.height) = (half(12), half(14));
            self.pixels = vec![0; self.width * self.height * 4];
        }
        let count = half(16);
        let mut unpacked = Vec::new();
        flate2::read::DeflateDecoder::new(&bytes[20 + count * 8..]).read_to_end(&mut unpacked).unwrap();
        let mut rest = &unpacked[..];
        for place in (0..count).map(|i| 20 + i * 8) {
            let [left, top, width, height] = [0, 2, 4, 6].map(|at| half(place + at));
            for row in top..top + height {
                let (now, later) = rest.split_at(width * 4);
                self.pixels[(row * self.width + left) * 4..][..width * 4].copy_from_slice(now);
                rest = later;
            }
        }
        assert!(rest.is_empty());
        (word(4), word(8))
    }

    fn acknowledge(&mut self, frame: u32) {
        self.send(&[&[1], &frame.to_le_bytes()[..]].concat());
    }

    /// Draws and acknowledges frames until one shows this input.
    fn draw_until(&mut self, input: u32) {
        loop {
            let (frame, shows) = self.draw();
            self.acknowledge(frame);
            if shows >= input {
                return;
            }
        }
    }

    /// Draws and acknowledges frames until none comes for this long.
    fn settle(&mut self, quiet: Duration) {
        while let Some(frame) = self.next(quiet) {
            let (number, _) = self.show(&frame);
            self.acknowledge(number);
        }
    }

    /// With what the server closes the connection.
    fn closed(&mut self) -> (CloseCode, String) {
        self.socket.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        loop {
            match self.socket.read() {
                Ok(Message::Close(Some(frame))) => return (frame.code, frame.reason.to_string()),
                Ok(Message::Binary(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

const QUIET: Duration = Duration::from_millis(700);

#[test]
fn only_the_desktops_own_page_may_connect() {
    let shown = Shown::new();
    let (host, origin) = (shown.host.clone(), format!("http://{}", shown.host));
    let page = shown.get("/", &[("Host", &host)]);
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("default-src 'none'") && page.contains("frame-ancestors 'none'"), "{page}");
    assert!(page.contains("<title>gpu-run desktop</title>"));
    assert!(shown.get("/other", &[("Host", &host)]).starts_with("HTTP/1.1 404"));
    for foreign in ["evil.example", "evil.example:80", "127.0.0.1:1", "10.0.0.1"] {
        assert!(shown.get("/", &[("Host", foreign)]).starts_with("HTTP/1.1 403"), "{foreign}");
    }
    assert_eq!(shown.knock(&host, &origin, ""), "101");
    for foreign in ["http://evil.example", "null", "", "https://localhost", "http://127.0.0.1:1"] {
        assert_eq!(shown.knock(&host, foreign, ""), "403", "{foreign}");
    }
    assert_eq!(shown.knock("evil.example", "http://evil.example", ""), "403");
}

#[test]
fn where_others_can_connect_they_need_the_token() {
    let shown = Shown::at("0.0.0.0:0");
    let host = format!("127.0.0.1:{}", shown.port());
    let origin = format!("http://{host}");
    assert_eq!(shown.query.len(), "?token=".len() + 32, "{}", shown.query);
    for query in ["", "?token=", "?token=00000000000000000000000000000000"] {
        assert!(shown.get(&format!("/{query}"), &[("Host", &host)]).starts_with("HTTP/1.1 403"), "{query}");
        assert_eq!(shown.knock(&host, &origin, query), "403", "{query}");
    }
    assert!(shown.get(&format!("/{}", shown.query), &[("Host", &host)]).starts_with("HTTP/1.1 200"));
    assert_eq!(shown.knock(&host, &origin, &shown.query), "101");
    assert_eq!(shown.knock(&host, "http://evil.example", &shown.query), "403");
}

/// On a busy machine, a frame may come later than after a quiet time.
fn see_the_same(one: &mut Viewer, other: &mut Viewer) {
    let began = Instant::now();
    loop {
        one.settle(QUIET);
        other.settle(QUIET);
        if one.pixels == other.pixels {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "two viewers see different pixels");
    }
}

#[test]
fn viewers_see_the_same_and_a_slow_one_holds_nobody_up() {
    let shown = Shown::new();
    let (mut one, mut slow) = (shown.view(), shown.view());
    one.settle(QUIET);
    let before = one.pixels.clone();
    assert_eq!((one.width, one.height), (160, 100));
    // The slow viewer draws, and acknowledges nothing: it gets two frames and no more.
    let mut drawn = vec![slow.draw()];
    for number in 1..=12 {
        one.input(number, MOVE, 40 + number % 2 * 60, 60 - number % 2 * 50);
        one.input(number, PRESS, 40 + number, 25);
        one.input(number, RELEASE, 40 + number, 25);
    }
    one.click(99, 50, 65);
    one.settle(QUIET);
    drawn.push(slow.draw());
    assert_eq!(drawn.iter().map(|(frame, _)| *frame).collect::<Vec<_>>(), [1, 2]);
    assert!(slow.next(QUIET).is_none(), "a third frame came");
    assert_ne!(one.pixels, before, "nothing has changed");
    // Then it gets all that it missed at once.
    slow.acknowledge(2);
    let (frame, _) = slow.draw();
    slow.acknowledge(frame);
    assert_eq!(frame, 3);
    see_the_same(&mut slow, &mut one);
    // And whoever comes now, everything.
    let mut late = shown.view();
    see_the_same(&mut late, &mut one);
    // Whoever resized last has its size; the other gets the same pixels.
    late.resize(200, 90);
    let began = Instant::now();
    while (one.width, one.height) != (200, 90) {
        assert!(began.elapsed() < PATIENCE, "the size did not change");
        see_the_same(&mut late, &mut one);
    }
    // Input takes the lead as well. A size that was not sent is nobody's.
    one.click(100, 50, 65);
    one.resize(160, 100);
    late.click(1, 3, 3);
    late.settle(QUIET);
    assert_eq!((late.width, late.height), (200, 90));
}

#[test]
fn malformed_messages_close_their_viewer_and_no_other() {
    let shown = Shown::new();
    let mut good = shown.view();
    good.settle(QUIET);
    let mut create = vec![2, 1, 0, 0, 0];
    create.extend(CREATE.to_le_bytes());
    create.extend([0; 14]);
    let malformed: [&[u8]; 8] =
        [&[], &[0], &[9, 9], &[1, 2], &[2, 0, 0, 0, 0, 1], &[3, 0xFF, 0xFE], &[4, 0, 0, 0, 0, 0, 0], &create];
    for message in malformed {
        let mut bad = shown.view();
        bad.send(message);
        let (code, reason) = bad.closed();
        assert_eq!(code, CloseCode::Invalid, "{message:?}");
        assert!(!reason.is_empty());
    }
    let mut bad = shown.view();
    bad.socket.send(Message::text("hello")).unwrap();
    assert_eq!(bad.closed().0, CloseCode::Unsupported);
    // What is too large is not even read: the connection may break before the reason arrives.
    let mut bad = shown.view();
    let _ = bad.socket.send(Message::binary(vec![3; 300 << 10]));
    while bad.socket.read().is_ok_and(|message| !message.is_close()) {}
    // A viewer that acknowledges what it never got, and one that presses and leaves.
    let mut odd = shown.view();
    odd.acknowledge(u32::MAX);
    odd.input(1, PRESS, 30, 20);
    odd.settle(QUIET);
    drop(odd);
    good.click(7, 50, 65);
    good.draw_until(7);
    // A 17th viewer is told so.
    let mut all: Vec<Viewer> = (1..16).map(|_| shown.view()).collect();
    for viewer in &mut all {
        viewer.draw();
    }
    assert_eq!(shown.view().closed().0, CloseCode::Again);
    drop(all);
}

#[test]
fn signals_end_it_and_viewers_are_told() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut shown = Shown::new();
        let mut viewer = shown.view();
        viewer.draw();
        shown.signal(signal);
        assert_eq!(viewer.closed(), (CloseCode::Away, "the desktop has ended".to_owned()));
        assert_eq!(shown.child.wait().unwrap().code(), Some(code), "{signal}");
        let mut rest = String::new();
        shown.stderr.read_to_string(&mut rest).unwrap();
        assert!(rest.is_empty(), "{rest}");
    }
}

#[test]
fn an_idle_desktop_takes_no_time() {
    let shown = Shown::new();
    let mut viewer = shown.view();
    viewer.settle(QUIET);
    let (before, since) = (shown.time(), Instant::now());
    std::thread::sleep(Duration::from_secs(2));
    let (took, over) = (shown.time().saturating_sub(before), since.elapsed());
    assert!(took < over / 50, "{took:?} of {over:?}");
    // It wakes at once.
    viewer.click(1, 50, 65);
    viewer.draw_until(1);
}

#[test]
fn a_port_in_use_is_said_before_anything_else() {
    let shown = Shown::new();
    let ran = Place::new().run(&format!("desktop --listen {}", shown.host));
    assert_eq!(ran.code, Some(2));
    ran.says(&[&format!("--listen {}", shown.host), "port 0 is a free one"]);
}

#[test]
fn a_display_that_is_missing_is_said_before_anything_else() {
    let place = Place::new();
    let run = |arguments: &str, display: &str| {
        let mut command = place.command(&format!("desktop --window {arguments}"));
        let output =
            command.env_remove("WAYLAND_DISPLAY").env_remove("WAYLAND_SOCKET").env("DISPLAY", display).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run("", "");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no display: neither WAYLAND_DISPLAY nor DISPLAY is set"), "{said}");
    assert!(said.contains("--listen 127.0.0.1:8080 shows the desktop in a browser"), "{said}");
    // Where the libraries of a display are not installed, these are named.
    let (code, said) = run("", "127.0.0.1:4242");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("cannot connect to the X server 127.0.0.1:4242") || said.contains("cannot be loaded"),
        "{said}"
    );
    let (code, said) = run("--png out.png --script script", "");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--png"), "{said}");
}
