//! The text of a look.

use super::numbers::{bytes, count, micros};
use super::rates::{DatabaseRates, Rates, ENDLESS_US};
use crate::table;

/// In the place of what is not known.
const NOTHING: &str = "-";

/// As a terminal draws it over the last one: from the corner, each line to its end, and nothing below.
pub fn drawn(text: &str) -> String {
    format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}

/// So many databases, functions and tables at most.
pub fn text(rates: &Rates, rows_max: usize) -> String {
    match (&rates.databases[..], rates.is_single) {
        ([database], true) => single(database, rates.seconds, rows_max),
        (databases, _) => several(databases, rates.seconds, rows_max),
    }
}

fn single(of: &DatabaseRates, seconds: f64, rows_max: usize) -> String {
    let mut text = format!(
        "{}  {}{}\n",
        of.name.as_deref().map_or(String::new(), plain),
        of.identity,
        if of.is_read_only { "  READ-ONLY" } else { "" }
    );
    text += &format!(
        "the last {seconds:.1} s: {} calls/s, half within {}, 99% within {}; {} errors/s; {} transactions/s; {} queries/s\n",
        count(of.calls),
        bound(of.p50_us),
        bound(of.p99_us),
        count(of.errors),
        count(of.transactions),
        count(of.queries),
    );
    text += &format!(
        "rows: +{}/s -{}/s; received {}/s, sent {}/s, log {}/s; {} clients, {} live queries\n",
        count(of.inserts),
        count(of.deletes),
        bytes(of.received_bytes),
        bytes(of.sent_bytes),
        bytes(of.log_bytes),
        of.clients,
        of.live_queries,
    );
    text += &format!(
        "writer: {:.0}% busy, held at most {} at a time; calls waited (99%) {}; waiting: {} messages, {} queries, {} of log\n\n",
        of.writer_percent,
        bound(of.longest_round_us),
        bound(of.wait_p99_us),
        of.inbox_messages,
        of.reads_under_way,
        bytes(of.log_queue_bytes as f64),
    );
    let head = [
        "FUNCTION", "KIND", "CALLS/S", "ERRORS/S", "HALF", "99%", "TIME",
    ];
    let functions = of.functions.iter().take(rows_max).map(|of| {
        vec![
            plain(&of.name),
            of.kind.clone(),
            count(of.calls),
            count(of.errors),
            bound(of.p50_us),
            bound(of.p99_us),
            format!("{:.1}%", of.time_percent),
        ]
    });
    text += &table::plain(&head.map(str::to_owned), &functions.collect::<Vec<_>>());
    text += &more(of.functions.len(), rows_max);
    text.push('\n');
    let head = ["TABLE", "ROWS", "SIZE", "INSERTS/S", "DELETES/S"];
    let tables = of.tables.iter().take(rows_max).map(|of| {
        vec![
            plain(&of.name),
            of.rows.to_string(),
            bytes(of.bytes as f64),
            count(of.inserts),
            count(of.deletes),
        ]
    });
    text += &table::plain(&head.map(str::to_owned), &tables.collect::<Vec<_>>());
    text + &more(of.tables.len(), rows_max)
}

fn several(databases: &[DatabaseRates], seconds: f64, rows_max: usize) -> String {
    let mut text = format!(
        "the last {seconds:.1} s of {} open databases\n\n",
        databases.len()
    );
    let head = [
        "DATABASE",
        "CALLS/S",
        "ERRORS/S",
        "HALF",
        "99%",
        "QUERIES/S",
        "ROWS/S",
        "SENT/S",
        "LOG/S",
        "CLIENTS",
        "WAITING",
        "WRITER",
        "LONGEST",
    ];
    let rows = databases.iter().take(rows_max).map(|of| {
        let name = of.name.as_deref().unwrap_or(&of.identity);
        vec![
            plain(name),
            count(of.calls),
            count(of.errors),
            bound(of.p50_us),
            bound(of.p99_us),
            count(of.queries),
            count(of.inserts + of.deletes),
            bytes(of.sent_bytes),
            bytes(of.log_bytes),
            of.clients.to_string(),
            of.inbox_messages.to_string(),
            format!("{:.0}%", of.writer_percent),
            bound(of.longest_round_us),
        ]
    });
    text += &table::plain(&head.map(str::to_owned), &rows.collect::<Vec<_>>());
    text + &more(databases.len(), rows_max)
}

fn more(all: usize, rows_max: usize) -> String {
    match all.saturating_sub(rows_max) {
        0 => String::new(),
        left => format!(" and {left} more\n"),
    }
}

fn bound(us: Option<u64>) -> String {
    match us {
        None => NOTHING.to_owned(),
        Some(ENDLESS_US) => "very long".to_owned(),
        Some(us) => micros(us),
    }
}

/// A name must not move the cursor.
fn plain(name: &str) -> String {
    name.replace(char::is_control, "?")
}
