//! `spacetime mcp` as an assistant uses it, with a real server and module.

use crate::common;
use crate::common::server::Server;
use crate::common::{Home, Mock, Outcome};
use serde_json::{json, Value};

fn module(name: &str) -> String {
    let directory = std::env::var_os("LIGHTCONE_MODULES_WASM_DIR").map_or_else(
        || {
            let home = std::env::var_os("HOME").expect("HOME is set");
            std::path::PathBuf::from(home).join(".cache/lightcone/wasm")
        },
        std::path::PathBuf::from,
    );
    let path = directory.join(format!("{name}.wasm"));
    assert!(
        path.is_file(),
        "{} is missing; make modules",
        path.display()
    );
    path.to_str().expect("UTF-8").to_owned()
}

/// Sends messages, one a line, and returns the answers in order.
fn talk(home: &Home, args: &[&str], messages: &[Value]) -> (Vec<Value>, Outcome) {
    let lines: String = messages
        .iter()
        .map(|message| format!("{message}\n"))
        .collect();
    let outcome = home.run_with(&[&["mcp"], args].concat(), &lines, &[]).ok();
    let answers = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    (answers.collect(), outcome)
}

fn request(id: u32, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn tool(id: u32, name: &str, arguments: Value) -> Value {
    request(
        id,
        "tools/call",
        json!({ "name": name, "arguments": arguments }),
    )
}

/// The text of a tool's answer, and whether it failed.
fn said(answer: &Value) -> (&str, bool) {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str();
    (
        text.unwrap_or_else(|| panic!("a text: {answer}")),
        result["isError"].as_bool().expect("a flag"),
    )
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().expect("tools");
    tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect()
}

#[test]
fn an_assistant_reads_and_only_writes_if_it_may() {
    let home = Home::new();
    let server = Server::start(&home);
    let url = server.url.clone();
    home.run(&["login", "--server-issued-login", &url]).ok();
    home.run(&["publish", "-b", &module("transfer"), "bank", "-s", &url])
        .ok();
    home.run(&["call", "bank", "seed", "3", "10", "-s", &url])
        .ok();

    let messages = [
        request(1, "initialize", json!({})),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        request(2, "ping", json!({})),
        request(3, "tools/list", json!({})),
        tool(4, "ping", json!({ "message": "x" })),
        tool(5, "get_schema", json!({})),
        tool(
            6,
            "sql",
            json!({ "sql": "SELECT * FROM accounts WHERE id = 1" }),
        ),
        tool(7, "sql", json!({ "sql": "DELETE FROM accounts" })),
        tool(8, "call", json!({ "reducer": "seed", "args": [9, 9] })),
        tool(9, "sql", json!({ "sql": "SELECT * FROM nothing" })),
        tool(10, "logs", json!({})),
        tool(
            11,
            "sql",
            json!({ "sql": "SELECT COUNT(*) AS n FROM accounts" }),
        ),
    ];
    let (answers, outcome) = talk(&home, &["bank", "-s", &url], &messages);
    assert_eq!(
        answers.len(),
        11,
        "a notification is not answered: {outcome:#?}"
    );
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    let instructions = answers[0]["result"]["instructions"].as_str();
    let instructions = instructions.expect("a text");
    assert!(
        instructions.contains("when a client connects"),
        "{instructions}"
    );
    assert_eq!(
        answers[1],
        json!({ "id": 2, "jsonrpc": "2.0", "result": {} })
    );
    assert_eq!(names(&answers[2]), ["ping", "get_schema", "sql", "logs"]);
    let tools = answers[2]["result"]["tools"].as_array().expect("tools");
    assert!(
        tools
            .iter()
            .all(|tool| tool["annotations"]["readOnlyHint"] == true),
        "{tools:?}"
    );
    assert_eq!(said(&answers[3]), ("pong: x", false));
    assert!(said(&answers[4]).0.contains("accounts"), "{}", answers[4]);
    assert!(
        said(&answers[5]).0.contains("[[1,10]]") || said(&answers[5]).0.contains("[1,10]"),
        "{}",
        answers[5]
    );
    for refused in [&answers[6], &answers[7]] {
        let (text, failed) = said(refused);
        assert!(failed && text.contains("--allow-writes"), "{refused}");
    }
    assert!(said(&answers[8]).1, "{}", answers[8]);
    assert!(
        said(&answers[9]).0.contains("seeded 3 accounts"),
        "{}",
        answers[9]
    );
    assert!(
        said(&answers[10]).0.contains('3') && !said(&answers[10]).1,
        "nothing was deleted: {}",
        answers[10]
    );

    // Without a database, each tool takes one.
    let messages = [
        request(1, "tools/list", json!({})),
        tool(2, "list_databases", json!({})),
        tool(
            3,
            "call",
            json!({ "database": "bank", "reducer": "transfer", "args": [0, 1, 5] }),
        ),
        tool(
            4,
            "call",
            json!({ "database": "bank", "reducer": "transfer", "args": [0, 1, 5000] }),
        ),
        tool(
            5,
            "sql",
            json!({ "database": "bank", "sql": "DELETE FROM accounts WHERE id = 2" }),
        ),
        tool(6, "sql", json!({ "sql": "SELECT 1" })),
    ];
    let (answers, _) = talk(&home, &["-s", &url, "--allow-writes"], &messages);
    assert_eq!(
        names(&answers[0]),
        [
            "list_databases",
            "ping",
            "get_schema",
            "sql",
            "call",
            "logs"
        ]
    );
    assert!(
        said(&answers[1]).0.contains(r#""names":["bank"]"#),
        "{}",
        answers[1]
    );
    assert_eq!(said(&answers[2]), ("reducer 'transfer' committed", false));
    let (text, failed) = said(&answers[3]);
    assert!(
        failed
            && text.starts_with("reducer 'transfer' failed: ")
            && text.contains("insufficient_funds"),
        "{text}"
    );
    assert!(!said(&answers[4]).1, "{}", answers[4]);
    assert_eq!(
        answers[5]["error"]["message"],
        "database argument must be a string"
    );
    let left = home
        .run(&["sql", "bank", "SELECT * FROM accounts", "-s", &url])
        .ok()
        .stdout;
    assert!(
        left.contains(" 0  | 5 ") && left.contains(" 1  | 15 ") && !left.contains(" 2  |"),
        "{left}"
    );
}

#[test]
fn odd_messages_are_answered() {
    let home = Home::new();
    let server = Mock::start(|_| common::text(200, ""));
    let long = format!("{{\"id\":1,\"method\":\"{}\"}}", "x".repeat(3 << 20));
    let lines = [
        "",
        "nonsense",
        "[]",
        "7",
        r#"{"method":"ping"}"#,
        r#"{"id":1}"#,
        &long,
        r#"{"id":"a","method":"no/such"}"#,
        r#"{"id":2,"method":"tools/call"}"#,
        r#"{"id":3,"method":"tools/call","params":{}}"#,
        r#"{"id":4,"method":"tools/call","params":{"name":"rm"}}"#,
        r#"{"id":5,"method":"tools/call","params":{"name":"sql","arguments":{"sql":7}}}"#,
        r#"{"id":null,"method":"ping"}"#,
    ];
    let input = lines.join("\n");
    let outcome = home
        .run_with(&["mcp", "shop", "-s", &server.url], &input, &[])
        .ok();
    let answers: Vec<Value> = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let codes: Vec<(Value, Value)> = answers
        .iter()
        .map(|a| (a["id"].clone(), a["error"]["code"].clone()))
        .collect();
    let want = [
        (json!(null), json!(-32700)),
        (json!(1), json!(-32600)),
        (json!(null), json!(-32600)),
        (json!("a"), json!(-32601)),
        (json!(2), json!(-32602)),
        (json!(3), json!(-32602)),
        (json!(4), json!(-32602)),
        (json!(5), json!(-32602)),
        (json!(null), json!(null)),
    ];
    assert_eq!(codes, want, "{outcome:#?}");
    assert_eq!(
        answers[7]["error"]["message"],
        "sql argument must be a string"
    );
}

/// The login goes to its own server, and to none over a connection that others can read.
#[test]
fn a_login_is_not_sent_unencrypted() {
    let home = Home::new();
    home.log_in("ann", "http://192.0.2.1:9");
    let refused = home.run(&["mcp", "shop", "-s", "http://192.0.2.1:9"]);
    assert!(
        refused.status == 1 && refused.stderr.contains("[LC0861]"),
        "{refused:#?}"
    );
    home.run(&["mcp", "shop", "-s", "http://192.0.2.1:9", "--anonymous"])
        .ok();
}
