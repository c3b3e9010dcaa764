//! What the server uses of the database crate, and how its limits follow from the configuration.

use std::sync::Arc;

pub use lightcone_database::Engines;
pub(crate) use lightcone_database::{
    CallArgs, CallError, CallOutcome, Caller, Commons, ConnectError, ConnectRequest,
    DatabaseHandle, DatabaseOptions, DatabaseStats, Error as DatabaseError, HandlerReply,
    HeldBytes, Holder, HostKind, HttpHeader, HttpMethod, HttpRequest, HttpVersion, JsonRows,
    Limits, Loads, Machine, MessageBatch, Outgoing, OutgoingReceiver, PreparedUpdate,
    RequestSender, ShutdownReason, SqlError, SubmitError, UpdateError, CLIENT_BYTES_CEILING,
};

use crate::config::Config;

pub(crate) fn limits(config: &Config) -> Limits {
    let mut limits = Limits::default();
    limits.host.call_ms_max = config.limits.call_ms_max;
    limits.host.memory_bytes_max =
        usize::try_from(config.limits.memory_bytes_max).unwrap_or(usize::MAX);
    limits.host.load_ms_max = config.limits.load_ms_max;
    limits.host.stack_bytes_max = config.limits.stack_bytes_max;
    limits.host.table_elements_max = config.limits.table_elements_max;
    limits.host.iterators_max = config.limits.iterators_max;
    limits.host.iterator_bytes_max = config.limits.iterator_bytes_max;
    limits.host.sources_max = config.limits.sources_max;
    limits.host.sink_bytes_max = config.limits.sink_bytes_max;
    limits.host.procedure_bytes_max = config.limits.procedure_bytes_max;
    limits.host.console_timers_max = config.limits.console_timers_max;
    limits.host.console_message_bytes_max = config.limits.console_message_bytes_max;
    limits.host.console_call_bytes_max = config.limits.console_call_bytes_max;
    limits.transaction_bytes_max = config.limits.transaction_bytes_max;
    limits.inbox_bytes_max = config.limits.inbox_bytes_max;
    limits.client_bytes_max = config.limits.client_bytes_max;
    limits.query_sets_max = config.limits.query_sets_max;
    limits.queries_per_set_max = config.limits.queries_per_set_max;
    limits.queries_per_connection_max = config.limits.queries_per_connection_max;
    limits.query_steps_per_connection_max = config.limits.query_steps_per_connection_max;
    limits.query_steps_per_table_max = config.limits.query_steps_per_table_max;
    limits.reads_per_client_max = config.limits.reads_per_client_max;
    limits.reads_per_database_max = config.limits.reads_per_database_max;
    limits.read_time_max = config.limits.read_time_max;
    limits.log_queue_bytes_max = config.limits.log_queue_bytes_max;
    limits.log_segment_bytes = config.commitlog.max_segment_size;
    limits.log_preallocate = config.commitlog.preallocate_segments;
    limits.snapshot_log_bytes = config.limits.snapshot_log_bytes;
    limits.snapshots_kept = config.limits.snapshots_kept;
    limits.module_log_bytes_max = config.limits.module_log_bytes_max;
    limits.module_log_bytes_per_second = config.limits.module_log_bytes_per_second;
    limits.inbox_messages_max = config.websocket.incoming_queue_length;
    limits.outgoing_messages_max = config.limits.outgoing_queue_length;
    limits
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
                    [websocket]\nincoming-queue-length = 7\n[limits]\nsnapshots-kept = 3";
        let config = Config::parse(text, "config.toml".as_ref()).expect("configuration");
        let configured = limits(&config);
        assert_eq!(configured.log_segment_bytes, 1 << 20);
        assert!(!configured.log_preallocate);
        assert_eq!(configured.inbox_messages_max, 7);
        assert_eq!(configured.snapshots_kept, 3);
        // Without a configuration, the database's own limits hold.
        let (ours, theirs) = (limits(&Config::default()), Limits::default());
        assert_eq!(ours.log_segment_bytes, theirs.log_segment_bytes);
        assert_eq!(ours.log_preallocate, theirs.log_preallocate);
        assert_eq!(ours.inbox_messages_max, theirs.inbox_messages_max);
    }
}
