//! Path parameters (06 §1, §2): identities, and names or identities of databases.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use lightcone_control::{DatabaseRecord, NameOrIdentity};
use lightcone_node::auth::Caller;
use lightcone_types::{Hash, Identity};

use super::route::Route;
use crate::gateway::Gateway;
use crate::reply::Failure;

/// The `{database}` segment.
pub(crate) struct DatabasePath(pub NameOrIdentity);

/// A request about the existing database in the `{database}` segment, of a caller who may do with it what the route's row says.
pub(super) struct Permitted {
    pub state: Arc<Gateway>,
    pub record: DatabaseRecord,
    pub caller: Caller,
}

/// The `{identity}` segment: 64 bare hexadecimal digits.
pub(crate) struct IdentityPath(pub Identity);

/// The `{hash}` segment: 64 bare hexadecimal digits.
pub(crate) struct HashPath(pub Hash);

/// The `{function}` segment.
pub(crate) struct FunctionPath(pub String);

/// The `{reducer}` segment.
pub(crate) struct ReducerPath(pub String);

/// What follows `/route`, as the routes of a module have it: empty, `/`, or `/` and more (06 §5.16).
pub(crate) struct RoutePath(pub String);

async fn parameter(parts: &mut Parts, name: &str) -> Result<Option<String>, Failure> {
    let parameters = RawPathParams::from_request_parts(parts, &())
        .await
        .map_err(|error| wrong(error.body_text()))?;
    let mut found = parameters.iter().filter(|(key, _)| *key == name);
    Ok(found.next().map(|(_, value)| value.to_owned()))
}

async fn required(parts: &mut Parts, name: &str) -> Result<String, Failure> {
    let value = parameter(parts, name).await?;
    value.ok_or_else(|| wrong(format!("no `{name}`")))
}

fn wrong(reason: impl std::fmt::Display) -> Failure {
    Failure::bad_request(format!("Invalid URL: {reason}"))
}

impl<S: Sync> FromRequestParts<S> for DatabasePath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let text = required(parts, "database").await?;
        let parsed = NameOrIdentity::parse(&text);
        parsed.map(DatabasePath).map_err(wrong)
    }
}

impl FromRequestParts<Arc<Gateway>> for Permitted {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<Gateway>) -> Result<Self, Failure> {
        let DatabasePath(path) = DatabasePath::from_request_parts(parts, state).await?;
        let record = state.node.record(&path)?;
        let route = parts.extensions.get::<&Route>();
        let action = route.and_then(|route| route.action);
        let action = action.ok_or_else(|| Failure::internal("the route names no right"))?;
        let (state, caller) = (state.clone(), caller_of(parts)?);
        state.node.check(&record, &caller.identity, action)?;
        Ok(Permitted {
            state,
            record,
            caller,
        })
    }
}

/// Whom the layer of the route's token has found.
pub(super) fn caller_of(parts: &Parts) -> Result<Caller, Failure> {
    let caller = parts.extensions.get::<Caller>().cloned();
    caller.ok_or_else(|| Failure::internal("the route asks for no token"))
}

impl<S: Sync> FromRequestParts<S> for IdentityPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let text = required(parts, "identity").await?;
        let identity = Identity::from_hex(&text);
        identity.map(IdentityPath).map_err(wrong)
    }
}

impl<S: Sync> FromRequestParts<S> for HashPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let text = required(parts, "hash").await?;
        Hash::from_hex(&text).map(HashPath).map_err(wrong)
    }
}

impl<S: Sync> FromRequestParts<S> for FunctionPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        required(parts, "function").await.map(FunctionPath)
    }
}

impl<S: Sync> FromRequestParts<S> for ReducerPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        required(parts, "reducer").await.map(ReducerPath)
    }
}

impl<S: Sync> FromRequestParts<S> for RoutePath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Ok(RoutePath(match parameter(parts, "path").await? {
            Some(rest) => format!("/{rest}"),
            None if parts.uri.path().ends_with('/') => "/".to_owned(),
            None => String::new(),
        }))
    }
}
