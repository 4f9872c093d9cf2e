//! `gs://`: Google's XML interface, which `map` uses, is that of S3 in all that is asked here, but for who asks. So the server
//! for S3 answers, too. (The emulators of Google Cloud Storage that were found on PyPI have no uploads in parts of that interface.)
//! The token comes from a server of the test's own, as it does on Google's machines.

use super::proxy::{Faults, Proxy};
use super::server::Server;
use super::support::{Place, Ran};
use super::{SECRET, is_same, killed_until_done, lines, resume};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::thread;

/// Tells everybody who asks that they may.
fn tokens() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 4 << 10]);
            let token = format!("{{\"access_token\":\"{SECRET}\",\"expires_in\":3600,\"token_type\":\"Bearer\"}}");
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
            let _ = write!(client, "{head}\r\nContent-Length: {}\r\n\r\n{token}", token.len());
        }
    });
    address
}

fn map(place: &Place, at: SocketAddr, tokens: SocketAddr, line: &str) -> Command {
    let mut command = place.command(&format!("map cat.wat --device cpu {line}"));
    command
        .env("GOOGLE_BASE_URL", format!("http://{at}"))
        .env("GCE_METADATA_HOST", tokens.to_string())
        .env("HOME", place.path());
    command
}

pub(super) fn faults_lose_nothing(server: &Server) {
    let (place, bucket, text, tokens) = (super::place(), server.bucket(), lines(10 << 20), tokens());
    server.put(&bucket, "in/a b", &text);
    for faults in [Faults::Broken, Faults::Busy, Faults::Slow] {
        let proxy = Proxy::start(server.address(), faults);
        let line = format!("-i gs://{bucket}/in/a%20b -o gs://{bucket}/{faults:?} -v");
        let ran = Ran::from(map(&place, proxy.address(), tokens, &line).output().unwrap());
        assert!(ran.code == Some(0) && !ran.stderr.contains(SECRET), "{ran:?}");
        is_same(&server.get(&bucket, &format!("{faults:?}")).unwrap(), &text);
        assert!(proxy.faults() > 0, "the test shows nothing");
        let line = format!("-i gs://{bucket}/in/ -o gs://{bucket}/folder-{faults:?}/");
        Ran::from(map(&place, proxy.address(), tokens, &line).output().unwrap()).gives(0, "");
        is_same(&server.get(&bucket, &format!("folder-{faults:?}/a b")).unwrap(), &text);
    }
    assert_eq!((server.uploads(&bucket), server.tree(&bucket, "").len()), (0, 7), "something is left");
}

pub(super) fn killed_it_goes_on_where_the_upload_was(server: &Server) {
    let (place, bucket, text, tokens) = (super::place(), server.bucket(), lines(40 << 20), tokens());
    server.put(&bucket, "in", &text);
    let line = format!("-i gs://{bucket}/in -o gs://{bucket}/out");
    let command = |kills| map(&place, server.address(), tokens, &format!("{line} {}", resume(kills)));
    let look = || {
        let journal = String::from_utf8(server.get(&bucket, "out.gpu-run-map").unwrap()).unwrap();
        assert!(journal.contains("gs://") && !journal.contains(SECRET), "{journal}");
    };
    killed_until_done(2, command, || server.parts(&bucket, "out"), 0, look);
    is_same(&server.get(&bucket, "out").unwrap(), &text);
    assert_eq!((server.uploads(&bucket), server.get(&bucket, "out.gpu-run-map")), (0, None));
}
