//! Names of a database (06 §5.10).

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::Extension;
use serde_json::json;

use super::body::{check_is_json, RecordAndBody};
use super::path::Permitted;
use crate::auth::Caller;
use crate::control::{DatabaseRecord, Registration};
use crate::names::{DatabaseName, NAME_BYTES_MAX};
use crate::permissions::{self, Action};
use crate::reply::{self, Failure, Reply};
use crate::state::ServerState;

/// Most names of one database.
const NAMES_MAX: usize = 256;

/// Checks a name that is to be registered.
pub(super) fn registrable(name: DatabaseName) -> Result<DatabaseName, Failure> {
    if name.as_str().len() > NAME_BYTES_MAX {
        let text = format!("database name is longer than {NAME_BYTES_MAX} characters; choose a shorter one [LC0111]");
        return Err(Failure::bad_request(text));
    }
    Ok(name)
}

pub(super) async fn list(
    State(state): State<Arc<ServerState>>,
    Permitted(record): Permitted,
) -> Reply {
    Ok(reply::json_value(
        &json!({ "names": state.control.names_of(&record.identity) }),
    ))
}

pub(super) async fn add(
    State(state): State<Arc<ServerState>>,
    Extension(caller): Extension<Caller>,
    RecordAndBody(record, text): RecordAndBody,
) -> Reply {
    let name = DatabaseName::parse(text.text()?);
    let name = registrable(name.map_err(|error| Failure::bad_request(error.to_string()))?)?;
    // Stricter than the reference, which lets anyone add names to any database (06 §8).
    if !may_rename(&state, &record, &caller) {
        return Err(Failure::json(
            StatusCode::UNAUTHORIZED,
            json!({ "PermissionDenied": { "domain": name.as_str() } }),
        ));
    }
    if state.control.names_of(&record.identity).len() >= NAMES_MAX {
        return Err(too_many());
    }
    let (database, owner, registered) = (record.identity, record.owner, name.clone());
    match state
        .control(move |control| {
            control.register_name(&registered, (&owner, &caller.identity), &database)
        })
        .await?
    {
        Registration::Done => Ok(reply::json_value(
            &json!({ "Success": { "domain": name.as_str(), "database_identity": record.identity.to_hex() } }),
        )),
        Registration::PermissionDenied(name) => Err(Failure::json(
            StatusCode::UNAUTHORIZED,
            json!({ "PermissionDenied": { "domain": name } }),
        )),
        Registration::InUse(name) => Err(Failure::internal(format!(
            "record with the name {name} already exists"
        ))),
    }
}

pub(super) async fn replace(
    State(state): State<Arc<ServerState>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    RecordAndBody(record, text): RecordAndBody,
) -> Reply {
    check_is_json(&headers)?;
    let names = parse_names(&text)?;
    if !may_rename(&state, &record, &caller) {
        let body = json!({ "NotYourDatabase": { "database": record.identity.to_hex() } });
        return Err(Failure::json(StatusCode::UNAUTHORIZED, body));
    }
    if names.is_empty() {
        let caller = &caller.identity;
        permissions::check(&state.control, &record, caller, Action::LeaveNameless)?;
    }
    let (database, owner) = (record.identity, record.owner);
    match state
        .control(move |control| {
            control.replace_names(&names, (&owner, &caller.identity), &database)
        })
        .await?
    {
        Registration::Done => Ok(reply::json("\"Success\"")),
        Registration::PermissionDenied(name) => Err(Failure::json(
            StatusCode::UNAUTHORIZED,
            json!({ "PermissionDenied": { "domain": name } }),
        )),
        Registration::InUse(name) => {
            let text = format!("Cannot rename to {name} because it already is in use.");
            Err(Failure::json(
                StatusCode::BAD_REQUEST,
                json!({ "OtherError": text }),
            ))
        }
    }
}

fn may_rename(state: &ServerState, record: &DatabaseRecord, caller: &Caller) -> bool {
    let standing = permissions::standing(&state.control, record, &caller.identity);
    permissions::allows(standing, Action::Rename)
}

fn parse_names(text: &[u8]) -> Result<Vec<DatabaseName>, Failure> {
    let value: serde_json::Value = serde_json::from_slice(text).map_err(|error| {
        Failure::bad_request(format!("Failed to parse the request body as JSON: {error}"))
    })?;
    let texts: Vec<String> = serde_json::from_value(value).map_err(|error| {
        let text = format!("Failed to deserialize the JSON body into the target type: {error}");
        Failure::text(StatusCode::UNPROCESSABLE_ENTITY, text)
    })?;
    if texts.len() > NAMES_MAX {
        return Err(too_many());
    }
    texts
        .into_iter()
        .map(|text| match DatabaseName::parse(&text) {
            Ok(name) => registrable(name),
            Err(error) => Err(Failure::bad_request(format!(
                "Error parsing `{text}`: {error}"
            ))),
        })
        .collect()
}

fn too_many() -> Failure {
    Failure::bad_request(format!("a database has at most {NAMES_MAX} names [LC0111]"))
}
