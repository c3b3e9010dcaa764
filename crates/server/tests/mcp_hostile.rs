//! The tools for assistants (06 §5.22): what the transport asks of messages, and messages with bad intentions.

use crate::common::mcp::{ask, post, refused, tool, OF_A};
use crate::common::publishing::{call, created};
use crate::common::{answer, config, header, json, TestServer};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn what_the_transport_asks() {
    let server = TestServer::start().await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    let ping = r#"{"id":1,"method":"ping"}"#;
    for path in [OF_A, "/v1/mcp"] {
        // No stream of messages of the server, and no session.
        for method in ["GET", "DELETE"] {
            let response = server.send(method, path).await;
            assert_eq!(response.status(), 405, "{method} {path}");
            assert_eq!(header(&response, "allow"), Some("POST"));
        }
        for notification in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"method":"tools/call","params":{"name":"sql","arguments":{"sql":"DELETE FROM person"}}}"#,
            "[]",
            r#"[{"method":"notifications/initialized"}]"#,
            "7",
            "\"id\"",
            "null",
        ] {
            let answered = post(&server, &user, path, notification).await;
            assert_eq!(answered, (202, String::new()), "{notification}");
        }
        for no_json in ["", "{", "x", "{\"id\":1,}", "{\"id\":1} {}", "\"\\ud800\""] {
            let (status, body) = post(&server, &user, path, no_json).await;
            assert!(
                status == 400 && body.starts_with("no JSON: "),
                "{no_json}: {status} {body}"
            );
        }
    }
    let typed = async |content_type: Option<&'static str>| {
        let mut request = server.request("POST", OF_A).body(ping);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        answer(request).await
    };
    for content_type in ["application/json; charset=utf-8", "Application/vnd.x+JSON"] {
        assert_eq!(typed(Some(content_type)).await.0, 200, "{content_type}");
    }
    let unsupported = "Expected request with `Content-Type: application/json`";
    for content_type in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some(""),
    ] {
        assert_eq!(
            typed(content_type).await,
            (415, unsupported.into()),
            "{content_type:?}"
        );
    }
    // A database that is not there is one when a tool needs it.
    assert_eq!(
        post(&server, &user, "/v1/database/none/mcp", ping).await.0,
        200
    );
    let missing = tool(
        &server,
        &user,
        "/v1/database/none/mcp",
        "sql",
        json!({ "sql": "SELECT 1" }),
    )
    .await;
    assert_eq!(missing, ("`none` not found".to_owned(), true));
    assert_eq!(
        post(&server, &user, "/v1/database/N%20o/mcp", ping).await.0,
        400
    );

    let speaks = async |version: &'static str, message: &'static str| {
        let request = server
            .request("POST", OF_A)
            .header("mcp-protocol-version", version);
        let request = request.header("content-type", "application/json");
        answer(request.body(message)).await
    };
    for version in ["2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"] {
        assert_eq!(speaks(version, ping).await.0, 200, "{version}");
    }
    for version in ["2025-11-25", "1", ""] {
        let (status, body) = speaks(version, ping).await;
        assert!(
            status == 400 && body.ends_with("[LC0151]"),
            "{status} {body}"
        );
    }
    let initialize = r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    assert_eq!(speaks("2025-11-25", initialize).await.0, 200);

    // A page that a user has open is not an assistant.
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let request = server.request("POST", OF_A).header(name, value);
        let request = request
            .header("content-type", "application/json")
            .body(ping);
        let (status, body) = answer(request).await;
        assert!(
            status == 403 && body.ends_with("[LC0131]"),
            "{name}: {status} {body}"
        );
    }
    // One of the operator's asks first whether it may send the header.
    let preflight = server.send("OPTIONS", OF_A).await;
    let allowed = header(&preflight, "access-control-allow-headers");
    assert!(allowed.is_some_and(|headers| headers.ends_with(",mcp-protocol-version")));
    let rebound = server
        .request("POST", OF_A)
        .header("host", "rebound.example:80");
    let (status, body) = answer(rebound.body(ping)).await;
    assert!(
        status == 403 && body.ends_with("[LC0130]"),
        "{status} {body}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_messages() {
    let server = TestServer::start_with(config("[mcp]\nwrites = \"always\"")).await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = |depth: usize| {
            let inner = open.repeat(depth) + "1" + &close.repeat(depth);
            format!("{{\"id\":1,\"method\":\"ping\",\"params\":{inner}}}")
        };
        assert_eq!(post(&server, &user, OF_A, &deep(100)).await.0, 200);
        for depth in [200, 100_000] {
            let (status, body) = post(&server, &user, OF_A, &deep(depth)).await;
            assert!(
                status == 400 && body.contains("recursion limit"),
                "{status} {body}"
            );
        }
    }
    // A proxy that checks messages on their way here may look at the other one.
    for (message, what) in [
        (
            r#"{"id":1,"method":"ping","method":"tools/call"}"#,
            "`method`",
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"ping"},"params":{"name":"call"}}"#,
            "`params`",
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"ping","name":"call"}}"#,
            "`name`",
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"sql","arguments":{"sql":"SELECT 1","sql":"DELETE FROM person"}}}"#,
            "`sql`",
        ),
    ] {
        let expected = refused(
            "1",
            -32600,
            &format!("invalid request: {what} stands twice"),
        );
        assert_eq!(ask(&server, &user, OF_A, message).await, expected);
    }
    let twice = ask(&server, &user, OF_A, r#"{"id":1,"id":2,"method":"ping"}"#).await;
    assert_eq!(
        twice,
        refused("null", -32600, "invalid request: `id` stands twice")
    );

    let digits = "9".repeat(200);
    let id = ask(
        &server,
        &user,
        OF_A,
        &format!("{{\"id\":{digits},\"method\":\"ping\"}}"),
    )
    .await;
    assert_eq!(
        id,
        format!("{{\"id\":{digits},\"jsonrpc\":\"2.0\",\"result\":{{}}}}")
    );
    let long = "x".repeat(1 << 20);
    let id = ask(
        &server,
        &user,
        OF_A,
        &format!("{{\"id\":\"{long}\",\"method\":\"ping\"}}"),
    )
    .await;
    assert_eq!(
        id,
        refused(
            "null",
            -32600,
            "invalid request: the id is longer than 1024 bytes"
        )
    );
    for message in [
        json!({ "id": 1, "method": long }),
        json!({ "id": 1, "method": "tools/call", "params": { "name": long } }),
        json!({ "id": 1, "method": "tools/call", "params": { "name": "call", "arguments": { "reducer": long } } }),
        json!({ "id": 1, "method": "tools/call", "params": { "name": "sql", "arguments": { "sql": long } } }),
    ] {
        let answered = ask(&server, &user, OF_A, &message.to_string()).await;
        assert!(answered.len() < 10_000, "{} bytes", answered.len());
    }
    let echo = json!({ "message": long });
    let (echoed, _) = tool(&server, &user, OF_A, "ping", echo).await;
    assert_eq!(echoed.len(), 64 << 10);
    let (status, body) = post(&server, &user, OF_A, &"x".repeat((2 << 20) + 1)).await;
    assert!(status == 413, "{status} {body}");
    let request = server
        .request("POST", OF_A)
        .header("content-type", "application/json");
    assert_eq!(
        answer(request.body(&b"{\"id\":\"\xff\"}"[..])).await,
        (400, "Request body didn't contain valid UTF-8".into())
    );

    // Digits of arguments reach the reducer as they were.
    let large = "340282366920938463463374607431768211455";
    let message = format!(
        r#"{{"id":1,"method":"tools/call","params":{{"name":"call","arguments":{{"reducer":"add","args":[{large}, "x"]}}}}}}"#
    );
    let answered = json(&ask(&server, &user, OF_A, &message).await);
    let text = answered["result"]["content"][0]["text"]
        .as_str()
        .expect("a text");
    assert!(text.contains(large), "{text}");
    let plain = call(
        &server,
        &user,
        "/v1/database/a/call/add",
        r#"[340282366920938463463374607431768211455,"x"]"#,
    )
    .await;
    assert_eq!((400, text), (plain.0, plain.1.as_str()));
}
