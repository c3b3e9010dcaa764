//! What the server uses of the database crate, and how its limits follow from the configuration.

pub use lightcone_database::Engines;
pub(crate) use lightcone_database::{
    CallArgs, CallError, CallOutcome, Caller, ConnectError, ConnectRequest, DatabaseHandle,
    DatabaseOptions, DatabaseStats, HostKind, Limits, MessageBatch, Outgoing, OutgoingReceiver,
    RequestSender, ShutdownReason, SqlError, SubmitError, UpdateError,
};

use crate::config::Config;

pub(crate) fn limits(config: &Config) -> Limits {
    let mut limits = Limits::default();
    limits.host.call_ms_max = config.limits.call_ms_max;
    limits.host.memory_bytes_max =
        usize::try_from(config.limits.memory_bytes_max).unwrap_or(usize::MAX);
    limits.inbox_messages_max = config.websocket.incoming_queue_length;
    limits.outgoing_messages_max = config.limits.outgoing_queue_length;
    limits
}
