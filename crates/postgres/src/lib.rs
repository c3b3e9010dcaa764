//! PostgreSQL's protocol, version 3.0 (06 §6, 08 §19): off unless there is a port for it.
//!
//! ```text
//! TcpListener ─▶ login      token as password; who, and which database
//!                  └▶ session   messages ─▶ commands    about the session: answered here
//!                                           ad hoc      DatabaseHandle::sql_for, rows written by `rows`
//!                                           catalogue   questions that the ad hoc language does not have
//!                                           program     what changes rows, and it does not have either
//! ```
//!
//! The protocol is written out here rather than taken from a library, so that each message, statement and session has a bound,
//! rows go out in the pieces that the client's budget holds, and nothing that a client sends is kept in another way.

#![forbid(unsafe_code)]

mod block;
mod cancel;
mod cancelled;
mod catalogue;
mod commands;
mod copy;
mod error;
mod failure;
mod login;
mod messages;
mod parameters;
mod prepared;
mod program;
mod rows;
mod session;
mod shared;
mod sizes;
mod table;
mod tags;
mod tls;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use self::failure::{state, Failure};
use self::messages::{Wire, WireError};
use self::session::Session;

pub use error::Error;
pub use shared::Postgres;

/// After this silence the system probes whether the client is still there, so many times at this interval before the connection
/// ends.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;

/// Serves a client until it leaves, or `stopping` completes while it has nothing to do.
pub async fn serve(stream: TcpStream, postgres: Arc<Postgres>, stopping: impl Future<Output = ()>) {
    if let Err(error) = keep_alive(&stream) {
        tracing::debug!(%error, "TCP keepalive");
    }
    let limits = &postgres.node.config.limits;
    let wire = Wire::new(stream, limits.body_timeout);
    let login = login::login(wire, &postgres);
    let (mut wire, login) = match tokio::time::timeout(limits.postgres_login_time_max, login).await
    {
        Ok(Ok(Some(let_in))) => let_in,
        Ok(Ok(None)) => return,
        Ok(Err(error)) => return ended(&error),
        Err(_) => return ended(&WireError::Stalled),
    };
    let cancel = postgres.cancels.enter();
    wire.backend_key(cancel.key());
    let mut session = Session::new(wire, postgres.node.clone(), login, cancel);
    if let Err(error) = session.run(stopping).await {
        ended(&error);
    }
    session.close().await;
}

/// Has the system ask whether the other side is still there: a session may say nothing for hours.
fn keep_alive(stream: &TcpStream) -> std::io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    sockopt::set_socket_keepalive(stream, true)?;
    Ok(())
}

fn ended(error: &WireError) {
    tracing::debug!(%error, "a connection of PostgreSQL's protocol ended");
}

/// The bytes that tell a client that it is not let in.
pub fn refusal(text: &str) -> Vec<u8> {
    messages::refusal(&Failure::new(state::TOO_MANY_CONNECTIONS, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt;

    #[tokio::test]
    async fn peers_that_are_gone_are_noticed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let stream = TcpStream::connect(address).await.expect("connected");
        keep_alive(&stream).expect("it is set");
        assert!(sockopt::socket_keepalive(&stream).expect("it is known"));
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(KEEPALIVE_IDLE));
    }
}
