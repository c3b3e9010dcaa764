//! How many rows a publish concerns, in words.

use serde_json::Value;

use crate::error::Result;
use crate::http::{self, encode, Client};
use crate::output::{result, Stream};

/// Lines of one list; a module may have thousands of tables.
const LINES_MAX: usize = 50;

/// The tables of a database and their rows. A server that does not say leaves it at the warning.
pub(super) async fn print_what_is_lost(client: &Client, name: &str, to: Stream) -> Result<()> {
    let path = format!("/v1/database/{}/tables", encode(name));
    let response = client.send(client.get(&path)).await?;
    if !response.status().is_success() {
        return Ok(());
    }
    let answer = http::parse_json(&http::json_text(response).await?)?;
    let lines = lines_of(&answer["tables"], |table| {
        let rows = table["rows"].as_u64().filter(|rows| *rows > 0)?;
        Some(format!("{}: {}", table["name"].as_str()?, counted(rows)))
    });
    let title = match lines.is_empty() {
        true => "Its tables have no rows.",
        false => "These rows will be lost:",
    };
    to.line(format_args!("{title}"));
    print_list(&lines, to);
    Ok(())
}

/// A line for each element of a list that there is something to say of.
fn lines_of(list: &Value, line: impl Fn(&Value) -> Option<String>) -> Vec<String> {
    let elements = list.as_array().into_iter().flatten();
    elements.filter_map(line).collect()
}

/// Which rows the steps of a plan read, rewrite or remove.
pub(super) fn print_touched(plan: &Value, to: Stream) {
    let lines = lines_of(&plan["steps"], touched);
    if !lines.is_empty() {
        to.line(format_args!("Rows:"));
        print_list(&lines, to);
        to.line(format_args!(""));
    }
}

fn touched(step: &Value) -> Option<String> {
    let (table, rows) = (step["table"].as_str()?, step["rows"].as_u64()?);
    let text = |key: &str| step[key].as_str().unwrap_or("?").to_owned();
    let columns = || lines_of(&step["columns"], |c| c.as_str().map(str::to_owned)).join(", ");
    let (by_rows, replaced) = (step["by_rows"].as_bool(), step["replaced"] == true);
    let what = match step["kind"].as_str()? {
        "RemoveTable" => "removed".to_owned(),
        "SetAsideTable" => match (by_rows, replaced) {
            (Some(true), true) => "migrated row by row, while the module runs".to_owned(),
            (Some(true), false) => {
                "removed, when its rows are migrated one by one, while the module runs".to_owned()
            }
            (Some(false), _) => "removed".to_owned(),
            (None, true) => {
                let old = text("old");
                format!("replaced by the migration function, which reads it as {old}")
            }
            (None, false) => {
                let old = text("old");
                format!("removed, after the migration function has read it as {old}")
            }
        },
        "AddColumns" => format!("rewritten with the default of {}", columns()),
        "AddIndex" => format!("read for index {}", text("index")),
        "AddConstraint" => format!("checked for unique constraint {}", text("constraint")),
        "AddSequence" => format!("checked for auto-increment {}", text("sequence")),
        _ => return None,
    };
    Some(format!("table {table} ({}): {what}", counted(rows)))
}

/// What trying the plan on a copy has shown.
pub(super) fn print_rehearsal(plan: &Value) {
    let rehearsal = &plan["rehearsal"];
    let Some(seconds) = rehearsal["seconds"].as_f64() else {
        result!("This server does not try plans on a copy. Nothing was changed.");
        return;
    };
    let slow = lines_of(&rehearsal["steps"], |step| {
        let seconds = step["seconds"].as_f64().filter(|s| *s >= 0.001)?;
        let what = [step["kind"].as_str()?, step["table"].as_str().unwrap_or("")].join(" ");
        Some(format!("{}: {}", what.trim_end(), duration(seconds)))
    });
    print_written(&rehearsal["steps"]);
    result!(
        "Estimated time: {} (what the steps took on a copy of the data, on the same server). Nothing was changed.",
        duration(seconds)
    );
    print_list(&slow, Stream::Result);
}

fn print_written(steps: &Value) {
    let mut steps = steps.as_array().into_iter().flatten();
    let is_function = |step: &&Value| step["kind"] == "RunMigration" || step["kind"] == "Backfill";
    let Some(function) = steps.find(is_function) else {
        return;
    };
    let what = match function["kind"] == "Backfill" {
        true => "The functions for rows",
        false => "The migration function",
    };
    let lines = lines_of(&function["written"], |table| {
        let (name, rows) = (table["table"].as_str()?, table["rows"].as_u64()?);
        Some(format!("table {name}: {}", counted(rows)))
    });
    match lines.is_empty() {
        true => result!("{what} wrote no rows."),
        false => result!("{what} wrote:"),
    }
    print_list(&lines, Stream::Result);
}

fn print_list(lines: &[String], to: Stream) {
    for line in lines.iter().take(LINES_MAX) {
        to.line(format_args!("    • {line}"));
    }
    if lines.len() > LINES_MAX {
        to.line(format_args!("    ... and {} more", lines.len() - LINES_MAX));
    }
}

fn counted(rows: u64) -> String {
    match rows {
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        short if short < 1.0 => format!("{:.0} ms", short * 1000.0),
        long => format!("{long:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steps_say_what_happens_to_rows() {
        for (step, line) in [
            (
                json!({"kind": "AddColumns", "table": "p", "columns": ["a", "b"], "rows": 12}),
                Some("table p (12 rows): rewritten with the default of a, b"),
            ),
            (
                json!({"kind": "RemoveTable", "table": "q", "rows": 0}),
                Some("table q (0 rows): removed"),
            ),
            (
                json!({"kind": "SetAsideTable", "table": "p", "old": "__old_p", "replaced": true, "rows": 2}),
                Some("table p (2 rows): replaced by the migration function, which reads it as __old_p"),
            ),
            (
                json!({"kind": "AddIndex", "table": "p", "index": "i", "rows": 1}),
                Some("table p (1 row): read for index i"),
            ),
            (
                json!({"kind": "AddIndex", "table": "p", "index": "i"}),
                None,
            ),
            (
                json!({"kind": "SetAsideTable", "table": "p", "old": "__old_p", "replaced": true, "by_rows": true, "rows": 2}),
                Some("table p (2 rows): migrated row by row, while the module runs"),
            ),
            (
                json!({"kind": "SetAsideTable", "table": "p", "old": "__old_p", "replaced": false, "by_rows": false, "rows": 2}),
                Some("table p (2 rows): removed"),
            ),
            (json!({"kind": "DisconnectAllUsers"}), None),
        ] {
            assert_eq!(touched(&step).as_deref(), line);
        }
    }

    #[test]
    fn times_are_rounded() {
        assert_eq!(
            [duration(0.0004), duration(0.25), duration(61.27)],
            ["0 ms", "250 ms", "61.3 s"]
        );
    }
}
