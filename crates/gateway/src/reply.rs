//! Responses with the exact content types and error bodies of 06 §1.

use std::future::Future;

use axum::body::Body;
use axum::http::{header, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{json, Value};
use tokio::task::JoinError;

use lightcone_control::ControlError;
use lightcone_database::{EnvironmentError, SqlError};
use lightcone_node::databases::{CreateError, OpenError};
use lightcone_node::permissions::NotAuthorized;
use lightcone_node::NotFound;

pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// Without a charset: the reference's command line compares it literally.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// A refused request: a status, a body and headers.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    body: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

pub(crate) type Reply = Result<Response, Failure>;

impl Failure {
    pub(crate) fn empty(status: StatusCode) -> Failure {
        Failure {
            status,
            body: String::new(),
            headers: Vec::new(),
        }
    }

    pub(crate) fn text(status: StatusCode, body: impl Into<String>) -> Failure {
        Failure {
            status,
            body: body.into(),
            headers: vec![(header::CONTENT_TYPE, TEXT)],
        }
    }

    pub(crate) fn json(status: StatusCode, body: Value) -> Failure {
        Failure {
            status,
            body: body.to_string(),
            headers: vec![(header::CONTENT_TYPE, JSON)],
        }
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Failure {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn bad_request(body: impl Into<String>) -> Failure {
        Failure::text(StatusCode::BAD_REQUEST, body)
    }

    pub(crate) fn internal(body: impl Into<String>) -> Failure {
        Failure::text(StatusCode::INTERNAL_SERVER_ERROR, body)
    }

    /// The server cannot do it now.
    pub(crate) fn busy(body: impl Into<String>) -> Failure {
        Failure::text(StatusCode::SERVICE_UNAVAILABLE, body)
    }

    /// The same, with when to try again.
    pub(crate) fn busy_for(retry_seconds: u64, body: impl Into<String>) -> Failure {
        Failure::busy(body).with_header(header::RETRY_AFTER, HeaderValue::from(retry_seconds))
    }
}

/// Work that runs to its end even if the client goes away, so that nothing stays half made.
pub(crate) async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    tokio::spawn(work).await?
}

/// Work that would keep a network thread for too long.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    Ok(tokio::task::spawn_blocking(work).await?)
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}

/// The answer when work for it panicked.
impl From<JoinError> for Failure {
    fn from(_: JoinError) -> Self {
        Failure::internal("the operation stopped; see the server's log [LC0120]")
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::ConnectRejected(message) => Failure::text(StatusCode::FORBIDDEN, message),
            SqlError::Writes => Failure::text(StatusCode::FORBIDDEN, "the statement writes"),
            SqlError::Query(message) | SqlError::NotCompiled(message) => {
                Failure::bad_request(message)
            }
            SqlError::Failed(failure) => Failure::bad_request(failure.message),
            SqlError::Busy(message) => Failure::busy(message),
            SqlError::ModuleGone => Failure::text(StatusCode::NOT_FOUND, "no such module"),
            SqlError::Database(message) => Failure::internal(message),
        }
    }
}

impl From<NotFound> for Failure {
    fn from(error: NotFound) -> Self {
        Failure::text(StatusCode::NOT_FOUND, error.to_string())
    }
}

impl From<NotAuthorized> for Failure {
    fn from(error: NotAuthorized) -> Self {
        Failure::text(StatusCode::FORBIDDEN, error.to_string())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Gone => NotFound::Database.into(),
            OpenError::Failed(reason) => Failure::internal(reason),
        }
    }
}

impl From<CreateError> for Failure {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Busy(reason) => Failure::busy_for(10, reason),
            CreateError::Environment(error) => error.into(),
            CreateError::Failed(reason) => Failure::internal(reason),
        }
    }
}

/// What a publisher is told whose variables are refused.
impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        match error {
            EnvironmentError::MissingRequired(keys) => {
                let body = json!({ "EnvironmentError": missing_variables(&keys) });
                Failure::json(StatusCode::BAD_REQUEST, body)
            }
            error @ EnvironmentError::VersionConflict => {
                Failure::text(StatusCode::CONFLICT, error.to_string())
            }
            error => Failure::bad_request(error.to_string()),
        }
    }
}

/// The required variables without a value, as JSON.
pub(crate) fn missing_variables(keys: &[String]) -> Value {
    json!({ "MissingRequiredEnvironment": { "keys": keys } })
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::NameOfAnother(name) => {
                let body = json!({ "PermissionDenied": { "name": name } });
                Failure::json(StatusCode::UNAUTHORIZED, body)
            }
            // Trying again does not help.
            error @ (ControlError::FoundedByAnother(_)
            | ControlError::FoundersForgotten
            | ControlError::TooManyOfOwner { .. }
            | ControlError::TooManyNames { .. }) => {
                Failure::text(StatusCode::FORBIDDEN, error.to_string())
            }
            error @ (ControlError::TooManyDatabases(_) | ControlError::NoMoreNames(_)) => {
                Failure::busy(error.to_string())
            }
            ControlError::Gone(_) => NotFound::Database.into(),
            error @ ControlError::TooManyCollaborators => Failure::bad_request(error.to_string()),
            error => Failure::internal(error.to_string()),
        }
    }
}

pub(crate) fn text(body: impl Into<Body>) -> Response {
    with_type(TEXT, body)
}

pub(crate) fn json(body: impl Into<Body>) -> Response {
    with_type(JSON, body)
}

pub(crate) fn json_value(value: &Value) -> Response {
    json(value.to_string())
}

pub(crate) fn with_type(content_type: HeaderValue, body: impl Into<Body>) -> Response {
    let body: Body = body.into();
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}

pub(crate) fn empty(status: StatusCode) -> Response {
    Failure::empty(status).into_response()
}
