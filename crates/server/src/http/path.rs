//! Path parameters (06 §1, §2): identities, and names or identities of databases.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use lightcone_types::Identity;

use super::route::Route;
use crate::auth::Caller;
use crate::control::DatabaseRecord;
use crate::names::NameOrIdentity;
use crate::permissions;
use crate::reply::Failure;
use crate::state::ServerState;

/// The `{database}` segment.
pub(crate) struct DatabasePath(pub NameOrIdentity);

/// The record of the existing database in the `{database}` segment, for a caller who may do with it what the route's row says.
pub(super) struct Permitted(pub DatabaseRecord);

/// The `{identity}` segment: 64 bare hexadecimal digits.
pub(crate) struct IdentityPath(pub Identity);

/// The `{function}` segment.
pub(crate) struct FunctionPath(pub String);

/// What follows `/route`, as the routes of a module have it: empty, `/`, or `/` and more (06 §5.16).
pub(crate) struct RoutePath(pub String);

async fn parameter(parts: &mut Parts, name: &str) -> Result<String, Failure> {
    let parameters = RawPathParams::from_request_parts(parts, &())
        .await
        .map_err(|error| Failure::bad_request(format!("Invalid URL: {}", error.body_text())))?;
    let value = parameters
        .iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned());
    value.ok_or_else(|| Failure::bad_request(format!("Invalid URL: no `{name}`")))
}

impl<S: Sync> FromRequestParts<S> for DatabasePath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let text = parameter(parts, "database").await?;
        let parsed = NameOrIdentity::parse(&text);
        parsed
            .map(DatabasePath)
            .map_err(|error| Failure::bad_request(format!("Invalid URL: {error}")))
    }
}

impl FromRequestParts<Arc<ServerState>> for Permitted {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<ServerState>,
    ) -> Result<Self, Failure> {
        let DatabasePath(path) = DatabasePath::from_request_parts(parts, state).await?;
        let record = state.record(&path)?;
        let action = parts
            .extensions
            .get::<&Route>()
            .and_then(|route| route.action);
        let caller = parts.extensions.get::<Caller>();
        let (Some(action), Some(caller)) = (action, caller) else {
            return Err(Failure::internal("the route names no right, or no caller"));
        };
        permissions::check(&state.control, &record, &caller.identity, action)?;
        Ok(Permitted(record))
    }
}

impl<S: Sync> FromRequestParts<S> for IdentityPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let text = parameter(parts, "identity").await?;
        Identity::from_hex(&text)
            .map(IdentityPath)
            .map_err(|error| Failure::bad_request(format!("Invalid URL: {error}")))
    }
}

impl<S: Sync> FromRequestParts<S> for FunctionPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        parameter(parts, "function").await.map(FunctionPath)
    }
}

impl<S: Sync> FromRequestParts<S> for RoutePath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let parameters = RawPathParams::from_request_parts(parts, &())
            .await
            .map_err(|error| Failure::bad_request(format!("Invalid URL: {}", error.body_text())))?;
        let rest = parameters.iter().find(|(key, _)| *key == "path");
        Ok(RoutePath(match rest {
            Some((_, rest)) => format!("/{rest}"),
            None if parts.uri.path().ends_with('/') => "/".to_owned(),
            None => String::new(),
        }))
    }
}
