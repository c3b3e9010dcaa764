//! `spacetime changes` (07 §5.17).

use super::logs::each_line;
use super::{Common, Context};
use crate::error::{Error, Result};
use crate::http::encode;
use crate::output::write_result;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name or identity of the database
    database: Option<String>,
    /// Begin with this transaction, or behind the change with this id
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// Only these tables, with commas between them
    #[arg(long, value_name = "TABLES")]
    tables: Option<String>,
    /// End with the last change that there is now
    #[arg(long)]
    no_follow: bool,
    #[command(flatten)]
    common: Common,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let (client, identity, _) = args.common.reach(context, args.database).await?;
    let mut path = format!("/v1/database/{identity}/changes?follow={}", !args.no_follow);
    for (name, value) in [("from", args.from), ("tables", args.tables)] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", encode(&value)));
        }
    }
    let mut is_end = false;
    each_line(&client, &path, |line| {
        is_end |= line == "event: end";
        let Some(data) = line.strip_prefix("data: ") else {
            return Ok(true);
        };
        if is_end {
            return Err(ended(data));
        }
        // `spacetime changes | head` is not an error.
        Ok(write_result(format_args!("{data}\n")).is_ok())
    })
    .await
}

/// The server has ended the stream, and says why.
fn ended(data: &str) -> Error {
    let data = serde_json::from_str(data).unwrap_or(serde_json::Value::Null);
    let reason = data["reason"].as_str().unwrap_or("no reason was given");
    coded!("LC0868", "the server ended the changes: {reason}")
}
