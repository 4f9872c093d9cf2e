//! The server: the page, and a WebSocket for each viewer. It runs on a thread of its own and only passes messages on.

use super::access::{self, Access};
use super::frames::FromViewer;
use super::message::{self, MAX_MESSAGE};
use super::peer;
use super::viewers::{MAX_OUTGOING, Outgoing};
use super::{Handle, Post};
use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt;
use futures_util::SinkExt;
use futures_util::stream::{SplitSink, SplitStream, StreamExt};

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::TrySendError;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// How many viewers there can be.
pub(crate) const MAX_VIEWERS: usize = 16;
/// How often a silent viewer is asked whether it is still there, and how long it may be silent.
const ASK: Duration = Duration::from_secs(20);
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// How long a viewer whose messages do not fit waits before it tries again.
const FULL: Duration = Duration::from_millis(2);
/// How long connections may take to close.
const GRACE: Duration = Duration::from_millis(500);

const PAGE: &str = include_str!("../../page/index.html");
const STYLE: &str = include_str!("../../page/desktop.css");
const SCRIPT: &str = include_str!("../../page/desktop.js");

#[derive(Debug)]
struct Server {
    access: Access,
    handle: Handle,
    places: Arc<Semaphore>,
    next: AtomicU64,
}

/// Serves until `stop` is sent or dropped, then waits until the viewers are gone, but not for long.
pub(crate) fn serve(
    listener: TcpListener,
    access: Access,
    handle: Handle,
    stop: oneshot::Receiver<()>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        // A frame is not held back until another one fills its packet.
        let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
        let places = Arc::new(Semaphore::new(MAX_VIEWERS));
        let server = Arc::new(Server { access, handle, places: places.clone(), next: AtomicU64::new(1) });
        let router = Router::new()
            .route("/", get(page))
            .route("/socket", get(socket))
            .layer(middleware::from_fn_with_state(server.clone(), guard))
            .with_state(server)
            .into_make_service_with_connect_info::<SocketAddr>();
        tokio::select! {
            served = axum::serve(listener, router).into_future() => served?,
            _ = stop => {}
        }
        let _ = timeout(GRACE, places.acquire_many(MAX_VIEWERS as u32)).await;
        Ok(())
    })
}

/// Refuses who may not connect, before anything else is done.
async fn guard(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    if server.access.is_local() && !peer::is_own(peer) {
        return refuse("this desktop is another user's");
    }
    let host = text(request.headers(), header::HOST);
    if !server.access.knows_host(host) {
        return refuse("this is not the desktop's address");
    }
    if !server.access.knows_token(request.uri().query().unwrap_or("")) {
        return refuse("the address lacks the token that gpu-run printed");
    }
    next.run(request).await
}

fn refuse(why: &'static str) -> Response {
    (StatusCode::FORBIDDEN, why).into_response()
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// The page, with its style and script in it. The policy allows these two and a connection back, nothing else.
async fn page(headers: HeaderMap) -> Response {
    let Ok(nonce) = access::random() else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let host = text(&headers, header::HOST);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; connect-src ws://{host}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let page = PAGE.replace("NONCE", &nonce).replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", SCRIPT);
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, Html(page)).into_response()
}

async fn socket(State(server): State<Arc<Server>>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    if !server.access.knows_origin(text(&headers, header::ORIGIN), text(&headers, header::HOST)) {
        return refuse("only the desktop's own page may connect");
    }
    let upgrade = upgrade.max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
    upgrade.on_upgrade(move |socket| view(server, socket))
}

/// A viewer's connection, from beginning to end.
async fn view(server: Arc<Server>, mut socket: WebSocket) {
    let Ok(place) = server.places.clone().try_acquire_owned() else {
        let _ = timeout(GRACE, socket.send(close(1013, "16 viewers are watching already"))).await;
        return;
    };
    let id = server.next.fetch_add(1, Ordering::Relaxed);
    let (out, outgoing) = mpsc::channel(MAX_OUTGOING);
    let (sink, stream) = socket.split();
    let mut writing = tokio::spawn(write(sink, outgoing));
    let read = async {
        post(&server, id, FromViewer::Joined(Box::new(out.clone()))).await?;
        Err(read(&server, id, stream).await)
    };
    let reason: Result<(), Reason> = tokio::select! {
        ended = read => ended,
        _ = &mut writing => Err(None),
    };
    if let Err(Some((code, reason))) = reason {
        // The frames that wait before it are of no use to a viewer that closes.
        let _ = timeout(GRACE, async {
            out.send(Outgoing::Close(code, reason)).await.is_ok() && (&mut writing).await.is_ok()
        })
        .await;
    }
    writing.abort();
    let _ = post(&server, id, FromViewer::Left).await;
    drop(place);
}

/// Why a viewer's connection ends; none if it is gone already.
type Reason = Option<(u16, &'static str)>;

/// Passes on what the page says, until the connection ends or the page says something malformed.
async fn read(server: &Server, id: u64, mut stream: SplitStream<WebSocket>) -> Reason {
    loop {
        let message = match timeout(MAX_SILENCE, stream.next()).await {
            Err(_) => return Some((1001, "the page did not answer")),
            Ok(None | Some(Ok(Message::Close(_)))) => return None,
            Ok(Some(Err(_))) => return Some((1009, "the message is malformed, or larger than 128 KiB")),
            Ok(Some(Ok(message))) => message,
        };
        match message {
            Message::Binary(bytes) => match message::read(&bytes) {
                Ok(said) => post(server, id, FromViewer::Said(said)).await.ok()?,
                Err(why) => return Some((1007, why)),
            },
            Message::Text(_) => return Some((1003, "messages are binary")),
            _ => {}
        }
    }
}

/// Posts to the desktop. While it has too many posts, the viewer's connection is not read either.
async fn post(server: &Server, id: u64, from: FromViewer) -> Result<(), Reason> {
    let mut post = Post::Viewer(id, from);
    loop {
        match server.handle.try_post(post) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(Some((1001, "the desktop has ended"))),
            Err(TrySendError::Full(again)) => post = again,
        }
        sleep(FULL).await;
    }
}

/// Sends what is posted for the viewer. Asks now and then whether it is still there.
async fn write(mut sink: SplitSink<WebSocket, Message>, mut outgoing: mpsc::Receiver<Outgoing>) {
    loop {
        let sent = match timeout(ASK, outgoing.recv()).await {
            Err(_) => sink.send(Message::Ping(Default::default())).await,
            Ok(Some(Outgoing::Frame(frame))) => sink.send(Message::Binary(message::frame(&frame).into())).await,
            Ok(Some(Outgoing::Copied(text))) => sink.send(Message::Binary(message::copied(&text).into())).await,
            Ok(Some(Outgoing::Close(code, reason))) => {
                let _ = sink.send(close(code, reason)).await;
                return;
            }
            Ok(None) => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

fn close(code: u16, reason: &'static str) -> Message {
    Message::Close(Some(CloseFrame { code, reason: reason.into() }))
}
