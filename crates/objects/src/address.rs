//! An address such as `s3://bucket/key`, and the store that it is about.

use crate::error::Error;
use object_store::aws::AmazonS3Builder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use std::future::Future;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use url::Url;

/// The kinds of addresses, as `https` in `https://host/object`.
pub(crate) const SCHEMES: [&str; 4] = ["s3", "gs", "https", "http"];
const FIRST_PAUSE: Duration = Duration::from_millis(200);

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
pub(crate) const PATIENT: Manner = Manner {
    silence: Duration::from_secs(30),
    connect: Duration::from_secs(5),
    repeat: (Duration::from_secs(20), 4),
    failures: 6,
};

/// Where S3's client finds who asks without a profile.
const OTHER_THAN_PROFILES: [&str; 5] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SKIP_SIGNATURE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];

/// An address that was parsed.
#[derive(Debug)]
pub(crate) struct Address {
    url: Url,
    pub(crate) path: Path,
    /// How it may be shown: without anything secret, and the same for the same object.
    pub(crate) name: String,
}

/// A bucket, or a web server.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// If its objects can be listed and written.
    pub(crate) parts: Option<Arc<dyn MultipartStore>>,
    /// Makes the requests.
    network: Arc<Network>,
    manner: Manner,
}

struct Network(Option<Runtime>);

impl Drop for Network {
    fn drop(&mut self) {
        // Waits for nothing: it may be dropped where waiting is not allowed.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Address {
    /// Whether a text is meant as an address, and not as a path.
    pub(crate) fn is_one(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        })
    }

    pub(crate) fn parse(address: &str, schemes: &[&str]) -> Result<Self, Error> {
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
        if url.host_str().is_none_or(str::is_empty) {
            return wrong("it names no bucket or host");
        }
        let Ok(path) = Path::from_url_path(url.path()) else { return wrong("its path is invalid") };
        let name = name(url.clone(), path.as_ref());
        Ok(Self { url, path, name })
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.path.is_root() || self.url.path().ends_with('/')
    }

    /// Returns the store. Nothing is asked yet.
    pub(crate) fn site(&self, manner: Manner) -> Result<Site, Error> {
        let failed = |error: object_store::Error| Error::of_store(&self.name, &error);
        let host = self.url.host_str().unwrap_or_default();
        // Whatever the process has installed before us stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A whole object may take hours; only silence is too long.
        let client = ClientOptions::new().with_timeout_disabled().with_read_timeout(manner.silence);
        let client = client.with_connect_timeout(manner.connect);
        let (retry_timeout, max_retries) = manner.repeat;
        let retry = RetryConfig { retry_timeout, max_retries, ..RetryConfig::default() };
        // For servers of one's own, a variable says how they are reached.
        let is_plain = |names: &[&str]| {
            names.iter().any(|name| std::env::var(name).is_ok_and(|address| address.starts_with("http://")))
        };
        let (store, parts): (Arc<dyn ObjectStore>, Option<Arc<dyn MultipartStore>>) = match self.url.scheme() {
            "s3" => {
                self.check_profile()?;
                let client = client.with_allow_http(is_plain(&["AWS_ENDPOINT_URL", "AWS_ENDPOINT"]));
                let builder = AmazonS3Builder::from_env().with_client_options(client);
                let store = builder.with_retry(retry).with_bucket_name(host).build().map_err(failed)?;
                let store = Arc::new(store);
                (store.clone(), Some(store))
            }
            "gs" => {
                let client = client.with_allow_http(is_plain(&["GOOGLE_BASE_URL"]));
                let builder = GoogleCloudStorageBuilder::from_env().with_client_options(client);
                let store = builder.with_retry(retry).with_bucket_name(host).build().map_err(failed)?;
                let store = Arc::new(store);
                (store.clone(), Some(store))
            }
            scheme => {
                let client = client.with_allow_http(scheme == "http");
                let base = &self.url[..url::Position::BeforePath];
                let builder = HttpBuilder::new().with_url(base).with_client_options(client).with_retry(retry);
                (Arc::new(builder.build().map_err(failed)?), None)
            }
        };
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("gpu-run objects").enable_all().build();
        let runtime =
            runtime.map_err(|error| Error::Failed { object: self.name.clone(), message: error.to_string() })?;
        Ok(Site { store, parts, network: Arc::new(Network(Some(runtime))), manner })
    }

    /// Refuses a profile, which would not be read: what the machine itself may do must not stand in for it.
    fn check_profile(&self) -> Result<(), Error> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        match is_set("AWS_PROFILE") && !OTHER_THAN_PROFILES.into_iter().any(is_set) {
            true => Err(Error::Profile(self.name.clone())),
            false => Ok(()),
        }
    }
}

impl Site {
    /// Waits, in any thread, until a request is done.
    pub(crate) fn wait<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> T {
        let (send, receive) = mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = send.send(request.await);
        });
        receive.recv().expect("requests do not panic, and the runtime lives as long as the site")
    }

    pub(crate) fn spawn<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.network.0.as_ref().expect("it is only taken when it is dropped").spawn(request)
    }

    /// Pauses before a request about an object of this name is made again, unless that would not help, or has not helped often enough.
    pub(crate) async fn after_failure(
        &self,
        name: &str,
        error: &object_store::Error,
        failures: &mut u32,
    ) -> Result<(), Error> {
        if !Error::is_passing(error) || *failures >= self.manner.failures {
            return Err(Error::of_store(name, error));
        }
        tokio::time::sleep(FIRST_PAUSE * (1 << *failures)).await;
        *failures += 1;
        Ok(())
    }
}

/// Returns the name of the object at `path`, in the same bucket as `url`.
fn name(mut url: Url, path: &str) -> String {
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.clear().extend(path.split('/').filter(|segment| !segment.is_empty()));
    }
    shown(&url)
}

/// Returns the name of what lies `below` a folder, or beside an object, of this name.
pub(crate) fn name_of(name_of_other: &str, path: &Path) -> String {
    Url::parse(name_of_other).map_or_else(|_| name_of_other.to_owned(), |url| name(url, path.as_ref()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_one_name() {
        let name = |address| Address::parse(address, &SCHEMES).unwrap().name;
        assert_eq!(name("s3://b/in/%41 b%2fc.txt"), name("s3://b/in/A%20b/c.txt"));
        assert_eq!(name("s3://b/in/"), "s3://b/in");
        assert_eq!(name("http://h:1/100%25"), "http://h:1/100%25");
        assert_eq!(name_of("s3://b/in", &Path::parse("out/a b%").unwrap()), "s3://b/out/a%20b%25");
    }
}
