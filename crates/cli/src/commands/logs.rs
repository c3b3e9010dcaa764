//! `spacetime logs` (07 §5.3).

use clap::ValueEnum;
use lightcone_types::json::{parse, Node, NodeKind};
use lightcone_types::Timestamp;

use super::{Common, Context};
use crate::error::Result;
use crate::http::{self, Client};
use crate::output::{result, write_result, Format};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name or identity of the database
    database: Option<String>,
    /// How many lines to show, counted from the end
    #[arg(short, long, value_name = "N")]
    num_lines: Option<u32>,
    /// Wait for new lines and show them as they come
    #[arg(short, long)]
    follow: bool,
    /// How lines are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Show only this level and more severe ones
    #[arg(short, long, value_enum)]
    level: Option<Level>,
    /// Show only exactly this level
    #[arg(long, requires = "level")]
    level_exact: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Panic,
}

/// Lines shown when following without a number.
const FOLLOW_LINES: u32 = 10;

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let (client, identity, _) = args.common.reach(context, args.database).await?;

    let mut path = format!("/v1/database/{identity}/logs?follow={}", args.follow);
    if let Some(lines) = args.num_lines.or(args.follow.then_some(FOLLOW_LINES)) {
        path.push_str(&format!("&num_lines={lines}"));
    }
    let filter = Filter {
        level: args.level,
        exact: args.level_exact,
    };
    each_line(&client, &path, |line| {
        let record = Record::parse(line)?;
        if !filter.admits(record.level) {
            return Ok(true);
        }
        let written = match args.format {
            Format::Json => write_result(format_args!("{line}\n")),
            Format::Text => write_result(format_args!("{}", record.text())),
        };
        // `spacetime logs | head` is not an error.
        Ok(written.is_ok())
    })
    .await
}

/// Reads an answer until it ends, or until `take` wants no more of its lines, of which it gets none that is empty.
pub(super) async fn each_line(
    client: &Client,
    path: &str,
    take: impl FnMut(&str) -> Result<bool>,
) -> Result<()> {
    let response = client.send(client.get(path)).await?;
    if !response.status().is_success() {
        let status = response.status();
        return Err(http::refusal(status, &http::body_text(response).await?));
    }
    each_line_of(client, response, take).await
}

/// The same of an answer that has come.
pub(super) async fn each_line_of(
    client: &Client,
    mut response: reqwest::Response,
    mut take: impl FnMut(&str) -> Result<bool>,
) -> Result<()> {
    let mut take = |line: &[u8]| match String::from_utf8_lossy(line).trim_end() {
        "" => Ok(true),
        line => take(line),
    };
    let mut pending = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| client.unreachable(e))? {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            pending.extend_from_slice(part);
            if part.ends_with(b"\n") {
                if !take(&pending)? {
                    return Ok(());
                }
                pending.clear();
            }
        }
    }
    take(&pending).map(drop)
}

/// Prints the log of a database, `prefix` before every line, until the server ends the stream.
pub async fn follow(client: &Client, database: &str, lines: u32, prefix: &str) -> Result<()> {
    let identity = client.database_identity(database).await?;
    let path = format!("/v1/database/{identity}/logs?follow=true&num_lines={lines}");
    each_line(client, &path, |line| {
        for line in Record::parse(line)?.text().lines() {
            result!("{prefix}{line}");
        }
        Ok(true)
    })
    .await
}

struct Filter {
    level: Option<Level>,
    exact: bool,
}

impl Filter {
    fn admits(&self, level: Level) -> bool {
        match self.level {
            None => true,
            Some(wanted) if self.exact => level == wanted,
            Some(wanted) => level >= wanted,
        }
    }
}

/// One record of the log (06 §5.13).
#[derive(Debug, PartialEq)]
struct Record {
    level: Level,
    level_text: String,
    timestamp: Option<Timestamp>,
    function: Option<String>,
    filename: Option<String>,
    line_number: Option<u64>,
    message: String,
    trace: Vec<(String, String)>,
}

/// Stands for the host in records that no module code wrote.
const HOST: &str = "__spacetimedb__";

impl Record {
    fn parse(text: &str) -> Result<Self> {
        let bad = |why: &str| coded!("LC0616", "a log record {why}: {}", http::shown(text));
        let node = parse(text).map_err(|_| bad("is not JSON"))?;
        let member = |name: &str| node.get(name).and_then(Node::as_str).map(str::to_owned);
        let level_text = member("level").ok_or_else(|| bad("has no level"))?;
        let level = Level::from_str(&level_text, true).map_err(|_| bad("has an unknown level"))?;
        let timestamp = match node.get("ts").map(|n| &n.kind) {
            Some(NodeKind::Number(digits)) => digits.parse().ok().map(Timestamp),
            _ => None,
        };
        let frames = node.get("trace").and_then(Node::as_array);
        let part = |frame: &Node<'_>, name: &str| {
            let part = frame.get(name).and_then(Node::as_str);
            part.unwrap_or("<unknown>").to_owned()
        };
        let frames = frames.unwrap_or_default().iter();
        Ok(Self {
            level,
            level_text,
            timestamp,
            function: member("function").filter(|f| f != HOST),
            filename: member("filename").filter(|f| f != HOST),
            line_number: node.get("line_number").and_then(Node::as_u64),
            message: member("message").ok_or_else(|| bad("has no message"))?,
            trace: frames
                .map(|f| (part(f, "module_name"), part(f, "func_name")))
                .collect(),
        })
    }

    fn text(&self) -> String {
        let time = self.timestamp.map(|timestamp| timestamp.to_rfc3339() + " ");
        let place = self.filename.clone().map(|file| match self.line_number {
            Some(line) => format!("{file}:{line}"),
            None => file,
        });
        let level = self.level_text.to_uppercase();
        let whence: Vec<String> = self.function.clone().into_iter().chain(place).collect();
        let whence = match whence.join(" ") {
            nowhere if nowhere.is_empty() => nowhere,
            whence => whence + ": ",
        };
        let (time, message) = (time.unwrap_or_default(), &self.message);
        let mut out = format!("{time}{level:>5}: {whence}{message}\n");
        for (module, function) in &self.trace {
            out.push_str(&format!("    in {module} :: {function}\n"));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chapters_records() {
        let record = Record::parse(
            r#"{"level":"Info","ts":1795255266344510,"target":"v1rmod","filename":"src/lib.rs","line_number":10,"function":"init","message":"rust init"}"#,
        )
        .expect("a record");
        let text = record.text();
        assert!(text.starts_with("2026-11-21T"), "{text}");
        assert!(
            text.ends_with("  INFO: init src/lib.rs:10: rust init\n"),
            "{text}"
        );
        let record = Record::parse(
            r#"{"level":"Panic","ts":1,"filename":"m","line_number":9095,"function":"boom","message":"Uncaught","trace":[{"module_name":"m:1:2","func_name":"boom"}],"future":[]}"#,
        )
        .expect("a record");
        assert!(
            record
                .text()
                .ends_with(" PANIC: boom m:9095: Uncaught\n    in m:1:2 :: boom\n"),
            "{}",
            record.text()
        );
        let host = Record::parse(
            r#"{"level":"Info","target":"__spacetimedb__","filename":"__spacetimedb__","function":"__spacetimedb__","message":"x"}"#,
        );
        assert_eq!(host.expect("a record").text(), " INFO: x\n");
    }

    #[test]
    fn level_and_message_are_required() {
        for text in [
            "",
            "{}",
            r#"{"level":"Info"}"#,
            r#"{"message":"x"}"#,
            r#"{"level":"Loud","message":"x"}"#,
        ] {
            assert!(Record::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn levels_filter_upwards_or_exactly() {
        let filter = |level, exact| Filter { level, exact };
        assert!(filter(None, false).admits(Level::Trace));
        assert!(filter(Some(Level::Warn), false).admits(Level::Panic));
        assert!(!filter(Some(Level::Warn), false).admits(Level::Info));
        assert!(!filter(Some(Level::Warn), true).admits(Level::Error));
    }
}
