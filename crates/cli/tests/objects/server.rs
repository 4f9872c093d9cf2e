//! A server that behaves as S3 does.

use super::support::tested;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(super) struct Server {
    process: Mutex<Child>,
    address: SocketAddr,
    buckets: AtomicU32,
}

impl Server {
    /// `None` if the server is not there.
    pub(super) fn start() -> Option<Self> {
        let script = tested::root().join("scripts/s3-server");
        let place = Command::new(script).arg("--where").output().ok().filter(|output| output.status.success())?;
        let place = String::from_utf8(place.stdout).ok()?;
        let address = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?;
        let mut command = Command::new("python3");
        command.args(["-m", "moto.server", "-p", &address.port().to_string()]).env("PYTHONPATH", place.trim());
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().ok()?;
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "the server does not begin");
            thread::sleep(Duration::from_millis(50));
        }
        Some(Self { process: Mutex::new(process), address, buckets: AtomicU32::new(0) })
    }

    pub(super) fn stop(&self) {
        let mut process = self.process.lock().unwrap();
        let _ = process.kill();
        let _ = process.wait();
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes a bucket that nobody else uses. Its name has letters and digits only: Google's client escapes all else, and the
    /// server does not understand that in a bucket's name.
    pub(super) fn bucket(&self) -> String {
        let bucket = format!("bucket{}", self.buckets.fetch_add(1, Ordering::Relaxed));
        assert_eq!(self.ask("PUT", &format!("/{bucket}"), b"").0, 200);
        bucket
    }

    /// Everybody may read it.
    pub(super) fn put(&self, bucket: &str, name: &str, content: impl AsRef<[u8]>) {
        assert_eq!(self.ask("PUT", &path(bucket, name), content.as_ref()).0, 200);
    }

    pub(super) fn get(&self, bucket: &str, name: &str) -> Option<Vec<u8>> {
        let (status, content) = self.ask("GET", &path(bucket, name), b"");
        assert!([200, 404].contains(&status), "{status}");
        (status == 200).then_some(content)
    }

    pub(super) fn remove(&self, bucket: &str, name: &str) {
        assert_eq!(self.ask("DELETE", &path(bucket, name), b"").0, 204);
    }

    /// Returns the objects whose names begin with `prefix`, without it.
    pub(super) fn tree(&self, bucket: &str, prefix: &str) -> BTreeMap<String, Vec<u8>> {
        let names = self.listed(&format!("/{bucket}?prefix={prefix}"), "<Key>");
        let named = names.into_iter().filter_map(|name| Some((name.clone(), self.get(bucket, &name)?)));
        named.map(|(name, content)| (name[prefix.len()..].to_owned(), content)).collect()
    }

    /// Returns how many objects have names that begin with `prefix`.
    pub(super) fn count(&self, bucket: &str, prefix: &str) -> usize {
        self.listed(&format!("/{bucket}?prefix={prefix}"), "<Key>").len()
    }

    /// Returns how many uploads are neither finished nor given up.
    pub(super) fn uploads(&self, bucket: &str) -> usize {
        self.listed(&format!("/{bucket}?uploads"), "<UploadId>").len()
    }

    /// Returns how many parts are there of an object that is being uploaded.
    pub(super) fn parts(&self, bucket: &str, name: &str) -> usize {
        let uploads = self.listed(&format!("/{bucket}?uploads"), "<UploadId>");
        let parts = |id: &String| self.listed(&format!("{}?uploadId={id}", path(bucket, name)), "<PartNumber>").len();
        uploads.iter().map(parts).sum()
    }

    /// Returns what follows each of these words in an answer, up to the next tag.
    fn listed(&self, path: &str, word: &str) -> Vec<String> {
        let (_, answer) = self.ask("GET", path, b"");
        let answer = String::from_utf8(answer).unwrap();
        answer.split(word).skip(1).map(|rest| rest.split('<').next().unwrap_or_default().to_owned()).collect()
    }

    /// Asks again where the server does not close a connection: now and then it forgets to.
    fn ask(&self, method: &str, path: &str, content: &[u8]) -> (u16, Vec<u8>) {
        let answer = (0..3).find_map(|_| self.ask_once(method, path, content).ok()).expect("the server is silent");
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer[end + 4..].to_vec())
    }

    fn ask_once(&self, method: &str, path: &str, content: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        // The server believes any signature.
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nContent-Type: text/plain\r\nConnection: close\r\n\
             x-amz-acl: public-read\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0\r\n\r\n",
            self.address,
            content.len(),
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(content)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    }
}

fn path(bucket: &str, name: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'!' | b'-' | b'.' | b'/' | b'_' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    format!("/{bucket}/{}", name.bytes().map(encoded).collect::<String>())
}
