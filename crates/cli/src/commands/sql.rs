//! `spacetime sql` (07 §5.5).

use std::io::{BufRead, IsTerminal, Write};
use std::time::Instant;

use lightcone_types::json::{parse, product_type_from_node, value_from_node, JsonError, Node};
use lightcone_types::text::format_value;
use lightcone_types::{Identity, Typespace};

use super::{Auth, Common, Context};
use crate::error::{Error, Result};
use crate::http::Client;
use crate::output::{remark, remark_text, result, result_text, Format};
use crate::table;
use crate::targets::After;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "spacetime sql [OPTIONS] [DATABASE] <QUERY>\n       spacetime sql --interactive [OPTIONS] [DATABASE]"
)]
pub struct Args {
    /// The database (may be left out in a project with one) and the query
    #[arg(value_name = "ARGS")]
    args: Vec<String>,
    /// Read queries from the terminal
    #[arg(long)]
    interactive: bool,
    /// Wait until what the query sees is on disk
    #[arg(long, value_name = "BOOL")]
    confirmed: Option<bool>,
    /// Send no credentials
    #[arg(long)]
    anonymous: bool,
    /// How results are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    common: Common,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let after = match args.interactive {
        true => After::None,
        false => After::RequiredOfAny("QUERY"),
    };
    let (database, words) = args.common.resolve(&args.args, after)?;
    let auth = Auth::new(args.anonymous, args.common.yes);
    let (client, identity) = context.reach(&database, auth).await?;
    let session = Session::new((client, identity), args.confirmed);
    if args.interactive {
        let history = context.paths.home.join(".stdb.history.txt");
        return interactive(&session, &database.name, &history).await;
    }
    let answer = session.query(&words.join(" ")).await;
    let text = answer.map_err(|error| database.explain(error))?;
    match args.format {
        Format::Json => result!("{text}"),
        Format::Text => {
            for statement in parse_results(&text)? {
                result_text!("{}", statement.table());
            }
        }
    }
    Ok(())
}

pub(super) struct Session {
    client: Client,
    identity: Identity,
    confirmed: Option<bool>,
}

impl Session {
    pub(super) fn new((client, identity): (Client, Identity), confirmed: Option<bool>) -> Session {
        Session {
            client,
            identity,
            confirmed,
        }
    }

    pub(super) async fn query(&self, sql: &str) -> Result<String> {
        let confirmed = self.confirmed.map(|value| format!("?confirmed={value}"));
        let confirmed = confirmed.unwrap_or_default();
        let path = format!("/v1/database/{}/sql{confirmed}", self.identity.to_hex());
        let request = self.client.post(&path).body(sql.to_owned());
        self.client.json(request).await
    }
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Statement {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The only value, if it is a text.
    text: Option<String>,
    inserted: u64,
    deleted: u64,
    updated: u64,
    server_micros: u64,
}

impl Statement {
    /// The value of a result that is one text.
    pub(super) fn only_text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    pub(super) fn table(&self) -> String {
        table::psql(&self.header, &self.rows)
    }

    /// Puts what `other` gives in the place of cells.
    pub(super) fn replace_cells(&mut self, other: impl Fn(&str) -> Option<String>) {
        for cell in self.rows.iter_mut().flatten() {
            if let Some(other) = other(cell) {
                *cell = other;
            }
        }
    }

    fn summary(&self) -> String {
        let milliseconds = self.server_micros as f64 / 1000.0;
        let counts = [
            ("inserted", self.inserted),
            ("deleted", self.deleted),
            ("updated", self.updated),
        ];
        let counts = counts.iter().filter(|(_, count)| *count > 0);
        let counts = counts.map(|(name, count)| format!("{name}: {count}, "));
        let counts: String = counts.collect();
        let rows = if self.rows.len() == 1 { "row" } else { "rows" };
        let count = self.rows.len();
        format!("({count} {rows}) [{counts}server: {milliseconds:.2}ms]")
    }
}

/// Reads the server's answer (06 §5.14) and renders every cell.
pub(super) fn parse_results(text: &str) -> Result<Vec<Statement>> {
    const BAD: &str = "the server's SQL result is not one this program can read";
    let bad = |e: JsonError| Error::caused("LC0616", BAD, e);
    let root = parse(text).map_err(bad)?;
    let not_results = || bad(JsonError::at(&root, "expected an array of results"));
    let statements = root.as_array().ok_or_else(not_results)?.iter();
    statements.map(|s| parse_result(s).map_err(bad)).collect()
}

fn parse_result(node: &Node<'_>) -> Result<Statement, JsonError> {
    let schema = node.get("schema");
    let schema = schema.ok_or_else(|| JsonError::at(node, "missing field `schema`"))?;
    let schema = product_type_from_node(schema)?;
    let typespace = Typespace::default();
    let columns = schema.elements.iter().enumerate();
    let header = columns.map(|(index, column)| match column.name() {
        Some(name) => name.to_owned(),
        None => format!("column {index}"),
    });
    let header = header.collect();
    let mut rows = Vec::new();
    let found = node.get("rows").and_then(Node::as_array);
    let only = match found {
        Some([row]) => row.as_array(),
        _ => None,
    };
    let text = match only {
        Some([cell]) => cell.as_str().map(str::to_owned),
        _ => None,
    };
    for row in found.unwrap_or_default() {
        let cells = row.as_array();
        let cells = cells.ok_or_else(|| JsonError::at(row, "expected an array of columns"))?;
        let cells = schema.elements.iter().zip(cells).map(|(element, cell)| {
            let value = value_from_node(&typespace, &element.algebraic_type, cell)?;
            Ok(format_value(&typespace, &element.algebraic_type, &value))
        });
        rows.push(cells.collect::<Result<_, JsonError>>()?);
    }
    let number = |node: Option<&Node<'_>>| node.and_then(Node::as_u64).unwrap_or(0);
    let stats = node.get("stats");
    let count = |name: &str| number(stats.and_then(|s| s.get(name)));
    Ok(Statement {
        header,
        rows,
        text,
        inserted: count("rows_inserted"),
        deleted: count("rows_deleted"),
        updated: count("rows_updated"),
        server_micros: number(node.get("total_duration_micros")),
    })
}

/// Reads and runs queries until `.exit` or the end of input.
async fn interactive(session: &Session, database: &str, history: &std::path::Path) -> Result<()> {
    let is_terminal = std::io::stdin().is_terminal();
    // Without a history the session is as good.
    let mut options = std::fs::OpenOptions::new();
    let mut history = options.create(true).append(true).open(history).ok();
    loop {
        let space = if is_terminal { " " } else { "" };
        remark_text!("🪐{database}>{space}");
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        if read.map_err(caused!("LC0619", "cannot read from the terminal"))? == 0 {
            remark!("");
            return Ok(());
        }
        let sql = match line.trim() {
            "" => continue,
            ".exit" => return Ok(()),
            ".clear" => {
                remark_text!("\x1b[2J\x1b[H");
                continue;
            }
            sql => sql,
        };
        if let Some(history) = &mut history {
            let _ = writeln!(history, "{sql}");
        }
        let start = Instant::now();
        let answer = session.query(sql).await;
        match answer.and_then(|text| parse_results(&text)) {
            Ok(statements) => {
                for statement in statements {
                    result_text!("{}", statement.table());
                    result!("{}", statement.summary());
                }
                let milliseconds = start.elapsed().as_secs_f64() * 1000.0;
                remark!("Roundtrip time: {milliseconds:.2}ms");
            }
            Err(error) => remark_text!("{}", error.report()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_tables() {
        let text = r#"[{"schema":{"elements":[{"name":{"some":"id"},"algebraic_type":{"U32":[]}},{"name":{"some":"who"},"algebraic_type":
            {"Product":{"elements":[{"name":{"some":"__identity__"},"algebraic_type":{"U256":[]}}]}}},
            {"name":{"some":"n"},"algebraic_type":{"String":[]}}]},
            "rows":[[1,["0xc2"],"a"]],"total_duration_micros":1500,"stats":{"rows_inserted":0,"rows_deleted":2,"rows_updated":0}}]"#;
        let statements = parse_results(text).expect("an answer");
        let table = statements[0].table();
        assert!(table.starts_with(" id | who "), "{table}");
        assert!(table.contains("00c2 | \"a\" \n"), "{table}");
        assert_eq!(
            statements[0].summary(),
            "(1 row) [deleted: 2, server: 1.50ms]"
        );
    }

    #[test]
    fn changes_print_an_empty_table() {
        let text = r#"[{"schema":{"elements":[]},"rows":[],"total_duration_micros":228,"stats":{"rows_inserted":0,"rows_deleted":0,"rows_updated":0}}]"#;
        let statements = parse_results(text).expect("an answer");
        assert_eq!(statements[0].table().trim(), "");
        assert_eq!(statements[0].summary(), "(0 rows) [server: 0.23ms]");
    }

    #[test]
    fn answers_that_make_no_sense_are_refused() {
        for text in [
            "",
            "{}",
            "[{}]",
            r#"[{"schema":{"elements":[]},"rows":[1]}]"#,
        ] {
            let error = parse_results(text).expect_err(text).to_string();
            assert!(error.contains("[LC0616]"), "{error}");
        }
    }
}
