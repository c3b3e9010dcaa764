//! What a message asks for.
//!
//! The JSON is read by the parser for values, which keeps every digit: arguments of reducers may be numbers of 256 bits, and an
//! id must come back as it was. A member that stands twice is refused: what checks messages on their way here may have looked at
//! the other one.

use lightcone_control::NameOrIdentity;
use lightcone_types::json::{self, node_to_json, JsonError, Node, NodeKind};

use super::answer::{shown, RpcError};

/// Longest id, in bytes of JSON. Answers repeat it.
const ID_BYTES_MAX: usize = 1024;

const BATCH: &str = "batches are not taken here; send each message by itself";

/// One message of a client.
#[derive(Debug)]
pub(super) enum Message {
    /// It gets no answer.
    Notification,
    Request {
        /// As JSON.
        id: String,
        request: Result<Request, RpcError>,
    },
}

#[derive(Debug)]
pub(super) enum Request {
    Initialize {
        /// What the client would like to speak.
        version: Option<String>,
    },
    Ping,
    ListTools,
    Call(ToolCall),
}

impl Message {
    /// `is_of_database`: tools are about one database, which is known, and take none.
    pub fn parse(text: &str, is_of_database: bool) -> Result<Message, JsonError> {
        let node = json::parse(text)?;
        // MCP 2025-03-26 has batches, and no version since. A batch with requests gets an error.
        let mut batch = node.as_array().into_iter().flatten();
        let id = match batch.any(|one| !matches!(member(one, "id"), Ok(None))) {
            true => Err(RpcError::invalid(BATCH)),
            false => id_of(&node),
        };
        Ok(match id {
            Ok(None) => Message::Notification,
            Ok(Some(id)) => Message::Request {
                id,
                request: request(&node, is_of_database),
            },
            Err(error) => Message::Request {
                id: "null".to_owned(),
                request: Err(error),
            },
        })
    }
}

/// As JSON. None: the message gets no answer.
fn id_of(message: &Node<'_>) -> Result<Option<String>, RpcError> {
    let id = member(message, "id")?.map(json_of);
    if id.as_ref().is_some_and(|id| id.len() > ID_BYTES_MAX) {
        let text = format!("the id is longer than {ID_BYTES_MAX} bytes");
        return Err(RpcError::invalid(text));
    }
    Ok(id)
}

fn json_of(node: &Node<'_>) -> String {
    let mut text = String::new();
    node_to_json(node, &mut text);
    text
}

fn request(node: &Node<'_>, is_of_database: bool) -> Result<Request, RpcError> {
    let method = member(node, "method")?.and_then(Node::as_str);
    let method = method.ok_or_else(|| RpcError::invalid("missing method"))?;
    let params = member(node, "params")?;
    Ok(match method {
        "initialize" => Request::Initialize {
            version: text_member(params, "protocolVersion")?,
        },
        "ping" => Request::Ping,
        "tools/list" => Request::ListTools,
        "tools/call" => Request::Call(ToolCall::parse(params, is_of_database)?),
        other => return Err(RpcError::unknown_method(other)),
    })
}

/// A tool with its arguments.
#[derive(Debug)]
pub(super) enum ToolCall {
    Ping {
        message: Option<String>,
    },
    ListDatabases,
    GetSchema {
        /// None: the one that the endpoint is about. So it is with the others.
        database: Option<NameOrIdentity>,
    },
    Sql {
        database: Option<NameOrIdentity>,
        sql: String,
        confirmed: bool,
    },
    Call {
        database: Option<NameOrIdentity>,
        reducer: String,
        /// A JSON array.
        args: String,
    },
}

impl ToolCall {
    pub fn parse(params: Option<&Node<'_>>, is_of_database: bool) -> Result<ToolCall, RpcError> {
        let params = params.filter(|params| params.as_object().is_some());
        let params = params.ok_or_else(|| RpcError::parameters("missing params"))?;
        let name = member(params, "name")?.and_then(Node::as_str);
        let name = name.ok_or_else(|| RpcError::parameters("missing tool name"))?;
        let arguments = member(params, "arguments")?;
        let argument = |key: &str| match arguments {
            Some(arguments) => member(arguments, key),
            None => Ok(None),
        };
        let text = |key: &str| {
            let text = text_member(arguments, key)?;
            text.ok_or_else(|| RpcError::parameters(format!("{key} argument must be a string")))
        };
        let database = || -> Result<Option<NameOrIdentity>, RpcError> {
            if is_of_database {
                return Ok(None);
            }
            let text = text("database")?;
            let parsed = NameOrIdentity::parse(&text).map_err(|error| {
                RpcError::parameters(format!("invalid database '{}': {error}", shown(&text)))
            });
            parsed.map(Some)
        };
        Ok(match name {
            "ping" => ToolCall::Ping {
                message: text_member(arguments, "message")?,
            },
            "list_databases" if !is_of_database => ToolCall::ListDatabases,
            "get_schema" => ToolCall::GetSchema {
                database: database()?,
            },
            "sql" => ToolCall::Sql {
                database: database()?,
                sql: text("sql")?,
                confirmed: match argument("confirmed")?.map(|node| &node.kind) {
                    None | Some(NodeKind::Null) => true,
                    Some(NodeKind::Bool(confirmed)) => *confirmed,
                    Some(_) => {
                        let text = "confirmed argument must be a boolean";
                        return Err(RpcError::parameters(text));
                    }
                },
            },
            "call" => ToolCall::Call {
                database: database()?,
                reducer: text("reducer")?,
                args: match argument("args")? {
                    None => "[]".to_owned(),
                    Some(args) if args.is_null() => "[]".to_owned(),
                    Some(args) if args.as_array().is_some() => json_of(args),
                    Some(_) => return Err(RpcError::parameters("args must be a JSON array")),
                },
            },
            other => {
                let text = format!("unknown tool: {}", shown(other));
                return Err(RpcError::parameters(text));
            }
        })
    }
}

/// The member of an object, if it is a text.
fn text_member(node: Option<&Node<'_>>, key: &str) -> Result<Option<String>, RpcError> {
    let found = node.map(|node| member(node, key)).transpose()?.flatten();
    Ok(found.and_then(Node::as_str).map(str::to_owned))
}

/// The member of an object; None of anything else.
fn member<'n, 'a>(node: &'n Node<'a>, key: &str) -> Result<Option<&'n Node<'a>>, RpcError> {
    let NodeKind::Object(entries) = &node.kind else {
        return Ok(None);
    };
    let mut found = entries.iter().filter(|(name, _)| name == key);
    let first = found.next().map(|(_, value)| value);
    match found.next() {
        Some(_) => Err(RpcError::invalid(format!("`{key}` stands twice"))),
        None => Ok(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
            let _ = Message::parse(&text, true);
        }

        /// Nearly messages.
        #[test]
        fn any_members_are_read_or_refused(
            members in proptest::collection::vec(
                ("id|method|params|name|arguments|sql|args|database", "1|null|\"tools/call\"|\"sql\"|\\[\\]|\\{\\}|\\[\\[1\\]\\]|\\{\"name\":\"call\"\\}"),
                0..6,
            ),
            is_of_database: bool,
        ) {
            let members: Vec<_> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            let text = format!("{{{}}}", members.join(","));
            proptest::prop_assert!(Message::parse(&text, is_of_database).is_ok(), "{}", text);
        }
    }

    #[test]
    fn ids_come_back_digit_for_digit() {
        for id in [
            "1",
            "null",
            "\"a\\u0001\\\"\"",
            "123456789012345678901234567890123456789",
            "1.50e3",
            "-0",
            "{\"a\":[1,true]}",
        ] {
            let text = format!("{{\"id\": {id}, \"method\": \"ping\"}}");
            let Ok(Message::Request { id: read, request }) = Message::parse(&text, true) else {
                panic!("{text}");
            };
            assert_eq!(read, id);
            assert!(matches!(request, Ok(Request::Ping)));
        }
        let long = format!(
            "{{\"id\":\"{}\",\"method\":\"ping\"}}",
            "x".repeat(ID_BYTES_MAX)
        );
        let twice = "{\"id\":1,\"id\":2,\"method\":\"ping\"}".to_owned();
        for text in [long, twice] {
            let Ok(Message::Request { id, request }) = Message::parse(&text, true) else {
                panic!("{text}");
            };
            assert!(id == "null" && request.is_err(), "{request:?}");
        }
    }
}
