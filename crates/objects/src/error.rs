//! What can go wrong with an object.

use std::io;

/// Why an object cannot be read or written. Names the object and the cause, and never a credential.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0} is not the address of an object: {1}")]
    Address(String, &'static str),
    #[error("{0} is not the address of an object: it must begin with {1}")]
    Scheme(String, String),
    #[error("there is no {0}")]
    Missing(String),
    #[error("{0}: access is denied{hint}", hint = credentials_hint(.0))]
    Denied(String),
    #[error("{0} changed while it was read")]
    Changed(String),
    #[error("{0} cannot be listed: only folders of s3:// and gs:// can")]
    NotListed(String),
    #[error("no object in {folder} can have the name {name:?}")]
    Name { folder: String, name: String },
    #[error(
        "{0}: AWS_PROFILE is set, but profiles are not read; export its keys first: eval \"$(aws configure export-credentials --format env)\""
    )]
    Profile(String),
    #[error("{0} cannot be written: only objects of s3:// and gs:// can")]
    ReadOnly(String),
    #[error("{name} has {bytes} bytes: at most {most} are read")]
    TooLarge { name: String, bytes: u64, most: usize },
    #[error("the upload to {0} no longer exists: it was aborted or has expired")]
    UploadGone(String),
    #[error("{object}: {message}")]
    Failed { object: String, message: String },
}

fn credentials_hint(name: &str) -> &'static str {
    match name.split_once(':') {
        Some(("s3", _)) => {
            " (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY say who asks; AWS_SKIP_SIGNATURE=true asks as nobody)"
        }
        Some(("gs", _)) => " (GOOGLE_APPLICATION_CREDENTIALS names the file that says who asks)",
        _ => "",
    }
}

impl Error {
    /// Says what a store answered about an object.
    pub(crate) fn of_store(object: &str, error: &object_store::Error) -> Self {
        use object_store::Error as E;
        let object = object.to_owned();
        match error {
            E::NotFound { .. } => Self::Missing(object),
            E::PermissionDenied { .. } | E::Unauthenticated { .. } => Self::Denied(object),
            E::Precondition { .. } => Self::Changed(object),
            _ => match status(error) {
                Some(404) => Self::Missing(object),
                Some(401 | 403) => Self::Denied(object),
                _ if asks_the_machine(error) => Self::Failed { message: causes(error) + NOBODY, object },
                _ => Self::Failed { object, message: causes(error) },
            },
        }
    }

    /// Whether asking again may help.
    pub(crate) fn is_passing(error: &object_store::Error) -> bool {
        use object_store::Error as E;
        matches!(error, E::Generic { .. } | E::JoinError { .. }) && !matches!(status(error), Some(401 | 403 | 404))
    }
}

/// Follows the message when the machine was asked who it is, because nothing else says who asks.
const NOBODY: &str = "; nothing in the environment says who asks, and this machine does not know either \
    (for profiles of the AWS CLI: eval \"$(aws configure export-credentials --format env)\")";

/// Whether the request was one for this machine's own credentials, which those of a cloud can answer.
fn asks_the_machine(error: &object_store::Error) -> bool {
    chain(error).any(|text| {
        ["/latest/api/token", "/latest/meta-data/", "/computeMetadata/"].iter().any(|path| text.contains(path))
    })
}

/// Returns the status of an answer that object_store has no kind of error for: those to lists.
fn status(error: &object_store::Error) -> Option<u16> {
    let status = |text: String| text.strip_prefix("Server returned non-2xx status code: ")?.get(..3)?.parse().ok();
    chain(error).find_map(status)
}

/// Returns what an error and its causes say.
fn chain(error: &object_store::Error) -> impl Iterator<Item = String> {
    let mut next: Option<&dyn std::error::Error> = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error.to_string())
    })
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Missing(_) => io::ErrorKind::NotFound,
            Error::Denied(_) => io::ErrorKind::PermissionDenied,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Returns the last cause that says something the ones before it do not: the others repeat it at length.
fn causes(error: &object_store::Error) -> String {
    let last = chain(error).filter(|text| !text.is_empty()).last().unwrap_or_default();
    without_requests(&last)
}

/// Leaves out what follows a `?` of an address: signatures may be there.
fn without_requests(text: &str) -> String {
    let is_address = |word: &str| word.contains("://");
    let cut = |word: &str| match word.split_once('?') {
        Some((address, _)) if is_address(word) => format!("{address}?…"),
        _ => word.to_owned(),
    };
    text.split(' ').map(cut).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_asks_for_is_not_shown() {
        let text = "error sending request for url (http://host/key?X-Amz-Signature=secret) twice?";
        assert_eq!(without_requests(text), "error sending request for url (http://host/key?… twice?");
    }
}
