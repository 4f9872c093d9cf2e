//! An object's address, the store it is in, and requests to it.

use crate::State;
use crate::error::Error;
use crate::read::Reader;
use crate::upload::{Parts, Upload};
use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// The kinds of addresses, as `https` in `https://host/object`.
const SCHEMES: [&str; 4] = ["s3", "gs", "https", "http"];
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// An object in a store. Clones are the same object.
#[derive(Clone)]
pub struct Object {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// If it can be written.
    pub(crate) parts: Option<Arc<dyn MultipartStore>>,
    pub(crate) path: Path,
    /// Its address, without anything secret.
    name: String,
    /// Makes the requests.
    network: Arc<Network>,
    manner: Manner,
}

/// How long requests may take, and how often they are made again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Nothing came for so long: the request has failed.
    pub(crate) silence: Duration,
    pub(crate) connect: Duration,
    /// How long one request may be repeated by the client below us, and how often.
    pub(crate) repeat: (Duration, usize),
    /// How often a request is made again that failed nevertheless, if nothing at all succeeds in between.
    pub(crate) failures: u32,
}

/// Of inputs and outputs, which a run cannot do without.
const PATIENT: Manner = Manner {
    silence: Duration::from_secs(30),
    connect: Duration::from_secs(5),
    repeat: (Duration::from_secs(20), 4),
    failures: 6,
};

struct Network(Option<Runtime>);

impl Drop for Network {
    fn drop(&mut self) {
        // Waits for nothing: it may be dropped where waiting is not allowed.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Object {
    /// Whether a text is meant as an object's address, and not as a path.
    pub fn is_address(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        })
    }

    /// Takes an address such as `s3://bucket/key`. Nothing is asked yet.
    pub fn open(address: &str) -> Result<Self, Error> {
        let (url, path) = parse(address, &SCHEMES)?;
        if path.is_root() || url.path().ends_with('/') {
            return Err(Error::Address(shown(&url), "it names no object: folders of objects are not supported"));
        }
        Self::connect(&url, path, PATIENT)
    }

    /// Makes the client for the store of an address.
    pub(crate) fn connect(url: &Url, path: Path, manner: Manner) -> Result<Self, Error> {
        let (host, name) = (url.host_str().unwrap_or_default(), shown(url));
        let failed = |error: object_store::Error| Error::of_store(&name, &error);
        // Whatever the process has installed before us stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A whole object may take hours; only silence is too long.
        let client = ClientOptions::new().with_timeout_disabled().with_read_timeout(manner.silence);
        let client = client.with_connect_timeout(manner.connect);
        let (retry_timeout, max_retries) = manner.repeat;
        let retry = RetryConfig { retry_timeout, max_retries, ..RetryConfig::default() };
        let (store, parts): (Arc<dyn ObjectStore>, Option<Arc<dyn MultipartStore>>) = match url.scheme() {
            "s3" => {
                // For servers of one's own, the endpoint says how it is reached.
                let is_plain = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
                    .iter()
                    .any(|name| std::env::var(name).is_ok_and(|endpoint| endpoint.starts_with("http://")));
                let builder = AmazonS3Builder::from_env().with_client_options(client.with_allow_http(is_plain));
                let store = builder.with_retry(retry).with_bucket_name(host).build().map_err(failed)?;
                let store = Arc::new(store);
                (store.clone(), Some(store))
            }
            "gs" => {
                let builder = GoogleCloudStorageBuilder::from_env().with_client_options(client);
                let store = builder.with_retry(retry).with_bucket_name(host).build().map_err(failed)?;
                let store = Arc::new(store);
                (store.clone(), Some(store))
            }
            scheme => {
                let client = client.with_allow_http(scheme == "http");
                let base = &url[..url::Position::BeforePath];
                let builder = HttpBuilder::new().with_url(base).with_client_options(client).with_retry(retry);
                (Arc::new(builder.build().map_err(failed)?), None)
            }
        };
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("gpu-run objects").enable_all().build();
        let runtime = runtime.map_err(|error| Error::Failed { object: name.clone(), message: error.to_string() })?;
        Ok(Self { store, parts, path, name, network: Arc::new(Network(Some(runtime))), manner })
    }

    /// The object in the same place whose name has a suffix.
    pub fn beside(&self, suffix: &str) -> Self {
        // No other object may stand in for it: it could be this one.
        let path = Path::parse(format!("{}{suffix}", self.path)).expect("a path with a longer name is a path");
        Self { path, name: format!("{}{suffix}", self.name), ..self.clone() }
    }

    /// The object below this one, as if this one was a folder. The name has no empty parts.
    pub(crate) fn below(&self, name: &str) -> Self {
        let path = name.split('/').fold(self.path.clone(), |path, part| path.join(part));
        Self { path, name: format!("{}/{name}", self.name.trim_end_matches('/')), ..self.clone() }
    }

    /// Its address, without anything secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it can be written.
    pub fn is_writable(&self) -> bool {
        self.parts.is_some()
    }

    /// Returns what it is now; `None` if it does not exist.
    pub fn state(&self) -> Result<Option<State>, Error> {
        let object = self.clone();
        let found = self.wait(async move { object.again(|| object.store.head(&object.path)).await });
        match found {
            Ok(meta) => Ok(Some(state(&meta))),
            Err(Error::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Begins to read.
    pub fn reader(&self) -> Result<Reader, Error> {
        let state = self.state()?.ok_or_else(|| Error::Missing(self.name.clone()))?;
        Ok(Reader::new(self.clone(), state))
    }

    /// Returns the bytes of a small object; `None` if it does not exist.
    pub fn get(&self) -> Result<Option<Bytes>, Error> {
        let object = self.clone();
        let found = self
            .wait(async move { object.again(|| async { object.store.get(&object.path).await?.bytes().await }).await });
        match found {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes, or replaces, a small object in one step.
    pub fn put(&self, bytes: Bytes) -> Result<(), Error> {
        let object = self.clone();
        self.wait(async move { object.again(|| object.store.put(&object.path, bytes.clone().into())).await.map(drop) })
    }

    /// Removes it, if it exists.
    pub fn remove(&self) -> Result<(), Error> {
        let object = self.clone();
        match self.wait(async move { object.again(|| object.store.delete(&object.path)).await }) {
            Err(Error::Missing(_)) => Ok(()),
            removed => removed,
        }
    }

    /// Begins to write it. It appears, or is replaced, when the upload is finished.
    pub fn upload(&self) -> Result<Upload, Error> {
        Upload::begin(self.clone())
    }

    /// Continues to write it where these parts end.
    pub fn continue_upload(&self, parts: Parts) -> Result<Upload, Error> {
        Upload::continued(self.clone(), parts)
    }

    /// Waits, in any thread, until a request is done.
    pub(crate) fn wait<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> T {
        let (send, receive) = mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = send.send(request.await);
        });
        receive.recv().expect("requests do not panic, and the runtime lives as long as the object")
    }

    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.network.0.as_ref().expect("it is only taken when it is dropped").spawn(request)
    }

    /// Makes a request until it succeeds, fails for good, or has failed too often.
    pub(crate) async fn again<T, F>(&self, mut request: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let mut failures = 0;
        loop {
            match request().await {
                Ok(done) => return Ok(done),
                Err(error) => self.after_failure(&error, &mut failures).await?,
            }
        }
    }

    /// Pauses before a request is made again, unless that would not help, or has not helped often enough.
    pub(crate) async fn after_failure(&self, error: &object_store::Error, failures: &mut u32) -> Result<(), Error> {
        if !Error::is_passing(error) || *failures >= self.manner.failures {
            return Err(Error::of_store(&self.name, error));
        }
        tokio::time::sleep(FIRST_PAUSE * (1 << *failures)).await;
        *failures += 1;
        Ok(())
    }
}

pub(crate) fn state(meta: &ObjectMeta) -> State {
    // The tag of an object that was written again with the same content is the same.
    let version = format!("{} {}", meta.e_tag.as_deref().unwrap_or_default(), meta.last_modified.to_rfc3339());
    State { bytes: meta.size, version }
}

/// Checks an address, and returns its path, too.
pub(crate) fn parse(address: &str, schemes: &[&str]) -> Result<(Url, Path), Error> {
    let url = Url::parse(address).map_err(|_| Error::Address(without_secrets(address), "it cannot be parsed"))?;
    let wrong = |why| Err(Error::Address(shown(&url), why));
    if !schemes.contains(&url.scheme()) {
        return Err(Error::Scheme(shown(&url), choice(schemes)));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("it must not contain a name or a password");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return wrong("it must not contain a question or a fragment (after `?` or `#`)");
    }
    if url.host_str().is_none() {
        return wrong("it names no bucket or host");
    }
    match Path::from_url_path(url.path()) {
        Ok(path) => Ok((url, path)),
        Err(_) => wrong("its path is invalid"),
    }
}

/// Lists schemes as in `s3://, gs:// or http://`.
pub(crate) fn choice(schemes: &[&str]) -> String {
    let names: Vec<_> = schemes.iter().map(|scheme| format!("{scheme}://")).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Returns an address as it may be shown.
pub(crate) fn shown(url: &Url) -> String {
    let path = &url[url::Position::BeforePath..url::Position::AfterPath];
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{path}", url.scheme(), url.host_str().unwrap_or_default())
}

/// Returns what can be shown of an address that cannot be parsed.
fn without_secrets(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => address.to_owned(),
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Object").field(&self.name).finish()
    }
}
