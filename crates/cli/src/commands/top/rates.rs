//! What has happened between two looks.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

/// What the server has counted: the members that are used here (06 §5.21).
#[derive(Debug, Deserialize)]
pub struct Counted {
    /// Upper bounds of the buckets of times.
    bounds_us: Vec<u64>,
    databases: Vec<Database>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Database {
    identity: String,
    names: Vec<String>,
    /// Older servers do not say so.
    is_open: Option<bool>,
    clients: u64,
    received_bytes: u64,
    sent_bytes: u64,
    transactions: u64,
    log_bytes: u64,
    log_queue_bytes: u64,
    history: Value,
    live_queries: u64,
    is_read_only: bool,
    inbox_messages: u64,
    reads_under_way: u64,
    rounds: Times,
    waits: Times,
    queries: std::collections::BTreeMap<String, Times>,
    functions: Vec<Function>,
    tables: Vec<Table>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Times {
    /// Without the zeros at the end.
    buckets: Vec<u64>,
    sum_us: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function {
    kind: String,
    name: String,
    sender_errors: u64,
    traps: u64,
    timeouts: u64,
    refused: u64,
    times: Times,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Table {
    name: String,
    rows: u64,
    bytes: u64,
    inserted: u64,
    deleted: u64,
}

/// What databases did in an interval.
pub struct Rates {
    pub databases: Vec<DatabaseRates>,
    pub seconds: f64,
    /// There is one, and its functions and tables are wanted.
    pub is_single: bool,
}

/// A number a second; None where it is not known: the database was opened between the two looks, or is seen for the first time.
pub type Rate = Option<f64>;

#[derive(Serialize)]
pub struct DatabaseRates {
    pub identity: String,
    pub name: Option<String>,
    pub is_open: bool,
    /// Of reducers, procedures and HTTP handlers.
    #[serde(rename = "calls_per_second")]
    pub calls: Rate,
    #[serde(rename = "errors_per_second")]
    pub errors: Rate,
    #[serde(rename = "transactions_per_second")]
    pub transactions: Rate,
    #[serde(rename = "queries_per_second")]
    pub queries: Rate,
    /// In microseconds; None if nothing was called.
    pub p50_us: Option<u64>,
    pub p99_us: Option<u64>,
    pub wait_p99_us: Option<u64>,
    #[serde(rename = "inserts_per_second")]
    pub inserts: Rate,
    #[serde(rename = "deletes_per_second")]
    pub deletes: Rate,
    #[serde(rename = "received_bytes_per_second")]
    pub received_bytes: Rate,
    #[serde(rename = "sent_bytes_per_second")]
    pub sent_bytes: Rate,
    #[serde(rename = "log_bytes_per_second")]
    pub log_bytes: Rate,
    /// The bound that the longest hold of the writer stayed within.
    pub longest_round_us: Option<u64>,
    /// Which part of the time the writer worked, in percent.
    pub writer_percent: Rate,
    pub clients: u64,
    pub live_queries: u64,
    pub inbox_messages: u64,
    pub reads_under_way: u64,
    pub log_queue_bytes: u64,
    /// From where on it can be read, as the server says it (06 §5.21).
    pub history: Value,
    pub is_read_only: bool,
    /// Those that took most time first.
    pub functions: Vec<FunctionRates>,
    /// Those that changed most first.
    pub tables: Vec<TableRates>,
}

#[derive(Serialize)]
pub struct FunctionRates {
    pub kind: String,
    pub name: String,
    #[serde(rename = "calls_per_second")]
    pub calls: f64,
    #[serde(rename = "errors_per_second")]
    pub errors: f64,
    pub p50_us: Option<u64>,
    pub p99_us: Option<u64>,
    /// Of the interval, in percent.
    pub time_percent: f64,
}

#[derive(Serialize)]
pub struct TableRates {
    pub name: String,
    pub rows: u64,
    pub bytes: u64,
    #[serde(rename = "inserts_per_second")]
    pub inserts: Rate,
    #[serde(rename = "deletes_per_second")]
    pub deletes: Rate,
}

/// Longer than the last bound.
pub const ENDLESS_US: u64 = u64::MAX;

impl Times {
    /// What came since.
    fn since(&self, before: &Times) -> Times {
        let old = before.buckets.iter().chain(std::iter::repeat(&0));
        let buckets = self.buckets.iter().zip(old);
        Times {
            buckets: buckets.map(|(now, old)| now.saturating_sub(*old)).collect(),
            sum_us: self.sum_us.saturating_sub(before.sum_us),
        }
    }

    fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    fn add(&mut self, other: &Times) {
        let length = self.buckets.len().max(other.buckets.len());
        self.buckets.resize(length, 0);
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
        self.sum_us += other.sum_us;
    }

    /// The bound within which this part of the times is. None if there are none.
    fn within(&self, part: f64, bounds_us: &[u64]) -> Option<u64> {
        let wanted = (self.count() as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        Some(bounds_us.get(bucket?).copied().unwrap_or(ENDLESS_US))
    }
}

impl Database {
    /// Whether all that is counted has grown since, or stayed. Otherwise it began anew: the database was opened again.
    fn follows(&self, before: &Database) -> bool {
        let numbers = |of: &Database| {
            let queries = of.queries.values().map(Times::count).sum();
            [
                of.transactions,
                of.received_bytes,
                of.sent_bytes,
                of.log_bytes,
                of.rounds.count(),
                of.waits.count(),
                queries,
            ]
        };
        let grew = |(now, before): (u64, u64)| now >= before;
        let functions = self.functions.iter().filter_map(|now| {
            let before = before.function(now)?;
            Some((now.times.count(), before.times.count()))
        });
        let tables = self.tables.iter().filter_map(|now| {
            let before = before.table(now)?;
            Some((now.inserted, before.inserted))
        });
        let whole = numbers(self).into_iter().zip(numbers(before));
        whole.chain(functions).chain(tables).all(grew)
    }

    fn function(&self, like: &Function) -> Option<&Function> {
        let mut functions = self.functions.iter();
        functions.find(|of| of.kind == like.kind && of.name == like.name)
    }

    fn table(&self, like: &Table) -> Option<&Table> {
        self.tables.iter().find(|of| of.name == like.name)
    }
}

/// `is_single`: there is one, and its functions and tables are wanted.
pub fn rates_between(
    before: &(Instant, Counted),
    now: &(Instant, Counted),
    is_single: bool,
) -> Rates {
    let seconds = (now.0 - before.0).as_secs_f64().max(1e-3);
    let measure = Measure {
        seconds,
        bounds_us: &now.1.bounds_us,
    };
    let databases = now.1.databases.iter().map(|database| {
        let mut old = before.1.databases.iter();
        let old = old.find(|old| old.identity == database.identity);
        // What a database did before it was first seen, or between its opening and now, is not of this interval.
        measure.database(old.filter(|old| database.follows(old)), database)
    });
    let mut databases: Vec<_> = databases.collect();
    let calls = |of: &DatabaseRates| of.calls.unwrap_or(-1.0);
    databases.sort_by(|a, b| calls(b).total_cmp(&calls(a)));
    Rates {
        databases,
        seconds,
        is_single,
    }
}

struct Measure<'c> {
    seconds: f64,
    bounds_us: &'c [u64],
}

impl Measure<'_> {
    fn rate(&self, now: u64, before: u64) -> f64 {
        now.saturating_sub(before) as f64 / self.seconds
    }

    fn percent(&self, times: &Times) -> f64 {
        times.sum_us as f64 / 1e4 / self.seconds
    }

    /// `before` is none where nothing is known of the interval.
    fn database(&self, before: Option<&Database>, now: &Database) -> DatabaseRates {
        let functions = before.into_iter().flat_map(|before| {
            let functions = now.functions.iter();
            functions.map(move |one| self.function(before, one))
        });
        let mut functions: Vec<_> = functions.collect();
        let tables = now.tables.iter().map(|one| self.table(before, one));
        let mut tables: Vec<_> = tables.collect();
        // Views run inside of calls.
        let calls = || functions.iter().filter(|(of, _)| of.kind != "view");
        let mut times = Times::default();
        calls().for_each(|(_, more)| times.add(more));
        let since = |of: fn(&Database) -> &Times| before.map(|before| of(now).since(of(before)));
        let rounds = since(|of| &of.rounds).unwrap_or_default();
        let waits = since(|of| &of.waits).unwrap_or_default();
        let queries = now.queries.iter().map(|(kind, now)| {
            let before = before.and_then(|before| before.queries.get(kind));
            now.since(&before.cloned().unwrap_or_default()).count()
        });
        let queries = queries.sum::<u64>() as f64 / self.seconds;
        let known = |rate: f64| before.map(|_| rate);
        let rate = |of: fn(&Database) -> u64| before.map(|before| self.rate(of(now), of(before)));
        let sum = |of: fn(&TableRates) -> Rate| tables.iter().filter_map(of).sum::<f64>();
        let (inserts, deletes) = (sum(|table| table.inserts), sum(|table| table.deletes));
        let (calls, errors) = calls().fold((0.0, 0.0), |(calls, errors), (of, _)| {
            (calls + of.calls, errors + of.errors)
        });
        functions.sort_by(|(a, _), (b, _)| {
            let times = b.time_percent.total_cmp(&a.time_percent);
            times.then(b.calls.total_cmp(&a.calls))
        });
        let changes =
            |table: &TableRates| table.inserts.unwrap_or(0.0) + table.deletes.unwrap_or(0.0);
        tables.sort_by(|a, b| {
            let changes = changes(b).total_cmp(&changes(a));
            changes.then(b.bytes.cmp(&a.bytes))
        });
        DatabaseRates {
            identity: now.identity.clone(),
            name: now.names.first().cloned(),
            is_open: now.is_open.unwrap_or(true),
            calls: known(calls),
            errors: known(errors),
            transactions: rate(|of| of.transactions),
            queries: known(queries),
            p50_us: times.within(0.5, self.bounds_us),
            p99_us: times.within(0.99, self.bounds_us),
            wait_p99_us: waits.within(0.99, self.bounds_us),
            inserts: known(inserts),
            deletes: known(deletes),
            received_bytes: rate(|of| of.received_bytes),
            sent_bytes: rate(|of| of.sent_bytes),
            log_bytes: rate(|of| of.log_bytes),
            longest_round_us: rounds.within(1.0, self.bounds_us),
            writer_percent: known(self.percent(&rounds)),
            clients: now.clients,
            live_queries: now.live_queries,
            inbox_messages: now.inbox_messages,
            reads_under_way: now.reads_under_way,
            log_queue_bytes: now.log_queue_bytes,
            history: now.history.clone(),
            is_read_only: now.is_read_only,
            functions: functions.into_iter().map(|(of, _)| of).collect(),
            tables,
        }
    }

    fn function(&self, before: &Database, now: &Function) -> (FunctionRates, Times) {
        let nothing = Function::default();
        let old = before.function(now).unwrap_or(&nothing);
        let times = now.times.since(&old.times);
        let errors = |of: &Function| of.sender_errors + of.traps + of.timeouts + of.refused;
        let rates = FunctionRates {
            kind: now.kind.clone(),
            name: now.name.clone(),
            calls: times.count() as f64 / self.seconds,
            errors: self.rate(errors(now), errors(old)),
            p50_us: times.within(0.5, self.bounds_us),
            p99_us: times.within(0.99, self.bounds_us),
            time_percent: self.percent(&times),
        };
        (rates, times)
    }

    fn table(&self, before: Option<&Database>, now: &Table) -> TableRates {
        let rate = |of: fn(&Table) -> u64| {
            let old = before?.table(now).map_or(0, of);
            Some(self.rate(of(now), old))
        };
        TableRates {
            name: now.name.clone(),
            rows: now.rows,
            bytes: now.bytes,
            inserts: rate(|of| of.inserted),
            deletes: rate(|of| of.deleted),
        }
    }
}

/// Rounds to three digits behind the point; what is longer than all bounds has none.
fn tidy(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(tidy),
        Value::Object(members) => members.values_mut().for_each(tidy),
        Value::Number(number) if number.as_u64() == Some(ENDLESS_US) => *value = Value::Null,
        Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().unwrap_or_default();
            *value = json!((exact * 1000.0).round() / 1000.0);
        }
        _ => {}
    }
}

impl Rates {
    pub fn to_json(&self) -> Value {
        let mut databases = json!(self.databases);
        if !self.is_single {
            for database in databases.as_array_mut().into_iter().flatten() {
                let members = database.as_object_mut().expect("a database is an object");
                members.retain(|name, _| name != "functions" && name != "tables");
            }
        }
        let mut rates = json!({ "seconds": self.seconds, "databases": databases });
        tidy(&mut rates);
        rates
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn counted(text: &str) -> Counted {
        serde_json::from_str(text).expect("counters")
    }

    const BEFORE: &str = r#"{"bounds_us":[10,100],"databases":[{"identity":"a","transactions":5,
        "rounds":{"buckets":[4],"sum_us":40},
        "functions":[{"kind":"reducer","name":"f","sender_errors":1,"times":{"buckets":[10],"sum_us":100}}],
        "tables":[{"name":"t","rows":1,"inserted":3}]}]}"#;
    const NOW: &str = r#"{"bounds_us":[10,100],"databases":[{"identity":"a","names":["n"],"transactions":25,
        "rounds":{"buckets":[4,2,1],"sum_us":1000040},
        "functions":[{"kind":"reducer","name":"f","sender_errors":2,"times":{"buckets":[10,100],"sum_us":200100}},
            {"kind":"view","name":"v","times":{"buckets":[7]}}],
        "tables":[{"name":"t","rows":9,"inserted":23,"deleted":4}]},{"identity":"b","transactions":7}]}"#;

    #[test]
    fn rates_are_of_the_interval() {
        let start = Instant::now();
        let (before, now) = (counted(BEFORE), counted(NOW));
        let rates = rates_between(
            &(start, before),
            &(start + Duration::from_secs(2), now),
            true,
        );
        let one = &rates.databases[0];
        let calls = (one.calls, one.errors, one.transactions);
        assert_eq!(calls, (Some(50.0), Some(0.5), Some(10.0)));
        assert_eq!((one.inserts, one.deletes), (Some(10.0), Some(2.0)));
        assert_eq!((one.p50_us, one.p99_us), (Some(100), Some(100)));
        assert_eq!(one.longest_round_us, Some(ENDLESS_US));
        assert_eq!(one.writer_percent, Some(50.0));
        assert_eq!(one.functions[0].time_percent, 10.0);
        let json = rates.to_json();
        assert_eq!(json["databases"][0]["longest_round_us"], Value::Null);
        assert_eq!(json["databases"][0]["functions"][1]["name"], "v");
        // What the other did before is not of this interval.
        assert_eq!(rates.databases[1].transactions, None);
    }

    #[test]
    fn of_counters_that_fell_nothing_is_known() {
        let start = Instant::now();
        let rates = rates_between(
            &(start, counted(NOW)),
            &(start + Duration::from_secs(1), counted(BEFORE)),
            true,
        );
        let one = &rates.databases[0];
        assert_eq!(
            (one.calls, one.transactions, one.inserts),
            (None, None, None)
        );
        assert!(one.functions.is_empty());
        assert_eq!((one.tables[0].rows, one.tables[0].inserts), (1, None));
        assert_eq!(
            rates.to_json()["databases"][0]["calls_per_second"],
            Value::Null
        );
    }
}
