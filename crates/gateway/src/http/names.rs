//! Names of a database (06 §5.10).

use axum::http::{HeaderMap, StatusCode};
use lightcone_control::{ControlDb, DatabaseName, Registration, NAME_BYTES_MAX};
use lightcone_node::permissions::Action;
use serde_json::json;

use super::body::{check_is_json, WithBody};
use super::path::Permitted;
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

pub(super) async fn list(Permitted { state, record, .. }: Permitted) -> Reply {
    let names = state.node.control.names_of(&record.identity);
    Ok(reply::json_value(&json!({ "names": names })))
}

pub(super) async fn add(asked: WithBody) -> Reply {
    let name = DatabaseName::parse(asked.body.text()?);
    let name = registrable(name.map_err(|error| Failure::bad_request(error.to_string()))?)?;
    let (node, database, by) = (&asked.state.node, &asked.record, asked.caller.identity);
    // Stricter than the reference, which lets anyone add names to any database (06 §8).
    if node.check(database, &by, Action::Rename).is_err() {
        return Err(denied(name.as_str()));
    }
    if node.control.names_of(&database.identity).len() >= NAMES_MAX {
        return Err(too_many());
    }
    let (identity, owner, registered) = (database.identity, database.owner, name.clone());
    let register =
        move |control: &ControlDb| control.register_name(&registered, (&owner, &by), &identity);
    match node.change_control(register).await? {
        Registration::Done => Ok(reply::json_value(
            &json!({ "Success": { "domain": name.as_str(), "database_identity": identity.to_hex() } }),
        )),
        Registration::PermissionDenied(name) => Err(denied(&name)),
        Registration::InUse(name) => Err(Failure::internal(format!(
            "record with the name {name} already exists"
        ))),
    }
}

pub(super) async fn replace(headers: HeaderMap, asked: WithBody) -> Reply {
    check_is_json(&headers)?;
    let names = parse_names(&asked.body)?;
    let (node, database, by) = (&asked.state.node, &asked.record, asked.caller.identity);
    if node.check(database, &by, Action::Rename).is_err() {
        let body = json!({ "NotYourDatabase": { "database": database.identity.to_hex() } });
        return Err(Failure::json(StatusCode::UNAUTHORIZED, body));
    }
    if names.is_empty() {
        node.check(database, &by, Action::LeaveNameless)?;
    }
    let (identity, owner) = (database.identity, database.owner);
    let replace =
        move |control: &ControlDb| control.replace_names(&names, (&owner, &by), &identity);
    match node.change_control(replace).await? {
        Registration::Done => Ok(reply::json("\"Success\"")),
        Registration::PermissionDenied(name) => Err(denied(&name)),
        Registration::InUse(name) => {
            let text = format!("Cannot rename to {name} because it already is in use.");
            let body = json!({ "OtherError": text });
            Err(Failure::json(StatusCode::BAD_REQUEST, body))
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
    let name = |text: &String| match DatabaseName::parse(text) {
        Ok(name) => registrable(name),
        Err(error) => {
            let text = format!("Error parsing `{text}`: {error}");
            Err(Failure::bad_request(text))
        }
    };
    texts.iter().map(name).collect()
}

fn too_many() -> Failure {
    Failure::bad_request(format!("a database has at most {NAMES_MAX} names [LC0111]"))
}
