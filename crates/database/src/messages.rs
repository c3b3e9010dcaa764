//! Messages of outbox tables between databases: what one is, what comes of it, and who carries it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use lightcone_engine::{MessageResult, ResultStatus};
use lightcone_types::{Hash, Identity};

/// A message to a reducer of another database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The database that sends it.
    pub sender: Identity,
    pub target: Identity,
    /// Numbers of messages are those of a stream of the sender.
    pub stream: u64,
    pub seq: u64,
    /// The sender has stored the results of messages up to this one.
    pub ack_prefix: u64,
    /// With its namespace.
    pub reducer: String,
    /// Of the reducer's parameters, as the sender knows them.
    pub signature_hash: Hash,
    pub args: Vec<u8>,
}

/// What a database says to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageAnswer {
    /// It was applied, now or before, or can never be. This is durable.
    Done(MessageResult),
    /// Its sender has stored the result, which is not kept any more.
    Acknowledged,
    /// Another one comes first.
    OutOfOrder { expected: u64 },
}

impl MessageAnswer {
    /// What a sender is told of a message that is out of order.
    pub fn out_of_order_text(expected: u64, seq: u64) -> String {
        format!("IDC delivery is out of order: expected seq {expected}, got {seq}")
    }
}

/// What has come of carrying a message once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Or why it is not known.
    pub answer: Result<MessageAnswer, String>,
    /// Nothing that was carried to the target before can arrive after this.
    pub is_settled: bool,
}

impl Carried {
    /// It is not known what came of it.
    pub fn lost(reason: impl Into<String>) -> Carried {
        Carried {
            answer: Err(reason.into()),
            is_settled: false,
        }
    }
}

/// Finds the target of a message, and asks it. Ends within a bound on time.
pub trait Carrier: std::fmt::Debug + Send + Sync {
    fn carry(&self, message: Message) -> Pin<Box<dyn Future<Output = Carried> + Send>>;
}

/// A message as it was sent first: also when its row changes, further attempts are the same.
#[derive(Debug)]
pub(crate) struct Sent {
    pub id: u64,
    pub row: Vec<u8>,
    pub args: Vec<u8>,
}

/// What has come of an attempt.
pub(crate) struct Delivery {
    pub stream: u64,
    pub seq: u64,
    pub sent: Arc<Sent>,
    pub carried: Carried,
}
