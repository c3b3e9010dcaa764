//! Names of a database (06 §5.10).

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::Extension;
use lightcone_control::{DatabaseName, Registration, NAME_BYTES_MAX};
use lightcone_node::auth::Caller;
use lightcone_node::permissions::Action;
use serde_json::json;

use super::body::{check_is_json, RecordAndBody};
use super::path::Permitted;
use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};

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

pub(super) async fn list(State(state): State<Arc<Gateway>>, Permitted(record): Permitted) -> Reply {
    Ok(reply::json_value(
        &json!({ "names": state.node.control.names_of(&record.identity) }),
    ))
}

pub(super) async fn add(
    State(state): State<Arc<Gateway>>,
    Extension(caller): Extension<Caller>,
    RecordAndBody(record, text): RecordAndBody,
) -> Reply {
    let name = DatabaseName::parse(text.text()?);
    let name = registrable(name.map_err(|error| Failure::bad_request(error.to_string()))?)?;
    // Stricter than the reference, which lets anyone add names to any database (06 §8).
    let renames = state.node.check(&record, &caller.identity, Action::Rename);
    if renames.is_err() {
        return Err(denied(name.as_str()));
    }
    if state.node.control.names_of(&record.identity).len() >= NAMES_MAX {
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
        Registration::PermissionDenied(name) => Err(denied(&name)),
        Registration::InUse(name) => Err(Failure::internal(format!(
            "record with the name {name} already exists"
        ))),
    }
}

pub(super) async fn replace(
    State(state): State<Arc<Gateway>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    RecordAndBody(record, text): RecordAndBody,
) -> Reply {
    check_is_json(&headers)?;
    let names = parse_names(&text)?;
    let renames = state.node.check(&record, &caller.identity, Action::Rename);
    if renames.is_err() {
        let body = json!({ "NotYourDatabase": { "database": record.identity.to_hex() } });
        return Err(Failure::json(StatusCode::UNAUTHORIZED, body));
    }
    if names.is_empty() {
        let caller = &caller.identity;
        state.node.check(&record, caller, Action::LeaveNameless)?;
    }
    let (database, owner) = (record.identity, record.owner);
    match state
        .control(move |control| {
            control.replace_names(&names, (&owner, &caller.identity), &database)
        })
        .await?
    {
        Registration::Done => Ok(reply::json("\"Success\"")),
        Registration::PermissionDenied(name) => Err(denied(&name)),
        Registration::InUse(name) => {
            let text = format!("Cannot rename to {name} because it already is in use.");
            Err(Failure::json(
                StatusCode::BAD_REQUEST,
                json!({ "OtherError": text }),
            ))
        }
    }
}

fn denied(name: &str) -> Failure {
    let body = json!({ "PermissionDenied": { "domain": name } });
    Failure::json(StatusCode::UNAUTHORIZED, body)
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
