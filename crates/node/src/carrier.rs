//! Messages of outbox tables on their way: to a database of this server without a socket, or to a listed server.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lightcone_database::{CallError, Carried, Carrier, Message};
use lightcone_types::Identity;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::auth::TokenError;
use crate::databases::OpenError;
use crate::node::Node;

/// For one attempt, from the look-up of the target to its answer.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);
const STOPS: &str = "the server is stopping";

/// Has the messages of a node's databases carried. To do before one is open; inside of a tokio runtime.
pub fn carry_messages(node: &Arc<Node>) {
    let carrier = NodeCarrier {
        // The databases are the node's.
        node: Arc::downgrade(node),
        runtime: Handle::current(),
    };
    node.databases.carry_with(Arc::new(carrier));
}

#[derive(Debug)]
struct NodeCarrier {
    node: Weak<Node>,
    /// Databases have tasks of their own, without sockets and timers.
    runtime: Handle,
}

impl Carrier for NodeCarrier {
    fn carry(&self, message: Message) -> Pin<Box<dyn Future<Output = Carried> + Send>> {
        let (tell, told) = oneshot::channel();
        if let Some(node) = self.node.upgrade() {
            self.runtime.spawn(async move {
                // The database may have stopped meanwhile.
                let _ = tell.send(node.carry(message).await);
            });
        }
        Box::pin(async move { told.await.unwrap_or_else(|_| Carried::lost(STOPS)) })
    }
}

impl Node {
    async fn carry(&self, message: Message) -> Carried {
        let Some(record) = self.control.database(&message.target) else {
            return self
                .peers
                .carry(message, &self.authority, ATTEMPT_MAX)
                .await;
        };
        let receive = async {
            let running = self
                .databases
                .get(&record)
                .await
                .map_err(|error| match error {
                    OpenError::Gone => "no such module".to_owned(),
                    OpenError::Failed(reason) => reason,
                })?;
            let received = running.handle.receive(message).await;
            received.map_err(|error| match error {
                CallError::ConnectRejected(text)
                | CallError::Busy(text)
                | CallError::Database(text) => text,
                _ => "no such module".to_owned(),
            })
        };
        match timeout(ATTEMPT_MAX, receive).await {
            Ok(answer) => Carried {
                answer,
                // The inbox of a database is in order.
                is_settled: true,
            },
            Err(_) => Carried::lost("there was no answer within 5 s"),
        }
    }

    /// The database that sends a message to `target` with this token: one of this server, or one that a peer may vouch for.
    ///
    /// # Errors
    /// No server that is known vouches for it.
    pub fn message_sender(&self, token: &str, target: &Identity) -> Result<Identity, TokenError> {
        let of_this_server = match self.authority.message_sender(token, target) {
            Ok(sender) => return Ok(sender),
            Err(error) => error,
        };
        // Only the key of the peer that has the claimed sender is tried.
        let claimed = crate::auth::claimed_sender(token);
        for (key, databases) in self.peers.keys() {
            if !claimed.is_some_and(|sender| databases.contains(&sender)) {
                continue;
            }
            let sender = crate::auth::message_sender_of(token, target, key);
            let vouched = sender.ok().filter(|sender| databases.contains(sender));
            // A database of this server does not send from elsewhere.
            if let Some(sender) = vouched.filter(|id| self.control.database(id).is_none()) {
                return Ok(sender);
            }
        }
        Err(of_this_server)
    }
}
