//! A client that was let in: its messages, one after the other (06 §6).
//!
//! [`extended`] prepares and binds statements, [`statement`] runs them, [`writes`] those that change rows, and [`results`] sends what
//! came of them.

mod extended;
mod question;
mod results;
mod statement;
mod writes;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lightcone_database::{Holder, Rights};
use lightcone_node::auth::has_ended;
use lightcone_node::Node;
use tokio::time::Instant;

use super::block::Changes;
use super::cancel::Cancellable;
use super::failure::{of_statement, state, Failure};
use super::login::Login;
use super::messages::{protocol, Body, Message, Wire, WireError};
use super::prepared::Store;

/// A session that says nothing for so long ends, and gives its place to another.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(8 * 60 * 60);

/// Rows that wait for the client go so soon after it has lost the rights that they were read with.
const RIGHTS_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Where a session is between `BEGIN` and `COMMIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    None,
    Open,
    /// A statement has failed; all others are refused until it ends.
    Failed,
}

pub(super) struct Session {
    wire: Wire,
    node: Arc<Node>,
    login: Login,
    transaction: Transaction,
    /// The block was begun as one that changes nothing.
    only_reads: bool,
    /// What the open block has changed, and will change when it ends.
    block: Changes,
    store: Store,
    /// Something has failed: messages are passed over until the client synchronises.
    skipping: bool,
    /// Whom all is held for that it takes: what it says, what it has prepared, and rows that it has not taken.
    holder: Holder,
    cancel: Cancellable,
}

/// What comes next.
enum Heard {
    Message(Message),
    /// The client has gone.
    Gone,
    /// The session ends, for this reason.
    End(Failure),
}

/// Why a message was not carried out.
enum Stop {
    Failure(Failure),
    Wire(WireError),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failure(failure)
    }
}

impl From<WireError> for Stop {
    fn from(error: WireError) -> Stop {
        Stop::Wire(error)
    }
}

impl Session {
    pub fn new(wire: Wire, node: Arc<Node>, login: Login, cancel: Cancellable) -> Session {
        let holder = node.databases.holder();
        Session {
            wire,
            node,
            login,
            transaction: Transaction::None,
            only_reads: false,
            block: Changes::new(&holder),
            store: Store::new(&holder),
            skipping: false,
            holder,
            cancel,
        }
    }

    /// Serves the client until it leaves, or `stopping` completes while it has nothing to do.
    pub async fn run(&mut self, stopping: impl Future<Output = ()>) -> Result<(), WireError> {
        tokio::pin!(stopping);
        self.ready().await?;
        loop {
            let message = match self.hear(stopping.as_mut()).await? {
                Heard::Message(message) => message,
                Heard::Gone => return Ok(()),
                Heard::End(failure) => return self.end(failure).await,
            };
            if message.kind == b'X' {
                return Ok(());
            }
            if self.skipping && !matches!(message.kind, b'S' | b'Q') {
                continue;
            }
            let refused = message.refused.map(of_statement);
            let carried_out = match refused {
                Some(failure) => Err(Stop::Failure(failure)),
                None => self.message(message.kind, &message.body).await,
            };
            match carried_out {
                Ok(()) => {}
                Err(Stop::Wire(WireError::Protocol(text))) => {
                    let failure = Failure::new(state::PROTOCOL_VIOLATION, text);
                    return self.end(failure).await;
                }
                Err(Stop::Wire(error)) => return Err(error),
                Err(Stop::Failure(failure)) => {
                    if self.failed(&failure, message.kind).await? {
                        return Ok(());
                    }
                }
            }
            // A client that never synchronises gets its answers too, and has to take them.
            self.wire.flush_if_long().await?;
        }
    }

    /// Tells why the session ends.
    async fn end(&mut self, failure: Failure) -> Result<(), WireError> {
        self.wire.failure(&failure, true);
        self.wire.flush().await
    }

    /// Takes leave of the client.
    pub async fn close(&mut self) {
        self.wire.close().await;
    }

    /// Waits for a message, as long as the session may wait, and frees what waits too long for the client.
    async fn hear(
        &mut self,
        mut stopping: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Heard, WireError> {
        let end = |state, text| Ok(Heard::End(Failure::new(state, text)));
        let idle = tokio::time::sleep(SESSION_IDLE_MAX);
        let read = self.wire.read(&self.holder);
        let cut = self.holder.left();
        tokio::pin!(idle, read, cut);
        loop {
            let now = Instant::now();
            let next = self.store.free_stale(now);
            if next.is_some() {
                self.store.free_revoked(rights_now(&self.node, &self.login));
            }
            let stale = async {
                match next {
                    Some(next) => {
                        tokio::time::sleep_until(next.min(now + RIGHTS_CHECK_INTERVAL)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                message = &mut read => return Ok(message?.map_or(Heard::Gone, Heard::Message)),
                () = stopping.as_mut() => return end(state::SHUTDOWN, "the server stops"),
                () = &mut idle => {
                    return end(state::IDLE_TOO_LONG, "the session has said nothing for 8 hours");
                }
                () = &mut cut => return Err(WireError::Cut),
                () = stale => {}
            }
        }
    }

    /// Tells of a failure. True if the session ends with it.
    async fn failed(&mut self, failure: &Failure, kind: u8) -> Result<bool, WireError> {
        if self.transaction == Transaction::Open {
            self.transaction = Transaction::Failed;
            self.block.take();
        }
        let is_fatal = matches!(
            failure.state,
            state::NO_SUCH_DATABASE | state::INVALID_AUTHORIZATION
        );
        self.wire.failure(failure, is_fatal);
        match kind {
            // No Sync follows these.
            b'Q' | b'F' => {
                self.skipping = false;
                self.ready().await?;
            }
            _ => {
                // A client that flushes and does not synchronise waits for it, and is not heard again before.
                self.skipping = true;
                self.wire.flush().await?;
            }
        }
        Ok(is_fatal)
    }

    async fn ready(&mut self) -> Result<(), WireError> {
        self.wire.ready(match self.transaction {
            Transaction::None => b'I',
            Transaction::Open => b'T',
            Transaction::Failed => b'E',
        });
        self.wire.flush().await
    }

    async fn message(&mut self, kind: u8, body: &[u8]) -> Result<(), Stop> {
        let mut body = Body(body);
        match kind {
            b'Q' => {
                self.skipping = false;
                let text = body.text()?.to_owned();
                self.simple_query(text).await
            }
            b'P' => self.parse(&mut body).await,
            b'B' => self.bind(&mut body),
            b'D' => self.describe(&mut body),
            b'E' => self.execute(&mut body).await,
            b'C' => {
                match body.u8()? {
                    b'S' => self.store.close_statement(body.text()?),
                    _ => self.store.close_portal(body.text()?),
                }
                self.wire.empty(b'3');
                Ok(())
            }
            b'S' => {
                self.skipping = false;
                if self.transaction == Transaction::None {
                    self.store.close_portals();
                }
                Ok(self.ready().await?)
            }
            b'H' => Ok(self.wire.flush().await?),
            // What is left of a COPY that was refused.
            b'd' | b'c' | b'f' => Ok(()),
            b'F' => Err(Failure::unsupported("function calls are not supported").into()),
            kind => Ok(protocol(format!("invalid frontend message type {kind}"))?),
        }
    }

    /// What the client may do in the database now.
    fn rights_now(&self) -> Rights {
        rights_now(&self.node, &self.login)
    }

    /// Refuses to go on for a client whose token has ended in the meantime.
    fn check_token(&self) -> Result<(), Failure> {
        if has_ended(self.login.expires_at) {
            let text = "the token of this session has expired: connect again with a new one";
            return Err(Failure::new(state::INVALID_AUTHORIZATION, text));
        }
        Ok(())
    }
}

/// Where the database does not exist any more, the caller has the rights of every caller.
fn rights_now(node: &Node, login: &Login) -> Rights {
    let record = node.record(&login.database);
    record.map_or(Rights::Public, |record| {
        node.rights(&record, &login.caller.identity)
    })
}
