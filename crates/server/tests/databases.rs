//! Publishing and using databases over HTTP (06 §5.3 to §5.14).

mod common;

use std::time::Duration;

use common::{answer, config, header, json, TestServer, User};
use lightcone_types::{Hash, Identity};
use serde_json::json;

async fn publish(
    server: &TestServer,
    user: &User,
    path: &str,
    program: &'static str,
) -> (u16, String) {
    let method = if path.starts_with("/v1/database?") || path == "/v1/database" {
        "POST"
    } else {
        "PUT"
    };
    answer(
        server
            .request(method, path)
            .bearer_auth(&user.token)
            .body(program),
    )
    .await
}

async fn created(server: &TestServer, user: &User, name: &str, program: &'static str) -> String {
    let (status, body) = publish(server, user, &format!("/v1/database/{name}"), program).await;
    assert_eq!(status, 200, "{body}");
    let body = json(&body);
    assert_eq!(body["Success"]["op"], "created");
    assert_eq!(body["Success"]["domain"], name);
    body["Success"]["database_identity"]
        .as_str()
        .expect("identity")
        .to_owned()
}

async fn by(server: &TestServer, user: &User, method: &str, path: &str) -> (u16, String) {
    answer(server.request(method, path).bearer_auth(&user.token)).await
}

async fn call(server: &TestServer, user: &User, path: &str, args: &'static str) -> (u16, String) {
    let request = server.request("POST", path).bearer_auth(&user.token);
    answer(
        request
            .header("content-type", "application/json")
            .body(args),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn publish_and_look() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let identity = created(&server, &user, "my-db", "module one").await;
    assert_eq!(
        server.ask("GET", "/v1/database/my-db/identity").await,
        (200, identity.clone())
    );
    let echoed = server
        .ask(
            "GET",
            &format!("/v1/database/0x{}/identity", identity.to_uppercase()),
        )
        .await;
    assert_eq!(echoed, (200, identity.clone()));

    let info = server.send("GET", "/v1/database/my-db").await;
    assert_eq!(header(&info, "content-type"), Some("application/json"));
    let expected = json!({
        "database_identity": { "__identity__": format!("0x{identity}") },
        "owner_identity": { "__identity__": format!("0x{}", user.identity) },
        "host_type": { "Wasm": [] },
        "initial_program": Hash::keccak256(b"module one").to_json_u256(),
    });
    assert_eq!(json(&info.text().await.expect("body")), expected);

    let (status, body) = server
        .ask("GET", "/v1/database/my-db/schema?version=10")
        .await;
    assert!(
        status == 200 && json(&body)["sections"].is_array(),
        "{body}"
    );
    let (status, body) = server
        .ask("GET", "/v1/database/my-db/schema?version=9")
        .await;
    assert!(
        status == 200 && json(&body)["tables"][0]["name"] == "person",
        "{body}"
    );
    let missing = "Failed to deserialize query string: missing field `version`";
    assert_eq!(
        server.ask("GET", "/v1/database/my-db/schema").await,
        (400, missing.into())
    );
    let wrong = "Failed to deserialize query string: unknown variant `8`, expected `9` or `10`";
    assert_eq!(
        server
            .ask("GET", "/v1/database/my-db/schema?version=8")
            .await,
        (400, wrong.into())
    );

    let list = server
        .ask("GET", &format!("/v1/identity/{}/databases", user.identity))
        .await;
    assert_eq!(json(&list.1), json!({ "identities": [identity] }));
    let (status, body) = server
        .ask("GET", "/v1/database/my-db/unstable/timestamp")
        .await;
    assert!(
        status == 200 && json(&body)["__timestamp_micros_since_unix_epoch__"].is_i64(),
        "{body}"
    );

    // Unnamed.
    let (status, body) = publish(&server, &user, "/v1/database", "module one").await;
    assert_eq!(
        (status, &json(&body)["Success"]["domain"]),
        (200, &serde_json::Value::Null)
    );
    // An unused identity becomes that database.
    let free = Identity::from_claims("localhost", "free").to_hex();
    let (status, body) = publish(
        &server,
        &user,
        &format!("/v1/database/{free}"),
        "module one",
    )
    .await;
    assert_eq!(
        (status, &json(&body)["Success"]["database_identity"]),
        (200, &json!(free))
    );

    let metrics = server.ask("GET", "/v1/metrics").await.1;
    assert!(
        metrics.contains(&format!(
            "spacetime_message_log_size_bytes{{db=\"{identity}\"}}"
        )),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn resolution_and_parameters() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let nobody = Identity::from_claims("localhost", "nobody").to_hex();
    for path in [
        "",
        "/schema?version=9",
        "/names",
        "/logs",
        "/unstable/timestamp",
    ] {
        let unknown = server
            .ask("GET", &format!("/v1/database/unknown{path}"))
            .await;
        assert_eq!(unknown, (404, "`unknown` not found".into()), "{path}");
        let empty = server
            .ask("GET", &format!("/v1/database/{nobody}{path}"))
            .await;
        assert_eq!(empty, (404, "No such database.".into()), "{path}");
        let (status, body) = server
            .ask("GET", &format!("/v1/database/Bad_name{path}"))
            .await;
        assert_eq!(
            (status, body.as_str()),
            (400, "Invalid URL: invalid characters in database name"),
            "{path}"
        );
    }
    // The whole upload is taken before the 404.
    let big = vec![0u8; 5 << 20];
    let answer_to_upload = answer(
        server
            .request("POST", "/v1/database/unknown/pre_publish")
            .body(big.clone()),
    )
    .await;
    assert_eq!(answer_to_upload, (404, "`unknown` not found".into()));

    for (query, status, text) in [
        (
            "host_type=js",
            400,
            "Failed to deserialize query string: unknown variant `js`, expected `Wasm` or `Js`",
        ),
        ("clear=1", 400, "Failed to deserialize query string: "),
        (
            "num_replicas=256",
            400,
            "Replication factor 256 out of bounds",
        ),
        ("parent=nowhere", 404, "`nowhere` not found"),
        ("org=nowhere", 404, "`nowhere` not found"),
        (
            "update_confirmation_timeout=5",
            400,
            "Failed to deserialize query string: ",
        ),
        (
            "policy=BreakClients",
            400,
            "Migration policy is set to `BreakClients`, but no migration token was provided.",
        ),
    ] {
        let (got, body) = publish(
            &server,
            &user,
            &format!("/v1/database/my-db?{query}"),
            "module one",
        )
        .await;
        assert!(
            got == status && body.starts_with(text),
            "{query}: {got} {body}"
        );
    }
    let clear = publish(&server, &user, "/v1/database?clear=true", "module one").await;
    assert_eq!(
        clear,
        (
            400,
            "Clear database requires database name or identity".into()
        )
    );
    let long = format!("/v1/database/{}", "x".repeat(65));
    assert_eq!(publish(&server, &user, &long, "module one").await.0, 400);

    let tight = TestServer::start_with(config("[limits]\nprogram-bytes-max = 1000")).await;
    let too_long = answer(tight.request("PUT", "/v1/database/a").body(vec![0; 1001])).await;
    assert_eq!(
        too_long,
        (
            413,
            "Failed to buffer the request body: length limit exceeded".into()
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_publishing_can_be_repeated() {
    let server = TestServer::start().await;
    let (alice, bob) = (server.user().await, server.user().await);
    let (status, body) = publish(&server, &alice, "/v1/database/a", "not a module").await;
    assert!(
        status == 500 && body.contains("the first word is not `module`"),
        "{status} {body}"
    );
    let failed = publish(&server, &alice, "/v1/database/a", "module fail-init").await;
    assert_eq!(failed, (500, "init does not want to".into()));
    // The name is taken, the database is not there.
    let identity = server.ask("GET", "/v1/database/a/identity").await.1;
    assert_eq!(
        server.ask("GET", "/v1/database/a").await,
        (404, "No such database.".into())
    );
    let denied = publish(&server, &bob, "/v1/database/a", "module").await;
    assert_eq!(denied, (401, r#"{"PermissionDenied":{"name":"a"}}"#.into()));
    assert_eq!(created(&server, &alice, "a", "module").await, identity);
}

/// A rule that is no query over the module's tables fails the publish, with the rule and what is wrong where.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_row_level_security_rules_are_refused() {
    let server = TestServer::start().await;
    let user = server.user().await;
    for (program, rule, reason) in [
        (
            "module rule:SELEKT+*+FROM+person",
            "SELEKT * FROM person",
            "sql parser error: Expected an SQL statement, found: SELEKT at Line: 1, Column 1",
        ),
        (
            "module rule:SELECT+*+FROM+persons",
            "SELECT * FROM persons",
            "no such table: `persons`",
        ),
        (
            "module rule:SELECT+*+FROM+person rule:SELECT+*+FROM+person+WHERE+nam='x'",
            "SELECT * FROM person WHERE nam='x'",
            "`nam` is not in scope",
        ),
        (
            "module rule:SELECT+*+FROM+person+WHERE+id='x'",
            "SELECT * FROM person WHERE id='x'",
            "The literal expression `x` cannot be parsed as type `U32`",
        ),
        (
            "module rule:SELECT+*+FROM+person+WHERE+id=:sender",
            "SELECT * FROM person WHERE id=:sender",
            "Unexpected type",
        ),
        (
            "module changed rule:SELECT+p.*+FROM+person+p+JOIN+extra+e+ON+p.id=e.name",
            "SELECT p.* FROM person p JOIN extra e ON p.id=e.name",
            "Unexpected type",
        ),
        (
            "module rule:SELECT+name+FROM+person",
            "SELECT name FROM person",
            "Column projections are not supported",
        ),
        (
            "module secret rule:SELECT+*+FROM+secret",
            "SELECT * FROM secret",
            "Cannot define RLS rule on private table: secret.",
        ),
    ] {
        let (status, body) = publish(&server, &user, "/v1/database/a", program).await;
        let start = format!("failed to create row-level security: `{rule}`: {reason}");
        assert!(
            status == 500 && body.starts_with(&start) && body.ends_with("[LC0406]"),
            "{status} {body}"
        );
        assert_eq!(server.ask("GET", "/v1/database/a").await.0, 404);
    }
    // Joins of any size, helper tables that are private, `:sender` and event tables are all right.
    let good = "module changed secret rule:SELECT+*+FROM+person \
                rule:SELECT+e.*+FROM+person+p+JOIN+extra+e+ON+p.id=e.id+JOIN+secret+s+WHERE+s.name='x'";
    created(&server, &user, "a", good).await;
    let rules = "SELECT table_id, sql FROM st_row_level_security";
    let request = server.request("POST", "/v1/database/a/sql");
    let (_, rows) = answer(request.bearer_auth(&user.token).body(rules)).await;
    let rows = &json(&rows)[0]["rows"];
    let named = server.request("POST", "/v1/database/a/sql");
    let tables = "SELECT table_id, table_name FROM st_table WHERE table_name = 'extra'";
    let (_, tables) = answer(named.bearer_auth(&user.token).body(tables)).await;
    let extra = &json(&tables)[0]["rows"][0][0];
    let of_extra = rows.as_array().expect("rows").iter();
    assert_eq!(
        of_extra.filter(|row| row[0] == *extra).count(),
        1,
        "each rule names its table: {rows}"
    );

    // An update with a wrong rule is refused before anything is changed; so is looking at it.
    let wrong = "module changed secret rule:SELECT+*+FROM+nowhere";
    let look = server.request("POST", "/v1/database/a/pre_publish");
    let looked = answer(look.bearer_auth(&user.token).body(wrong)).await;
    let start = "Failed to create or update the database: failed to create row-level security: `SELECT * FROM nowhere`";
    assert!(
        looked.0 == 400 && looked.1.starts_with(start) && looked.1.ends_with("[LC0406]"),
        "{looked:?}"
    );
    // Rules that differ break clients, which a publish without the token does not do.
    let (status, body) = publish(&server, &user, "/v1/database/a", wrong).await;
    assert!(
        status == 400 && body.contains("client-breaking change"),
        "{status} {body}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_and_others() {
    let server = TestServer::start().await;
    let (alice, bob) = (server.user().await, server.user().await);
    let db = created(&server, &alice, "a", "module").await;
    for (method, path, action) in [
        ("PUT", "/v1/database/a", "update database"),
        ("PUT", "/v1/database/a?clear=true", "reset database"),
        ("PUT", "/v1/database/a/reset", "reset database"),
        ("POST", "/v1/database/a/pre_publish", "update database"),
        ("DELETE", "/v1/database/a", "delete database"),
        ("POST", "/v1/database/a/lock", "delete database"),
        ("POST", "/v1/database/a/unlock", "delete database"),
        ("GET", "/v1/database/a/logs", "view module logs"),
    ] {
        let expected = format!(
            "{} is not authorized to perform action on database {db}: {action}",
            bob.identity
        );
        assert_eq!(
            by(&server, &bob, method, path).await,
            (403, expected),
            "{method} {path}"
        );
    }
    assert_eq!(
        by(&server, &alice, "DELETE", "/v1/database/unknown")
            .await
            .0,
        404
    );
    let nobody = Identity::from_claims("localhost", "nobody").to_hex();
    assert_eq!(
        by(&server, &alice, "DELETE", &format!("/v1/database/{nobody}")).await,
        (200, String::new())
    );

    for _ in 0..2 {
        assert_eq!(
            by(&server, &alice, "POST", "/v1/database/a/lock").await,
            (200, String::new())
        );
    }
    let delete = "Database is locked and cannot be deleted. Run `spacetime unlock` first.";
    assert_eq!(
        by(&server, &alice, "DELETE", "/v1/database/a").await,
        (403, delete.into())
    );
    let reset =
        "Database is locked and cannot be reset with --delete-data. Run `spacetime unlock` first.";
    assert_eq!(
        publish(&server, &alice, "/v1/database/a?clear=true", "module").await,
        (403, reset.into())
    );
    assert_eq!(
        publish(&server, &alice, "/v1/database/a", "module two")
            .await
            .0,
        200,
        "updates still work"
    );
    assert_eq!(
        by(&server, &alice, "POST", "/v1/database/a/unlock").await.0,
        200
    );
    assert_eq!(
        by(&server, &alice, "DELETE", "/v1/database/a").await,
        (200, String::new())
    );
    assert_eq!(
        server.ask("GET", "/v1/database/a").await,
        (404, "No such database.".into())
    );
    // The name still leads to the identity, for its owner only.
    assert_eq!(
        server.ask("GET", "/v1/database/a/identity").await,
        (200, db.clone())
    );
    assert_eq!(
        publish(&server, &bob, "/v1/database/a", "module").await.0,
        401
    );
    // Nor does he get there by the identity, which is no secret.
    let by_identity = format!("/v1/database/{db}");
    let (status, body) = publish(&server, &bob, &by_identity, "module").await;
    let denied = json!({ "PermissionDenied": { "name": "a" } });
    assert_eq!((status, json(&body)), (401, denied));
    assert_eq!(created(&server, &alice, "a", "module").await, db);
}

#[tokio::test(flavor = "multi_thread")]
async fn updates() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let db = created(&server, &user, "a", "module one").await;
    assert_eq!(
        call(&server, &user, "/v1/database/a/call/add", r#"[1,"x"]"#).await,
        (200, String::new())
    );
    let updated = |body: &str| json(body)["Success"]["op"] == "updated";

    let plan = |program: &'static str, query: &'static str| {
        let request = server.request("POST", &format!("/v1/database/a/pre_publish{query}"));
        answer(request.bearer_auth(&user.token).body(program))
    };
    let (status, body) = plan("module two", "?style=NoColor").await;
    let rule = "━".repeat(60);
    let hash = |text: &str| Hash::keccak256(text.as_bytes());
    let token = hash(&format!(
        "{db}{}{}",
        hash("module one").to_hex(),
        hash("module two").to_hex()
    ))
    .to_json_u256();
    let expected = json!({ "AutoMigrate": {
        "migrate_plan": format!("{rule}\nDatabase Migration Plan\n{rule}\n\n"),
        "break_clients": false,
        "token": token,
        "major_version_upgrade": false,
        // What only this server says.
        "steps": [],
        "steps_not_listed": 0,
        "obstacles": [],
    }});
    assert_eq!((status, json(&body)), (200, expected));
    assert_eq!(plan("nonsense", "").await.0, 500);

    let wrong_token = "/v1/database/a?policy=BreakClients&token=0x12";
    let refused = "Failed to create or update the database: Token provided is invalid or does not match expected hash";
    assert_eq!(
        publish(&server, &user, wrong_token, "module two").await,
        (400, refused.into())
    );
    // The running program once more is nothing to do, whatever the token; it stays WebAssembly.
    let same = format!("{wrong_token}&host_type=Js");
    let (status, body) = publish(&server, &user, &same, "module one").await;
    assert!(status == 200 && updated(&body), "{body}");
    let info = json(&server.ask("GET", "/v1/database/a").await.1);
    assert_eq!(info["host_type"], json!({ "Wasm": [] }));
    let no_token = "/v1/database/a?policy=BreakClients";
    assert_eq!(publish(&server, &user, no_token, "module one").await.0, 400);
    let right_token =
        format!("/v1/database/a?policy=BreakClients&token={token}&update_confirmation_timeout=1m");
    let (status, body) = publish(&server, &user, &right_token, "module two").await;
    assert!(status == 200 && updated(&body), "{body}");
    let (status, body) = publish(&server, &user, "/v1/database/a", "module two").await;
    assert!(
        status == 200 && updated(&body),
        "the same program again: {body}"
    );
    assert_eq!(
        publish(&server, &user, "/v1/database/a", "nonsense")
            .await
            .0,
        500
    );

    let rows = |body: &str| json(body)[0]["rows"].clone();
    let select = || {
        answer(
            server
                .request("POST", "/v1/database/a/sql")
                .body("SELECT * FROM person"),
        )
    };
    assert_eq!(
        rows(&select().await.1),
        json!([[1, "x"]]),
        "data survives updates"
    );
    let info = json(&server.ask("GET", "/v1/database/a").await.1);
    assert_eq!(info["initial_program"], hash("module one").to_json_u256());

    // Clearing: a failing program leaves everything as it was.
    let failed = publish(
        &server,
        &user,
        "/v1/database/a?clear=true",
        "module fail-init",
    )
    .await;
    assert_eq!(failed, (500, "init does not want to".into()));
    assert_eq!(rows(&select().await.1), json!([[1, "x"]]));
    let (status, body) = publish(
        &server,
        &user,
        "/v1/database/a?clear=true",
        "module changed",
    )
    .await;
    assert!(status == 200 && updated(&body), "{body}");
    assert_eq!(rows(&select().await.1), json!([]));
    let info = json(&server.ask("GET", "/v1/database/a").await.1);
    assert_eq!(
        info["initial_program"],
        hash("module changed").to_json_u256()
    );
    // Where there is nothing, clearing is ignored; an empty reset keeps the program.
    let (status, body) = publish(&server, &user, "/v1/database/b?clear=true", "module").await;
    assert_eq!(
        (status, &json(&body)["Success"]["op"]),
        (200, &json!("created"))
    );
    assert_eq!(
        by(&server, &user, "PUT", "/v1/database/a/reset").await.0,
        200
    );
    assert_eq!(
        server.ask("GET", "/v1/database/a/identity").await,
        (200, db)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn names() {
    let server = TestServer::start().await;
    let (alice, bob) = (server.user().await, server.user().await);
    let db = created(&server, &alice, "a", "module").await;
    created(&server, &bob, "bobs", "module").await;
    let add = |user: &User, name: &'static str| {
        answer(
            server
                .request("POST", "/v1/database/a/names")
                .bearer_auth(&user.token)
                .body(name),
        )
    };
    let success = json!({ "Success": { "domain": "a2", "database_identity": db } });
    let (status, body) = add(&alice, "a2").await;
    assert_eq!((status, json(&body)), (200, success));
    assert_eq!(
        add(&alice, "Bad").await,
        (400, "invalid characters in database name".into())
    );
    assert_eq!(
        add(&alice, "a2").await,
        (500, "record with the name a2 already exists".into())
    );
    let denied = r#"{"PermissionDenied":{"domain":"bobs"}}"#;
    assert_eq!(add(&alice, "bobs").await, (401, denied.into()));
    assert_eq!(
        server.ask("GET", "/v1/database/a/names").await,
        (200, r#"{"names":["a","a2"]}"#.into())
    );

    let put = |user: &User, body: &'static str, content_type: Option<&'static str>| {
        let mut request = server
            .request("PUT", "/v1/database/a2/names")
            .bearer_auth(&user.token)
            .body(body);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        answer(request)
    };
    let json_type = Some("application/json");
    let unsupported = "Expected request with `Content-Type: application/json`";
    assert_eq!(put(&alice, "[]", None).await, (415, unsupported.into()));
    assert_eq!(put(&alice, "[]", Some("text/plain")).await.0, 415);
    let (status, body) = put(&alice, "[", json_type).await;
    assert!(
        status == 400 && body.starts_with("Failed to parse the request body as JSON: "),
        "{body}"
    );
    let (status, body) = put(&alice, "{}", json_type).await;
    assert!(
        status == 422
            && body.starts_with("Failed to deserialize the JSON body into the target type: "),
        "{body}"
    );
    let wrong = "Error parsing `B`: invalid characters in database name";
    assert_eq!(
        put(&alice, r#"["B"]"#, json_type).await,
        (400, wrong.into())
    );
    let (status, body) = put(&bob, r#"["c"]"#, json_type).await;
    assert_eq!(
        (status, json(&body)),
        (401, json!({ "NotYourDatabase": { "database": db } }))
    );
    let in_use = r#"{"OtherError":"Cannot rename to a because it already is in use."}"#;
    assert_eq!(
        put(&alice, r#"["a"]"#, json_type).await,
        (400, in_use.into())
    );
    let (status, body) = put(
        &alice,
        r#"["c","d"]"#,
        Some("application/x+json; charset=utf-8"),
    )
    .await;
    assert_eq!((status, body.as_str()), (200, "\"Success\""));
    assert_eq!(server.ask("GET", "/v1/database/a2/names").await.0, 404);
    assert_eq!(
        server.ask("GET", "/v1/database/c/names").await,
        (200, r#"{"names":["c","d"]}"#.into())
    );
}

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
    assert_eq!(refused, (403, "nobody may enter".into()));
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

#[tokio::test(flavor = "multi_thread")]
async fn everything_survives_a_restart() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let db = created(&server, &user, "a", "module").await;
    assert_eq!(
        call(&server, &user, "/v1/database/a/call/add", r#"[1,"x"]"#)
            .await
            .0,
        200
    );
    let dir = server.stop().await;
    let server = TestServer::start_in(dir, config("")).await;
    assert_eq!(
        server.ask("GET", "/v1/database/a/identity").await,
        (200, db)
    );
    let rows = answer(
        server
            .request("POST", "/v1/database/a/sql")
            .body("SELECT * FROM person"),
    )
    .await;
    assert_eq!(json(&rows.1)[0]["rows"], json!([[1, "x"]]));
    assert_eq!(
        by(&server, &user, "POST", "/v1/database/a/lock").await.0,
        200,
        "the owner is still the owner"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_database_tells_why_and_shows_its_log() {
    let server = TestServer::start().await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    created(&server, &user, "b", "module").await;
    let dir = server.stop().await;
    // The first replica is that of `a`.
    let replica = dir.path().join("data/replicas/1");
    for entry in std::fs::read_dir(&replica).expect("replica") {
        let path = entry.expect("entry").path();
        if path.is_dir() && !path.ends_with("module_logs") {
            std::fs::remove_dir_all(path).expect("remove");
        }
    }
    let server = TestServer::start_in(dir, config("")).await;
    let (status, body) = answer(
        server
            .request("POST", "/v1/database/a/sql")
            .body("SELECT * FROM person"),
    )
    .await;
    assert!(status == 500 && body.contains("[LC05"), "{status} {body}");
    let (status, body) = by(&server, &user, "GET", "/v1/database/a/logs").await;
    assert!(
        status == 200 && body.contains("Database initialized"),
        "{status} {body}"
    );
    // The other one does not notice, and the broken one can be deleted.
    let rows = answer(
        server
            .request("POST", "/v1/database/b/sql")
            .body("SELECT * FROM person"),
    )
    .await;
    assert_eq!(rows.0, 200);
    assert_eq!(by(&server, &user, "DELETE", "/v1/database/a").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_memory_databases_start_anew() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let start = || async {
        let address = "127.0.0.1:0".parse().expect("address");
        let mut options = lightcone_server::ServerOptions::new(
            address,
            dir.path().join("data"),
            common::fake::engines(),
        );
        options.jwt_key_dir = Some(dir.path().join("keys"));
        options.in_memory = true;
        lightcone_server::Server::bind(options)
            .await
            .expect("start")
    };
    let http = reqwest::Client::new();
    let sql = |address: std::net::SocketAddr| {
        answer(
            http.post(format!("http://{address}/v1/database/a/sql"))
                .body("SELECT * FROM person"),
        )
    };
    let handle = start().await;
    let base = format!("http://{}/v1/database/a", handle.local_addr());
    assert_eq!(answer(http.put(&base).body("module")).await.0, 200);
    let add = http
        .post(format!("{base}/call/add"))
        .header("content-type", "application/json")
        .body(r#"[1,"x"]"#);
    assert_eq!(answer(add).await.0, 200);
    assert_eq!(
        json(&sql(handle.local_addr()).await.1)[0]["rows"],
        json!([[1, "x"]])
    );
    handle.shutdown().await;
    let handle = start().await;
    assert_eq!(
        json(&sql(handle.local_addr()).await.1)[0]["rows"],
        json!([])
    );
    handle.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_publish() {
    let server = TestServer::start_with(config("[publish]\nallowed = []")).await;
    let user = server.user().await;
    let (status, body) = publish(&server, &user, "/v1/database/a", "module").await;
    assert!(
        status == 403 && body.contains("publish.allowed") && body.ends_with("[LC0114]"),
        "{status} {body}"
    );
    assert_eq!(
        publish(&server, &user, "/v1/database", "module").await.0,
        403
    );
    assert_eq!(
        server.ask("GET", "/v1/database/a/identity").await.0,
        404,
        "the name is not taken"
    );
    let text = format!(
        "[publish]\nallowed = \"owner-list\"\nowners = [\"{}\"]",
        user.identity
    );
    let dir = server.stop().await;
    let server = TestServer::start_in(dir, config(&text)).await;
    created(&server, &user, "a", "module").await;
    let other = server.user().await;
    assert_eq!(
        publish(&server, &other, "/v1/database/b", "module").await.0,
        403
    );

    let server = TestServer::start_with(config("[limits]\ndatabases-max = 1")).await;
    created(&server, &server.user().await, "a", "module").await;
    let (status, body) = publish(&server, &user, "/v1/database/b?token=0x1", "module").await;
    assert!(status == 401, "another server's token: {status} {body}");
    assert_eq!(
        publish(&server, &server.user().await, "/v1/database/b", "module")
            .await
            .0,
        503
    );
}
