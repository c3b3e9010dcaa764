//! Messages to the tools for assistants, and answers as they must be.

use serde_json::{json, Value};

use super::{answer, json, TestServer, User};

pub const OF_A: &str = "/v1/database/a/mcp";

/// Status and body of the answer to one message.
pub async fn post(server: &TestServer, user: &User, path: &str, message: &str) -> (u16, String) {
    let request = server.request("POST", path).bearer_auth(&user.token);
    let request = request.header("content-type", "application/json");
    answer(request.body(message.to_owned())).await
}

/// The answer to a message that is carried out, or refused as JSON-RPC refuses.
pub async fn ask(server: &TestServer, user: &User, path: &str, message: &str) -> String {
    let (status, body) = post(server, user, path, message).await;
    assert_eq!(status, 200, "{message}: {body}");
    body
}

/// What a tool says, and whether it failed.
pub async fn tool(
    server: &TestServer,
    user: &User,
    path: &str,
    name: &str,
    arguments: Value,
) -> (String, bool) {
    let params = json!({ "name": name, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let body = json(&ask(server, user, path, &message.to_string()).await);
    let result = &body["result"];
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("a text: {body}"));
    (
        text.to_owned(),
        result["isError"].as_bool().expect("a flag"),
    )
}

pub async fn plain_sql(server: &TestServer, user: &User, text: &'static str) -> (u16, String) {
    let request = server.request("POST", "/v1/database/a/sql");
    answer(request.bearer_auth(&user.token).body(text)).await
}

pub fn said(id: &str, text: &str, is_error: bool) -> String {
    format!(
        r#"{{"id":{id},"jsonrpc":"2.0","result":{{"content":[{{"text":{},"type":"text"}}],"isError":{is_error}}}}}"#,
        json!(text)
    )
}

pub fn refused(id: &str, code: i32, message: &str) -> String {
    let message = json!(message);
    format!(r#"{{"error":{{"code":{code},"message":{message}}},"id":{id},"jsonrpc":"2.0"}}"#)
}
