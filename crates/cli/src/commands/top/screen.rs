//! The text of a look.

use super::numbers::{bytes, count, micros};
use super::rates::{DatabaseRates, Rate, Rates, ENDLESS_US};
use crate::table;

/// In the place of what is not known.
const NOTHING: &str = "-";
/// At the end of what was cut.
const CUT: char = '~';
/// Names have at least so much of a narrow screen.
const NAME_COLUMNS_MIN: usize = 16;

/// What a screen has room for. The last line is the cursor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub lines: usize,
}

impl Size {
    /// Of what is no screen: for programs, and files.
    pub const ENDLESS: Size = Size {
        columns: usize::MAX,
        lines: usize::MAX,
    };
}

/// As a terminal draws it over the last one: from the corner, each line to its end, and nothing below.
pub fn drawn(text: &str) -> String {
    format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}

/// Why there is nothing new, in the place of the last line.
pub fn with_trouble(text: &str, trouble: &str, size: Size) -> String {
    let trouble = cut(trouble, size.columns);
    let kept = first_lines(text, size.lines.saturating_sub(2));
    format!("{kept}{trouble}\n")
}

/// So many databases, functions and tables at most, and no more than there is room for.
pub fn text(rates: &Rates, rows_max: usize, size: Size) -> String {
    let text = match (&rates.databases[..], rates.is_single) {
        ([database], true) => single(database, rates.seconds, rows_max, size),
        (databases, _) => several(databases, rates.seconds, rows_max, size),
    };
    // A very small screen has no room for what stands above and below the rows.
    first_lines(&text, size.lines.saturating_sub(1))
}

fn first_lines(text: &str, lines_max: usize) -> String {
    let lines = text.lines().take(lines_max);
    joined(lines.map(str::to_owned))
}

fn single(of: &DatabaseRates, seconds: f64, rows_max: usize, size: Size) -> String {
    let name = of.name.as_deref().map_or(String::new(), plain);
    let state = if of.is_read_only { "  READ-ONLY" } else { "" };
    let first = format!("{name}  {}{state}", of.identity);
    if !of.is_open {
        return folded(&first, size) + &folded("It is not open: no client uses it.", size);
    }
    let calls = format!(
        "the last {seconds:.1} s: {} calls/s, half within {}, 99% within {}; {} errors/s; {} transactions/s; {} queries/s",
        rate(of.calls),
        bound(of.p50_us),
        bound(of.p99_us),
        rate(of.errors),
        rate(of.transactions),
        rate(of.queries),
    );
    let rows = format!(
        "rows: +{}/s -{}/s; received {}/s, sent {}/s, log {}/s; {} clients, {} live queries",
        rate(of.inserts),
        rate(of.deletes),
        byte_rate(of.received_bytes),
        byte_rate(of.sent_bytes),
        byte_rate(of.log_bytes),
        of.clients,
        of.live_queries,
    );
    let writer = format!(
        "writer: {} busy, held at most {} at a time; calls waited (99%) {}; waiting: {} messages, {} queries, {} of log",
        percent(of.writer_percent),
        bound(of.longest_round_us),
        bound(of.wait_p99_us),
        of.inbox_messages,
        of.reads_under_way,
        bytes(of.log_queue_bytes as f64),
    );
    let mut text = [first, calls, rows, writer]
        .map(|text| folded(&text, size))
        .concat();
    text.push('\n');
    // Both tables have a head and say what is missing; between them is a line.
    let room = size.lines.saturating_sub(text.lines().count() + 6);
    let (functions_count, tables_count) = (of.functions.len(), of.tables.len());
    let (functions_max, tables_max) = shares(
        functions_count.min(rows_max),
        tables_count.min(rows_max),
        room,
    );
    text += &functions(of, functions_max, size);
    text.push('\n');
    text + &tables(of, tables_max, size)
}

fn functions(of: &DatabaseRates, rows_max: usize, size: Size) -> String {
    let rows = of.functions.iter().take(rows_max).map(|of| {
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
    let head = "FUNCTION KIND CALLS/S ERRORS/S HALF 99% TIME";
    let fitting = fit(head, "KIND HALF ERRORS/S", rows.collect(), size);
    fitting + &more(of.functions.len(), rows_max)
}

fn tables(of: &DatabaseRates, rows_max: usize, size: Size) -> String {
    let rows = of.tables.iter().take(rows_max).map(|of| {
        vec![
            plain(&of.name),
            of.rows.to_string(),
            bytes(of.bytes as f64),
            rate(of.inserts),
            rate(of.deletes),
        ]
    });
    let head = "TABLE ROWS SIZE INSERTS/S DELETES/S";
    let fitting = fit(head, "SIZE DELETES/S", rows.collect(), size);
    fitting + &more(of.tables.len(), rows_max)
}

fn several(databases: &[DatabaseRates], seconds: f64, rows_max: usize, size: Size) -> String {
    let text = format!(
        "the last {seconds:.1} s of {} open databases\n\n",
        databases.len()
    );
    // The head, and what is missing.
    let room = size.lines.saturating_sub(text.lines().count() + 3);
    let rows_max = rows_max.min(room);
    let rows = databases.iter().take(rows_max).map(|of| {
        let name = of.name.as_deref().unwrap_or(&of.identity);
        let changes = of.inserts.zip(of.deletes).map(|(came, went)| came + went);
        vec![
            plain(name),
            rate(of.calls),
            rate(of.errors),
            bound(of.p50_us),
            bound(of.p99_us),
            rate(of.queries),
            rate(changes),
            byte_rate(of.sent_bytes),
            byte_rate(of.log_bytes),
            of.clients.to_string(),
            of.inbox_messages.to_string(),
            percent(of.writer_percent),
            bound(of.longest_round_us),
        ]
    });
    let head = "DATABASE CALLS/S ERRORS/S HALF 99% QUERIES/S ROWS/S SENT/S LOG/S CLIENTS WAITING WRITER LONGEST";
    let needed_least = "LOG/S HALF SENT/S QUERIES/S LONGEST ROWS/S WAITING CLIENTS ERRORS/S";
    text + &fit(head, needed_least, rows.collect(), size) + &more(databases.len(), rows_max)
}

/// A table whose columns are a word each; those that are needed least are left out first where there is no room.
fn fit(head: &str, needed_least: &str, mut rows: Vec<Vec<String>>, size: Size) -> String {
    let mut head: Vec<&str> = head.split(' ').collect();
    let mut leave_out = needed_least.split(' ');
    let names_max = (size.columns / 3).max(NAME_COLUMNS_MIN);
    for row in &mut rows {
        row[0] = cut(&row[0], names_max);
    }
    loop {
        let text = table::plain(&head, &rows);
        let lines = text.lines().map(str::trim_end);
        if size == Size::ENDLESS {
            return text;
        }
        let fits = lines.clone().all(|line| width(line) <= size.columns);
        let column = leave_out.find_map(|name| head.iter().position(|of| *of == name));
        let Some(column) = column.filter(|_| !fits) else {
            return joined(lines.map(|line| cut(line, size.columns)));
        };
        head.remove(column);
        for row in &mut rows {
            row.remove(column);
        }
    }
}

fn joined(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}

/// How many of both there is room for: of the one that has more, less.
fn shares(mut first: usize, mut second: usize, room: usize) -> (usize, usize) {
    let too_many = first.saturating_add(second).saturating_sub(room);
    for _ in 0..too_many {
        match first >= second {
            true => first = first.saturating_sub(1),
            false => second -= 1,
        }
    }
    (first, second)
}

/// Words in as many lines as it takes.
fn folded(text: &str, size: Size) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive(' ') {
        let last = lines.last_mut().expect("there is one from the beginning");
        match width(last) + width(word.trim_end()) <= size.columns {
            true => last.push_str(word),
            false => lines.push(word.to_owned()),
        }
    }
    let lines = lines.iter().map(|line| line.trim_end());
    let lines = lines.filter(|line| !line.is_empty());
    joined(lines.map(|line| cut(line, size.columns)))
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn cut(text: &str, columns_max: usize) -> String {
    if width(text) <= columns_max {
        return text.to_owned();
    }
    let kept = text.chars().take(columns_max.saturating_sub(1));
    kept.chain([CUT]).collect()
}

fn more(all: usize, rows_max: usize) -> String {
    match all.saturating_sub(rows_max) {
        0 => String::new(),
        left => format!(" and {left} more\n"),
    }
}

fn rate(rate: Rate) -> String {
    rate.map_or(NOTHING.to_owned(), count)
}

fn byte_rate(rate: Rate) -> String {
    rate.map_or(NOTHING.to_owned(), bytes)
}

fn percent(percent: Rate) -> String {
    percent.map_or(NOTHING.to_owned(), |percent| format!("{percent:.0}%"))
}

fn bound(us: Option<u64>) -> String {
    match us {
        None => NOTHING.to_owned(),
        Some(ENDLESS_US) => "very long".to_owned(),
        Some(us) => micros(us),
    }
}

/// Texts of others must not move the cursor.
pub fn plain(text: &str) -> String {
    text.replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::super::rates::rates_between;
    use super::*;

    const SMALL: Size = Size {
        columns: 80,
        lines: 24,
    };

    /// Two looks at so many databases, each with thirty functions and tables with long names.
    fn rates(databases: usize, is_single: bool) -> Rates {
        let look = |factor: u64| {
            let of = |number: usize| {
                let named = |what: &str| -> Vec<_> {
                    let name =
                        |each: usize| format!("{what}_with_a_name_that_is_quite_long_{each}");
                    (0..30).map(name).collect()
                };
                let functions = named("function").into_iter().map(|name| {
                    let times =
                        json!({ "buckets": [factor * 1_000_000], "sum_us": factor * 999_999 });
                    json!({ "kind": "http-handler", "name": name, "times": times })
                });
                let tables = named("table").into_iter().map(|name| {
                    json!({ "name": name, "rows": 123_456_789_u64, "bytes": 1_u64 << 33, "inserted": factor * 12_345_678 })
                });
                json!({
                    "identity": format!("{number:064}"), "sent_bytes": factor * 123_456_789,
                    "functions": functions.collect::<Vec<_>>(), "tables": tables.collect::<Vec<_>>(),
                })
            };
            let all: Vec<_> = (0..databases).map(of).collect();
            let looked = json!({ "bounds_us": [100_000], "databases": all });
            serde_json::from_value(looked).expect("counters")
        };
        let start = Instant::now();
        let then = start + Duration::from_secs(2);
        rates_between(&(start, look(1)), &(then, look(2)), is_single)
    }

    #[test]
    fn it_fits_the_screen() {
        for (databases, is_single) in [(1, true), (1, false), (50, false)] {
            let rates = rates(databases, is_single);
            for (columns, lines) in [(80, 24), (40, 16), (200, 60)] {
                let size = Size { columns, lines };
                let text = text(&rates, 100, size);
                assert!(text.lines().count() < lines, "{size:?}\n{text}");
                assert!(
                    text.lines().all(|line| width(line) <= columns),
                    "{size:?}\n{text}"
                );
                let text = with_trouble(&text, &"x".repeat(500), size);
                assert!(text.lines().count() < lines);
                assert!(text.lines().all(|line| width(line) <= columns));
            }
            let whole = text(&rates, 100, Size::ENDLESS);
            for word in ["CALLS/S", "99%"] {
                assert!(text(&rates, 100, SMALL).contains(word), "{word}");
                assert!(whole.contains(word), "{word}");
            }
            assert!(whole.contains(&format!("{:064}", 0)), "{whole}");
        }
    }

    #[test]
    fn both_have_a_share() {
        assert_eq!(shares(10, 10, 100), (10, 10));
        assert_eq!(shares(10, 3, 8), (5, 3));
        assert_eq!(shares(10, 10, 0), (0, 0));
    }
}
