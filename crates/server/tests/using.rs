//! Calls, SQL and logs of databases over HTTP (06 §5.11 to §5.14).

use std::time::Duration;

use crate::common::publishing::{by, call, created};
use crate::common::{answer, header, json, TestServer, User};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn calls() {
    let server = TestServer::start().await;
    let (alice, bob) = (server.user().await, server.user().await);
    created(&server, &alice, "a", "module").await;
    let path = |function: &str| format!("/v1/database/a/call/{function}");
    let request = server
        .request("POST", &path("add"))
        .header("content-type", "Application/JSON")
        .body(r#"[6,"y"]"#);
    let response = request.send().await.expect("response");
    assert_eq!(response.status(), 200);
    for name in [
        "spacetime-energy-used",
        "spacetime-execution-duration-micros",
    ] {
        header(&response, name)
            .expect(name)
            .parse::<u64>()
            .expect(name);
    }
    assert_eq!(
        header(&response, "content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(header(&response, "spacetime-identity").is_some());
    assert_eq!(
        call(&server, &bob, &path("add"), r#"{"name":"z","id":7}"#).await,
        (200, String::new())
    );

    let fatal = "The instance encountered a fatal error.";
    assert_eq!(
        call(&server, &bob, &path("fail"), r#"["exactly this"]"#).await,
        (530, "exactly this".into())
    );
    assert_eq!(
        call(&server, &bob, &path("panic"), "[]").await,
        (530, fatal.into())
    );
    assert_eq!(
        call(&server, &bob, &path("slow"), "{}").await,
        (402, "Module energy budget exhausted.".into())
    );
    for args in ["[5]", r#"["5","x"]"#, "7", "", r#"{"id":1}"#] {
        let (status, body) = call(&server, &bob, &path("add"), args).await;
        assert!(
            status == 400 && body.starts_with("invalid arguments for reducer add: "),
            "{args}: {status} {body}"
        );
    }
    for function in ["nothing", "person"] {
        let missing = call(&server, &bob, &path(function), "[]").await;
        assert_eq!(missing, (404, "No such procedure".into()), "{function}");
    }
    let (status, _) = call(&server, &bob, &path("hidden"), "nonsense").await;
    assert_eq!(status, 404, "private functions do not exist for others");
    assert_eq!(call(&server, &alice, &path("hidden"), "[]").await.0, 200);
    let lifecycle = "can't directly call special OnConnect lifecycle reducer";
    assert_eq!(
        call(&server, &alice, &path("on_connect"), "[]").await,
        (400, lifecycle.into())
    );

    let raw = |content_type: Option<&'static str>, body: &'static [u8]| {
        let request = server.request("POST", &path("add")).body(body);
        answer(match content_type {
            Some(content_type) => request.header("content-type", content_type),
            None => request,
        })
    };
    assert_eq!(
        raw(None, b"[]").await,
        (400, "Header of type `content-type` was missing".into())
    );
    let unsupported = "Expected request with `Content-Type: application/json`";
    assert_eq!(
        raw(Some("application/json; charset=utf-8"), b"[]").await,
        (415, unsupported.into())
    );
    let not_utf8 = "Request body didn't contain valid UTF-8";
    assert_eq!(
        raw(Some("application/json"), b"[\"\xff\"]").await,
        (400, not_utf8.into())
    );
    let long = server
        .request("POST", &path("add"))
        .header("content-type", "application/json");
    let too_long = "Failed to buffer the request body: length limit exceeded";
    assert_eq!(
        answer(long.body(vec![b' '; (2 << 20) + 1])).await,
        (413, too_long.into())
    );

    created(&server, &alice, "closed", "module refuse").await;
    let refused = call(&server, &bob, "/v1/database/closed/call/add", r#"[1,"x"]"#).await;
    assert_eq!(refused, (403, "no client may enter".into()));
    // One that does not get to its end is no refusal.
    created(&server, &alice, "tired", "module tired").await;
    let late = call(&server, &bob, "/v1/database/tired/call/add", r#"[1,"x"]"#).await;
    assert!(
        late.0 == 503 && late.1.starts_with("reducer ran out of energy"),
        "{late:?}"
    );
    let sql = server.request("POST", "/v1/database/tired/sql");
    let sql = answer(sql.bearer_auth(&bob.token).body("SELECT * FROM person")).await;
    assert_eq!(sql.0, 503, "{}", sql.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_level_security() {
    let server = TestServer::start().await;
    let owner = server.user().await;
    let guest = server.user().await;
    // Two rules of one table, which are a union, and one that joins.
    let program = "module changed rule:SELECT+*+FROM+person+WHERE+id=1 \
        rule:SELECT+*+FROM+person+WHERE+name='x' \
        rule:SELECT+e.*+FROM+extra+e+JOIN+person+p+ON+e.id=p.id";
    created(&server, &owner, "a", program).await;
    for row in [r#"[1,"x"]"#, r#"[2,"y"]"#, r#"[3,"x"]"#] {
        let called = call(&server, &owner, "/v1/database/a/call/add", row).await;
        assert_eq!(called.0, 200);
    }
    let rows = async |user: &User, text: &'static str| {
        let request = server.request("POST", "/v1/database/a/sql");
        let request = request.bearer_auth(&user.token).body(text);
        let response = request.send().await.expect("response");
        assert_eq!(response.status(), 200);
        json(&response.text().await.expect("body"))[0]["rows"].take()
    };
    let all = "SELECT * FROM person";
    let owners = rows(&owner, all).await;
    assert_eq!(owners, json!([[1, "x"], [2, "y"], [3, "x"]]));
    let guests = rows(&guest, all).await;
    assert_eq!(guests, json!([[1, "x"], [1, "x"], [3, "x"]]));
    let count = "SELECT COUNT(*) AS n FROM person WHERE id > 1";
    assert_eq!(rows(&owner, count).await, json!([[2]]));
    assert_eq!(rows(&guest, count).await, json!([[1]]));
    let names = "SELECT p.name, q.id FROM person p JOIN person q ON p.id = q.id WHERE q.id < 4";
    let owners = rows(&owner, names).await;
    assert_eq!(owners, json!([["x", 1], ["y", 2], ["x", 3]]));
    let guests = rows(&guest, names).await.as_array().map(Vec::len);
    assert_eq!(guests, Some(5), "id 1 twice on both sides");
}

#[tokio::test(flavor = "multi_thread")]
async fn sql() {
    let server = TestServer::start().await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    assert_eq!(
        call(&server, &user, "/v1/database/a/call/add", r#"[1,"x"]"#)
            .await
            .0,
        200
    );
    let run = |text: &'static str, query: &'static str| {
        server
            .request("POST", &format!("/v1/database/a/sql{query}"))
            .bearer_auth(&user.token)
            .body(text)
            .send()
    };
    for query in ["", "?confirmed=false"] {
        let response = run("SELECT * FROM person;", query).await.expect("response");
        assert_eq!(response.status(), 200);
        assert_eq!(header(&response, "content-type"), Some("application/json"));
        assert!(header(&response, "spacetime-execution-duration-micros").is_some());
        let body = json(&response.text().await.expect("body"));
        assert_eq!(body.as_array().map(Vec::len), Some(1));
        assert_eq!(body[0]["rows"], json!([[1, "x"]]));
        assert_eq!(
            body[0]["schema"]["elements"][0],
            json!({ "name": { "some": "id" }, "algebraic_type": { "U32": [] } })
        );
        assert_eq!(
            body[0]["stats"],
            json!({ "rows_inserted": 0, "rows_deleted": 0, "rows_updated": 0 })
        );
        assert!(body[0]["total_duration_micros"].is_u64());
    }
    for text in [
        "",
        "SELECT",
        "SELECT * FROM nothing",
        "SELECT * FROM person; SELECT * FROM person",
    ] {
        assert_eq!(
            run(text, "").await.expect("response").status(),
            400,
            "{text}"
        );
    }
    assert_eq!(
        run("SELECT * FROM person", "?confirmed=1")
            .await
            .expect("response")
            .status(),
        400
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn logs() {
    let server = TestServer::start().await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    let get = |query: &str| {
        server
            .request("GET", &format!("/v1/database/a/logs{query}"))
            .bearer_auth(&user.token)
    };
    let response = get("").send().await.expect("response");
    assert_eq!(
        header(&response, "content-type"),
        Some("application/x-ndjson")
    );
    assert_eq!(header(&response, "cache-control"), Some("no-cache"));
    let text = response.text().await.expect("body");
    let lines: Vec<_> = text.lines().map(json).collect();
    assert!(
        lines
            .iter()
            .any(|line| line["message"] == "Database initialized"),
        "{text}"
    );
    assert!(text.starts_with("{\"level\":\"Info\",\"ts\":"), "{text}");
    for query in ["?num_lines=1", "?num_lines=0"] {
        let last = answer(get(query)).await.1;
        assert_eq!(last.trim_end(), text.lines().last().expect("a line"));
    }
    assert_eq!(answer(get("?num_lines=-1")).await.0, 400);

    let mut following = get("?follow=true&num_lines=1")
        .send()
        .await
        .expect("response");
    let first = following.chunk().await.expect("chunk").expect("first line");
    assert_eq!(
        first,
        text.lines()
            .last()
            .map(|line| format!("{line}\n"))
            .expect("a line")
            .as_bytes()
    );
    call(&server, &user, "/v1/database/a/call/fail", r#"["logged"]"#).await;
    let next = tokio::time::timeout(Duration::from_secs(5), following.chunk())
        .await
        .expect("in time");
    let next = next.expect("chunk").expect("live line");
    let record = json(std::str::from_utf8(&next).expect("UTF-8"));
    assert_eq!(
        (&record["level"], &record["message"]),
        (&json!("Error"), &json!("logged"))
    );
    // The stream ends with the module.
    assert_eq!(by(&server, &user, "DELETE", "/v1/database/a").await.0, 200);
    let end = async { while let Ok(Some(_)) = following.chunk().await {} };
    tokio::time::timeout(Duration::from_secs(5), end)
        .await
        .expect("the stream ends");
}
