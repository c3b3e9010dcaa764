//! Identity routes (06 §5.2).

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::Extension;
use lightcone_types::Identity;
use serde_json::json;

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

/// GET `/v1/identity/:identity/databases`: for that identity itself, and for programs on this machine.
pub(super) async fn databases(
    State(state): State<Arc<ServerState>>,
    IdentityPath(owner): IdentityPath,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    uri: Uri,
) -> Reply {
    if !client.is_local {
        let caller = super::credentials::require(&state, &headers, &uri, &client).await?;
        if caller.identity != owner {
            let text = "the databases of an identity are told to itself, and to programs on the server's machine [LC0134]";
            return Err(Failure::text(StatusCode::FORBIDDEN, text));
        }
    }
    // All records are looked at.
    let identities = state.control(move |control| owned(control, &owner)).await?;
    let identities: Vec<_> = identities.into_iter().map(Identity::to_hex).collect();
    Ok(reply::json_value(&json!({ "identities": identities })))
}

/// The databases that belong to somebody.
pub(super) fn owned(control: &ControlDb, owner: &Identity) -> Result<Vec<Identity>, ControlError> {
    let records = control.databases()?;
    let owned = records.iter().filter(|record| record.owner == *owner);
    Ok(owned.map(|record| record.identity).collect())
}
