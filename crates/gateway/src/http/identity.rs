//! Identity routes (06 §5.2).

use std::sync::Arc;

use axum::extract::{FromRequestParts as _, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::Extension;
use lightcone_control::ControlDb;
use lightcone_node::auth::{proof, Caller};
use lightcone_types::Identity;
use serde_json::json;

use super::collaborators::roles_as_json;
use super::credentials::WithToken;
use super::path::IdentityPath;
use super::query::{wrong, Query};
use crate::client_address::{Client, ConnectionAddresses};
use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};

const WEBSOCKET_TOKEN_SECONDS: i64 = 60;

pub(super) async fn create(State(state): State<Arc<Gateway>>) -> Reply {
    let caller = state.node.authority.mint_anonymous()?;
    let value = json!({ "identity": caller.identity.to_hex(), "token": &*caller.token });
    Ok(reply::json_value(&value))
}

pub(super) async fn public_key(State(state): State<Arc<Gateway>>) -> Reply {
    let content_type = HeaderValue::from_static("application/pem-certificate-chain");
    let key = state.node.authority.public_key_pem().to_vec();
    Ok(reply::with_type(content_type, key))
}

/// GET `/v1/identity/key-proof?nonce=…&address=…`: proves that this server has its key, where it is asked by an address of its own. It
/// costs a signature, as a new identity does, and keeps nothing.
pub(super) async fn key_proof(
    State(state): State<Arc<Gateway>>,
    Extension(client): Extension<Client>,
    Extension(connection): Extension<ConnectionAddresses>,
    query: Query,
) -> Reply {
    let nonce = query.text("nonce")?.and_then(proof::parse_nonce);
    let nonce = nonce.ok_or_else(|| wrong("`nonce` must be 64 hex digits".into()))?;
    let address = query.text("address")?.unwrap_or_default();
    if address.is_empty() || address.len() > proof::ADDRESS_BYTES_MAX {
        let reason = "`address` must be what was dialed, like http://127.0.0.1:3000";
        return Err(wrong(reason.into()));
    }
    let arrival = proof::Arrival {
        local: connection.local,
        is_local: client.is_local,
    };
    let listed = &state.node.config.network.public_addresses;
    let Some(reached_at) = arrival.vouches_for(address, listed) else {
        let text = "this server does not know that address as one of its own, and proves its key for no other; its operator can \
                    list it in network.public-addresses in config.toml [LC0155]";
        return Err(Failure::text(StatusCode::FORBIDDEN, text));
    };
    let claim = proof::Claim {
        nonce: &nonce,
        address,
        reached_at,
    };
    let signature = state.node.authority.prove(claim)?;
    let public_key = String::from_utf8_lossy(state.node.authority.public_key_pem());
    Ok(reply::json_value(&json!({
        "public_key": public_key,
        "address": address,
        "reached_at": reached_at.map(|at| at.to_string()),
        "signature": signature,
    })))
}

pub(super) async fn websocket_token(
    State(state): State<Arc<Gateway>>,
    Extension(caller): Extension<Caller>,
) -> Reply {
    let authority = &state.node.authority;
    let short = authority.mint_short_lived(&caller, WEBSOCKET_TOKEN_SECONDS)?;
    Ok(reply::json_value(&json!({ "token": &*short.token })))
}

pub(super) async fn verify(
    IdentityPath(identity): IdentityPath,
    Extension(caller): Extension<Caller>,
) -> Reply {
    Ok(reply::empty(match caller.identity == identity {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::BAD_REQUEST,
    }))
}

/// GET `/v1/identity/:identity/databases`: those that belong to it, and those in which it has a role. For that identity itself, and
/// for programs on this machine.
pub(super) async fn databases(
    State(state): State<Arc<Gateway>>,
    IdentityPath(owner): IdentityPath,
    Extension(client): Extension<Client>,
    mut parts: Parts,
) -> Reply {
    if !client.is_local {
        let WithToken(caller) = WithToken::from_request_parts(&mut parts, &state).await?;
        if caller.identity != owner {
            let text = "the databases of an identity are told to itself, and to programs on the server's machine [LC0134]";
            return Err(Failure::text(StatusCode::FORBIDDEN, text));
        }
    }
    // All records are looked at.
    let of = move |control: &ControlDb| {
        let (owned, roles) = control.databases_of(&owner);
        let identities: Vec<String> = owned.into_iter().map(Identity::to_hex).collect();
        Ok(json!({ "identities": identities, "roles": roles_as_json(&roles) }).to_string())
    };
    Ok(reply::json(state.node.change_control(of).await?))
}
