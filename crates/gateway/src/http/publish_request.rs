//! What all requests that publish a module have in common.

use axum::http::StatusCode;
use axum::response::Response;
use lightcone_control::{DatabaseName, DatabaseRecord, HostType};
use lightcone_database::ProgramBytes;
use lightcone_node::auth::Caller;
use lightcone_node::network::counted_as;
use lightcone_node::permissions::Action;
use lightcone_types::Identity;
use serde_json::json;

use super::query::Query;
use crate::client_address::Client;
use crate::gateway::Gateway;
use crate::publishing::{Publisher, Turn};
use crate::reply::{self, Failure};

const REPLICAS_MAX: u64 = 255;

pub(super) fn host_type(query: &Query) -> Result<HostType, Failure> {
    let types = [("Wasm", HostType::Wasm), ("Js", HostType::Js)];
    Ok(query.word("host_type", &types)?.unwrap_or_default())
}

pub(super) fn check_replicas(num_replicas: Option<u64>) -> Result<(), Failure> {
    if let Some(n) = num_replicas.filter(|n| *n > REPLICAS_MAX) {
        let text = format!("Replication factor {n} out of bounds");
        return Err(Failure::bad_request(text));
    }
    Ok(())
}

/// May a caller do this with a database by publishing to it?
pub(super) fn check_action(
    state: &Gateway,
    record: &DatabaseRecord,
    caller: &Caller,
    action: Action,
) -> Result<(), Failure> {
    state.node.check(record, &caller.identity, action)?;
    publish_guard(state, caller, true)
}

/// May a caller publish on this server?
pub(super) fn publish_guard(
    state: &Gateway,
    caller: &Caller,
    is_local: bool,
) -> Result<(), Failure> {
    let publish = &state.node.config.publish;
    if publish.permits(&caller.identity, is_local) {
        return Ok(());
    }
    let text = format!(
        "{} may not publish on this server from here; its operator can allow it with publish.owners or publish.allowed \
         in config.toml [LC0114]",
        caller.identity
    );
    Err(Failure::text(StatusCode::FORBIDDEN, text))
}

/// On whose account a module is loaded: the owner's, so that an owner with collaborators has no more turns than others.
pub(super) fn publisher(owner: Identity, client: &Client) -> Publisher {
    Publisher {
        owner,
        address: counted_as(client.address),
    }
}

/// Waits for the turn to load this program.
pub(super) async fn turn_to_load(
    state: &Gateway,
    owner: Identity,
    client: &Client,
    program: &ProgramBytes,
) -> Result<Turn, Failure> {
    // What it may write: the program to the log, and beside it in memory mode, and a new segment.
    let segment_bytes = state.node.databases.new_segment_bytes();
    let bytes = (program.len() as u64 * 2).saturating_add(segment_bytes);
    state.publish_turn(publisher(owner, client), bytes).await
}

pub(super) fn success(name: Option<&DatabaseName>, database: &Identity, op: &str) -> Response {
    reply::json_value(&json!({
        "Success": {
            "domain": name.map(DatabaseName::as_str),
            "database_identity": database.to_hex(),
            "op": op,
        }
    }))
}
