//! The result of a run, as a table and as JSON.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde_json::{json, Value};

use crate::ledger::Ledger;
use crate::measure::Interval;
use crate::subscribe::Verification;

/// One second of the run.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct SecondPoint {
    /// Seconds since the start of the window.
    pub second: usize,
    pub transfers: u64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    /// Calls that were refused or failed.
    pub errors: u64,
}

impl SecondPoint {
    pub(crate) fn new(second: usize, interval: &Interval) -> Self {
        Self {
            second,
            transfers: interval.succeeded(),
            p50_ms: interval.percentile_ms(50.0),
            p95_ms: interval.percentile_ms(95.0),
            p99_ms: interval.percentile_ms(99.0),
            errors: interval.refused.total()
                + interval.failed.total()
                + interval.disconnects.total(),
        }
    }
}

impl Display for SecondPoint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>4} s  {:>9} transfers/s  p50 {:>8.3} ms  p99 {:>8.3} ms",
            self.second,
            thousands(self.transfers),
            self.p50_ms,
            self.p99_ms
        )?;
        if self.errors > 0 {
            write!(f, "  errors {}", self.errors)?;
        }
        Ok(())
    }
}

/// What the server process used during the window.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct ServerUse {
    pub cpu_seconds: f64,
    pub cpu_us_per_transfer: f64,
    /// Bytes that the block device below the server's files wrote, the file system's own included.
    pub storage_bytes_per_transfer: Option<f64>,
    pub resident_bytes: u64,
}

/// The subscriptions of `--subscribe-each`.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Subscriptions {
    pub queries: u32,
    pub connections: usize,
    /// Time until all were applied.
    pub seconds: f64,
    pub updates: u64,
    pub update_rows: u64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was driven.
    pub target: String,
    /// Length of the window.
    pub seconds: f64,
    /// Everything measured in the window.
    pub total: Interval,
    pub series: Vec<SecondPoint>,
    pub client_cpu_seconds: f64,
    pub client_cpu_us_per_transfer: f64,
    pub server: Option<ServerUse>,
    pub subscriptions: Option<Subscriptions>,
    pub verification: Option<Verification>,
    /// With `--verify-strict`: what was acknowledged, and the outcome of the check. A caller
    /// that kills the server reads the balances after its restart and checks the ledger itself.
    pub ledger: Option<Ledger>,
    pub strict: Option<Result<(), String>>,
}

const PERCENTILES: [(&str, f64); 4] =
    [("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p99.9", 99.9)];

/// Writes a line of the table: a name, and a value as `format!` takes it.
macro_rules! row {
    ($f:expr, $name:expr, $($value:tt)+) => {
        writeln!($f, "{:<24} {}", $name, format_args!($($value)+))
    };
}

impl Report {
    /// Successful calls per second.
    pub fn transfers_per_second(&self) -> f64 {
        self.total.succeeded() as f64 / self.seconds
    }

    /// True if calls succeeded and nothing went wrong. Calls that the reducer refuses are not
    /// wrong: they are an answer.
    pub fn is_clean(&self) -> bool {
        self.total.succeeded() > 0
            && self.total.failed.total() == 0
            && self.total.disconnects.total() == 0
            && self.total.unanswered == 0
    }

    /// True unless a verification was asked for and failed.
    pub fn is_verified(&self) -> bool {
        let sum_ok = self.verification.as_ref().is_none_or(|sum| sum.ok);
        sum_ok && self.strict.as_ref().is_none_or(Result::is_ok)
    }

    /// All figures.
    pub fn to_json(&self) -> Value {
        let total = &self.total;
        let mut latency: BTreeMap<&str, f64> = PERCENTILES
            .into_iter()
            .map(|(name, percentile)| (name, total.percentile_ms(percentile)))
            .collect();
        latency.insert("max", total.max_ms());
        json!({
            "load_generator": "native",
            "target": self.target,
            "seconds": self.seconds,
            "transfers": total.succeeded(),
            "transfers_per_second": self.transfers_per_second(),
            "latency_ms": latency,
            "noops": total.noops,
            "retries": total.retries,
            "refused": total.refused.0,
            "failed": total.failed.0,
            "disconnects": total.disconnects.0,
            "unanswered": total.unanswered,
            "unfinished": total.unfinished,
            "unsent": total.unsent,
            "skipped": total.skipped,
            "client": {
                "cpu_seconds": self.client_cpu_seconds,
                "cpu_us_per_transfer": self.client_cpu_us_per_transfer,
            },
            "server": self.server,
            "subscriptions": self.subscriptions,
            "verification": self.verification,
            "strict": self.strict.as_ref().map(|outcome| match outcome {
                Ok(()) => "passed",
                Err(error) => error.as_str(),
            }),
            "series": self.series,
        })
    }

    /// Latencies in microseconds with the number of calls that had them, so that runs can be
    /// added up.
    pub fn histogram(&self) -> Vec<(u64, u64)> {
        let recorded = self.total.latency_us.0.iter_recorded();
        recorded
            .map(|value| (value.value_iterated_to(), value.count_at_value()))
            .collect()
    }

    fn write_problems(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let total = &self.total;
        let kinds = [
            ("refused", &total.refused),
            ("failed", &total.failed),
            ("disconnected", &total.disconnects),
        ];
        for (name, counts) in kinds {
            for (text, count) in &counts.0 {
                row!(f, name, "{} × {text}", thousands(*count))?;
            }
        }
        let counts = [
            ("without effect", total.noops),
            ("repeated attempts", total.retries),
            ("unanswered calls", total.unanswered),
            ("calls not sent in time", total.unsent),
            ("skipped pairs", total.skipped),
        ];
        for (name, count) in counts.iter().filter(|(_, count)| *count > 0) {
            row!(f, name, "{}", thousands(*count))?;
        }
        let is_without = kinds.iter().all(|(_, counts)| counts.0.is_empty());
        match is_without && counts.iter().all(|(_, count)| *count == 0) {
            true => row!(f, "errors", "none"),
            false => Ok(()),
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (total, seconds) = (&self.total, self.seconds);
        let per_second = thousands(self.transfers_per_second().round() as u64);
        let succeeded = thousands(total.succeeded());
        let per_second = format!("{per_second}  ({succeeded} in {seconds:.1} s)");
        row!(f, "transfers/s", "{per_second}")?;
        for (name, percentile) in PERCENTILES {
            let milliseconds = total.percentile_ms(percentile);
            row!(f, format!("latency {name}"), "{milliseconds:.3} ms")?;
        }
        row!(f, "latency max", "{:.3} ms", total.max_ms())?;
        self.write_problems(f)?;
        let cpu = |us_per_transfer: f64, cpu_seconds: f64| {
            let cores = cpu_seconds / seconds;
            format!("{us_per_transfer:.2} µs per transfer  ({cores:.2} cores)")
        };
        if let Some(server) = &self.server {
            let used = cpu(server.cpu_us_per_transfer, server.cpu_seconds);
            row!(f, "server CPU", "{used}")?;
            if let Some(bytes) = server.storage_bytes_per_transfer {
                row!(f, "disk writes", "{bytes:.0} bytes per transfer")?;
            }
            let mebibytes = server.resident_bytes as f64 / (1 << 20) as f64;
            row!(f, "server memory", "{mebibytes:.1} MiB")?;
        }
        let used = cpu(self.client_cpu_us_per_transfer, self.client_cpu_seconds);
        row!(f, "client CPU", "{used}")?;
        if let Some(subscribed) = &self.subscriptions {
            let (queries, connections) = (subscribed.queries.into(), subscribed.connections);
            row!(
                f,
                "subscriptions",
                "{} queries on {connections} connections, applied in {:.2} s",
                thousands(queries),
                subscribed.seconds
            )?;
            let rows = thousands(subscribed.update_rows);
            let updates = thousands(subscribed.updates);
            row!(f, "updates received", "{updates}  ({rows} rows)")?;
        }
        if let Some(found) = &self.verification {
            let outcome = if found.ok { "passed" } else { "FAILED" };
            row!(
                f,
                "verification",
                "{outcome}: {} accounts hold {}, expected {}; {} changed",
                found.accounts,
                found.total,
                found.expected,
                found.changed
            )?;
        }
        match &self.strict {
            None => Ok(()),
            Some(Ok(())) => row!(f, "strict check", "passed"),
            Some(Err(error)) => row!(f, "strict check", "FAILED: {error}"),
        }
    }
}

/// A number with commas between groups of three digits.
fn thousands(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", thousands(number / 1000), number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_digits() {
        let texts = [0, 12, 999, 1000, 1_234_567].map(thousands);
        assert_eq!(texts, ["0", "12", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn table_and_json() {
        let mut total = Interval::default();
        for _ in 0..2_000 {
            total.succeed(1_500_000);
        }
        total.refused.add("insufficient_funds", 3);
        let mut report = Report {
            target: "a test".into(),
            seconds: 2.0,
            total,
            series: vec![],
            client_cpu_seconds: 0.001,
            client_cpu_us_per_transfer: 0.5,
            server: Some(ServerUse {
                cpu_seconds: 0.004,
                cpu_us_per_transfer: 2.0,
                storage_bytes_per_transfer: Some(80.0),
                resident_bytes: 1 << 20,
            }),
            subscriptions: None,
            verification: None,
            ledger: None,
            strict: None,
        };
        let text = report.to_string();
        for line in [
            "transfers/s              1,000  (2,000 in 2.0 s)",
            "latency p99.9            1.500 ms",
            "refused                  3 × insufficient_funds",
            "server CPU               2.00 µs per transfer  (0.00 cores)",
            "client CPU               0.50 µs per transfer  (0.00 cores)",
        ] {
            assert!(text.contains(line), "{line} in:\n{text}");
        }
        assert!(report.is_clean(), "a refusal is an answer");
        let json = report.to_json();
        assert_eq!(json["transfers"], 2_000);
        assert_eq!(json["latency_ms"]["p50"], 1.5);
        assert_eq!(json["refused"]["insufficient_funds"], 3);
        report.total.unanswered = 1;
        assert!(!report.is_clean());
    }
}
