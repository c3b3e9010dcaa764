//! One running database: the writer, its log, fan-out to subscribers, lifecycle, publish.
//!
//! ```text
//!  RequestSender ─▶ inbox ─▶ WRITER ─▶ log thread (group commit)
//!   (decodes)       bounded    │            │ durable offset
//!                              ▼            ▼
//!                           FAN-OUT: deltas to queries, messages per connection, release when durable
//!                              │
//!                              ▼
//!                        OutgoingReceiver (one queue per connection)
//! ```
//!
//! Every arrow carries batches. The writer and fan-out are one OS thread each; connection tasks of the server call
//! [`RequestSender::submit`] and [`OutgoingReceiver::recv`].

#![forbid(unsafe_code)]

mod answer;
mod budget;
mod catalog;
mod compile;
mod connection;
mod error;
mod evaluate;
mod fanout;
mod handle;
mod http;
mod live_query;
mod loads;
mod module;
mod module_log;
mod open;
mod options;
mod outgoing;
mod planned;
mod probe;
mod query_load;
mod reads;
mod request;
mod rules;
mod schedule_queue;
mod sql;
mod subscriptions;
#[cfg(test)]
mod testing;
mod writer;

pub use budget::{HeldBytes, Holder};
pub use connection::{ConnectRequest, Connection, RequestSender};
pub use error::{CallError, ConnectError, Error, SqlError, SubmitError, UpdateError};
pub use handle::{
    CallArgs, CallOutcome, Caller, DatabaseHandle, DatabaseStats, PreparedUpdate, ShutdownReason,
    UpdateOutcome, UpdatePlan,
};
pub use http::HandlerReply;
pub use lightcone_host::{HttpHeader, HttpMethod, HttpRequest, HttpResponse, HttpVersion};
pub use lightcone_storage::{disk, Storage};
pub use lightcone_wire::Protocol;
pub use loads::{LoadError, Loads};
pub use module_log::ModuleLog;
pub use options::{Commons, DatabaseOptions, Engines, HostKind, Limits, CLIENT_BYTES_CEILING};
pub use outgoing::{CutSignal, MessageBatch, Outgoing, OutgoingReceiver};
pub use planned::NO_SCHEDULES_FILE;
pub use sql::{SqlOutcome, SqlStats};
