//! What becomes of databases when the server starts again.

use crate::common;
use crate::common::publishing::{by, call, created};
use crate::common::{answer, config, json, TestServer};
use serde_json::json;

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
        options.node.jwt_key_dir = Some(dir.path().join("keys"));
        options.node.in_memory = true;
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
