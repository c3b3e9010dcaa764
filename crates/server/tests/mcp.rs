//! The tools for assistants over HTTP (06 §5.22): what they answer, and who may use them.

use crate::common::mcp::{ask, plain_sql, post, refused, said, tool, OF_A};
use crate::common::publishing::created;
use crate::common::{answer, config, header, json, TestServer};
use serde_json::{json, Value};

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
            r#"[{"id":1,"method":"ping"}]"#,
            refused(
                "null",
                -32600,
                "invalid request: batches are not taken here; send each message by itself",
            ),
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
async fn nothing_is_written_unless_it_is_allowed() {
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
    // A caller without a token, who is told who he was.
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
        assert_eq!(refused, ("no client may enter".to_owned(), true), "{name}");
    }
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
    // No assistant takes the beginning for all.
    let message = r#"{"id":1,"method":"tools/call","params":{"name":"sql","arguments":{"sql":"SELECT * FROM person"}}}"#;
    let body = json(&ask(&server, &user, OF_A, message).await);
    let content = &body["result"]["content"];
    let note = content[1]["text"].as_str().expect("a note");
    // The time that it took has more digits or fewer.
    let cut = format!("cut after {} of 4002", text.len());
    assert!(note.contains(&cut) && content[2].is_null(), "{note}");
}
