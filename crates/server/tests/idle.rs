//! Databases that are not used are closed, and opened again by the next request.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use crate::common::publishing::{by, call, created};
use crate::common::{answer, config, json, TestServer, User};
use futures_util::StreamExt as _;
use lightcone_control::ControlDb;
use lightcone_node::config::Config;
use lightcone_types::{Due, Identity};
use serde_json::json;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

fn idle(after: &str) -> Config {
    config(&format!(
        "[databases]\nidle-close-after = \"{after}\"\n[limits]\nmetrics-databases-max = 1"
    ))
}

/// What an own metric or one of `(other)` counts.
async fn counted(server: &TestServer, series: &str) -> Option<u64> {
    let text = server.ask("GET", "/v1/metrics").await.1;
    let line = text
        .lines()
        .find(|line| line.starts_with(series))?
        .to_owned();
    let (_, value) = line.rsplit_once(' ')?;
    Some(value.parse().expect("a number"))
}

async fn open_count(server: &TestServer) -> u64 {
    let open = counted(server, "lightcone_databases_open").await;
    open.expect("it is told")
}

async fn until_open_are(server: &TestServer, count: u64) {
    for _ in 0..1000 {
        if open_count(server).await == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} are open, not {count}", open_count(server).await);
}

async fn add(server: &TestServer, user: &User, name: &str, id: u32) -> (u16, String) {
    let path = format!("/v1/database/{name}/call/add");
    let request = server.request("POST", &path).bearer_auth(&user.token);
    let request = request.header("content-type", "application/json");
    answer(request.body(format!("[{id},\"x\"]"))).await
}

async fn ids(server: &TestServer, name: &str) -> Vec<u32> {
    let path = format!("/v1/database/{name}/sql");
    let request = server.request("POST", &path);
    let (status, body) = answer(request.body("SELECT id FROM person")).await;
    assert_eq!(status, 200, "{body}");
    let rows = json(&body)[0]["rows"].as_array().expect("rows").clone();
    let id = |row: &serde_json::Value| row[0].as_u64().expect("a number") as u32;
    let mut ids: Vec<u32> = rows.iter().map(id).collect();
    ids.sort_unstable();
    ids
}

/// Each of some callers pauses for about as long as it takes until the database is closed.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_lost_or_refused_while_a_database_closes_and_opens() {
    const CALLERS: u32 = 4;
    const CALLS: u32 = 60;
    let server = Arc::new(TestServer::start_with(idle("20ms")).await);
    let user = Arc::new(server.user().await);
    created(&server, &user, "a", "module").await;
    let (closings, ends) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let watched = (server.clone(), closings.clone(), ends.clone());
    let watcher = tokio::spawn(async move {
        let (server, closings, ends) = watched;
        let mut before = 1;
        while !ends.load(Relaxed) {
            let open = open_count(&server).await;
            closings.fetch_add(u32::from(open < before), Relaxed);
            before = open;
            // A look has the database for a moment.
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    });
    let callers = (0..CALLERS).map(|caller| {
        let (server, user) = (server.clone(), user.clone());
        tokio::spawn(async move {
            for number in 0..CALLS {
                let id = caller * CALLS + number;
                // All at once, and just when it is closed.
                let pause = 40 + u64::from((number * 7 + caller % 2) % 50);
                tokio::time::sleep(Duration::from_millis(pause)).await;
                if number % 5 == 0 {
                    let known = ids(&server, "a").await;
                    let own = (caller * CALLS..id).filter(|id| !known.contains(id));
                    assert_eq!(own.count(), 0, "{known:?}");
                }
                let (status, body) = add(&server, &user, "a", id).await;
                assert_eq!(status, 200, "{body}");
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    for caller in callers {
        caller.await.expect("each call was answered");
    }
    ends.store(true, Relaxed);
    watcher.await.expect("no panic");
    assert!(closings.load(Relaxed) >= 3, "{closings:?}");
    until_open_are(&server, 0).await;
    let expected: Vec<u32> = (0..CALLERS * CALLS).collect();
    assert_eq!(ids(&server, "a").await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_stays_open() {
    let server = TestServer::start_with(idle("100ms")).await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    until_open_are(&server, 0).await;
    let stays_open = || async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(open_count(&server).await, 1);
    };
    // A connection.
    let url = format!("ws://{}/v1/database/a/subscribe", server.address);
    let mut request = url.into_client_request().expect("a request");
    let protocol = "v2.bsatn.spacetimedb".parse().expect("a header");
    request
        .headers_mut()
        .insert("sec-websocket-protocol", protocol);
    let (socket, _) = tokio_tungstenite::connect_async(request)
        .await
        .expect("it connects");
    stays_open().await;
    drop(socket);
    until_open_are(&server, 0).await;
    // Readers of the log, and of changes.
    for path in ["logs?follow=true", "changes"] {
        let request = server.request("GET", &format!("/v1/database/a/{path}"));
        let response = request
            .bearer_auth(&user.token)
            .send()
            .await
            .expect("an answer");
        assert_eq!(response.status(), 200, "{path}");
        let mut followed = response.bytes_stream();
        stays_open().await;
        let (status, body) = add(&server, &user, "a", 1 + path.len() as u32).await;
        assert_eq!(status, 200, "{body}");
        if path == "changes" {
            let told = tokio::time::timeout(Duration::from_secs(10), followed.next()).await;
            assert!(told.expect("in time").expect("open").is_ok());
        }
        drop(followed);
        until_open_are(&server, 0).await;
    }
    // What is asked about a closed database without its data.
    for path in ["", "/identity", "/names", "/metrics", "/queries"] {
        let (status, body) = by(&server, &user, "GET", &format!("/v1/database/a{path}")).await;
        assert_eq!(status, 200, "{path}: {body}");
    }
    let (status, _) = by(&server, &user, "POST", "/v1/database/a/lock").await;
    assert_eq!((status, open_count(&server).await), (200, 0));
    let (status, _) = by(&server, &user, "POST", "/v1/database/a/unlock").await;
    assert_eq!((status, open_count(&server).await), (200, 0));
    // Its log is there, and it can be updated and deleted.
    let (status, log) = by(&server, &user, "GET", "/v1/database/a/logs").await;
    assert!(
        status == 200 && log.contains("Database initialized"),
        "{log}"
    );
    until_open_are(&server, 0).await;
    let request = server
        .request("PUT", "/v1/database/a")
        .bearer_auth(&user.token);
    let (status, body) = answer(request.body("module changed")).await;
    assert_eq!(
        (status, &json(&body)["Success"]["op"]),
        (200, &json!("updated"))
    );
    until_open_are(&server, 0).await;
    assert_eq!(ids(&server, "a").await.len(), 2);
    until_open_are(&server, 0).await;
    let (status, _) = by(&server, &user, "DELETE", "/v1/database/a").await;
    assert_eq!(status, 200);
    let (status, _) = by(&server, &user, "GET", "/v1/database/a/schema?version=9").await;
    assert_eq!(status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_of_metrics_do_not_fall() {
    let server = TestServer::start_with(idle("100ms")).await;
    let user = server.user().await;
    // It calls all the time, and has the only series of its own.
    let first = created(&server, &user, "first", "module timer").await;
    created(&server, &user, "second", "module").await;
    for id in 0..5 {
        assert_eq!(add(&server, &user, "second", id).await.0, 200);
    }
    let calls = || counted(&server, "lightcone_log_syncs_total{db=\"(other)\"}");
    let before = calls().await.expect("it is told");
    assert!(before >= 5, "{before}");
    until_open_are(&server, 1).await;
    assert_eq!(calls().await, Some(before));
    assert_eq!(add(&server, &user, "second", 9).await.0, 200);
    // The log counts a sync when it has answered.
    let more = async {
        while calls().await <= Some(before) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let more = tokio::time::timeout(Duration::from_secs(10), more);
    more.await.expect("the sum grows");
    assert!(server.ask("GET", "/v1/metrics").await.1.contains(&first));
}

#[tokio::test(flavor = "multi_thread")]
async fn none_is_closed_if_that_is_not_wanted_or_it_is_in_memory() {
    for in_memory in [false, true] {
        let dir = tempfile::tempdir().expect("a directory");
        let after = if in_memory { "10ms" } else { "0s" };
        let set = |options: &mut lightcone_server::ServerOptions| {
            options.node.in_memory = in_memory;
        };
        let server = TestServer::start_as(dir, idle(after), set).await;
        let user = server.user().await;
        created(&server, &user, "a", "module").await;
        let (status, _) = call(&server, &user, "/v1/database/a/call/add", r#"[1,"x"]"#).await;
        assert_eq!(status, 200);
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(open_count(&server).await, 1);
    }
}

/// What the control database says of a stopped server's databases.
fn due(dir: &tempfile::TempDir, identities: [&str; 3]) -> [Due; 3] {
    let control = ControlDb::open(&dir.path().join("data/control-db")).expect("it opens");
    identities.map(|identity| control.due(&Identity::from_hex(identity).expect("an identity")))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_database_says_what_is_to_be_opened() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let planned = created(&server, &user, "planned", "module timer").await;
    let quiet = created(&server, &user, "quiet", "module").await;
    let reset = created(&server, &user, "reset", "module").await;
    let identities = [&*planned, &*quiet, &*reset];
    let dir = server.stop().await;
    assert_eq!(due(&dir, identities), [Due::Open, Due::Never, Due::Never]);
    // Earlier versions had marks; those of databases that have something to do went when they were opened.
    for replica in ["2", "3"] {
        let mark = dir
            .path()
            .join("data/replicas")
            .join(replica)
            .join("no-schedules");
        std::fs::write(mark, "").expect("written");
    }
    let server = TestServer::start_in(dir, config("")).await;
    until_open_are(&server, 1).await;
    // New data under an old identity.
    let reset = server.request("PUT", "/v1/database/reset/reset");
    let (status, body) = answer(reset.bearer_auth(&user.token).body("module timer")).await;
    assert_eq!(status, 200, "{body}");
    let delete = by(&server, &user, "DELETE", "/v1/database/planned").await;
    assert_eq!(delete.0, 200);
    let dir = server.stop().await;
    // Of a database that is gone nothing is known.
    assert_eq!(due(&dir, identities), [Due::Open, Due::Never, Due::Open]);
    let server = TestServer::start_in(dir, config("")).await;
    until_open_are(&server, 1).await;
    server.stop().await;
}
