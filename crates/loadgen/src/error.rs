//! Why a run cannot start or a connection ended.

/// Errors of the load generator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No TCP connection.
    #[error("cannot reach the server at {address}: {source}; is it running, and is --url right? [LC0690]")]
    Unreachable {
        address: String,
        source: std::io::Error,
    },
    /// The server did not accept the WebSocket.
    #[error("the server refused the connection: {status} {body} ({what}) [LC0691]")]
    Refused {
        status: String,
        body: String,
        what: String,
    },
    /// The server ended the connection.
    #[error("the server closed the connection{} [LC0692]", .0.as_deref().map(|how| format!(": {how}")).unwrap_or_default())]
    Closed(Option<String>),
    /// The server did not do what the protocol says.
    #[error("the server broke the protocol: {0} [LC0693]")]
    Protocol(String),
    /// An option that cannot be used.
    #[error("{0} [LC0694]")]
    Options(String),
    /// A request before or after the run failed.
    #[error("{what} failed: {detail} [LC0695]")]
    Request { what: String, detail: String },
    /// The connection failed.
    #[error("{what}: {source} [LC0692]")]
    Io {
        what: &'static str,
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn request(what: &str, detail: impl Into<String>) -> Self {
        let (what, detail) = (what.to_owned(), detail.into());
        Self::Request { what, detail }
    }

    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

impl From<lightcone_wire::Error> for Error {
    fn from(error: lightcone_wire::Error) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<lightcone_types::DecodeError> for Error {
    fn from(error: lightcone_types::DecodeError) -> Self {
        Self::Protocol(error.to_string())
    }
}
