//! All metrics, as the text that Prometheus reads and as JSON (06 §5.21).

use std::sync::atomic::Ordering::Relaxed;

use lightcone_types::Identity;
use serde_json::Value;

use super::counters::ServerCounters;
use super::shown::{closed, of_one, shown, Detail, Shown};
use super::text::{Kind, Labels, Text};
use super::{databases, functions, json, process};
use crate::config::Config;
use crate::control::ControlDb;
use crate::databases::Databases;
use crate::running::Running;
use crate::state::ServerState;
use crate::traces::TraceCounters;

/// The exposition of everything.
pub(crate) fn render(state: &ServerState, detail: Detail) -> String {
    let mut text = Text::default();
    process::put(&mut text);
    put_server(&mut text, &state.counters, &state.databases);
    if let Some(traces) = &state.traces {
        put_traces(&mut text, &traces.counters);
    }
    let shown = all_shown(&state.config, &state.databases, detail);
    databases::put(&mut text, &shown);
    functions::put(&mut text, &shown);
    text.into_string()
}

fn all_shown(config: &Config, all: &Databases, detail: Detail) -> Vec<Shown> {
    let mut others = Shown::default();
    let running = all.running_beside(|left| others.add(left.sum()));
    shown(running, others, &config.limits, detail)
}

/// The databases as JSON, as many and with as much of each as [`render`] shows.
pub(crate) fn all_as_json(config: &Config, control: &ControlDb, all: &Databases) -> Value {
    let shown = all_shown(config, all, Detail::for_operators(config));
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
        Some(running) => of_one(identity.to_hex(), running),
        None => closed(identity.to_hex()),
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
