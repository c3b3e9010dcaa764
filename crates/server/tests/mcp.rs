//! The tools for assistants over HTTP (06 §5.22), as clients with good and with bad intentions use them.

mod common;

use common::publishing::{call, created};
use common::{answer, config, header, json, TestServer, User};
use serde_json::{json, Value};

const OF_A: &str = "/v1/database/a/mcp";

/// Status and body of the answer to one message.
async fn post(server: &TestServer, user: &User, path: &str, message: &str) -> (u16, String) {
    let request = server.request("POST", path).bearer_auth(&user.token);
    let request = request.header("content-type", "application/json");
    answer(request.body(message.to_owned())).await
}

/// The answer to a message that is carried out, or refused as JSON-RPC refuses.
async fn ask(server: &TestServer, user: &User, path: &str, message: &str) -> String {
    let (status, body) = post(server, user, path, message).await;
    assert_eq!(status, 200, "{message}: {body}");
    body
}

/// What a tool says, and whether it failed.
async fn tool(
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

async fn plain_sql(server: &TestServer, user: &User, text: &'static str) -> (u16, String) {
    let request = server.request("POST", "/v1/database/a/sql");
    answer(request.bearer_auth(&user.token).body(text)).await
}

fn said(id: &str, text: &str, is_error: bool) -> String {
    format!(
        r#"{{"id":{id},"jsonrpc":"2.0","result":{{"content":[{{"text":{},"type":"text"}}],"isError":{is_error}}}}}"#,
        json!(text)
    )
}

fn refused(id: &str, code: i32, message: &str) -> String {
    let message = json!(message);
    format!(r#"{{"error":{{"code":{code},"message":{message}}},"id":{id},"jsonrpc":"2.0"}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_byte_for_byte() {
    let server = TestServer::start_with(config("[mcp]\nwrites = \"always\"")).await;
    let user = server.user().await;
    let identity = created(&server, &user, "a", "module procedure").await;
    let version = env!("CARGO_PKG_VERSION");
    let initialized = |version_spoken: &str, about: &str| {
        format!(
            r#"{{"id":0,"jsonrpc":"2.0","result":{{"capabilities":{{"tools":{{}}}},"instructions":"{about}","protocolVersion":"{version_spoken}","serverInfo":{{"name":"spacetimedb","version":"{version}"}}}}}}"#
        )
    };
    let of_a = "Tools for the database `a`. `sql` and `call` can change data.";
    let vectors = [
        (
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
            initialized("2025-06-18", of_a),
        ),
        (
            r#"{"id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#,
            initialized("2025-03-26", of_a),
        ),
        (
            r#"{"id":0,"method":"initialize","params":{"protocolVersion":"2099-01-01"}}"#,
            initialized("2025-06-18", of_a),
        ),
        (
            r#"{"id":0,"method":"initialize"}"#,
            initialized("2025-06-18", of_a),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#,
            r#"{"id":"x","jsonrpc":"2.0","result":{}}"#.into(),
        ),
        (
            r#"{"id":null,"method":"ping"}"#,
            r#"{"id":null,"jsonrpc":"2.0","result":{}}"#.into(),
        ),
        (
            r#"{"id":1}"#,
            refused("1", -32600, "invalid request: missing method"),
        ),
        (
            r#"{"id":1,"method":7}"#,
            refused("1", -32600, "invalid request: missing method"),
        ),
        (
            r#"{"id":1,"method":"resources/list"}"#,
            refused("1", -32601, "method not found: resources/list"),
        ),
        (
            r#"{"id":1,"method":"tools/call"}"#,
            refused("1", -32602, "missing params"),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{}}"#,
            refused("1", -32602, "missing tool name"),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"list_databases"}}"#,
            refused("1", -32602, "unknown tool: list_databases"),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"sql"}}"#,
            refused("1", -32602, "sql argument must be a string"),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"call","arguments":{"reducer":1}}}"#,
            refused("1", -32602, "reducer argument must be a string"),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"call","arguments":{"reducer":"add","args":{}}}}"#,
            refused("1", -32602, "args must be a JSON array"),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"ping"}}"#,
            said("1", "pong", false),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"ping","arguments":{"message":"hä \"x\""}}}"#,
            said("1", "pong: hä \"x\"", false),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"call","arguments":{"reducer":"add","args":[5,"x"]}}}"#,
            said("1", "reducer 'add' committed", false),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"call","arguments":{"reducer":"hidden","args":null}}}"#,
            said("1", "reducer 'hidden' committed", false),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"call","arguments":{"reducer":"fail","args":["exactly this"]}}}"#,
            said("1", "reducer 'fail' failed: exactly this", true),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"call","arguments":{"reducer":"panic"}}}"#,
            said(
                "1",
                "reducer 'panic' failed: The instance encountered a fatal error.",
                true,
            ),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"call","arguments":{"reducer":"slow"}}}"#,
            said("1", "reducer 'slow' exceeded the energy budget", true),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"call","arguments":{"reducer":"on_connect"}}}"#,
            said(
                "1",
                "can't directly call special OnConnect lifecycle reducer",
                true,
            ),
        ),
        // A procedure, and nothing.
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"call","arguments":{"reducer":"work"}}}"#,
            said("1", "no such reducer", true),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"call","arguments":{"reducer":"nothing"}}}"#,
            said("1", "no such reducer", true),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"sql","arguments":{"sql":"SELECT * FROM nothing"}}}"#,
            said(
                "1",
                &plain_sql(&server, &user, "SELECT * FROM nothing").await.1,
                true,
            ),
        ),
    ];
    for (message, expected) in vectors {
        assert_eq!(
            ask(&server, &user, OF_A, message).await,
            expected,
            "{message}"
        );
    }

    let of_server = [
        (
            r#"{"id":0,"method":"initialize"}"#.to_owned(),
            initialized(
                "2025-06-18",
                "Tools for the databases of a server; each tool takes one by name or identity. `sql` and `call` can change data.",
            ),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"list_databases"}}"#.to_owned(),
            said(
                "1",
                &format!(r#"{{"databases":[{{"identity":"{identity}","names":["a"]}}]}}"#),
                false,
            ),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"sql","arguments":{"sql":"SELECT 1"}}}"#.to_owned(),
            refused("1", -32602, "database argument must be a string"),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"get_schema","arguments":{"database":"A b"}}}"#.to_owned(),
            refused(
                "1",
                -32602,
                "invalid database 'A b': invalid characters in database name",
            ),
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"get_schema","arguments":{"database":"nothing"}}}"#.to_owned(),
            said("1", "`nothing` not found", true),
        ),
        (
            format!(
                r#"{{"id":1,"method":"tools/call","params":{{"name":"call","arguments":{{"reducer":"add","database":"{identity}","args":[6,"y"]}}}}}}"#
            ),
            said("1", "reducer 'add' committed", false),
        ),
    ];
    for (message, expected) in of_server {
        assert_eq!(
            ask(&server, &user, "/v1/mcp", &message).await,
            expected,
            "{message}"
        );
    }

    let schema = server.ask("GET", "/v1/database/a/schema?version=9").await.1;
    assert_eq!(
        tool(&server, &user, OF_A, "get_schema", json!({})).await,
        (schema, false)
    );
    let (rows, failed) = tool(
        &server,
        &user,
        OF_A,
        "sql",
        json!({ "sql": "SELECT id FROM person", "confirmed": false }),
    )
    .await;
    assert!(!failed);
    assert_eq!(json(&rows)[0]["rows"], json!([[5], [6]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_described() {
    let server = TestServer::start().await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    let list = async |path: &str| {
        let text = ask(&server, &user, path, r#"{"id":1,"method":"tools/list"}"#).await;
        assert!(text.starts_with(
            r#"{"id":1,"jsonrpc":"2.0","result":{"tools":[{"annotations":{"destructiveHint":"#
        ));
        json(&text)["result"]["tools"]
            .as_array()
            .expect("tools")
            .clone()
    };
    let names = |tools: &[Value]| -> Vec<String> {
        let names = tools.iter().map(|tool| tool["name"].as_str());
        names.map(|name| name.expect("a name").to_owned()).collect()
    };
    let of_server = list("/v1/mcp").await;
    assert_eq!(
        names(&of_server),
        ["list_databases", "ping", "get_schema", "sql", "call"]
    );
    let of_a = list(OF_A).await;
    assert_eq!(names(&of_a), ["ping", "get_schema", "sql", "call"]);
    assert_eq!(
        of_server[3]["inputSchema"]["required"],
        json!(["database", "sql"])
    );
    assert_eq!(of_server[1]["inputSchema"]["required"], json!([]));
    assert_eq!(of_a[3]["inputSchema"]["required"], json!(["reducer"]));
    // Which write depends on what was asked for.
    let writing = list("/v1/database/a/mcp?writes=true").await;
    let hints = |tools: &[Value]| -> Vec<Value> {
        let hints = tools.iter().map(|tool| &tool["annotations"]);
        hints
            .map(|hints| {
                assert_eq!(hints["openWorldHint"], false);
                assert_eq!(
                    hints["readOnlyHint"],
                    !hints["destructiveHint"].as_bool().expect("a flag")
                );
                assert!(hints["title"].is_string());
                hints["destructiveHint"].clone()
            })
            .collect()
    };
    assert_eq!(hints(&of_a), [false, false, false, true]);
    assert_eq!(hints(&writing), [false, false, true, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_unless_somebody_allows_it() {
    let server = TestServer::start().await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    let insert = json!({ "sql": "INSERT INTO person (id, name) VALUES (1, 'x')" });
    let add = json!({ "reducer": "add", "args": [2, "y"] });
    let writing = [
        ("sql", insert.clone()),
        (
            "sql",
            json!({ "sql": "UPDATE person SET name = 'z' WHERE id = 1" }),
        ),
        ("sql", json!({ "sql": "DELETE FROM person" })),
        ("sql", json!({ "sql": "SET row_limit TO 1" })),
        ("call", add.clone()),
    ];
    let refused_by = async |server: &TestServer, path: &str, what: &str| {
        for (name, arguments) in &writing {
            let (text, failed) = tool(server, &user, path, name, arguments.clone()).await;
            assert!(
                failed && text.ends_with("[LC0150]") && text.contains(what),
                "{path} {name}: {text}"
            );
        }
        let (rows, failed) = tool(
            server,
            &user,
            path,
            "sql",
            json!({ "sql": "SELECT * FROM person" }),
        )
        .await;
        assert!(!failed);
        assert_eq!(json(&rows)[0]["rows"], json!([]), "nothing was changed");
    };
    refused_by(&server, OF_A, "`?writes=true`").await;
    refused_by(&server, "/v1/database/a/mcp?writes=false", "`?writes=true`").await;
    let (text, failed) = tool(
        &server,
        &user,
        "/v1/mcp",
        "call",
        json!({ "database": "a", "reducer": "add" }),
    )
    .await;
    assert!(failed && text.ends_with("[LC0150]"), "{text}");
    let wrong = post(&server, &user, "/v1/database/a/mcp?writes=yes", "{}").await;
    assert_eq!(wrong.0, 400, "{}", wrong.1);

    let dir = server.stop().await;
    let server = TestServer::start_in(dir, config("[mcp]\nwrites = \"never\"")).await;
    refused_by(&server, "/v1/database/a/mcp?writes=true", "Its operator").await;

    let dir = server.stop().await;
    let server = TestServer::start_in(dir, config("[mcp]\nwrites = \"always\"")).await;
    refused_by(&server, "/v1/database/a/mcp?writes=false", "`?writes=true`").await;
    let (text, failed) = tool(&server, &user, OF_A, "sql", insert).await;
    assert!(!failed, "{text}");
    assert_eq!(json(&text)[0]["stats"]["rows_inserted"], 1);

    let dir = server.stop().await;
    let server = TestServer::start_in(dir, config("")).await;
    let called = tool(
        &server,
        &user,
        "/v1/database/a/mcp?writes=true",
        "call",
        add,
    )
    .await;
    assert_eq!(called, ("reducer 'add' committed".to_owned(), false));
}

/// An assistant may do what its token may do over the plain routes, in the same words.
#[tokio::test(flavor = "multi_thread")]
async fn rights_are_those_of_the_plain_routes() {
    let server = TestServer::start().await;
    let (owner, reader, guest) = (
        server.user().await,
        server.user().await,
        server.user().await,
    );
    created(&server, &owner, "a", "module secret").await;
    let path = format!("/v1/database/a/collaborators/{}", reader.identity);
    let role = server.request("PUT", &path).bearer_auth(&owner.token);
    let role = role.header("content-type", "application/json");
    assert_eq!(answer(role.body(r#"{"role":"reader"}"#)).await.0, 200);

    let path = "/v1/database/a/mcp?writes=true";
    for sql in [
        "SELECT * FROM secret",
        "INSERT INTO person (id, name) VALUES (1, 'x')",
        "SHOW COLLABORATORS",
        "DELETE FROM secret",
    ] {
        for user in [&reader, &guest] {
            let (status, plain) = plain_sql(&server, user, sql).await;
            let (text, failed) = tool(&server, user, path, "sql", json!({ "sql": sql })).await;
            assert_eq!(failed, status != 200, "{sql} {text}");
            match failed {
                true => assert_eq!(text, plain, "{sql}"),
                false => assert_eq!(json(&text)[0]["rows"], json(&plain)[0]["rows"]),
            }
        }
    }
    let private = json!({ "sql": "SELECT * FROM secret" });
    assert!(!tool(&server, &reader, path, "sql", private.clone()).await.1);
    assert!(tool(&server, &guest, path, "sql", private.clone()).await.1);
    let hidden = json!({ "reducer": "hidden" });
    for user in [&reader, &guest] {
        let called = tool(&server, user, path, "call", hidden.clone()).await;
        assert_eq!(called, ("no such reducer".to_owned(), true));
        let listed = tool(&server, user, "/v1/mcp", "list_databases", json!({})).await;
        assert_eq!(listed, (r#"{"databases":[]}"#.to_owned(), false));
    }
    // Nobody in particular, who is told who he was.
    let request = server
        .request("POST", path)
        .header("content-type", "application/json");
    let message = r#"{"id":1,"method":"tools/call","params":{"name":"sql","arguments":{"sql":"SELECT * FROM secret"}}}"#;
    let response = request.body(message).send().await.expect("a response");
    assert!(header(&response, "spacetime-identity").is_some());
    let body = json(&response.text().await.expect("body"));
    assert_eq!(body["result"]["isError"], true);
    let request = server.request("POST", path).bearer_auth("nonsense");
    assert_eq!(answer(request).await.0, 401);

    created(&server, &owner, "closed", "module refuse").await;
    for (name, arguments) in [
        ("sql", json!({ "sql": "SELECT * FROM person" })),
        ("call", json!({ "reducer": "add", "args": [1, "x"] })),
    ] {
        let path = "/v1/database/closed/mcp?writes=true";
        let refused = tool(&server, &guest, path, name, arguments).await;
        assert_eq!(refused, ("nobody may enter".to_owned(), true), "{name}");
    }
}

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
            r#"[{"id":1,"method":"ping"}]"#,
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

    // A page that somebody has open is not an assistant.
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
    // Whoever checks messages on their way here may look at the other one.
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

/// Assistants have little room for what they read.
#[tokio::test(flavor = "multi_thread")]
async fn long_answers_are_cut() {
    let server = TestServer::start().await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    for id in 0..5 {
        let row = json!([id, "ü\"".repeat(20_000)]).to_string();
        let request = server.request("POST", "/v1/database/a/call/add");
        let request = request.header("content-type", "application/json");
        assert_eq!(answer(request.body(row)).await.0, 200);
    }
    let (_, plain) = plain_sql(&server, &user, "SELECT * FROM person").await;
    assert!(plain.len() > 300_000);
    let sql = json!({ "sql": "SELECT * FROM person" });
    let (text, failed) = tool(&server, &user, OF_A, "sql", sql).await;
    assert!(!failed);
    assert!(
        (64 << 10) - 3 <= text.len() && text.len() <= 64 << 10,
        "{}",
        text.len()
    );
    assert!(plain.starts_with(&text));
}
