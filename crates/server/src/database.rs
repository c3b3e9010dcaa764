//! What the server uses of the database crate, and how its limits follow from the configuration.

use std::sync::Arc;

pub use lightcone_database::Engines;
pub(crate) use lightcone_database::{
    CallArgs, CallError, CallOutcome, Caller, Commons, ConnectError, ConnectRequest,
    DatabaseHandle, DatabaseOptions, DatabaseStats, Error as DatabaseError, HandlerReply,
    HeldBytes, Holder, HostKind, HttpHeader, HttpMethod, HttpRequest, HttpVersion, JsonRows,
    Limits, Loads, Machine, MessageBatch, Outgoing, OutgoingReceiver, ParameterText,
    PreparedUpdate, RequestSender, ResultRow, RowEncoder, ShutdownReason, SqlError, SqlOutcome,
    SqlStats, SubmitError, UpdateError, CLIENT_BYTES_CEILING, QUERY_BYTES_MAX,
};
use lightcone_limits::HostLimits;

use crate::config::Config;

/// The limits of every database: `[limits]`, and what other sections say.
pub(crate) fn limits(config: &Config) -> Limits {
    Limits {
        host: HostLimits::from(&config.limits),
        inbox_messages_max: config.websocket.incoming_queue_length,
        log_segment_bytes: config.commitlog.max_segment_size,
        log_preallocate: config.commitlog.preallocate_segments,
        ..Limits::from(&config.limits)
    }
}

/// What all databases have together. As many scans run at a time as there are processors.
pub(crate) fn commons(config: &Config) -> Arc<Commons> {
    let memory = crate::memory::available_bytes();
    let percent = usize::from(config.limits.clients_memory_percent);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    Commons::new(Machine::current(), memory / 100 * percent, threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_configuration() {
        let text = "[commitlog]\nmax-segment-size = 1048576\npreallocate-segments = false\n\
                    [websocket]\nincoming-queue-length = 7\n[limits]\nsnapshots-kept = 3\ncall-ms-max = 5";
        let config = Config::parse(text, "config.toml".as_ref()).expect("configuration");
        let configured = limits(&config);
        assert_eq!(configured.log_segment_bytes, 1 << 20);
        assert!(!configured.log_preallocate);
        assert_eq!(configured.inbox_messages_max, 7);
        assert_eq!(configured.snapshots_kept, 3);
        assert_eq!(configured.host.call_ms_max, 5);
        // Without a configuration, the database's own limits hold.
        assert_eq!(limits(&Config::default()), Limits::default());
    }
}
