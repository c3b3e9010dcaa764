//! Publishing databases over HTTP, and what the server says of them (06 §5.3 to §5.10).

use crate::common::publishing::{by, call, created, publish};
use crate::common::{answer, config, header, json, TestServer, User};
use lightcone_types::{Hash, Identity};
use serde_json::json;

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
    assert_eq!(
        json(&list.1),
        json!({ "identities": [identity], "roles": [] })
    );
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
    let stranger = Identity::from_claims("localhost", "stranger").to_hex();
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
            .ask("GET", &format!("/v1/database/{stranger}{path}"))
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
    let stranger = Identity::from_claims("localhost", "stranger").to_hex();
    assert_eq!(
        by(
            &server,
            &alice,
            "DELETE",
            &format!("/v1/database/{stranger}")
        )
        .await,
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

/// Identities are free, so no owner takes what is there for all, unless the operator has named him.
#[tokio::test(flavor = "multi_thread")]
async fn one_owner_has_so_many_databases_and_names() {
    const BOUNDS: &str = "[limits]\ndatabases-per-owner-max = 1\nnames-per-owner-max = 2";
    let server = TestServer::start_with(config(BOUNDS)).await;
    let owner = server.user().await;
    created(&server, &owner, "a", "module").await;
    for path in ["/v1/database/b", "/v1/database"] {
        let (status, body) = publish(&server, &owner, path, "module").await;
        assert!(
            status == 403 && body.ends_with("[LC0147]"),
            "{status} {body}"
        );
    }
    let name = server.ask("GET", "/v1/database/b/identity").await;
    assert_eq!(name.0, 404, "the name is not taken");
    let (status, body) = publish(&server, &owner, "/v1/database/a", "module").await;
    assert_eq!(status, 200, "what is there is updated: {body}");
    created(&server, &server.user().await, "b", "module").await;
    let rename = |server: &TestServer, from: &str, names: &[&str]| {
        let request = server.request("PUT", &format!("/v1/database/{from}/names"));
        answer(request.json(&names).bearer_auth(&owner.token))
    };
    let (status, body) = rename(&server, "a", &["c", "d"]).await;
    assert!(
        status == 403 && body.ends_with("[LC0148]"),
        "{status} {body}"
    );
    assert_eq!(rename(&server, "a", &["c"]).await.0, 200);
    assert_eq!(rename(&server, "c", &["a"]).await.0, 200, "it is still his");

    let listed = format!("{BOUNDS}\n[publish]\nowners = [\"{}\"]", owner.identity);
    let server = TestServer::start_in(server.stop().await, config(&listed)).await;
    created(&server, &owner, "e", "module").await;
    assert_eq!(rename(&server, "a", &["f", "g"]).await.0, 200);
}

/// Identities are free: with a new one for each name there was no bound.
#[tokio::test]
async fn owners_have_so_many_names_together() {
    const BOUNDS: &str = "[limits]\nnames-max = 2";
    let server = TestServer::start_with(config(BOUNDS)).await;
    let (first, second, third) = (
        server.user().await,
        server.user().await,
        server.user().await,
    );
    created(&server, &first, "a", "module").await;
    created(&server, &second, "b", "module").await;
    let (status, body) = publish(&server, &third, "/v1/database/c", "module").await;
    assert!(
        status == 503 && body.ends_with("[LC0159]"),
        "{status} {body}"
    );
    let name = server.ask("GET", "/v1/database/c/identity").await;
    assert_eq!(name.0, 404, "the name is not taken");
    let (status, body) = publish(&server, &third, "/v1/database", "module").await;
    assert_eq!(status, 200, "without a name: {body}");
    let listed = format!("{BOUNDS}\n[publish]\nowners = [\"{}\"]", third.identity);
    let server = TestServer::start_in(server.stop().await, config(&listed)).await;
    created(&server, &third, "c", "module").await;
}
