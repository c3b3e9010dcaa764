//! What the server says about itself: ping, health, metrics, energy, and what is not supported (06 §5.17 to §5.20).

use std::sync::Arc;

use axum::extract::State;
use axum::http::{header, HeaderMap, StatusCode};
use axum::Extension;
use lightcone_node::metrics::{self, Detail};
use serde_json::json;

use super::credentials::WithToken;
use super::path::IdentityPath;
use super::query::Query;
use crate::client_address::Client;
use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};

pub(super) async fn ping() -> Reply {
    Ok(reply::empty(StatusCode::OK))
}

/// GET `/v1/health`: for all, but what is damaged is for who may read the metrics.
pub(super) async fn health(
    State(state): State<Arc<Gateway>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
) -> Reply {
    let mut health = json!({
        "nodes": [0],
        "package_name": "lightcone-server",
        "schedulable": true,
        "version": env!("CARGO_PKG_VERSION"),
    });
    // Which ones, the server's log says.
    match state.node.scrub.damaged() {
        damaged if damaged > 0 && may_read_metrics(&client, &headers, &state) => {
            health["damaged"] = json!(damaged);
        }
        _ => {}
    }
    Ok(reply::json_value(&health))
}

/// GET `/v1/metrics`: for this machine, and for readers with `metrics.token`.
pub(super) async fn metrics(
    State(state): State<Arc<Gateway>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    query: Query,
) -> Reply {
    if !may_read_metrics(&client, &headers, &state) {
        let text = "the metrics are for programs on the server's machine; to read them from elsewhere set metrics.listen, or \
                    metrics.token and send it as `Authorization: Bearer` [LC0133]";
        return Err(Failure::text(StatusCode::FORBIDDEN, text));
    }
    let formats = [
        ("text", Format::Text),
        ("json", Format::Json),
        ("history", Format::History),
    ];
    let node = state.node.clone();
    let read: Box<dyn FnOnce() -> String + Send> = match query.word("format", &formats)? {
        None | Some(Format::Text) => return all_metrics(&state).await,
        Some(Format::Json) => Box::new(move || metrics::all_as_json(&node).to_string()),
        Some(Format::History) => Box::new(move || node.history.of_server()),
    };
    Ok(reply::json(state.scrapes.all(read).await?))
}

/// How the metrics of the server are written.
#[derive(Clone, Copy)]
enum Format {
    Text,
    Json,
    History,
}

/// The text for programs on this machine and readers with the token.
async fn all_metrics(state: &Arc<Gateway>) -> Reply {
    let node = state.node.clone();
    let read = move || metrics::render(&node, Detail::for_operators(&node.config));
    Ok(reply::text(state.scrapes.all(read).await?))
}

fn may_read_metrics(client: &Client, headers: &HeaderMap, state: &Gateway) -> bool {
    client.is_local || presents_token(headers, state)
}

/// Is `metrics.token` presented? The time that this takes says nothing about the token, apart from its length.
fn presents_token(headers: &HeaderMap, state: &Gateway) -> bool {
    let Some(token) = &state.node.config.metrics.token else {
        return false;
    };
    let presented = headers.get(header::AUTHORIZATION);
    let presented = presented
        .and_then(|value| value.as_bytes().split_first_chunk::<7>())
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "))
        .map_or(&[][..], |(_, token)| token);
    let different = presented.iter().zip(token.as_bytes());
    presented.len() == token.len() && different.fold(0, |found, (a, b)| found | (a ^ b)) == 0
}

/// The metrics for every reader, on the listener `metrics.listen`: without names unless the operator says otherwise, or the reader has
/// the token.
pub(super) async fn open_metrics(State(state): State<Arc<Gateway>>, headers: HeaderMap) -> Reply {
    if presents_token(&headers, &state) {
        return all_metrics(&state).await;
    }
    let node = state.node.clone();
    let make = move || metrics::render(&node, Detail::for_all(&node.config));
    Ok(reply::text(state.scrapes.open_text(make).await?))
}

pub(super) async fn prometheus_discovery() -> Reply {
    Ok(reply::json(r#"[{"targets":["node:80"],"labels":{}}]"#))
}

/// GET `/v1/energy/:identity`: nothing is ever charged.
pub(super) async fn energy(IdentityPath(_): IdentityPath) -> Reply {
    Ok(reply::json(r#"{"balance":"0"}"#))
}

pub(super) async fn set_energy(_: WithToken) -> Reply {
    Err(Failure::empty(StatusCode::UNAUTHORIZED))
}

/// Stricter than the reference, where every caller may credit himself (06 §8).
pub(super) async fn add_energy(_: WithToken, query: Query) -> Reply {
    match query.text("amount")? {
        Some(amount) if amount.parse::<u128>().is_err() => {
            Err(Failure::empty(StatusCode::BAD_REQUEST))
        }
        Some(_) => Err(Failure::empty(StatusCode::UNAUTHORIZED)),
        None => Ok(reply::json(r#"{"balance":"0"}"#)),
    }
}

pub(super) async fn diagnostics() -> Reply {
    let text = "this diagnostic is not supported; see /v1/metrics [LC0382]";
    Err(Failure::text(StatusCode::NOT_IMPLEMENTED, text))
}
