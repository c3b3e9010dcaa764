//! PostgreSQL's protocol, version 3.0 (06 §6, 08 §19): off unless there is a port for it.
//!
//! ```text
//! TcpListener ─▶ login      token as password; who, and which database
//!                  └▶ session   messages ─▶ commands    about the session, constants: answered here
//!                                           catalogue   what tables there are: answered from the module's definition
//!                                           the rest    DatabaseHandle::sql, rows written by `rows`
//! ```
//!
//! The protocol is written out here rather than taken from a library, so that each message, statement and session has a bound,
//! rows go out in the pieces that the client's budget holds, and nothing that a client sends is kept in another way.

mod catalogue;
mod commands;
mod failure;
mod login;
mod messages;
mod parameters;
mod prepared;
mod rows;
mod session;
mod table;
mod types;
mod values;
mod words;

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use self::failure::{state, Failure};
use self::messages::{Wire, WireError};
use self::session::Session;
use crate::state::ServerState;

/// Serves a client until it leaves, or `stopping` completes while it has nothing to do.
pub(crate) async fn serve(
    stream: TcpStream,
    state: Arc<ServerState>,
    peer: IpAddr,
    stopping: impl Future<Output = ()>,
) {
    let limits = &state.config.limits;
    let mut wire = Wire::new(stream, limits.body_timeout);
    let login = login::login(&mut wire, &state, peer);
    let login = match tokio::time::timeout(limits.postgres_login_time_max, login).await {
        Ok(Ok(Some(login))) => login,
        Ok(Ok(None)) => return,
        Ok(Err(error)) => return ended(&error),
        Err(_) => return ended(&WireError::Stalled),
    };
    let mut session = Session::new(wire, state.clone(), login);
    if let Err(error) = session.run(stopping).await {
        ended(&error);
    }
}

fn ended(error: &WireError) {
    tracing::debug!(%error, "a connection of PostgreSQL's protocol ended");
}

/// The bytes that tell a client that it is not let in.
pub(crate) fn refusal(text: &str) -> Vec<u8> {
    messages::refusal(&Failure::new(state::TOO_MANY_CONNECTIONS, text))
}
