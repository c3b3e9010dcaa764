//! The WebSocket endpoint (chapter 05): the handshake here, frames and the running connection below.

mod clock;
mod connection;
pub(crate) mod events;
pub mod frame;
mod reader;
mod signals;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{header, HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::Extension;
use base64::Engine as _;
use lightcone_database::ConnectRequest;
use lightcone_node::auth::Caller;
use lightcone_node::network::{timed, ConnectionSlot};
use lightcone_types::ConnectionId;
use lightcone_wire::{Compression, Protocol};
use sha1::Digest as _;

use crate::gateway::Gateway;
use crate::http::{wrong_query, DatabasePath, Query};
use crate::reply::{self, Failure, Reply};

/// No setting makes a server wait longer for a client: times that are far beyond cannot be told.
const SESSION_GRACE_MAX: Duration = Duration::from_secs(366 * 86_400);
const UPGRADE: HeaderValue = HeaderValue::from_static("upgrade");
const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// The parameters of a subscribe request (05 §2.2).
struct Parameters {
    compression: Compression,
    confirmed: bool,
    connection_id: Option<ConnectionId>,
    session_id: Option<u128>,
    /// Ours: how long the client may be away without the module hearing of it.
    session_grace: Duration,
}

impl Parameters {
    fn parse(query: &Query) -> Result<Parameters, Failure> {
        let compressions = [Compression::None, Compression::Brotli, Compression::Gzip]
            .map(|each| (each.query_value(), each));
        // Accepted because clients send it; it only ever meant something in version 1.
        query.boolean("light")?;
        let id = |name| {
            query.parsed(name, |text| {
                ConnectionId::from_hex(text).map_err(|error| error.to_string())
            })
        };
        Ok(Parameters {
            compression: query
                .word("compression", &compressions)?
                .unwrap_or(Compression::Brotli),
            confirmed: query.boolean("confirmed")?.unwrap_or(true),
            connection_id: id("connection_id")?,
            // Its wire form is the same.
            session_id: id("session_id")?.map(|id| id.0),
            session_grace: Duration::from_millis(query.number("session_grace")?.unwrap_or(0)),
        })
    }
}

/// GET `/v1/database/:n/subscribe`. The order of the checks is that of 05 §2.6.
pub(crate) async fn subscribe(
    State(state): State<Arc<Gateway>>,
    DatabasePath(path): DatabasePath,
    query: Query,
    Extension(caller): Extension<Caller>,
    Extension(slot): Extension<ConnectionSlot>,
    mut request: Request,
) -> Reply {
    let parameters = Parameters::parse(&query)?;
    let accept = check_upgrade(request.headers())?;
    let connection_id = match parameters.connection_id {
        Some(id) if id.is_zero() => {
            let text = "Invalid connection ID: the all-zeros ConnectionId is reserved.";
            return Err(Failure::bad_request(text));
        }
        Some(id) => id,
        None => random_connection_id(),
    };
    let record = state.node.record(&path)?;
    let offers = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL);
    let protocol = Protocol::select(offers.iter().filter_map(|value| value.to_str().ok()))
        .ok_or_else(|| Failure::bad_request("no valid protocol selected"))?;
    let running = state.node.databases.get(&record).await?;

    let upgrade = hyper::upgrade::on(&mut request);
    let request = ConnectRequest {
        identity: caller.identity,
        rights: state.node.rights(&record, &caller.identity),
        connection_id,
        session_id: parameters.session_id,
        session_grace: parameters
            .session_grace
            .min(state.node.config.websocket.session_grace)
            .min(SESSION_GRACE_MAX),
        jwt_payload: caller.jwt_payload,
        confirmed: parameters.confirmed,
        protocol,
        token: caller.token,
    };
    let client = connection::Client {
        request,
        record,
        compression: parameters.compression,
        running,
        slot,
    };
    let polls = state.node.counters.polls.clone();
    tokio::spawn(timed(polls, connection::serve(state, client, upgrade)));

    let mut response = switching(accept);
    let protocol = HeaderValue::from_static(protocol.token());
    let headers = response.headers_mut();
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    Ok(response)
}

/// The answer to a request that is upgraded.
pub(crate) fn switching(accept: HeaderValue) -> Response {
    let mut response = reply::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, UPGRADE);
    headers.insert(header::UPGRADE, WEBSOCKET);
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    response
}

fn random_connection_id() -> ConnectionId {
    loop {
        let id = ConnectionId::from_random(rand::random());
        if !id.is_zero() {
            return id;
        }
    }
}

/// What a route answers that also serves those who ask for no WebSocket: none for them.
pub(crate) fn accept_if_asked(headers: &HeaderMap) -> Result<Option<HeaderValue>, Failure> {
    match has_token(headers, header::UPGRADE, "websocket") {
        true => check_upgrade(headers).map(Some),
        false => Ok(None),
    }
}

fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut parts = values.flat_map(|value| value.split(','));
    parts.any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// Checks the upgrade headers and answers the value of `Sec-WebSocket-Accept`.
fn check_upgrade(headers: &HeaderMap) -> Result<HeaderValue, Failure> {
    let has = |name, token| has_token(headers, name, token);
    if !has(header::CONNECTION, "upgrade") || !has(header::UPGRADE, "websocket") {
        let text = "This service requires use of the websocket protocol";
        return Err(Failure::text(StatusCode::UPGRADE_REQUIRED, text)
            .with_header(header::CONNECTION, UPGRADE)
            .with_header(header::UPGRADE, WEBSOCKET));
    }
    let version = headers.get(header::SEC_WEBSOCKET_VERSION);
    if version.is_none_or(|version| version != "13") {
        let text = "`Sec-WebSocket-Version` header did not include '13'";
        return Err(Failure::bad_request(text));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let key = key.ok_or_else(|| Failure::bad_request("`Sec-WebSocket-Key` header missing"))?;
    let accept = HeaderValue::from_str(&accept_value(key.as_bytes()));
    accept.map_err(|error| wrong_query(error.to_string()))
}

/// RFC 6455 §4.2.2.
fn accept_value(key: &[u8]) -> String {
    let mut hash = sha1::Sha1::new();
    hash.update(key);
    hash.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    base64::engine::general_purpose::STANDARD.encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    /// RFC 6455 §1.3.
    #[test]
    fn accept() {
        assert_eq!(
            super::accept_value(b"dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
    }
}
