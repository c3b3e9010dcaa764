//! Families about each database as a whole.

use std::num::NonZero;
use std::sync::atomic::Ordering::Relaxed;

use lightcone_database::QueryKind;

use super::counters::DatabaseCounters;
use super::shown::Shown;
use super::text::{all_times, families, few_times, Kind, Labels, Seconds, Text};

type ReadCounter = fn(&DatabaseCounters) -> u64;

const DISCONNECT_CAUSES: [(&str, ReadCounter); 3] = [
    ("client_close", |c| c.disconnects_client_close.load(Relaxed)),
    ("server_close", |c| c.disconnects_server_close.load(Relaxed)),
    ("error", |c| c.disconnects_error.load(Relaxed)),
];

impl Shown {
    fn websocket(&self) -> Labels {
        self.identity().and("protocol", "websocket")
    }

    fn refused_by_connect(&self) -> Labels {
        self.identity().and("cause", "connect")
    }
}

pub(super) fn put(text: &mut Text, databases: &[Shown]) {
    let all = databases.iter();
    families! { text, all;
        Gauge "spacetime_worker_connected_clients" identity |of| of.counters.clients_connected.load(Relaxed),
            "Connected clients.";
        Counter "spacetime_worker_ws_clients_spawned" identity |of| of.counters.clients_spawned.load(Relaxed),
            "WebSocket clients accepted.";
        Counter "spacetime_worker_ws_clients_aborted" identity |of| of.counters.clients_aborted.load(Relaxed),
            "WebSocket clients dropped.";
        Counter "spacetime_worker_ws_clients_closed_connection" identity |of| of.counters.clients_closed.load(Relaxed),
            "WebSocket clients that closed.";
        Counter "spacetime_worker_ws_clients_idle_timed_out_total" identity |of| of.counters.clients_idle_timed_out.load(Relaxed),
            "WebSocket clients that were silent too long.";
        Counter "spacetime_worker_ws_client_rejections_total" refused_by_connect |of| of.counters.clients_rejected.load(Relaxed),
            "WebSocket clients that the module refused.";
        Counter "spacetime_websocket_requests_total" websocket |of| of.counters.requests.count(),
            "Messages of clients.";
        Counter "lightcone_websocket_request_bytes_total" websocket |of| of.counters.requests.bytes(),
            "Bytes of messages of clients.";
        Counter "lightcone_websocket_sent_bytes_total" identity |of| of.counters.sent_bytes.load(Relaxed),
            "Bytes sent to clients, framing included.";
        Counter "lightcone_websocket_sent_messages_total" identity |of| of.counters.sent_messages.load(Relaxed),
            "Server messages sent to clients.";
        Counter "spacetime_http_response_size_bytes_total" identity |of| of.counters.http_response_bytes.load(Relaxed),
            "Bytes of the answers of HTTP handlers, headers and body.";
        Gauge "spacetime_message_log_size_bytes" db |of| of.stats.log_bytes,
            "Bytes appended to the log.";
        Counter "lightcone_log_syncs_total" db |of| of.stats.log_syncs,
            "Syncs of the log; one makes many transactions durable.";
        Gauge "spacetime_active_queries" db |of| of.stats.live_queries,
            "Subscribed queries.";
        Counter "lightcone_messages_sent_total" db |of| of.stats.messages_sent,
            "Server messages queued for clients.";
        Counter "spacetime_client_outgoing_queue_disconnects_total" db |of| of.stats.slow_clients_cut,
            "Clients cut off because they took their messages too slowly.";
        Gauge "lightcone_read_only" db |of| of.read_only,
            "1 when the database takes no more writes because its log failed.";
        Gauge "lightcone_procedure_memory_bytes" db |of| of.metrics.procedure_memory_bytes,
            "What instances for procedures have of limits.procedure-memory-bytes-max.";
        Gauge "spacetime_total_incoming_queue_length" db |of| of.metrics.inbox_messages,
            "Messages and requests that wait for the writer, or are being answered by it.";
        Gauge "lightcone_reads_under_way" db |of| of.metrics.reads_under_way,
            "Queries that are not answered yet.";
        Gauge "lightcone_log_queue_bytes" db |of| of.metrics.log_queue_bytes,
            "Records of the log that wait for the disk.";
        Gauge "spacetime_module_log_file_size_bytes" db |of| of.metrics.module_log.file_bytes,
            "Bytes of the file that the module's log is written to.";
        Counter "lightcone_module_log_records_total" db |of| of.metrics.module_log.records,
            "Records of the module's log.";
        Counter "lightcone_module_log_left_out_total" db |of| of.metrics.module_log.left_out_records,
            "Records that were left out, because there were too many or the disk was full.";
        Counter "lightcone_snapshot_bytes_total" db |of| of.metrics.snapshots.bytes,
            "Bytes that were written for snapshots; what older ones have on the disk is not written again.";
        Counter "lightcone_snapshots_failed_total" db |of| of.metrics.snapshots.failed,
            "Snapshots that could not be written.";
        Counter "lightcone_snapshot_held_rounds_total" db |of| of.metrics.snapshots.held_rounds,
            "Rounds after which the writer waited for a snapshot, because of limits.snapshot-copied-bytes-max.";
        Gauge "lightcone_history_from_transaction" db |of| of.metrics.retained.from.get(),
            "The state before this transaction, and before each later one, can be read.";
        Gauge "lightcone_history_since_seconds" db |of| of.metrics.retained.since.map(|since| Seconds(since.micros().max(0) as u64 * 1000)),
            "The state at this time, and at each later one, can be read. None: not known, or all of the history is there.";
        Gauge "lightcone_backed_up_transactions" db |of| of.metrics.retained.backed_up.map(|offset| offset.get()),
            "The last complete backup has all before this transaction.";
        Counter "lightcone_history_lost_transactions_total" db |of| of.metrics.retained.lost,
            "Transactions that the log lost before a backup had them, for limits.history-bytes-max.";
        Gauge "lightcone_replay_transactions" db |of| of.metrics.replayed.transactions,
            "Transactions of the log that were replayed when the database was opened.";
        Gauge "lightcone_replay_bytes" db |of| of.metrics.replayed.bytes,
            "Bytes of the log that were replayed when the database was opened.";
        Gauge "spacetime_worker_wasm_memory_bytes" identity |of| NonZero::new(of.metrics.wasm_memory_bytes),
            "Linear memory of all instances of a module in WebAssembly.";
    }
    // Of modules that make requests to the outside.
    let ask = all.clone();
    let ask = ask.filter(|of| of.metrics.outbound.begun > 0);
    families! { text, ask;
        Counter "spacetime_procedure_num_http_requests" db |of| of.metrics.outbound.begun,
            "Requests of procedures and HTTP handlers to the outside.";
        Counter "spacetime_procedure_num_successful_http_requests" db |of| of.metrics.outbound.answered,
            "Those that were answered, with any status.";
        Counter "spacetime_procedure_num_failed_http_requests" db |of| of.metrics.outbound.failed,
            "Those that were refused, timed out, or whose call ended.";
        Gauge "spacetime_procedure_num_in_progress_http_requests" db |of| of.metrics.outbound.under_way(),
            "Those under way, or waiting for their turn.";
        Counter "lightcone_procedure_http_request_bytes_total" db |of| of.metrics.outbound.request_bytes,
            "Bytes of their bodies.";
        Counter "lightcone_procedure_http_response_bytes_total" db |of| of.metrics.outbound.response_bytes,
            "Bytes of the bodies of their answers.";
    }
    // Of databases that send messages to others, or get some.
    let message = all.clone();
    let message = message.filter(|of| {
        let messages = &of.metrics.messages;
        messages.waiting
            + messages.delivered
            + messages.failed
            + messages.retried
            + messages.received
            > 0
    });
    families! { text, message;
        Gauge "lightcone_outbox_messages_waiting" db |of| of.metrics.messages.waiting,
            "Messages of outbox tables without a result, of limits.outbox-messages-max.";
        Gauge "lightcone_outbox_messages_under_way" db |of| of.metrics.messages.under_way,
            "Those that are being carried to their targets.";
        Counter "lightcone_outbox_messages_delivered_total" db |of| of.metrics.messages.delivered,
            "Messages whose target's reducer succeeded.";
        Counter "lightcone_outbox_messages_failed_total" db |of| of.metrics.messages.failed,
            "Messages whose target's reducer failed, or can never be called.";
        Counter "lightcone_outbox_attempts_failed_total" db |of| of.metrics.messages.retried,
            "Attempts that are repeated, as no result came.";
        Counter "lightcone_outbox_messages_received_total" db |of| of.metrics.messages.received,
            "Messages of other databases that were applied, or never can be.";
    }
    let samples = databases.iter().flat_map(|of| {
        let causes = DISCONNECT_CAUSES.iter();
        causes.map(move |(cause, read)| (of.identity().and("cause", cause), read(&of.counters)))
    });
    text.family(
        Kind::Counter,
        "spacetime_worker_ws_client_disconnections_total",
        "Ended WebSocket connections by cause.",
        samples,
    );
    put_sizes_and_times(text, databases);
}

fn put_sizes_and_times(text: &mut Text, databases: &[Shown]) {
    let all = databases.iter();
    families! { text, all;
        Histogram "spacetime_websocket_request_msg_size" websocket |of| &of.counters.requests,
            "Bytes of messages of clients.";
        Histogram "spacetime_websocket_sent_msg_size_bytes" db |of| &of.counters.sent_sizes,
            "Bytes of messages to clients, compressed, as they were sent.";
        Histogram "lightcone_writer_round_seconds" db |of| all_times(&of.metrics.rounds),
            "For how long the writer took nothing from its inbox, each time: so long a new request waits at most.";
        Gauge "lightcone_writer_round_longest_seconds" db |of| Seconds(of.metrics.rounds.longest_ns),
            "The longest of these since the database was opened.";
        Histogram "spacetime_reducer_wait_time_sec" db |of| all_times(&of.metrics.waits),
            "From when a call has come to when it began.";
    }
    let queries = databases.iter().flat_map(|of| {
        let kinds = QueryKind::ALL.into_iter();
        kinds.map(move |kind| {
            let times = few_times(&of.metrics.queries[kind as usize]);
            (of.db().and("kind", kind.name()), times)
        })
    });
    text.family(
        Kind::Histogram,
        "lightcone_query_seconds",
        "Time on the writer of subscriptions and queries.",
        queries,
    );
    families! { text, all;
        Histogram "lightcone_query_read_seconds" db |of| few_times(&of.metrics.reads),
            "Time on the threads for reads of queries that the writer does not answer itself.";
        Histogram "lightcone_snapshot_seconds" db |of| few_times(&of.metrics.snapshots.times),
            "Times in which snapshots were written.";
        Gauge "lightcone_replay_seconds" db |of| Seconds(of.metrics.replayed.time.as_nanos() as u64),
            "Time in which the database was read from its snapshot and its log when it was opened.";
    }
}
