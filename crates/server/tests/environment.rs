//! Values of the environment: who may read private tables sees them with SQL, but for secrets, and no other way out has them
//! (02 §14.1a).

use std::os::unix::fs::PermissionsExt as _;

use crate::common::mcp::{tool, OF_A};
use crate::common::postgres::{connect, named, start};
use crate::common::publishing::by;
use crate::common::{answer, json, TestServer, User};
use serde_json::json;

const PLAIN: &str = "pl4in-value";
const SECRET: &str = "s3cret-value";
const ENVIRONMENT: &str = "/v1/database/a/environment";

async fn patch(server: &TestServer, user: &User, secret: &str, body: String) -> (u16, String) {
    let request = server.request("PATCH", ENVIRONMENT);
    let request = request.bearer_auth(&user.token).body(body);
    let request = match secret {
        "" => request,
        keys => request.header("spacetime-environment-secret", keys),
    };
    answer(request).await
}

async fn sql(server: &TestServer, user: &User, text: &'static str) -> (u16, String) {
    let request = server.request("POST", "/v1/database/a/sql");
    answer(request.bearer_auth(&user.token).body(text)).await
}

fn has_none(text: &str) {
    assert!(!text.contains(PLAIN) && !text.contains(SECRET), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_in_sql_alone_and_secrets_nowhere() {
    let (server, postgres, user) = start().await;
    named(&server, &user, "a").await;
    let body = json!({ "A": PLAIN, "B": SECRET }).to_string();
    let set = patch(&server, &user, "B", body).await;
    assert_eq!(set, (200, "{\"Ok\":null}".to_owned()));
    let (_, rows) = sql(&server, &user, "SELECT * FROM st_env").await;
    assert!(rows.contains(PLAIN) && !rows.contains(SECRET), "{rows}");
    assert!(rows.contains("lightcone-sealed-1:"), "{rows}");

    // What is told of them.
    let (_, shown) = by(&server, &user, "GET", ENVIRONMENT).await;
    has_none(&shown);
    let shown = json(&shown);
    assert_eq!(shown["stored_keys"], json!(["A", "B"]));
    assert_eq!(shown["secret_keys"], json!(["B"]));
    for path in [
        "/v1/database/a/changes?follow=false&from=0",
        "/v1/database/a/changes?follow=false&tables=st_env",
        "/v1/database/a/logs",
        "/v1/database/a/schema?version=10",
        "/v1/database/a/tables",
        "/v1/database/a/metrics",
        "/v1/metrics",
    ] {
        has_none(&by(&server, &user, "GET", path).await.1);
    }
    // Refusals, with a value in what is refused.
    let refused = [
        json!({ "1": SECRET }),
        json!({ "A": SECRET.repeat(1000) }),
        json!({ "A": format!("lightcone-sealed-1:{SECRET}") }),
        json!([SECRET]),
    ];
    for body in refused {
        let (status, text) = patch(&server, &user, "", body.to_string()).await;
        assert_eq!(status, 400, "{text}");
        has_none(&text);
    }
    let (status, text) = patch(&server, &user, "C", json!({ "A": PLAIN }).to_string()).await;
    assert!(status == 400 && text.contains("[LC0258]"), "{text}");
    has_none(&text);
    let (_, plan) = sql(
        &server,
        &user,
        "EXPLAIN SELECT value FROM st_env WHERE key = 'A'",
    )
    .await;
    has_none(&plan);
    let stranger = server.user().await;
    for text in ["SELECT * FROM st_env", "EXPLAIN SELECT * FROM st_env"] {
        has_none(&sql(&server, &stranger, text).await.1);
    }

    // Assistants and programs for PostgreSQL.
    let query = json!({ "sql": "SELECT * FROM st_env" });
    let (text, is_error) = tool(&server, &user, OF_A, "sql", query).await;
    assert!(is_error, "{text}");
    has_none(&text);
    let client = connect(postgres, "a", &user.token).await.expect("let in");
    for text in [
        "SELECT * FROM st_env",
        "EXPLAIN SELECT * FROM st_env",
        "SELECT count(*) FROM st_env",
        "COPY st_env TO STDOUT",
        "COPY (SELECT * FROM st_env) TO STDOUT",
    ] {
        let error = client.simple_query(text).await;
        has_none(&format!("{:?}", error.expect_err(text)));
    }
    let tables = "SELECT * FROM information_schema.columns WHERE table_name = 'st_env'";
    let told = client.simple_query(tables).await;
    has_none(&format!("{told:?}"));

    // The key is the server's alone, and the database does without it until a secret is needed.
    let directory = server.stop().await;
    let mut keys = files(directory.path());
    keys.retain(|path| path.ends_with("secrets.key"));
    let [key] = &keys[..] else {
        panic!("one key, and not {keys:?}");
    };
    let mode = std::fs::metadata(key).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o7777, 0o600);
    for path in files(directory.path()) {
        let bytes = std::fs::read(&path).unwrap_or_default();
        // Segments are filled with zeros ahead of time.
        let end = bytes.iter().rposition(|byte| *byte != 0);
        let bytes = &bytes[..end.map_or(0, |last| last + 1)];
        let word = SECRET.as_bytes();
        let is_in = bytes.windows(word.len()).any(|window| window == word);
        assert!(!is_in, "{path:?}");
    }
}

fn files(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let below = paths.map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    });
    below.flatten().collect()
}
