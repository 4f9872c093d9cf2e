//! An HTTP server with several threads: `http-server ADDRESS`. Ends when somebody gets `/stop`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tiny_http::{Header, Method, Request, Response, Server};

const THREADS: usize = 4;

fn answer(mut request: Request) -> std::io::Result<()> {
    let plain = Header::from_bytes("content-type", "text/plain").expect("a header");
    let text = match (request.method(), request.url()) {
        (Method::Get, "/") => "hello from here\n".to_owned(),
        (Method::Get, "/large") => "a line of a large page\n".repeat(10_000),
        (Method::Post, "/") => {
            let mut body = String::new();
            request.as_reader().read_to_string(&mut body)?;
            format!("{} bytes: {body}", body.len())
        }
        _ => return request.respond(Response::empty(404)),
    };
    request.respond(Response::from_string(text).with_header(plain))
}

fn main() {
    let address = std::env::args().nth(1).expect("an address");
    let server = Server::http(address).expect("a server");
    println!("listening on {}", server.server_addr());
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for request in server.incoming_requests() {
                    if request.url() == "/stop" {
                        request.respond(Response::from_string("good bye\n")).expect("a client that stays");
                        (0..THREADS).for_each(|_| server.unblock());
                        break;
                    }
                    // A client may go before it has its answer.
                    if answer(request).is_ok() {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    println!("{} requests", answered.into_inner());
}
