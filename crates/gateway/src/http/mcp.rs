//! The endpoints for assistants, MCP over HTTP (06 §5.22): one message of JSON-RPC in, one answer out. There are no sessions and
//! no messages of the server, so GET and DELETE are 405, as the transport wants it.
//!
//! The tools are the plain routes in another form: the same functions run them, with the same rights, bounds and texts.

mod answer;
mod message;
mod tools;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::Extension;
use lightcone_control::NameOrIdentity;
use lightcone_node::auth::Caller;
use lightcone_node::config::McpWrites;
use serde_json::json;

use self::answer::{error, result};
use self::message::{Message, Request};
use self::tools::{Said, Tools};
use super::body::{check_is_json, SentBody};
use super::delivery;
use super::path::DatabasePath;
use super::query::Query;
use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};

/// The versions of MCP that clients may speak; a client that wants another one is offered the first. What is answered is the same.
const PROTOCOL_VERSIONS: [&str; 4] = ["2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

const NOT_ASKED: &str = "nothing was changed: this endpoint only reads. To let this assistant write, add `?writes=true` to the URL of the \
     endpoint; to let every assistant, set `writes = \"always\"` under [mcp] in the server's config.toml [LC0150]";
const NEVER: &str = "nothing was changed: assistants only read on this server. Its operator can allow more with `writes` under [mcp] in \
     config.toml [LC0150]";

/// POST `/v1/database/:n/mcp`. The database is looked up by the tools that need it.
pub(super) async fn of_database(
    State(state): State<Arc<Gateway>>,
    DatabasePath(database): DatabasePath,
    Extension(caller): Extension<Caller>,
    query: Query,
    headers: HeaderMap,
    request_body: SentBody,
) -> Reply {
    let asked = (state, Some(database), caller);
    reply_to(asked, &query, &headers, request_body).await
}

/// POST `/v1/mcp`.
pub(super) async fn of_server(
    State(state): State<Arc<Gateway>>,
    Extension(caller): Extension<Caller>,
    query: Query,
    headers: HeaderMap,
    request_body: SentBody,
) -> Reply {
    reply_to((state, None, caller), &query, &headers, request_body).await
}

/// Why nothing may be changed; None if it may be. Who configures an assistant decides, if the operator lets him: an assistant
/// reads what strangers have written, and cannot change the URL that it was given.
fn write_refusal(state: &Gateway, query: &Query) -> Result<Option<&'static str>, Failure> {
    let asked = query.boolean("writes")?;
    Ok(match (state.node.config.mcp.writes, asked) {
        (McpWrites::Never, _) => Some(NEVER),
        (McpWrites::Asked, Some(true)) | (McpWrites::Always, None | Some(true)) => None,
        (McpWrites::Asked | McpWrites::Always, _) => Some(NOT_ASKED),
    })
}

async fn reply_to(
    (state, database, caller): (Arc<Gateway>, Option<NameOrIdentity>, Caller),
    query: &Query,
    headers: &HeaderMap,
    request_body: SentBody,
) -> Reply {
    let tools = &Tools {
        write_refusal: write_refusal(&state, query)?,
        state,
        database,
        caller,
    };
    check_is_json(headers)?;
    let body = request_body.read(&tools.state).await?;
    let is_of_database = tools.database.is_some();
    let read = move || {
        Message::parse(body.text()?, is_of_database)
            .map_err(|error| Failure::bad_request(format!("no JSON: {error}")))
    };
    // Two megabytes of brackets take a while.
    let message = reply::blocking(read).await??;
    check_version(headers, &message)?;
    let Message::Request { id, request } = message else {
        return Ok(reply::empty(StatusCode::ACCEPTED));
    };
    let value = match request {
        Ok(Request::Initialize { version }) => initialize(tools, version.as_deref()),
        Ok(Request::Ping) => json!({}),
        Ok(Request::ListTools) => json!({ "tools": tools.list() }),
        Ok(Request::Call(call)) => return sent(&id, tools.call(call).await),
        Err(wrong) => return Ok(reply::json(error(&id, &wrong))),
    };
    Ok(reply::json(result(&id, &value)))
}

/// A version that was agreed on must be one of ours; the message that begins has none yet.
fn check_version(headers: &HeaderMap, message: &Message) -> Result<(), Failure> {
    let begins = match message {
        Message::Request { request, .. } => matches!(request, Ok(Request::Initialize { .. })),
        Message::Notification => false,
    };
    let is_known = |version: &HeaderValue| PROTOCOL_VERSIONS.iter().any(|known| version == known);
    if begins || headers.get(PROTOCOL_VERSION).is_none_or(is_known) {
        return Ok(());
    }
    let text = format!(
        "this version of MCP is not spoken here; the header mcp-protocol-version may be one of {} [LC0151]",
        PROTOCOL_VERSIONS.join(", ")
    );
    Err(Failure::bad_request(text))
}

fn initialize(tools: &Tools, version: Option<&str>) -> serde_json::Value {
    let mut known = PROTOCOL_VERSIONS.iter();
    let version = known.find(|known| version == Some(**known));
    let about = match &tools.database {
        Some(NameOrIdentity::Name(name)) => format!("Tools for the database `{name}`."),
        Some(NameOrIdentity::Identity(identity)) => format!("Tools for the database {identity}."),
        None => "Tools for the databases of a server; each tool takes one by name or identity."
            .to_owned(),
    };
    // A query runs the module's reducers for clients that come and go, as every query over HTTP does.
    let writes = match tools.write_refusal {
        None => "`sql` and `call` can change data.",
        Some(_) => "They only read; a query may run what the module does when a client connects and disconnects.",
    };
    json!({
        "capabilities": { "tools": {} },
        "instructions": format!("{about} {writes}"),
        "protocolVersion": version.unwrap_or(&PROTOCOL_VERSIONS[0]),
        "serverInfo": { "name": "spacetimedb", "version": env!("CARGO_PKG_VERSION") },
    })
}

/// What a tool said, counted as the client's as long as the plain answer would be.
fn sent(id: &str, said: Said) -> Reply {
    let text = answer::said(id, [Some(&said.text), said.note.as_ref()], said.is_error);
    let Some(holder) = said.holder else {
        return Ok(reply::json(text));
    };
    Ok(delivery::held(reply::JSON, holder.hold(text.into_bytes())?))
}

/// Reads a text as a message; whatever it is, what is answered is JSON. For fuzzing.
pub fn check_message(text: &str) {
    for is_of_database in [false, true] {
        let Ok(Message::Request { id, request }) = Message::parse(text, is_of_database) else {
            continue;
        };
        let answer = match request {
            Ok(_) => result(&id, &json!({})),
            Err(wrong) => error(&id, &wrong),
        };
        assert!(lightcone_types::json::parse(&answer).is_ok(), "{answer}");
    }
}
