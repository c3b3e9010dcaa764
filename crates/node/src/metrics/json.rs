//! The same as JSON, for `spacetime top` (06 §5.21).

use std::sync::atomic::Ordering::Relaxed;

use lightcone_database::{FunctionMetrics, HistogramSnapshot, QueryKind, TableMetrics, BOUNDS_NS};
use serde_json::{json, Value};

use super::shown::Shown;

/// `names`: of the database, which may have none.
pub(super) fn of_databases<'s>(databases: impl Iterator<Item = (&'s Shown, Vec<String>)>) -> Value {
    let databases = databases.map(|(shown, names)| of_database(shown, names));
    json!({ "bounds_us": bounds_us(), "databases": databases.collect::<Vec<_>>() })
}

/// Of the buckets of times.
pub(super) fn bounds_us() -> Vec<u64> {
    BOUNDS_NS.iter().map(|nanos| nanos / 1000).collect()
}

pub(super) fn of_database(shown: &Shown, names: Vec<String>) -> Value {
    let (counters, stats, metrics) = (&shown.counters, &shown.stats, &shown.metrics);
    let queries = QueryKind::ALL.into_iter().map(|kind| {
        let times = times(&metrics.queries[kind as usize]);
        (kind.name().to_owned(), times)
    });
    let outbound = &metrics.outbound;
    json!({
        "identity": shown.label,
        "names": names,
        "is_open": shown.is_open,
        "clients": counters.clients_connected.load(Relaxed),
        "received_messages": counters.requests.count(),
        "received_bytes": counters.requests.bytes(),
        "sent_messages": counters.sent_messages.load(Relaxed),
        "sent_bytes": counters.sent_bytes.load(Relaxed),
        "transactions": stats.transactions,
        "log_bytes": stats.log_bytes,
        "log_syncs": stats.log_syncs,
        "log_queue_bytes": stats.log_queue_bytes,
        "history": {
            "from_offset": metrics.retained.from.get(),
            "since_us": metrics.retained.since.map(|since| since.micros()),
            "backed_up_offset": metrics.retained.backed_up.map(|offset| offset.get()),
            "lost_transactions": metrics.retained.lost,
        },
        "live_queries": stats.live_queries,
        "slow_clients_cut": stats.slow_clients_cut,
        "is_read_only": shown.read_only > 0,
        "inbox_messages": metrics.inbox_messages,
        "reads_under_way": metrics.reads_under_way,
        "rounds": times(&metrics.rounds),
        "waits": times(&metrics.waits),
        "reads": times(&metrics.reads),
        "queries": queries.collect::<serde_json::Map<_, _>>(),
        "http_requests": {
            "begun": outbound.begun,
            "answered": outbound.answered,
            "failed": outbound.failed,
            "request_bytes": outbound.request_bytes,
            "response_bytes": outbound.response_bytes,
        },
        "functions": metrics.module.functions.iter().map(of_function).collect::<Vec<_>>(),
        "tables": metrics.module.tables.iter().map(of_table).collect::<Vec<_>>(),
    })
}

fn of_function(function: &FunctionMetrics) -> Value {
    json!({
        "kind": function.kind.name(),
        "name": &*function.name,
        "sender_errors": function.sender_errors,
        "traps": function.traps,
        "timeouts": function.timeouts,
        "refused": function.refused,
        "times": times(&function.times),
    })
}

fn of_table(table: &TableMetrics) -> Value {
    json!({
        "name": &*table.name,
        "rows": table.rows,
        "bytes": table.bytes,
        "inserted": table.inserted,
        "deleted": table.deleted,
    })
}

/// A list of counts as long as the bounds and one more, without the zeros at its end.
fn times(times: &HistogramSnapshot) -> Value {
    let used = times.buckets.iter().rposition(|count| *count > 0);
    let buckets = &times.buckets[..used.map_or(0, |last| last + 1)];
    json!({
        "buckets": buckets,
        "sum_us": times.sum_ns / 1000,
        "longest_us": times.longest_ns / 1000,
    })
}
