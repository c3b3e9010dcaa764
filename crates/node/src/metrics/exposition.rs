//! All metrics, as the text that Prometheus reads and as JSON (06 §5.21).

use std::sync::atomic::Ordering::Relaxed;

use lightcone_types::Identity;
use serde_json::Value;

use super::counters::ServerCounters;
use super::shown::{of_one, shown, Detail, Shown};
use super::text::{numbers, Seconds, Text};
use super::{databases, functions, json, process};
use crate::databases::{Databases, Running};
use crate::node::Node;
use crate::scrub::Scrub;
use crate::traces::TraceCounters;

/// The exposition of everything.
pub fn render(node: &Node, detail: Detail) -> String {
    let mut text = server_families(node);
    let shown = all_shown(node, detail);
    databases::put(&mut text, &shown);
    functions::put(&mut text, &shown);
    text.into_string()
}

/// The families that are not of databases.
pub(super) fn server_as_text(node: &Node) -> String {
    server_families(node).into_string()
}

fn server_families(node: &Node) -> Text {
    let mut text = Text::default();
    process::put(&mut text);
    put_server(&mut text, &node.counters, &node.databases);
    put_scrub(&mut text, &node.scrub);
    if let Some(traces) = &node.traces {
        put_traces(&mut text, &traces.counters);
    }
    text
}

fn all_shown(node: &Node, detail: Detail) -> Vec<Shown> {
    let mut others = Shown::default();
    let running = node.databases.running_beside(|left| others.add(left.sum()));
    shown(running, others, &node.config.limits, detail)
}

/// The databases as JSON, as many and with as much of each as [`render`] shows.
pub fn all_as_json(node: &Node) -> Value {
    let shown = all_shown(node, Detail::for_operators(&node.config));
    json::of_databases(shown.iter().map(|one| {
        let identity = Identity::from_hex(&one.label).ok();
        let names = identity.map(|identity| node.control.names_of(&identity));
        (one, names.unwrap_or_default())
    }))
}

/// The databases with series of their own, each without its names.
pub(super) fn each_as_json(node: &Node) -> Vec<(Identity, Value)> {
    let shown = all_shown(node, Detail::for_operators(&node.config));
    let each = shown.iter().filter_map(|one| {
        let identity = Identity::from_hex(&one.label).ok()?;
        Some((identity, json::of_database(one, Vec::new())))
    });
    each.collect()
}

/// One database as JSON, with all functions and tables. None: it is not open.
pub fn one_as_json(identity: &Identity, names: Vec<String>, running: Option<&Running>) -> Value {
    let label = identity.to_hex();
    let shown = match running {
        Some(running) => of_one(label, running),
        None => Shown {
            label,
            ..Shown::default()
        },
    };
    json::of_databases(std::iter::once((&shown, names)))
}

fn put_server(text: &mut Text, server: &ServerCounters, all: &Databases) {
    let disk = all.disk().space();
    numbers! { text;
        Gauge "lightcone_connections" server.connections_open.load(Relaxed),
            "Open TCP connections.";
        Counter "lightcone_connections_total" server.connections_accepted.load(Relaxed),
            "Accepted TCP connections.";
        Counter "lightcone_connections_refused_total" server.connections_refused.load(Relaxed),
            "TCP connections answered 503 because there were too many.";
        Gauge "lightcone_databases_open" all.open_count() as u64,
            "Databases in memory; the others are opened when they are used.";
        Gauge "lightcone_loads_given_up" all.loads().given_up() as u64,
            "Modules that cannot be stopped and still run.";
        Counter "lightcone_loads_given_up_total" all.loads().given_up_total(),
            "Modules that could not be stopped.";
        Gauge "lightcone_clients_bytes" all.clients_bytes() as u64,
            "What all clients have asked for and not yet taken; limits.clients-memory-percent bounds it.";
        Counter "lightcone_network_polls_slow_total" server.polls.slow(),
            "How often the task of a connection kept its thread from others for more than 5 ms.";
        Gauge "lightcone_disk_free_bytes" disk.map(|(free, _)| free),
            "Free bytes of the disk of the data directory.";
        Gauge "lightcone_disk_reserve_bytes" disk.map(|(_, kept)| kept),
            "What logs, publishes and snapshots leave free.";
        Gauge "lightcone_network_poll_longest_seconds" Seconds(server.polls.longest().as_nanos() as u64),
            "For how long the task of a connection kept its thread from others at most, since the start.";
    }
}

fn put_scrub(text: &mut Text, scrub: &Scrub) {
    numbers! { text;
        Gauge "lightcone_scrub_damaged" scrub.damaged() as u64,
            "Damaged snapshots and logs that a start of their databases would need.";
        Counter "lightcone_scrub_passes_total" scrub.passes.load(Relaxed),
            "Times that all was read that a start of any database would need.";
        Counter "lightcone_scrub_bytes_total" scrub.bytes.load(Relaxed),
            "Bytes that were read for it.";
    }
}

fn put_traces(text: &mut Text, counters: &TraceCounters) {
    numbers! { text;
        Counter "lightcone_trace_spans_sent_total" counters.sent.load(Relaxed),
            "Spans that the collector has taken.";
        Counter "lightcone_trace_spans_dropped_total" counters.dropped.load(Relaxed),
            "Spans that were dropped because too many waited.";
        Counter "lightcone_trace_spans_failed_total" counters.failed.load(Relaxed),
            "Spans that the collector did not take.";
    }
}
