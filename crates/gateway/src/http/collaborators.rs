//! Who else may do what with a database, and the view of it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::Extension;
use lightcone_control::{ControlError, DatabaseRecord, Role};
use lightcone_node::auth::Caller;
use lightcone_node::permissions::{self, Action};
use lightcone_types::Identity;
use serde_json::{json, Value};

use super::body::WithBody;
use super::path::{DatabasePath, IdentityPath, Permitted};
use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};

/// What PUT takes.
#[derive(serde::Deserialize)]
struct Given {
    role: String,
}

/// GET `/v1/database/:n/collaborators`: the one that it belongs to first.
pub(super) async fn list(Permitted { state, record, .. }: Permitted) -> Reply {
    let collaborators = state.node.control.collaborators(&record.identity);
    let collaborators = roles_as_json(&collaborators);
    let value = json!({ "owner": record.owner.to_hex(), "collaborators": collaborators });
    Ok(reply::json_value(&value))
}

pub(super) fn roles_as_json(roles: &[(Identity, Role)]) -> Value {
    let role =
        |(of, role): &(Identity, Role)| json!({ "identity": of.to_hex(), "role": role.name() });
    roles.iter().map(role).collect()
}

/// PUT `/v1/database/:n/collaborators/:identity`.
pub(super) async fn put(IdentityPath(identity): IdentityPath, asked: WithBody) -> Reply {
    let role = read_role(&asked.body)?;
    let WithBody {
        state,
        record,
        caller,
        ..
    } = asked;
    let action = Action::ChangeCollaborators;
    state.node.check(&record, &caller.identity, action)?;
    if identity == record.owner {
        return Err(Failure::bad_request(
            "this database belongs to this identity, which can do everything in any case [LC0142]",
        ));
    }
    set(state, record, caller.identity, (identity, Some(role))).await
}

/// DELETE `/v1/database/:n/collaborators/:identity`.
pub(super) async fn delete(
    State(state): State<Arc<Gateway>>,
    DatabasePath(path): DatabasePath,
    IdentityPath(identity): IdentityPath,
    Extension(caller): Extension<Caller>,
) -> Reply {
    let record = state.node.record(&path)?;
    let action = needed(&caller.identity, &identity);
    state.node.check(&record, &caller.identity, action)?;
    if identity == record.owner {
        return Err(Failure::bad_request(
            "this database belongs to this identity, and its rights cannot be taken away [LC0142]",
        ));
    }
    let role = state.node.control.role(&record.identity, &identity);
    if action == Action::Use && role.is_none() {
        // Any caller may ask for this.
        return Ok(reply::empty(StatusCode::OK));
    }
    set(state, record, caller.identity, (identity, None)).await
}

/// What taking a role away needs.
fn needed(caller: &Identity, identity: &Identity) -> Action {
    match identity == caller {
        // Every collaborator may leave.
        true => Action::Use,
        false => Action::ChangeCollaborators,
    }
}

fn read_role(text: &[u8]) -> Result<Role, Failure> {
    let wrong = |found: String| {
        let names = Role::ALL.map(Role::name).join("\", \"");
        Failure::bad_request(format!(
            "the body must be {{\"role\": …}} with one of \"{names}\": {found} [LC0142]"
        ))
    };
    let given: Given = serde_json::from_slice(text).map_err(|error| wrong(error.to_string()))?;
    let mut roles = Role::ALL.into_iter();
    let known = roles.find(|role| role.name() == given.role);
    known.ok_or_else(|| wrong("it is none of these".to_owned()))
}

/// On the disk first; then connections end that have more rights than their identity has now.
async fn set(
    state: Arc<Gateway>,
    record: DatabaseRecord,
    by: Identity,
    (identity, role): (Identity, Option<Role>),
) -> Reply {
    let database = record.identity;
    let action = match role {
        Some(_) => Action::ChangeCollaborators,
        None => needed(&by, &identity),
    };
    reply::detached(async move {
        let before = state.node.rights(&record, &identity);
        let set = state.node.change_control(move |control| {
            control.set_role((&database, &identity), role, |record, roles| {
                let standing = permissions::standing_with(record, &by, roles.get(&by).copied());
                permissions::allows(standing, action)
            })
        });
        let (rights, set) = match set.await {
            Ok(is_new) => (state.node.rights(&record, &identity), Ok(is_new)),
            // It is unknown whether he has less now: connections with more than the lesser rights end.
            Err(error) if error.is_unknown() => {
                let standing = permissions::standing_with(&record, &identity, role);
                (before.min(permissions::rights_of(standing)), Err(error))
            }
            Err(ControlError::NotAllowed) => {
                return Err(permissions::refusal(&record, &by, action).into())
            }
            Err(error) => return Err(error.into()),
        };
        // Also when the role was the same before: a client repeats a request whose answer was lost.
        if let Some(running) = state.node.databases.running(&database) {
            running.handle.lower_rights(identity, rights);
        }
        if set? {
            let role = role.map_or("none", Role::name);
            tracing::info!(%database, %identity, role, "a role in a database was set");
        }
        Ok(reply::empty(StatusCode::OK))
    })
    .await
}
