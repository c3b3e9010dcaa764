//! What a publish says while rows are migrated one by one: it waits for the end, which may take hours.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use reqwest::{RequestBuilder, Response};
use serde_json::Value;

use crate::error::Result;
use crate::http::{self, encode, Client};
use crate::output::remark;

/// How often the server is asked: at first, and the longest pause.
const INTERVAL: Duration = Duration::from_secs(1);
const INTERVAL_MAX: Duration = Duration::from_secs(15);

/// Sends the request of a publish, and tells how far a backfill is until it is answered.
pub(super) async fn send_and_tell(
    client: &Client,
    name: Option<&str>,
    request: RequestBuilder,
) -> Result<Response> {
    let Some(name) = name else {
        return client.send(request).await;
    };
    let mut teller = Teller::default();
    let answer = tokio::select! {
        biased;
        answer = client.send(request) => answer,
        never = teller.tell(client, name) => match never {},
    };
    if answer.is_err() && teller.first.is_some() {
        remark!("The migration does not need this command: `spacetime migrate status {name}` says how far it is, publishing the same module again waits for its end, and `spacetime migrate cancel {name}` ends it.");
    }
    answer
}

#[derive(Default)]
struct Teller {
    /// When it was first seen, and how many rows were done then.
    first: Option<(Instant, u64)>,
}

impl Teller {
    async fn tell(&mut self, client: &Client, name: &str) -> Infallible {
        let path = path_of(name);
        let mut interval = INTERVAL;
        loop {
            tokio::time::sleep(interval).await;
            if let Some(status) = ask(client, &path).await {
                interval = (interval * 3 / 2).min(INTERVAL_MAX);
                self.note(name, &status["running"]);
            }
        }
    }

    fn note(&mut self, name: &str, running: &Value) {
        if running["phase"] != "backfill" {
            return;
        }
        let (done, rows) = (running["rows"].as_u64(), running["rows_replaced"].as_u64());
        let Some((done, rows)) = done.zip(rows) else {
            return;
        };
        let now = Instant::now();
        let Some((since, before)) = self.first else {
            self.first = Some((now, done));
            remark!("Migrating {rows} rows one by one, while the module of {name} runs. This goes on if you end this command (Ctrl-C).");
            return;
        };
        let line = progress_line(done, rows, done.saturating_sub(before), now - since);
        remark!("    {line}");
    }
}

/// Where a server says how far a migration is.
pub(in crate::commands) fn path_of(name: &str) -> String {
    format!("/v1/database/{}/migration", encode(name))
}

/// None: it does not say, for whatever reason. The answer of the publish tells more.
async fn ask(client: &Client, path: &str) -> Option<Value> {
    let response = client.get(path).send().await.ok()?;
    let text = http::success_text(response).await.ok()?;
    http::parse_json(&text).ok()
}

/// How far it is, and about how long it takes, as fast as it was.
pub(in crate::commands) fn progress_line(
    done: u64,
    rows: u64,
    lately: u64,
    took: Duration,
) -> String {
    let percent = done as f64 / rows.max(1) as f64 * 100.0;
    let mut line = format!("{done} of {rows} rows ({percent:.0} %)");
    if lately > 0 && done < rows {
        let left = took.as_secs_f64() / lately as f64 * (rows - done) as f64;
        line.push_str(&format!(", about {} left", duration(left)));
    }
    line
}

fn duration(seconds: f64) -> String {
    match seconds {
        short if short < 90.0 => format!("{short:.0} s"),
        long if long < 90.0 * 60.0 => format!("{:.0} min", long / 60.0),
        hours => format!("{:.1} h", hours / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_long_it_takes() {
        let took = Duration::from_secs(10);
        assert_eq!(
            progress_line(500, 1000, 100, took),
            "500 of 1000 rows (50 %), about 50 s left"
        );
        assert_eq!(progress_line(0, 1000, 0, took), "0 of 1000 rows (0 %)");
        assert_eq!(
            progress_line(10_000, 10_010_000, 1000, took),
            "10000 of 10010000 rows (0 %), about 27.8 h left"
        );
        assert_eq!(progress_line(0, 0, 0, took), "0 of 0 rows (0 %)");
    }
}
