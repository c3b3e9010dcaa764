//! Answers of JSON-RPC, with their members in alphabetical order (06 §5.22).

use lightcone_types::json::write_string;
use serde_json::Value;

/// Longest part of a client's own text that an error repeats.
const SHOWN_CHARACTERS_MAX: usize = 100;

/// A message that is not carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RpcError {
    code: i32,
    message: String,
}

impl RpcError {
    /// It is no request.
    pub fn invalid(message: impl Into<String>) -> RpcError {
        let message = format!("invalid request: {}", message.into());
        RpcError {
            code: -32600,
            message,
        }
    }

    pub fn unknown_method(method: &str) -> RpcError {
        RpcError {
            code: -32601,
            message: format!("method not found: {}", shown(method)),
        }
    }

    pub fn parameters(message: impl Into<String>) -> RpcError {
        RpcError {
            code: -32602,
            message: message.into(),
        }
    }
}

/// The beginning of a text that a client has sent.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `id` is JSON.
pub(super) fn error(id: &str, RpcError { code, message }: &RpcError) -> String {
    let mut text = format!("{{\"error\":{{\"code\":{code},\"message\":");
    write_string(message, &mut text);
    text.push_str(&format!("}},\"id\":{id},\"jsonrpc\":\"2.0\"}}"));
    text
}

pub(super) fn result(id: &str, result: &Value) -> String {
    format!("{{\"id\":{id},\"jsonrpc\":\"2.0\",\"result\":{result}}}")
}

/// The result of a tool: its text, and perhaps a note on it.
pub(super) fn said(id: &str, said: [Option<&String>; 2], is_error: bool) -> String {
    let mut text = format!("{{\"id\":{id},\"jsonrpc\":\"2.0\",\"result\":{{\"content\":[");
    for (index, item) in said.into_iter().flatten().enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        text.push_str("{\"text\":");
        write_string(item, &mut text);
        text.push_str(",\"type\":\"text\"}");
    }
    text.push_str(&format!("],\"isError\":{is_error}}}}}"));
    text
}
