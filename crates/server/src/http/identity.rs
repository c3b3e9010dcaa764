//! Identity routes (06 §5.2).

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::Extension;
use lightcone_types::Identity;
use serde_json::{json, Value};

use super::path::IdentityPath;
use super::reply::{self, Failure, Reply};
use crate::auth::Caller;
use crate::client_address::Client;
use crate::control::{ControlDb, ControlError};
use crate::state::ServerState;

const WEBSOCKET_TOKEN_SECONDS: i64 = 60;

pub(super) async fn create(State(state): State<Arc<ServerState>>) -> Reply {
    let caller = state.authority.mint_anonymous()?;
    Ok(reply::json_value(
        &json!({ "identity": caller.identity.to_hex(), "token": &*caller.token }),
    ))
}

pub(super) async fn public_key(State(state): State<Arc<ServerState>>) -> Reply {
    let content_type = HeaderValue::from_static("application/pem-certificate-chain");
    Ok(reply::with_type(
        content_type,
        state.authority.public_key_pem().to_vec(),
    ))
}

pub(super) async fn websocket_token(
    State(state): State<Arc<ServerState>>,
    Extension(caller): Extension<Caller>,
) -> Reply {
    let short = state
        .authority
        .mint_short_lived(&caller, WEBSOCKET_TOKEN_SECONDS)?;
    Ok(reply::json_value(&json!({ "token": &*short.token })))
}

pub(super) async fn verify(
    IdentityPath(identity): IdentityPath,
    Extension(caller): Extension<Caller>,
) -> Reply {
    let status = if caller.identity == identity {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::BAD_REQUEST
    };
    Ok(reply::empty(status))
}

/// GET `/v1/identity/:identity/databases`: those that belong to it, and those in which it has a role. For that identity itself, and
/// for programs on this machine.
pub(super) async fn databases(
    State(state): State<Arc<ServerState>>,
    IdentityPath(owner): IdentityPath,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    uri: Uri,
) -> Reply {
    if !client.is_local {
        let caller = super::credentials::require(&state, &headers, &uri).await?;
        if caller.identity != owner {
            let text = "the databases of an identity are told to itself, and to programs on the server's machine [LC0134]";
            return Err(Failure::text(StatusCode::FORBIDDEN, text));
        }
    }
    // All records are looked at.
    let of = move |control: &ControlDb| {
        let (owned, roles) = control.databases_of(&owner);
        let identities: Vec<String> = owned.into_iter().map(Identity::to_hex).collect();
        let roles: Vec<Value> = roles
            .iter()
            .map(|(identity, role)| json!({ "identity": identity.to_hex(), "role": role.name() }))
            .collect();
        Ok(json!({ "identities": identities, "roles": roles }).to_string())
    };
    Ok(reply::json(state.control(of).await?))
}

/// The databases that belong to somebody.
pub(super) fn owned(control: &ControlDb, owner: &Identity) -> Result<Vec<Identity>, ControlError> {
    Ok(control.databases_of(owner).0)
}
