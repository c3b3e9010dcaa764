//! Messages of the vectors of 05 §16, read from their JSON.

use lightcone_types::{ConnectionId, Encode, Identity, TimeDuration, Timestamp};
use lightcone_vectors::{file, from_hex};
use lightcone_wire::{
    ClientMessage, ProcedureStatus, QueryRows, QuerySetUpdate, ReducerOutcome, RowList,
    ServerMessage, SingleTableRows, SubscribeSet, SubscribeSetResult, TableUpdate, TableUpdateRows,
};
use serde_json::Value;

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn number(value: &Value) -> u32 {
    let number = value.as_u64().expect("a number");
    number.try_into().expect("32 bits")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

pub fn micros(value: &Value) -> i64 {
    value.as_i64().expect("a time")
}

/// The arguments of a call; no bytes for other messages.
pub fn arguments(message: &Value) -> Vec<u8> {
    from_hex(message["args"].as_str().unwrap_or_default())
}

/// The message of a JSON; `args` are its [`arguments`], which a message borrows.
pub fn client_message<'a>(message: &'a Value, args: &'a [u8]) -> ClientMessage<'a> {
    let request_id = number(&message["request_id"]);
    match text(&message["type"]) {
        "Subscribe" => ClientMessage::Subscribe {
            request_id,
            query_set_id: number(&message["query_set_id"]),
            query_strings: list(&message["query_strings"]).iter().map(text).collect(),
        },
        "SubscribeBatch" => ClientMessage::SubscribeBatch {
            request_id,
            sets: (list(&message["sets"]).iter())
                .map(|set| SubscribeSet {
                    query_set_id: number(&set["query_set_id"]),
                    query_strings: list(&set["query_strings"]).iter().map(text).collect(),
                })
                .collect(),
        },
        "Unsubscribe" => ClientMessage::Unsubscribe {
            request_id,
            query_set_id: number(&message["query_set_id"]),
            send_dropped_rows: match text(&message["flags"]) {
                "SendDroppedRows" => true,
                "Default" => false,
                unknown => panic!("flags {unknown}"),
            },
        },
        "OneOffQuery" => ClientMessage::OneOffQuery {
            request_id,
            query_string: text(&message["query_string"]),
        },
        "CallReducer" => ClientMessage::CallReducer {
            request_id,
            reducer: text(&message["reducer"]),
            args,
        },
        "CallProcedure" => ClientMessage::CallProcedure {
            request_id,
            procedure: text(&message["procedure"]),
            args,
        },
        unknown => panic!("client message {unknown}"),
    }
}

/// The tables that the rows of a file belong to.
pub struct Tables(Value);

impl Tables {
    pub fn of(file_name: &str) -> Self {
        Tables(file(file_name)["tables"].take())
    }

    fn table(&self, name: &str) -> &Value {
        let table = list(&self.0).iter().find(|table| table["name"] == name);
        table.unwrap_or_else(|| panic!("no table {name}"))
    }

    /// The BSATN of a row, which is a list of values.
    pub fn row(&self, table: &str, row: &Value) -> Vec<u8> {
        let columns = list(&self.table(table)["columns"]);
        assert_eq!(columns.len(), list(row).len(), "columns of {row}");
        let mut out = Vec::new();
        for (column, value) in columns.iter().zip(list(row)) {
            match text(&column[1]) {
                "u8" => out.push(number(value).try_into().expect("8 bits")),
                "u32" => number(value).encode(&mut out),
                "String" => text(value).encode(&mut out),
                unknown => panic!("column type {unknown}"),
            }
        }
        out
    }

    fn rows(&self, table: &str, rows: &Value) -> RowList {
        let rows: Vec<Vec<u8>> = (list(rows).iter())
            .map(|row| self.row(table, row))
            .collect();
        super::row_list(&rows)
    }

    fn query_rows(&self, tables: &Value) -> QueryRows {
        let single = |entry: &Value| SingleTableRows {
            table: text(&entry["table"]).into(),
            rows: self.rows(text(&entry["table"]), &entry["rows"]),
        };
        QueryRows {
            tables: list(tables).iter().map(single).collect(),
        }
    }

    fn rows_or_text(&self, outcome: &Value) -> Result<QueryRows, String> {
        match outcome.get("ok") {
            Some(tables) => Ok(self.query_rows(tables)),
            None => Err(text(&outcome["err"]).into()),
        }
    }

    fn table_update(&self, update: &Value) -> TableUpdate {
        let name = text(&update["table_name"]);
        let is_event = self.table(name)["event"] == true;
        let part = |part: &Value| {
            assert_eq!(part.get("events").is_some(), is_event, "{name}: {part}");
            if is_event {
                let events = self.rows(name, &part["events"]);
                return TableUpdateRows::Event { events };
            }
            TableUpdateRows::Persistent {
                inserts: self.rows(name, &part["inserts"]),
                deletes: self.rows(name, &part["deletes"]),
            }
        };
        TableUpdate {
            table_name: name.into(),
            rows: list(&update["rows"]).iter().map(part).collect(),
        }
    }

    fn query_sets(&self, sets: &Value) -> Vec<QuerySetUpdate> {
        let set = |set: &Value| QuerySetUpdate {
            query_set_id: number(&set["query_set_id"]),
            tables: (list(&set["tables"]).iter())
                .map(|update| self.table_update(update))
                .collect(),
        };
        list(sets).iter().map(set).collect()
    }

    fn outcome(&self, outcome: &Value) -> ReducerOutcome {
        match text(&outcome["type"]) {
            "Ok" => ReducerOutcome::Ok {
                ret_value: from_hex(text(&outcome["ret_value"])),
                query_sets: self.query_sets(&outcome["query_sets"]),
            },
            "OkEmpty" => ReducerOutcome::OkEmpty,
            "Err" => {
                let value = from_hex(text(&outcome["value"]));
                assert_eq!(ReducerOutcome::error_text(&value), outcome["error"]);
                ReducerOutcome::Err(value)
            }
            "InternalError" => ReducerOutcome::InternalError(text(&outcome["error"]).into()),
            unknown => panic!("outcome {unknown}"),
        }
    }

    pub fn server_message(&self, message: &Value) -> ServerMessage {
        let request_id = || number(&message["request_id"]);
        let query_set_id = || number(&message["query_set_id"]);
        match text(&message["type"]) {
            "InitialConnection" => ServerMessage::InitialConnection {
                identity: Identity::from_hex(text(&message["identity"])).expect("an identity"),
                connection_id: ConnectionId::from_hex(text(&message["connection_id"]))
                    .expect("a connection id"),
                token: text(&message["token"]).into(),
            },
            "SubscribeBatchApplied" => ServerMessage::SubscribeBatchApplied {
                request_id: request_id(),
                results: (list(&message["results"]).iter())
                    .map(|result| SubscribeSetResult {
                        query_set_id: number(&result["query_set_id"]),
                        outcome: self.rows_or_text(result),
                    })
                    .collect(),
            },
            "SubscribeApplied" => ServerMessage::SubscribeApplied {
                request_id: request_id(),
                query_set_id: query_set_id(),
                rows: self.query_rows(&message["tables"]),
            },
            "UnsubscribeApplied" => ServerMessage::UnsubscribeApplied {
                request_id: request_id(),
                query_set_id: query_set_id(),
                rows: match &message["tables"] {
                    Value::Null => None,
                    tables => Some(self.query_rows(tables)),
                },
            },
            "SubscriptionError" => ServerMessage::SubscriptionError {
                request_id: match &message["request_id"] {
                    Value::Null => None,
                    id => Some(number(id)),
                },
                query_set_id: query_set_id(),
                error: text(&message["error"]).into(),
            },
            "TransactionUpdate" => ServerMessage::TransactionUpdate {
                query_sets: self.query_sets(&message["query_sets"]),
            },
            "OneOffQueryResult" => ServerMessage::OneOffQueryResult {
                request_id: request_id(),
                result: self.rows_or_text(message),
            },
            "ReducerResult" => ServerMessage::ReducerResult {
                request_id: request_id(),
                timestamp: Timestamp(micros(&message["timestamp"])),
                result: self.outcome(&message["outcome"]),
            },
            "ProcedureResult" => ServerMessage::ProcedureResult {
                status: procedure_status(&message["status"]),
                timestamp: Timestamp(micros(&message["timestamp"])),
                total_host_execution_duration: TimeDuration(micros(
                    &message["total_host_execution_duration"],
                )),
                request_id: request_id(),
            },
            unknown => panic!("server message {unknown}"),
        }
    }
}

fn procedure_status(status: &Value) -> ProcedureStatus {
    match text(&status["type"]) {
        "Returned" => ProcedureStatus::Returned(from_hex(text(&status["value"]))),
        "InternalError" => ProcedureStatus::InternalError(text(&status["error"]).into()),
        unknown => panic!("status {unknown}"),
    }
}
