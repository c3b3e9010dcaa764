//! Why a request has no answer.

use reqwest::{StatusCode, Url};

/// What a module is told of a target that it may not reach (spec 03 §13.3).
pub const REFUSED_TEXT: &str = "refusing to connect to private or special-purpose addresses";

#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// At the start of the server.
    #[error("{0}")]
    Setup(String),
    /// The target is a refused address, or its name leads to one.
    #[error("{REFUSED_TEXT}: {host}")]
    Refused { host: String },
    /// A port of this process, which would take the request for one of a program on its machine.
    #[error("{REFUSED_TEXT}: {host} with this port is the server itself, which requests of modules never reach")]
    OwnPort { host: String },
    #[error("{text} is no URL for a request: {reason}")]
    Url {
        /// Without its query.
        text: String,
        reason: String,
    },
    #[error("requests go to http:// and https://, and this is {0}:")]
    Scheme(String),
    /// The method, a header name or a header value is invalid.
    #[error("the request has a {part} that cannot be sent: {reason}")]
    Head { part: &'static str, reason: String },
    /// Head and body of the request together.
    #[error("the request has {bytes} bytes, and at most {bytes_max} may be sent")]
    RequestTooLarge { bytes: usize, bytes_max: usize },
    /// Head and body of the answer together.
    #[error("the answer has more than {bytes_max} bytes")]
    ResponseTooLarge { bytes_max: usize },
    /// The account of the caller is exhausted.
    #[error("there is no memory left for the answer: {0}")]
    Memory(lightcone_accounts::Exceeded),
    #[error("more than {0} redirects")]
    TooManyRedirects(usize),
    #[error("a redirect leads to {0}, which is no URL for a request")]
    Redirect(String),
    /// Only 200 is an answer here.
    #[error("the answer is {status}{hint}")]
    Status {
        status: StatusCode,
        hint: &'static str,
    },
    #[error("operation timed out after {0} ms")]
    TimedOut(u128),
    /// Looking up, connecting, TLS, reading.
    #[error("{}", error_chain(.0))]
    Http(reqwest::Error),
    #[error("the server is stopping")]
    Stopping,
}

impl From<reqwest::Error> for OutboundError {
    fn from(mut error: reqwest::Error) -> OutboundError {
        // Queries may hold secrets.
        if let Some(url) = error.url_mut() {
            hide_query(url);
        }
        OutboundError::Http(error)
    }
}

pub(crate) fn hide_query(url: &mut Url) {
    url.set_query(None);
    url.set_fragment(None);
    // Without a user name there is no password either.
    let _ = url.set_password(None);
}

/// The chain of causes of an error, joined with `: `.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}
