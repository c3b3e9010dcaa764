//! Counters of the server, of its databases and of their modules, and the text form in which Prometheus reads them (06 §5.21).

mod databases;
mod functions;
mod json;
mod process;
mod scrapes;
mod sizes;
mod text;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use lightcone_types::Identity;
use serde_json::Value;

pub(crate) use self::databases::Left;
pub(crate) use self::scrapes::{Looks, Scrapes, TooManyLooks};
pub(crate) use self::sizes::{Sizes, SizesSeen};

use self::text::{Kind, Labels, Text};
use crate::config::Config;
use crate::control::ControlDb;
use crate::databases::{Databases, Running};
use crate::polls::Polls;
use crate::state::ServerState;
use crate::traces::TraceCounters;

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
    /// Messages that came.
    pub requests: Sizes,
    pub sent_bytes: AtomicU64,
    pub sent_messages: AtomicU64,
    /// What was sent at once may have several messages.
    pub sent_sizes: Sizes,
    pub http_response_bytes: AtomicU64,
}

impl DatabaseCounters {
    fn add(&self, other: &DatabaseCounters) {
        for (mine, more) in self.all().into_iter().zip(other.all()) {
            add(mine, more.load(Relaxed));
        }
        self.requests.add(&other.requests);
        self.sent_sizes.add(&other.sent_sizes);
    }

    fn all(&self) -> [&AtomicU64; 12] {
        [
            &self.clients_connected,
            &self.clients_spawned,
            &self.clients_aborted,
            &self.clients_closed,
            &self.clients_idle_timed_out,
            &self.clients_rejected,
            &self.disconnects_client_close,
            &self.disconnects_server_close,
            &self.disconnects_error,
            &self.sent_bytes,
            &self.sent_messages,
            &self.http_response_bytes,
        ]
    }
}

/// What the server counts about itself.
#[derive(Default)]
pub(crate) struct ServerCounters {
    pub connections_open: AtomicU64,
    pub connections_accepted: AtomicU64,
    pub connections_refused: AtomicU64,
    pub polls: Arc<Polls>,
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

/// How much of databases and modules is told one by one. What is beyond is added up in one series with this name, which no function,
/// table or database has.
pub(crate) const OTHER: &str = "(other)";

/// How much of databases and their modules is told by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// Functions and tables up to their bounds, and not only their sums.
    names: bool,
    /// So that whoever reads it may open the database by it.
    whole_identities: bool,
}

impl Told {
    /// To programs on this machine, and to who has the token.
    pub fn to_operators(config: &Config) -> Told {
        Told {
            names: config.metrics.names,
            whole_identities: true,
        }
    }

    /// To everybody who reaches `metrics.listen`.
    pub fn to_everybody(config: &Config) -> Told {
        let listen_names = config.metrics.listen_names;
        Told {
            names: config.metrics.names && listen_names,
            whole_identities: listen_names,
        }
    }
}

/// The exposition of everything.
pub(crate) fn render(state: &ServerState, told: Told) -> String {
    let mut text = Text::default();
    process::put(&mut text);
    put_server(&mut text, &state.counters, &state.databases);
    if let Some(traces) = &state.traces {
        put_traces(&mut text, &traces.counters);
    }
    let shown = databases::shown(&state.config, &state.databases, told);
    databases::put(&mut text, &shown);
    functions::put(&mut text, &shown);
    text.into_string()
}

/// The databases as JSON, as many and with as much of each as [`render`] tells.
pub(crate) fn all_as_json(config: &Config, control: &ControlDb, all: &Databases) -> Value {
    let shown = databases::shown(config, all, Told::to_operators(config));
    json::of_databases(shown.iter().map(|one| {
        let identity = Identity::from_hex(&one.label).ok();
        let names = identity.and_then(|identity| control.names_of(&identity).ok());
        (one, names.unwrap_or_default())
    }))
}

/// One database as JSON, with all functions and tables. None: it is not open.
pub(crate) fn one_as_json(
    identity: &Identity,
    names: Vec<String>,
    running: Option<&Running>,
) -> Value {
    let shown = match running {
        Some(running) => databases::of_one(identity.to_hex(), running),
        None => databases::closed(identity.to_hex()),
    };
    json::of_databases(std::iter::once((&shown, names)))
}

fn put_server(text: &mut Text, server: &ServerCounters, all: &Databases) {
    let mut one = |kind, name, help, value: u64| {
        text.family(
            kind,
            name,
            help,
            std::iter::once((Labels::default(), value)),
        );
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
    one(
        Kind::Counter,
        "lightcone_network_polls_slow_total",
        "How often the task of a connection kept its thread from others for more than 5 ms.",
        server.polls.slow(),
    );
    let longest = server.polls.longest().as_nanos() as u64;
    text.seconds(
        Kind::Gauge,
        "lightcone_network_poll_longest_seconds",
        "For how long the task of a connection kept its thread from others at most, since the start.",
        std::iter::once((Labels::default(), longest)),
    );
}

fn put_traces(text: &mut Text, counters: &TraceCounters) {
    for (name, help, counter) in [
        (
            "lightcone_trace_spans_sent_total",
            "Spans that the collector has taken.",
            &counters.sent,
        ),
        (
            "lightcone_trace_spans_dropped_total",
            "Spans that were dropped because too many waited.",
            &counters.dropped,
        ),
        (
            "lightcone_trace_spans_failed_total",
            "Spans that the collector did not take.",
            &counters.failed,
        ),
    ] {
        let sample = std::iter::once((Labels::default(), counter.load(Relaxed)));
        text.family(Kind::Counter, name, help, sample);
    }
}
