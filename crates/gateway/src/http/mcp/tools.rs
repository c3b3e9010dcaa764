//! The tools, each of them a plain route.

use std::sync::Arc;

use axum::body::HttpBody as _;
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use lightcone_control::{ControlDb, ControlError, DatabaseRecord, NameOrIdentity};
use lightcone_database::{CallError, Holder};
use lightcone_node::auth::Caller;
use lightcone_node::NotFound;
use lightcone_schema::RawVersion;
use serde_json::{json, Map, Value};

use super::message::ToolCall;
use crate::gateway::Gateway;
use crate::http::sql::Statement;
use crate::http::{call, database, delivery, sql};
use crate::reply::Failure;

/// So much of an answer is passed on: more would fill an assistant's memory.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// What a tool says.
pub(super) struct Said {
    pub text: String,
    /// What is said of a text that was cut.
    pub note: Option<String>,
    pub is_error: bool,
    /// Whom the plain answer was held for.
    pub holder: Option<Holder>,
}

impl Said {
    fn good(text: impl Into<String>) -> Said {
        let text = text.into();
        let bytes = text.len() as u64;
        let (text, note) = cut(text, Some(bytes));
        Said {
            text,
            note,
            is_error: false,
            holder: None,
        }
    }

    fn bad(text: impl Into<String>) -> Said {
        Said {
            is_error: true,
            ..Said::good(text)
        }
    }

    /// The beginning of what a plain route has answered.
    async fn of(response: Response) -> Said {
        let status = response.status();
        let holder = delivery::holder(&response);
        let mut body = response.into_body();
        let total_bytes = body.size_hint().exact();
        let mut bytes = Vec::new();
        // Bodies of routes are in memory, so there is no wait.
        while bytes.len() <= TEXT_BYTES_MAX {
            let Some(Ok(frame)) = body.frame().await else {
                break;
            };
            if let Some(data) = frame.data_ref() {
                let room = TEXT_BYTES_MAX + 1 - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(room)]);
            }
        }
        // It may be cut in the middle of a character.
        let valid = bytes.utf8_chunks().next().map(|chunk| chunk.valid());
        let mut text = valid.unwrap_or_default().to_owned();
        if text.is_empty() && !status.is_success() {
            text = format!("request failed with HTTP {}", status.as_u16());
        }
        let (text, note) = cut(text, total_bytes);
        Said {
            text,
            note,
            is_error: !status.is_success(),
            holder,
        }
    }
}

/// The beginning of a text, and a note if that is not all: half a value is no mistake of the database's.
fn cut(mut text: String, total_bytes: Option<u64>) -> (String, Option<String>) {
    if text.len() <= TEXT_BYTES_MAX && total_bytes.is_none_or(|total| total <= text.len() as u64) {
        return (text, None);
    }
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    let of_all = total_bytes.map_or(String::new(), |total| format!(" of {total}"));
    let note = format!(
        "The text above is not all: it was cut after {}{of_all} bytes. Ask for less, with WHERE or LIMIT.",
        text.len()
    );
    (text, Some(note))
}

/// The tools as one caller has them.
pub(super) struct Tools {
    pub state: Arc<Gateway>,
    pub caller: Caller,
    /// What all of them are about, if it is one database.
    pub database: Option<NameOrIdentity>,
    /// What a caller that wants to change something is told; None: it may.
    pub write_refusal: Option<&'static str>,
}

impl Tools {
    /// Their descriptions, in the order of the chapter.
    pub fn list(&self) -> Vec<Value> {
        let text = |what: &str| json!({ "description": what, "type": "string" });
        let named = || ("database", text("Name or identity of the database"));
        let database = self.database.is_none().then(named);
        let mut tools = Vec::new();
        if self.database.is_none() {
            let about = "The databases that belong to the caller, with their names";
            let texts = ("List databases", about);
            tools.push(described("list_databases", texts, [], &[], false));
        }
        tools.push(described(
            "ping",
            ("Ping", "Says whether the server is there"),
            [("message", text("Comes back in the answer"))],
            &[],
            false,
        ));
        tools.push(described(
            "get_schema",
            ("Get schema", "Tables, types, reducers and other functions of a database, as the definition of its module"),
            database.clone(),
            &[],
            false,
        ));
        let (sql, call) = match self.write_refusal {
            None => (
                "Runs one SQL statement: SELECT, INSERT, UPDATE or DELETE",
                "Calls a reducer, a transaction of the module",
            ),
            Some(_) => (
                "Runs one SQL query: a SELECT, before and after which the module may do what it does for a client that connects and disconnects. \
                 Statements that change something are refused here",
                "Calls a reducer, a transaction of the module. Is refused here, with a text that says who can allow it",
            ),
        };
        let confirmed = json!({ "description": "Wait until what the result was computed from is on disk; true if left out", "type": "boolean" });
        let own = [("confirmed", confirmed), ("sql", text("One statement"))];
        tools.push(described(
            "sql",
            ("Run SQL", sql),
            own.into_iter().chain(database.clone()),
            &["sql"],
            self.write_refusal.is_none(),
        ));
        let args =
            json!({ "description": "Its arguments, in order", "items": {}, "type": "array" });
        let own = [("args", args), ("reducer", text("Its name"))];
        tools.push(described(
            "call",
            ("Call a reducer", call),
            own.into_iter().chain(database),
            &["reducer"],
            true,
        ));
        tools
    }

    /// Runs a tool.
    pub async fn call(&self, call: ToolCall) -> Said {
        match self.run(call).await {
            Ok(said) => said,
            Err(failure) => Said::of(failure.into_response()).await,
        }
    }

    async fn run(&self, call: ToolCall) -> Result<Said, Failure> {
        match call {
            ToolCall::Ping { message: None } => Ok(Said::good("pong")),
            ToolCall::Ping {
                message: Some(message),
            } => Ok(Said::good(format!("pong: {message}"))),
            ToolCall::ListDatabases => self.list_databases().await,
            ToolCall::GetSchema { database } => {
                let record = self.record(database)?;
                let answer = database::definition(&self.state, &record, RawVersion::V9).await?;
                Ok(Said::of(answer).await)
            }
            ToolCall::Sql {
                database,
                sql: text,
                confirmed,
            } => {
                let record = self.record(database)?;
                let statement = Statement {
                    text,
                    confirmed,
                    of_assistant: true,
                    write_refusal: self.write_refusal,
                };
                let answer = sql::run(&self.state, &record, &self.caller, statement).await?;
                Ok(Said::of(answer).await)
            }
            ToolCall::Call {
                database,
                reducer,
                args,
            } => self.call_reducer(database, reducer, args).await,
        }
    }

    fn record(&self, named: Option<NameOrIdentity>) -> Result<DatabaseRecord, NotFound> {
        let path = self.database.as_ref().or(named.as_ref());
        self.state.node.record(path.ok_or(NotFound::Database)?)
    }

    async fn list_databases(&self) -> Result<Said, Failure> {
        let caller = self.caller.identity;
        let listed = move |control: &ControlDb| -> Result<String, ControlError> {
            let mut text = "{\"databases\":[".to_owned();
            for (index, identity) in control.databases_of(&caller).0.into_iter().enumerate() {
                // What follows would be cut off, and a note says so.
                if text.len() > TEXT_BYTES_MAX {
                    break;
                }
                let names = control.names_of(&identity);
                let entry = json!({ "identity": identity.to_hex(), "names": names });
                text.push_str(if index > 0 { "," } else { "" });
                text.push_str(&entry.to_string());
            }
            text.push_str("]}");
            Ok(text)
        };
        Ok(Said::good(self.state.node.change_control(listed).await?))
    }

    async fn call_reducer(
        &self,
        database: Option<NameOrIdentity>,
        reducer: String,
        args: String,
    ) -> Result<Said, Failure> {
        if let Some(refusal) = self.write_refusal {
            return Ok(Said::bad(refusal));
        }
        let record = self.record(database)?;
        let running = self.state.node.databases.get(&record).await?;
        // Which the plain route would call.
        let definition = running.handle.module_def();
        if definition.reducer(&reducer).is_none() && definition.procedure(&reducer).is_some() {
            return Ok(Said::bad("no such reducer"));
        }
        let caller = call::caller_of(&self.state, &record, &self.caller);
        let call = (reducer.clone(), args, true);
        let called = call::run(&self.state, &running.handle, caller, call, None).await?;
        Ok(match called {
            Ok(_) => Said::good(format!("reducer '{reducer}' committed")),
            Err(CallError::NoSuchFunction) => Said::bad("no such reducer"),
            Err(CallError::TimedOut { .. }) => {
                Said::bad(format!("reducer '{reducer}' exceeded the energy budget"))
            }
            Err(CallError::UserError { message, .. }) => {
                Said::bad(format!("reducer '{reducer}' failed: {message}"))
            }
            Err(error @ CallError::Fatal { .. }) => {
                let Said { text, .. } = Said::of(call::refused(error)).await;
                Said::bad(format!("reducer '{reducer}' failed: {text}"))
            }
            Err(error) => Said::of(call::refused(error)).await,
        })
    }
}

fn described(
    name: &str,
    (title, description): (&str, &str),
    arguments: impl IntoIterator<Item = (&'static str, Value)>,
    required: &[&str],
    writes: bool,
) -> Value {
    let mut arguments: Vec<_> = arguments.into_iter().collect();
    arguments.sort_by_key(|(key, _)| *key);
    let is_about_one = arguments.iter().any(|(key, _)| *key == "database");
    let mut required = required.to_vec();
    required.extend(is_about_one.then_some("database"));
    required.sort_unstable();
    let arguments = arguments.into_iter();
    let properties: Map<_, _> = arguments.map(|(key, of)| (key.to_owned(), of)).collect();
    json!({
        "annotations": {
            "destructiveHint": writes,
            "openWorldHint": false,
            "readOnlyHint": !writes,
            "title": title,
        },
        "description": description,
        "inputSchema": { "properties": properties, "required": required, "type": "object" },
        "name": name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply;

    #[tokio::test]
    async fn texts_are_cut_between_characters() {
        for (text, length) in [
            ("é".repeat(TEXT_BYTES_MAX), TEXT_BYTES_MAX),
            (
                format!("x{}", "é".repeat(TEXT_BYTES_MAX)),
                TEXT_BYTES_MAX - 1,
            ),
            ("x".repeat(TEXT_BYTES_MAX), TEXT_BYTES_MAX),
            ("é".repeat(9), 18),
        ] {
            let said = Said::of(reply::text(text.clone())).await;
            assert_eq!(said.text.len(), length);
            let note = said.note.clone().unwrap_or_default();
            assert_eq!(said.note.is_some(), text.len() > length, "{note}");
            let cut = format!("cut after {length} of {} bytes", text.len());
            assert!(note.is_empty() || note.contains(&cut), "{note}");
            let same = Said::good(text);
            assert_eq!((said.text, said.note), (same.text, same.note));
            assert!(!said.is_error);
        }
        let said = Said::of(Failure::empty(axum::http::StatusCode::IM_A_TEAPOT).into_response());
        let said = said.await;
        assert_eq!(
            (said.text.as_str(), said.is_error),
            ("request failed with HTTP 418", true)
        );
    }
}
