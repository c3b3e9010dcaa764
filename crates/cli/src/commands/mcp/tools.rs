//! The tools that an assistant is offered.

use reqwest::header::CONTENT_TYPE;
use reqwest::RequestBuilder;
use serde_json::{json, Value};

use crate::commands::list;
use crate::http::{self, encode, Client};

/// More of an answer would fill an assistant's memory to no use.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Lines of a log that are shown if the request does not say how many.
const LOG_LINES: u64 = 50;

/// What a tool says: a text, or why it failed.
type Said = std::result::Result<String, String>;

pub(super) struct Tools {
    pub client: Client,
    /// The database that all tools are about, if it is one.
    pub database: Option<String>,
    pub allow_writes: bool,
}

impl Tools {
    /// The descriptions, in the order of the chapter; `logs` is ours.
    pub fn list(&self) -> Vec<Value> {
        let text = |what: &str| json!({ "type": "string", "description": what });
        let sql = match self.allow_writes {
            true => "Run an SQL statement; SELECT, INSERT, UPDATE and DELETE",
            false => "Run an SQL query: a SELECT",
        };
        let tools = [
            (
                "list_databases",
                "List databases",
                "The databases of the login, with their names",
                json!({}),
            ),
            (
                "ping",
                "Ping",
                "Is the server there?",
                json!({ "message": text("comes back") }),
            ),
            (
                "get_schema",
                "Schema",
                "Tables, types, reducers and other functions of the database's module",
                json!({}),
            ),
            ("sql", "SQL", sql, json!({ "sql": text("one statement") })),
            (
                "call",
                "Call a reducer",
                "Run a reducer, a transaction of the module",
                json!({
                    "reducer": text("its name"),
                    "args": { "type": "array", "description": "its arguments" },
                }),
            ),
            (
                "logs",
                "Logs",
                "The last lines of the module's log, as JSON",
                json!({
                    "num_lines": { "type": "integer", "description": "how many lines, counted from the end" },
                }),
            ),
        ];
        let is_offered = |name: &str| match name {
            "list_databases" => self.database.is_none(),
            "call" => self.allow_writes,
            _ => true,
        };
        let tools = tools.into_iter().filter(|(name, ..)| is_offered(name));
        let described = tools.map(|(name, title, description, mut properties)| {
            let mut required = Vec::new();
            if self.database.is_none() && !matches!(name, "ping" | "list_databases") {
                properties["database"] = text("name or identity");
                required.push("database");
            }
            match name {
                "sql" => required.push("sql"),
                "call" => required.push("reducer"),
                _ => {}
            }
            let writes = name == "call" || (name == "sql" && self.allow_writes);
            json!({
                "name": name,
                "description": description,
                "inputSchema": { "type": "object", "properties": properties, "required": required },
                "annotations": { "title": title, "readOnlyHint": !writes, "destructiveHint": writes, "openWorldHint": false },
            })
        });
        described.collect()
    }

    /// Runs a tool. The outer error is one of the request, the inner one is the tool's.
    pub async fn call(&self, name: &str, arguments: &Value) -> Result<Said, String> {
        let text = |key: &str| match arguments.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(format!("{key} argument must be a string")),
        };
        let required =
            |key: &str| text(key)?.ok_or_else(|| format!("{key} argument must be a string"));
        match name {
            "ping" => Ok(self.ping(text("message")?).await),
            "list_databases" if self.database.is_none() => Ok(self.list_databases().await),
            "get_schema" => {
                let path = format!("{}/schema?version=9", self.database_path(arguments)?);
                Ok(self.answer(self.client.get(&path)).await)
            }
            "sql" => {
                let sql = required("sql")?;
                if !self.allow_writes && !only_reads(sql) {
                    let why = "only one SELECT is allowed here; `spacetime mcp --allow-writes` allows statements that write";
                    return Ok(Err(why.to_owned()));
                }
                // Not by the plain route, which shows them to who may publish.
                if sql.to_ascii_lowercase().contains("st_env") {
                    let why = "variables of the environment (`st_env`) are not shown to assistants; `spacetime env list` shows them";
                    return Ok(Err(why.to_owned()));
                }
                let path = format!("{}/sql", self.database_path(arguments)?);
                let request = self.client.post(&path).body(sql.to_owned());
                Ok(self.answer(request).await)
            }
            "logs" => {
                let lines = arguments["num_lines"].as_u64().unwrap_or(LOG_LINES);
                let path = self.database_path(arguments)?;
                let path = format!("{path}/logs?num_lines={lines}&follow=false");
                Ok(self.answer(self.client.get(&path)).await)
            }
            "call" if self.allow_writes => {
                let reducer = required("reducer")?;
                let args = match arguments.get("args") {
                    None | Some(Value::Null) => "[]".to_owned(),
                    Some(Value::Array(args)) => Value::from(args.clone()).to_string(),
                    Some(_) => return Err("args must be a JSON array".into()),
                };
                let path = self.database_path(arguments)?;
                let path = format!("{path}/call/{}", encode(reducer));
                let request = self.client.post(&path).body(args);
                let request = request.header(CONTENT_TYPE, "application/json");
                let answer = self.answer(request).await;
                let answer = answer.map(|_| format!("reducer '{reducer}' committed"));
                Ok(answer.map_err(|why| format!("reducer '{reducer}' failed: {why}")))
            }
            "call" => Ok(Err(
                "calls are not allowed here; `spacetime mcp --allow-writes` allows them".into(),
            )),
            other => Err(format!("unknown tool: {}", http::shown(other))),
        }
    }

    fn database_path(&self, arguments: &Value) -> Result<String, String> {
        let named = arguments.get("database").and_then(Value::as_str);
        let database = self.database.as_deref().or(named);
        let database = database.ok_or("database argument must be a string")?;
        Ok(format!("/v1/database/{}", encode(database)))
    }

    async fn ping(&self, message: Option<&str>) -> Said {
        self.answer(self.client.get("/v1/ping")).await?;
        Ok(match message {
            Some(message) => format!("pong: {message}"),
            None => "pong".to_owned(),
        })
    }

    async fn list_databases(&self) -> Said {
        if self.client.token().is_none() {
            return Err("there is no login for this server; `spacetime login` makes one".into());
        }
        let databases = list::databases(&self.client, usize::MAX).await;
        Ok(json!({ "databases": databases.map_err(|e| e.text())? }).to_string())
    }

    /// An answer's body; a bit more than what is shown of it, if it is longer.
    async fn answer(&self, request: RequestBuilder) -> Said {
        let mut response = self.client.send(request).await.map_err(|e| e.text())?;
        let status = response.status();
        let mut body = Vec::new();
        while body.len() <= TEXT_BYTES_MAX {
            match response.chunk().await {
                Ok(Some(part)) => body.extend_from_slice(&part),
                Ok(None) => break,
                Err(e) => return Err(self.client.unreachable(e).text()),
            }
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        match status.is_success() {
            true => Ok(text),
            false if text.is_empty() => {
                Err(format!("request failed with HTTP {}", status.as_u16()))
            }
            false => Err(text),
        }
    }
}

/// The beginning of a text, and a note if that is not all: half a value is no mistake of the database's.
pub(super) fn cut(mut text: String) -> (String, Option<String>) {
    if text.len() <= TEXT_BYTES_MAX {
        return (text, None);
    }
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    let note = format!(
        "The text above is not all: it was cut after {} bytes. Ask for less, with WHERE or LIMIT.",
        text.len()
    );
    (text, Some(note))
}

/// True for one statement that begins with SELECT. What cannot be told is taken for one that writes.
fn only_reads(sql: &str) -> bool {
    let sql = sql.trim();
    let one = sql.strip_suffix(';').unwrap_or(sql);
    let word = one.split(|c: char| !c.is_ascii_alphabetic()).next();
    let is_select = word.is_some_and(|word| word.eq_ignore_ascii_case("select"));
    is_select && !one.contains(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_select_reads() {
        for sql in ["SELECT 1", " select * from t;", "Select(1)"] {
            assert!(only_reads(sql), "{sql}");
        }
        for sql in [
            "",
            ";",
            "DELETE FROM t",
            "SELECT 1; DELETE FROM t",
            "SELECT ';' FROM t",
            "-- SELECT\nDELETE FROM t",
            "/**/ SELECT 1",
            "SELECTION",
            "SET row_limit TO 1",
            "EXPLAIN DELETE FROM t",
        ] {
            assert!(!only_reads(sql), "{sql}");
        }
    }

    #[test]
    fn answers_are_cut_between_characters() {
        let (text, note) = cut("é".repeat(TEXT_BYTES_MAX));
        assert_eq!(text.len(), TEXT_BYTES_MAX);
        assert!(note.is_some_and(|note| note.contains("cut after 65536 bytes")));
        let (text, note) = cut(format!("x{}", "é".repeat(TEXT_BYTES_MAX)));
        assert_eq!(text.len(), TEXT_BYTES_MAX - 1);
        assert!(note.is_some());
        assert_eq!(cut("x".repeat(TEXT_BYTES_MAX)).1, None);
    }
}
