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
        let recorded = self.total.latency_us.iter_recorded();
        recorded
            .map(|value| (value.value_iterated_to(), value.count_at_value()))
            .collect()
    }

    fn write_problems(&self, table: &mut Table<'_, '_>) -> fmt::Result {
        let total = &self.total;
        let kinds = [
            ("refused", &total.refused),
            ("failed", &total.failed),
            ("disconnected", &total.disconnects),
        ];
        let mut any = false;
        for (name, counts) in kinds {
            for (text, count) in &counts.0 {
                table.row(name, format_args!("{} × {text}", thousands(*count)))?;
                any = true;
            }
        }
        for (name, count) in [
            ("without effect", total.noops),
            ("repeated attempts", total.retries),
            ("unanswered calls", total.unanswered),
            ("calls not sent in time", total.unsent),
            ("skipped pairs", total.skipped),
        ] {
            if count > 0 {
                table.row(name, format_args!("{}", thousands(count)))?;
                any = true;
            }
        }
        if !any {
            table.row("errors", format_args!("none"))?;
        }
        Ok(())
    }
}

/// Writes aligned lines of name and value.
struct Table<'a, 'f>(&'a mut Formatter<'f>);

impl Table<'_, '_> {
    fn row(&mut self, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
        writeln!(self.0, "{name:<24} {value}")
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = Table(f);
        let total = &self.total;
        table.row(
            "transfers/s",
            format_args!(
                "{}  ({} in {:.1} s)",
                thousands(self.transfers_per_second().round() as u64),
                thousands(total.succeeded()),
                self.seconds
            ),
        )?;
        for (name, percentile) in PERCENTILES {
            let name = format!("latency {name}");
            table.row(
                &name,
                format_args!("{:.3} ms", total.percentile_ms(percentile)),
            )?;
        }
        table.row("latency max", format_args!("{:.3} ms", total.max_ms()))?;
        self.write_problems(&mut table)?;
        if let Some(server) = &self.server {
            table.row(
                "server CPU",
                format_args!(
                    "{:.2} µs per transfer  ({:.2} cores)",
                    server.cpu_us_per_transfer,
                    server.cpu_seconds / self.seconds
                ),
            )?;
            if let Some(bytes) = server.storage_bytes_per_transfer {
                table.row("disk writes", format_args!("{bytes:.0} bytes per transfer"))?;
            }
            let mebibytes = server.resident_bytes as f64 / (1 << 20) as f64;
            table.row("server memory", format_args!("{mebibytes:.1} MiB"))?;
        }
        table.row(
            "client CPU",
            format_args!(
                "{:.2} µs per transfer  ({:.2} cores)",
                self.client_cpu_us_per_transfer,
                self.client_cpu_seconds / self.seconds
            ),
        )?;
        if let Some(subscriptions) = &self.subscriptions {
            table.row(
                "subscriptions",
                format_args!(
                    "{} queries on {} connections, applied in {:.2} s",
                    thousands(u64::from(subscriptions.queries)),
                    subscriptions.connections,
                    subscriptions.seconds
                ),
            )?;
            table.row(
                "updates received",
                format_args!(
                    "{}  ({} rows)",
                    thousands(subscriptions.updates),
                    thousands(subscriptions.update_rows)
                ),
            )?;
        }
        if let Some(verification) = &self.verification {
            table.row(
                "verification",
                format_args!(
                    "{}: {} accounts hold {}, expected {}; {} changed",
                    if verification.ok { "passed" } else { "FAILED" },
                    verification.accounts,
                    verification.total,
                    verification.expected,
                    verification.changed
                ),
            )?;
        }
        if let Some(outcome) = &self.strict {
            match outcome {
                Ok(()) => table.row("strict check", format_args!("passed"))?,
                Err(error) => table.row("strict check", format_args!("FAILED: {error}"))?,
            }
        }
        Ok(())
    }
}

/// A number with commas between groups of three digits.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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
