//! Counters of the server and their Prometheus text form (06 §5.21).

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lightcone_types::Identity;

use crate::database::{DatabaseStats, HistogramSnapshot, BOUNDS_NS};
use crate::databases::{Databases, Running};

/// What the server counts about one database.
#[derive(Default)]
pub(crate) struct DatabaseCounters {
    pub clients_connected: AtomicU64,
    pub clients_spawned: AtomicU64,
    pub clients_aborted: AtomicU64,
    pub clients_closed: AtomicU64,
    pub clients_idle_timed_out: AtomicU64,
    pub clients_rejected: AtomicU64,
    pub disconnects_client_close: AtomicU64,
    pub disconnects_server_close: AtomicU64,
    pub disconnects_error: AtomicU64,
    pub requests: AtomicU64,
    pub request_bytes: AtomicU64,
    pub sent_bytes: AtomicU64,
    pub sent_messages: AtomicU64,
    pub http_response_bytes: AtomicU64,
}

/// What the server counts about itself.
#[derive(Default)]
pub(crate) struct ServerCounters {
    pub connections_open: AtomicU64,
    pub connections_accepted: AtomicU64,
    pub connections_refused: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Relaxed);
}

/// Counts up while it lives.
pub(crate) struct Gauge<'a>(&'a AtomicU64);

impl<'a> Gauge<'a> {
    pub(crate) fn enter(counter: &'a AtomicU64) -> Gauge<'a> {
        counter.fetch_add(1, Relaxed);
        Gauge(counter)
    }
}

impl Drop for Gauge<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A number of nanoseconds as Prometheus has times: in seconds.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The shortest text of the nearest float: 0.000001, 60.
        write!(f, "{}", self.0 as f64 / 1e9)
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

struct Text(String);

impl Text {
    /// One family: a line per database that has something to say.
    fn family(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (String, u64)>,
    ) {
        let mut samples = samples.peekable();
        if samples.peek().is_none() {
            return;
        }
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }
}

impl Text {
    /// A family of times: each sample with its labels, which are at least one and without braces.
    fn times(
        &mut self,
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (String, HistogramSnapshot)>,
    ) {
        let mut samples = samples.peekable();
        if samples.peek().is_none() {
            return;
        }
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} histogram");
        for (labels, times) in samples {
            let mut count = 0;
            for (bound, within) in BOUNDS_NS.iter().zip(times.buckets) {
                count += within;
                let le = Seconds(*bound);
                let _ = writeln!(self.0, "{name}_bucket{{{labels},le=\"{le}\"}} {count}");
            }
            let (all, sum) = (times.count(), Seconds(times.sum_ns));
            let _ = writeln!(self.0, "{name}_bucket{{{labels},le=\"+Inf\"}} {all}");
            let _ = writeln!(
                self.0,
                "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {all}"
            );
        }
    }

    /// A family of times of which each sample is one.
    fn seconds(&mut self, name: &str, help: &str, samples: impl Iterator<Item = (String, u64)>) {
        let mut samples = samples.peekable();
        if samples.peek().is_none() {
            return;
        }
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (labels, nanos) in samples {
            let _ = writeln!(self.0, "{name}{labels} {}", Seconds(nanos));
        }
    }
}

type ReadCounter = fn(&DatabaseCounters) -> &AtomicU64;
type ReadStats = fn(&DatabaseStats) -> u64;

/// Kind, name, help, further labels.
const OF_CONNECTIONS: [(Kind, &str, &str, &str, ReadCounter); 11] = [
    (
        Kind::Gauge,
        "spacetime_worker_connected_clients",
        "Connected clients.",
        "",
        |c| &c.clients_connected,
    ),
    (
        Kind::Counter,
        "spacetime_worker_ws_clients_spawned",
        "WebSocket clients accepted.",
        "",
        |c| &c.clients_spawned,
    ),
    (
        Kind::Counter,
        "spacetime_worker_ws_clients_aborted",
        "WebSocket clients dropped.",
        "",
        |c| &c.clients_aborted,
    ),
    (
        Kind::Counter,
        "spacetime_worker_ws_clients_closed_connection",
        "WebSocket clients that closed.",
        "",
        |c| &c.clients_closed,
    ),
    (
        Kind::Counter,
        "spacetime_worker_ws_clients_idle_timed_out_total",
        "WebSocket clients that were silent too long.",
        "",
        |c| &c.clients_idle_timed_out,
    ),
    (
        Kind::Counter,
        "spacetime_worker_ws_client_rejections_total",
        "WebSocket clients that the module refused.",
        ",cause=\"connect\"",
        |c| &c.clients_rejected,
    ),
    (
        Kind::Counter,
        "spacetime_websocket_requests_total",
        "Messages of clients.",
        ",protocol=\"websocket\"",
        |c| &c.requests,
    ),
    (
        Kind::Counter,
        "lightcone_websocket_request_bytes_total",
        "Bytes of messages of clients.",
        ",protocol=\"websocket\"",
        |c| &c.request_bytes,
    ),
    (
        Kind::Counter,
        "lightcone_websocket_sent_bytes_total",
        "Bytes sent to clients, framing included.",
        "",
        |c| &c.sent_bytes,
    ),
    (
        Kind::Counter,
        "lightcone_websocket_sent_messages_total",
        "Server messages sent to clients.",
        "",
        |c| &c.sent_messages,
    ),
    (
        Kind::Counter,
        "spacetime_http_response_size_bytes_total",
        "Bytes of the answers of HTTP handlers, headers and body.",
        "",
        |c| &c.http_response_bytes,
    ),
];

const DISCONNECT_CAUSES: [(&str, ReadCounter); 3] = [
    ("client_close", |c| &c.disconnects_client_close),
    ("server_close", |c| &c.disconnects_server_close),
    ("error", |c| &c.disconnects_error),
];

const OF_DATABASES: [(Kind, &str, &str, ReadStats); 5] = [
    (
        Kind::Gauge,
        "spacetime_message_log_size_bytes",
        "Bytes appended to the log.",
        |stats| stats.log_bytes,
    ),
    (
        Kind::Counter,
        "lightcone_log_syncs_total",
        "Syncs of the log; one makes many transactions durable.",
        |stats| stats.log_syncs,
    ),
    (
        Kind::Gauge,
        "spacetime_active_queries",
        "Subscribed queries.",
        |stats| stats.live_queries,
    ),
    (
        Kind::Counter,
        "lightcone_messages_sent_total",
        "Server messages queued for clients.",
        |stats| stats.messages_sent,
    ),
    (
        Kind::Counter,
        "spacetime_client_outgoing_queue_disconnects_total",
        "Clients cut off because they took their messages too slowly.",
        |stats| stats.slow_clients_cut,
    ),
];

/// The exposition of everything.
pub(crate) fn render(server: &ServerCounters, all: &Databases) -> String {
    let mut text = Text(String::new());
    put_server(&mut text, server, all);
    let databases = all.all_running();
    put_connections(&mut text, &databases);
    put_databases(&mut text, &databases);
    put_rounds(&mut text, &databases);
    text.0
}

fn put_server(text: &mut Text, server: &ServerCounters, all: &Databases) {
    let mut one = |kind, name, help, value: u64| {
        text.family(kind, name, help, std::iter::once((String::new(), value)));
    };
    one(
        Kind::Gauge,
        "lightcone_connections",
        "Open TCP connections.",
        server.connections_open.load(Relaxed),
    );
    one(
        Kind::Counter,
        "lightcone_connections_total",
        "Accepted TCP connections.",
        server.connections_accepted.load(Relaxed),
    );
    one(
        Kind::Counter,
        "lightcone_connections_refused_total",
        "TCP connections answered 503 because there were too many.",
        server.connections_refused.load(Relaxed),
    );
    one(
        Kind::Gauge,
        "lightcone_loads_given_up",
        "Modules that cannot be stopped and still run.",
        all.loads().given_up() as u64,
    );
    one(
        Kind::Counter,
        "lightcone_loads_given_up_total",
        "Modules that could not be stopped.",
        all.loads().given_up_total(),
    );
    if let Some((free, kept)) = all.disk().space() {
        one(
            Kind::Gauge,
            "lightcone_disk_free_bytes",
            "Free bytes of the disk of the data directory.",
            free,
        );
        one(
            Kind::Gauge,
            "lightcone_disk_reserve_bytes",
            "What logs, publishes and snapshots leave free.",
            kept,
        );
    }
    one(
        Kind::Gauge,
        "lightcone_clients_bytes",
        "What all clients have asked for and not yet taken; limits.clients-memory-percent bounds it.",
        all.clients_bytes() as u64,
    );
}

fn put_connections(text: &mut Text, databases: &[(Identity, Running)]) {
    for (kind, name, help, labels, read) in OF_CONNECTIONS {
        let samples = databases.iter().map(|(identity, running)| {
            let labels = format!("{{database_identity=\"{identity}\"{labels}}}");
            (labels, read(&running.counters).load(Relaxed))
        });
        text.family(kind, name, help, samples);
    }
    let samples = databases.iter().flat_map(|(identity, running)| {
        DISCONNECT_CAUSES.iter().map(move |(cause, read)| {
            let labels = format!("{{database_identity=\"{identity}\",cause=\"{cause}\"}}");
            (labels, read(&running.counters).load(Relaxed))
        })
    });
    text.family(
        Kind::Counter,
        "spacetime_worker_ws_client_disconnections_total",
        "Ended WebSocket connections by cause.",
        samples,
    );
}

fn put_databases(text: &mut Text, databases: &[(Identity, Running)]) {
    let stats: Vec<_> = databases
        .iter()
        .map(|(identity, running)| (identity, running.handle.stats()))
        .collect();
    let transactions = stats.iter().map(|(identity, stats)| {
        let labels =
            format!("{{txn_type=\"Reducer\",db=\"{identity}\",reducer=\"\",committed=\"true\"}}");
        (labels, stats.transactions)
    });
    text.family(
        Kind::Counter,
        "spacetime_num_txns_total",
        "Committed transactions.",
        transactions,
    );
    let by_db = |identity: &Identity| format!("{{db=\"{identity}\"}}");
    for (kind, name, help, read) in OF_DATABASES {
        let samples = stats.iter();
        let samples = samples.map(|(identity, stats)| (by_db(identity), read(stats)));
        text.family(kind, name, help, samples);
    }
    let read_only = databases.iter().map(|(identity, running)| {
        let is_read_only = running.handle.read_only().is_some();
        (by_db(identity), u64::from(is_read_only))
    });
    text.family(
        Kind::Gauge,
        "lightcone_read_only",
        "1 when the database takes no more writes because its log failed.",
        read_only,
    );
}

fn put_rounds(text: &mut Text, databases: &[(Identity, Running)]) {
    let rounds: Vec<_> = databases
        .iter()
        .map(|(identity, running)| (identity, running.handle.writer_rounds()))
        .collect();
    let samples = rounds
        .iter()
        .map(|(identity, times)| (format!("db=\"{identity}\""), times.clone()));
    text.times(
        "lightcone_writer_round_seconds",
        "For how long the writer took nothing from its inbox, each time: so long a new request waits at most.",
        samples,
    );
    let longest = rounds
        .iter()
        .map(|(identity, times)| (format!("{{db=\"{identity}\"}}"), times.longest_ns));
    text.seconds(
        "lightcone_writer_round_longest_seconds",
        "The longest of these since the database was opened.",
        longest,
    );
}
