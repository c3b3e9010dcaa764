//! For how long a server's writers took nothing from their inboxes: `lightcone_writer_round_seconds` of its metrics.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use lightcone_loadgen::http;

use crate::Result;

const FAMILY: &str = "lightcone_writer_round_seconds_bucket{";

/// How many rounds so far were as short as each bound, in nanoseconds; `u64::MAX` has all.
pub struct Rounds(BTreeMap<u64, u64>);

impl Rounds {
    /// Of all databases of the server at `url`, which is on this machine.
    pub fn read(url: &str) -> Result<Rounds> {
        let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = authority.split('/').next().unwrap_or_default();
        let mut stream = TcpStream::connect(authority)?;
        let head =
            format!("GET /v1/metrics HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let (response, _) = http::parse(&answer)?.ok_or("the metrics are not all there")?;
        if !response.is_success() {
            return Err(response.shown().into());
        }
        let mut rounds = BTreeMap::new();
        for line in String::from_utf8_lossy(&response.body).lines() {
            if let Some((bound_ns, count)) = line.strip_prefix(FAMILY).and_then(bucket) {
                *rounds.entry(bound_ns).or_insert(0) += count;
            }
        }
        match rounds.is_empty() {
            true => Err(format!("the server has no metric {FAMILY}").into()),
            false => Ok(Rounds(rounds)),
        }
    }

    /// What came since `before`: how many there were, and within which bound all of them are.
    pub fn since(&self, before: &Rounds) -> String {
        let more = |bound: &u64, count: u64| count - before.0.get(bound).copied().unwrap_or(0);
        let all = self
            .0
            .get(&u64::MAX)
            .map_or(0, |count| more(&u64::MAX, *count));
        let mut bounds = self.0.iter();
        let within = bounds.find(|(bound, count)| more(bound, **count) == all);
        match within {
            Some((bound, _)) if *bound < u64::MAX => format!(
                "{all} rounds of the writer, each at most {:?}",
                std::time::Duration::from_nanos(*bound)
            ),
            _ => format!("{all} rounds of the writer, one longer than any bound"),
        }
    }
}

/// `db="…",le="0.001"} 17`.
fn bucket(rest: &str) -> Option<(u64, u64)> {
    let (labels, count) = rest.split_once("} ")?;
    let (_, bound) = labels.split_once("le=\"")?;
    let bound = match bound.trim_end_matches('"') {
        "+Inf" => u64::MAX,
        seconds => (seconds.parse::<f64>().ok()? * 1e9).round() as u64,
    };
    Some((bound, count.parse().ok()?))
}
