//! `spacetime migrate`: what the migration of a database does, and ending it (07 §5.21).

use std::time::Duration;

use clap::Subcommand;
use reqwest::StatusCode;
use serde_json::Value;

use super::publish::backfill::{path_of, progress_line};
use super::{Context, OneDatabase};
use crate::error::Result;
use crate::http;
use crate::output::result;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what the migration that runs is at, and how the last one ended
    Status {
        #[command(flatten)]
        of: OneDatabase,
        /// Print the server's answer as it is
        #[arg(long)]
        json: bool,
    },
    /// End the migration that runs; all is as before then
    Cancel {
        #[command(flatten)]
        of: OneDatabase,
    },
}

pub async fn run(context: &mut Context, command: Command) -> Result<()> {
    match command {
        Command::Status { of, json } => {
            let (client, name) = of.find(context).await?;
            let path = path_of(&name);
            let status = http::parse_json(&client.text(client.get(&path)).await?)?;
            if json {
                result!("{status}");
                return Ok(());
            }
            match running_line(&status["running"]) {
                Some(line) => result!("{name}: {line}"),
                None => result!("{name}: no migration runs."),
            }
            if let Some(line) = last_line(&status["last"]) {
                result!("{line}");
            }
        }
        Command::Cancel { of } => {
            let (client, name) = of.find(context).await?;
            let path = path_of(&name);
            let response = client.send(client.delete(&path)).await?;
            if response.status() == StatusCode::CONFLICT {
                let why = http::body_text(response).await?;
                bail!("LC0885", "nothing of `{name}` was cancelled: {why}");
            }
            http::success_text(response).await?;
            result!("The migration of {name} is cancelled: its database is as before in a moment, and its publisher is told so.");
        }
    }
    Ok(())
}

fn running_line(running: &Value) -> Option<String> {
    let rows = running["rows"].as_u64()?;
    let total = running["rows_replaced"].as_u64()?;
    let seconds = running["seconds"].as_f64().unwrap_or_default();
    let what = match running["phase"].as_str()? {
        "function" => format!(
            "the migration function runs: {rows} rows written so far, for {total} of the tables that it replaces"
        ),
        "backfill" => format!(
            "rows are migrated one by one, while the module runs: {}",
            progress_line(rows, total, 0, Duration::ZERO)
        ),
        "committing" => "the migration is at its end".to_owned(),
        _ => match running["table"].as_str() {
            Some(table) => format!("changing table {table}, {rows} rows of it so far"),
            None => "the migration begins".to_owned(),
        },
    };
    Some(format!("{what}, after {seconds:.1} s."))
}

fn last_line(last: &Value) -> Option<String> {
    let seconds = last["seconds"].as_f64()?;
    Some(match last["outcome"].as_str()? {
        "committed" => format!("The last one is in place, and took {seconds:.1} s."),
        "cancelled" => format!("The last one was cancelled after {seconds:.1} s."),
        _ => format!(
            "The last one failed after {seconds:.1} s: {}",
            last["reason"].as_str().unwrap_or("?")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_is_told_in_words() {
        let running = json!({
            "phase": "function", "table": null, "rows": 2048, "rows_replaced": 5000, "seconds": 1.25,
        });
        assert_eq!(
            running_line(&running).as_deref(),
            Some("the migration function runs: 2048 rows written so far, for 5000 of the tables that it replaces, after 1.2 s.")
        );
        let running = json!({
            "phase": "backfill", "table": "player", "rows": 250, "rows_replaced": 1000, "seconds": 3.0,
        });
        assert_eq!(
            running_line(&running).as_deref(),
            Some("rows are migrated one by one, while the module runs: 250 of 1000 rows (25 %), after 3.0 s.")
        );
        assert_eq!(running_line(&Value::Null), None);
        let last = json!({ "outcome": "failed", "reason": "no", "seconds": 2.0 });
        assert_eq!(
            last_line(&last).as_deref(),
            Some("The last one failed after 2.0 s: no")
        );
        assert_eq!(last_line(&Value::Null), None);
    }
}
