//! Families about each database as a whole.

use std::sync::atomic::Ordering::Relaxed;

use super::counters::DatabaseCounters;
use super::shown::Shown;
use super::text::{Kind, Text};
use crate::database::QueryKind;

type ReadCounter = fn(&DatabaseCounters) -> u64;
/// Kind, name, help, and the number of each database.
type Family = (Kind, &'static str, &'static str, fn(&Shown) -> u64);

const fn gauge(name: &'static str, help: &'static str, read: fn(&Shown) -> u64) -> Family {
    (Kind::Gauge, name, help, read)
}

const fn counter(name: &'static str, help: &'static str, read: fn(&Shown) -> u64) -> Family {
    (Kind::Counter, name, help, read)
}

type FurtherLabel = Option<(&'static str, &'static str)>;

/// Kind, name, help, a further label.
const OF_CONNECTIONS: [(Kind, &str, &str, FurtherLabel, ReadCounter); 11] = [
    (
        Kind::Gauge,
        "spacetime_worker_connected_clients",
        "Connected clients.",
        None,
        |c| c.clients_connected.load(Relaxed),
    ),
    (
        Kind::Counter,
        "spacetime_worker_ws_clients_spawned",
        "WebSocket clients accepted.",
        None,
        |c| c.clients_spawned.load(Relaxed),
    ),
    (
        Kind::Counter,
        "spacetime_worker_ws_clients_aborted",
        "WebSocket clients dropped.",
        None,
        |c| c.clients_aborted.load(Relaxed),
    ),
    (
        Kind::Counter,
        "spacetime_worker_ws_clients_closed_connection",
        "WebSocket clients that closed.",
        None,
        |c| c.clients_closed.load(Relaxed),
    ),
    (
        Kind::Counter,
        "spacetime_worker_ws_clients_idle_timed_out_total",
        "WebSocket clients that were silent too long.",
        None,
        |c| c.clients_idle_timed_out.load(Relaxed),
    ),
    (
        Kind::Counter,
        "spacetime_worker_ws_client_rejections_total",
        "WebSocket clients that the module refused.",
        Some(("cause", "connect")),
        |c| c.clients_rejected.load(Relaxed),
    ),
    (
        Kind::Counter,
        "spacetime_websocket_requests_total",
        "Messages of clients.",
        Some(("protocol", "websocket")),
        |c| c.requests.count(),
    ),
    (
        Kind::Counter,
        "lightcone_websocket_request_bytes_total",
        "Bytes of messages of clients.",
        Some(("protocol", "websocket")),
        |c| c.requests.bytes(),
    ),
    (
        Kind::Counter,
        "lightcone_websocket_sent_bytes_total",
        "Bytes sent to clients, framing included.",
        None,
        |c| c.sent_bytes.load(Relaxed),
    ),
    (
        Kind::Counter,
        "lightcone_websocket_sent_messages_total",
        "Server messages sent to clients.",
        None,
        |c| c.sent_messages.load(Relaxed),
    ),
    (
        Kind::Counter,
        "spacetime_http_response_size_bytes_total",
        "Bytes of the answers of HTTP handlers, headers and body.",
        None,
        |c| c.http_response_bytes.load(Relaxed),
    ),
];

const DISCONNECT_CAUSES: [(&str, ReadCounter); 3] = [
    ("client_close", |c| c.disconnects_client_close.load(Relaxed)),
    ("server_close", |c| c.disconnects_server_close.load(Relaxed)),
    ("error", |c| c.disconnects_error.load(Relaxed)),
];

const OF_DATABASES: [Family; 6] = [
    gauge(
        "spacetime_message_log_size_bytes",
        "Bytes appended to the log.",
        |of| of.stats.log_bytes,
    ),
    counter(
        "lightcone_log_syncs_total",
        "Syncs of the log; one makes many transactions durable.",
        |of| of.stats.log_syncs,
    ),
    gauge("spacetime_active_queries", "Subscribed queries.", |of| {
        of.stats.live_queries
    }),
    counter(
        "lightcone_messages_sent_total",
        "Server messages queued for clients.",
        |of| of.stats.messages_sent,
    ),
    counter(
        "spacetime_client_outgoing_queue_disconnects_total",
        "Clients cut off because they took their messages too slowly.",
        |of| of.stats.slow_clients_cut,
    ),
    gauge(
        "lightcone_read_only",
        "1 when the database takes no more writes because its log failed.",
        |of| of.read_only,
    ),
];

pub(super) fn put(text: &mut Text, databases: &[Shown]) {
    put_connections(text, databases);
    put_sizes(text, databases);
    put_each(text, databases.iter(), &OF_DATABASES);
    put_writer(text, databases);
    put_module_log(text, databases);
    put_storage(text, databases);
    put_outbound(text, databases);
}

fn put_connections(text: &mut Text, databases: &[Shown]) {
    for (kind, name, help, further, read) in OF_CONNECTIONS {
        let samples = databases.iter().map(|database| {
            let labels = database.database_identity();
            let labels = match further {
                Some((name, value)) => labels.and(name, value),
                None => labels,
            };
            (labels, read(&database.counters))
        });
        text.family(kind, name, help, samples);
    }
    let samples = databases.iter().flat_map(|database| {
        DISCONNECT_CAUSES.iter().map(move |(cause, read)| {
            let labels = database.database_identity().and("cause", cause);
            (labels, read(&database.counters))
        })
    });
    text.family(
        Kind::Counter,
        "spacetime_worker_ws_client_disconnections_total",
        "Ended WebSocket connections by cause.",
        samples,
    );
}

fn put_sizes(text: &mut Text, databases: &[Shown]) {
    text.sizes(
        "spacetime_websocket_request_msg_size",
        "Bytes of messages of clients.",
        databases.iter().map(|database| {
            let labels = database.database_identity();
            let labels = labels.and("protocol", "websocket");
            (labels, &database.counters.requests)
        }),
    );
    text.sizes(
        "spacetime_websocket_sent_msg_size_bytes",
        "Bytes of messages to clients, compressed, as they were sent.",
        databases
            .iter()
            .map(|of| (of.db(), &of.counters.sent_sizes)),
    );
}

fn put_writer(text: &mut Text, databases: &[Shown]) {
    text.times(
        "lightcone_writer_round_seconds",
        "For how long the writer took nothing from its inbox, each time: so long a new request waits at most.",
        databases.iter().map(|of| (of.db(), &of.metrics.rounds)),
    );
    text.seconds(
        Kind::Gauge,
        "lightcone_writer_round_longest_seconds",
        "The longest of these since the database was opened.",
        databases
            .iter()
            .map(|of| (of.db(), of.metrics.rounds.longest_ns)),
    );
    text.times(
        "spacetime_reducer_wait_time_sec",
        "From when a call has come to when it began.",
        databases.iter().map(|of| (of.db(), &of.metrics.waits)),
    );
    text.few_times(
        "lightcone_query_seconds",
        "Time on the writer of subscriptions and queries.",
        databases.iter().flat_map(|database| {
            QueryKind::ALL.into_iter().map(move |kind| {
                let labels = database.db().and("kind", kind.name());
                (labels, &database.metrics.queries[kind as usize])
            })
        }),
    );
    text.few_times(
        "lightcone_query_read_seconds",
        "Time on the threads for reads of queries that the writer does not answer itself.",
        databases.iter().map(|of| (of.db(), &of.metrics.reads)),
    );
    let samples = databases.iter();
    let samples = samples.filter(|database| database.metrics.wasm_memory_bytes > 0);
    text.family(
        Kind::Gauge,
        "spacetime_worker_wasm_memory_bytes",
        "Linear memory of all instances of a module in WebAssembly.",
        samples.map(|database| {
            let labels = database.database_identity();
            (labels, database.metrics.wasm_memory_bytes)
        }),
    );
    let gauges: [Family; 4] = [
        gauge(
            "lightcone_procedure_memory_bytes",
            "What instances for procedures have of limits.procedure-memory-bytes-max.",
            |of| of.metrics.procedure_memory_bytes,
        ),
        gauge(
            "spacetime_total_incoming_queue_length",
            "Messages and requests that wait for the writer, or are being answered by it.",
            |of| of.metrics.inbox_messages,
        ),
        gauge(
            "lightcone_reads_under_way",
            "Queries that are not answered yet.",
            |of| of.metrics.reads_under_way,
        ),
        gauge(
            "lightcone_log_queue_bytes",
            "Records of the log that wait for the disk.",
            |of| of.metrics.log_queue_bytes,
        ),
    ];
    put_each(text, databases.iter(), &gauges);
}

fn put_each<'s>(
    text: &mut Text,
    databases: impl Iterator<Item = &'s Shown> + Clone,
    families: &[Family],
) {
    for (kind, name, help, read) in families {
        let samples = databases.clone().map(|of| (of.db(), read(of)));
        text.family(*kind, name, help, samples);
    }
}

fn put_module_log(text: &mut Text, databases: &[Shown]) {
    let families: [Family; 3] = [
        gauge(
            "spacetime_module_log_file_size_bytes",
            "Bytes of the file that the module's log is written to.",
            |of| of.metrics.module_log.file_bytes,
        ),
        counter(
            "lightcone_module_log_records_total",
            "Records of the module's log.",
            |of| of.metrics.module_log.records,
        ),
        counter(
            "lightcone_module_log_left_out_total",
            "Records that were left out, because there were too many or the disk was full.",
            |of| of.metrics.module_log.left_out_records,
        ),
    ];
    put_each(text, databases.iter(), &families);
}

fn put_storage(text: &mut Text, databases: &[Shown]) {
    text.few_times(
        "lightcone_snapshot_seconds",
        "Times in which snapshots were written.",
        databases
            .iter()
            .map(|of| (of.db(), &of.metrics.snapshots.times)),
    );
    text.seconds(
        Kind::Gauge,
        "lightcone_replay_seconds",
        "Time in which the database was read from its snapshot and its log when it was opened.",
        databases.iter().map(|database| {
            let nanos = database.metrics.replayed.time.as_nanos();
            (database.db(), u64::try_from(nanos).unwrap_or(u64::MAX))
        }),
    );
    let families: [Family; 4] = [
        counter(
            "lightcone_snapshot_bytes_total",
            "Bytes that were written for snapshots; what older ones have on the disk is not written again.",
            |of| of.metrics.snapshots.bytes,
        ),
        counter(
            "lightcone_snapshots_failed_total",
            "Snapshots that could not be written.",
            |of| of.metrics.snapshots.failed,
        ),
        gauge(
            "lightcone_replay_transactions",
            "Transactions of the log that were replayed then.",
            |of| of.metrics.replayed.transactions,
        ),
        gauge(
            "lightcone_replay_bytes",
            "Bytes of the log that were replayed then.",
            |of| of.metrics.replayed.bytes,
        ),
    ];
    put_each(text, databases.iter(), &families);
}

fn put_outbound(text: &mut Text, databases: &[Shown]) {
    let families: [Family; 6] = [
        counter(
            "spacetime_procedure_num_http_requests",
            "Requests of procedures and HTTP handlers to the outside.",
            |of| of.metrics.outbound.begun,
        ),
        counter(
            "spacetime_procedure_num_successful_http_requests",
            "Those that were answered, with any status.",
            |of| of.metrics.outbound.answered,
        ),
        counter(
            "spacetime_procedure_num_failed_http_requests",
            "Those that were refused, timed out, or whose call ended.",
            |of| of.metrics.outbound.failed,
        ),
        gauge(
            "spacetime_procedure_num_in_progress_http_requests",
            "Those under way, or waiting for their turn.",
            |of| of.metrics.outbound.under_way(),
        ),
        counter(
            "lightcone_procedure_http_request_bytes_total",
            "Bytes of their bodies.",
            |of| of.metrics.outbound.request_bytes,
        ),
        counter(
            "lightcone_procedure_http_response_bytes_total",
            "Bytes of the bodies of their answers.",
            |of| of.metrics.outbound.response_bytes,
        ),
    ];
    let ask = databases.iter();
    let ask = ask.filter(|of| of.metrics.outbound.begun > 0);
    put_each(text, ask, &families);
}
