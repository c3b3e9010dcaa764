//! Small routes: ping, health, metrics, energy, and what is not supported (06 §5.17 to §5.22).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::Extension;
use serde_json::json;

use super::path::IdentityPath;
use super::query::Query;
use super::reply::{self, Failure, Reply};
use crate::auth::Caller;
use crate::state::ServerState;

pub(super) async fn ping() -> Reply {
    Ok(reply::empty(StatusCode::OK))
}

pub(super) async fn health(State(state): State<Arc<ServerState>>) -> Reply {
    // A read of the control database: it must be there.
    state.control.resolve("health")?;
    Ok(reply::json_value(&json!({
        "nodes": [0],
        "package_name": "lightcone-server",
        "schedulable": true,
        "version": env!("CARGO_PKG_VERSION"),
    })))
}

pub(super) async fn metrics(State(state): State<Arc<ServerState>>) -> Reply {
    Ok(reply::text(crate::metrics::render(
        &state.counters,
        &state.databases.all_running(),
    )))
}

pub(super) async fn prometheus_discovery() -> Reply {
    Ok(reply::json(r#"[{"targets":["node:80"],"labels":{}}]"#))
}

/// GET `/v1/energy/:identity`: nothing is ever charged.
pub(super) async fn energy(IdentityPath(_): IdentityPath) -> Reply {
    Ok(reply::json(r#"{"balance":"0"}"#))
}

pub(super) async fn set_energy(
    State(state): State<Arc<ServerState>>,
    headers: axum::http::HeaderMap,
    uri: axum::http::Uri,
) -> Reply {
    super::credentials::require(&state, &headers, &uri).await?;
    Err(Failure::empty(StatusCode::UNAUTHORIZED))
}

/// Stricter than the reference, where every caller may credit himself (06 §8).
pub(super) async fn add_energy(
    State(state): State<Arc<ServerState>>,
    headers: axum::http::HeaderMap,
    uri: axum::http::Uri,
    query: Query,
) -> Reply {
    super::credentials::require(&state, &headers, &uri).await?;
    match query.text("amount")? {
        Some(amount) if amount.parse::<u128>().is_err() => {
            Err(Failure::empty(StatusCode::BAD_REQUEST))
        }
        Some(_) => Err(Failure::empty(StatusCode::UNAUTHORIZED)),
        None => Ok(reply::json(r#"{"balance":"0"}"#)),
    }
}

pub(super) async fn mcp(Extension(_): Extension<Caller>) -> Reply {
    not_supported(
        "the MCP endpoint is not supported yet; use the plain routes below /v1/database [LC0381]",
    )
}

pub(super) async fn diagnostics() -> Reply {
    not_supported("this diagnostic is not supported; see /v1/metrics [LC0382]")
}

fn not_supported(text: &str) -> Reply {
    Err(Failure::text(StatusCode::NOT_IMPLEMENTED, text))
}
