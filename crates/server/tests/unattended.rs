//! What the server does with databases that no client asks for: at its start, and after a failure.

mod common;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::fake::HELD;
use common::{answer, config, TestServer, User};
use lightcone_control::ControlDb;
use lightcone_types::{Due, Identity};

async fn publish(server: &TestServer, user: &User, name: &str, program: &'static str) -> String {
    let request = server.request("PUT", &format!("/v1/database/{name}"));
    let (status, body) = answer(request.bearer_auth(&user.token).body(program)).await;
    assert_eq!(status, 200, "{body}");
    let path = format!("/v1/database/{name}/identity");
    server.ask("GET", &path).await.1
}

/// Whether a database is open, without asking it for anything.
async fn is_open(server: &TestServer, identity: &str) -> bool {
    server.ask("GET", "/v1/metrics").await.1.contains(identity)
}

async fn until_open(server: &TestServer, identity: &str) {
    for _ in 0..3000 {
        if is_open(server, identity).await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{identity} is not opened");
}

fn replicas(data: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(data.join("replicas")).expect("directory");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("name")
        })
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_with_schedules_are_opened_at_the_start() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let planned = publish(&server, &user, "planned", "module timer").await;
    let quiet = publish(&server, &user, "quiet", "module").await;
    let dir = server.stop().await;
    let control = ControlDb::open(&dir.path().join("data/control-db")).expect("it opens");
    let due = |identity: &str| control.due(&Identity::from_hex(identity).expect("an identity"));
    assert_eq!(due(&planned), Due::Open, "a call is planned in the first");
    assert_eq!(due(&quiet), Due::Never, "the second cannot plan any");
    drop(control);
    let server = TestServer::start_in(dir, config("")).await;
    until_open(&server, &planned).await;
    // Both would have been opened by now, as the older one comes first.
    assert!(!is_open(&server, &quiet).await);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_that_open_slowly_do_not_hold_up_others() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let mut slow = Vec::new();
    for (name, program) in [
        ("slow1", "module timer held-load 1"),
        ("slow2", "module timer held-load 2"),
    ] {
        slow.push(publish(&server, &user, name, program).await);
    }
    let quick = publish(&server, &user, "quick", "module timer").await;
    let dir = server.stop().await;
    // As many as are opened at once; they are older, and come first.
    HELD.store(true, Ordering::SeqCst);
    let limits = config("[limits]\nload-ms-max = 300000\n");
    let server = TestServer::start_in(dir, limits).await;
    until_open(&server, &quick).await;
    for identity in &slow {
        assert!(!is_open(&server, identity).await);
    }
    HELD.store(false, Ordering::SeqCst);
    for identity in &slow {
        until_open(&server, identity).await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_publish_left_is_removed_at_the_start() {
    let server = TestServer::start().await;
    let user = server.user().await;
    for name in ["first", "second", "third"] {
        publish(&server, &user, name, "module").await;
    }
    let delete = server.request("DELETE", "/v1/database/second");
    assert_eq!(answer(delete.bearer_auth(&user.token)).await.0, 200);
    let data = server.dir.path().join("data");
    assert_eq!(replicas(&data), ["1", "3"]);
    let dir = server.stop().await;
    // As a delete leaves it that was killed when the control database had forgotten the replica.
    std::fs::create_dir_all(data.join("replicas/2/log")).expect("directory");
    std::fs::write(data.join("replicas/2/log/segment"), "left").expect("file");
    let server = TestServer::start_in(dir, config("")).await;
    for _ in 0..3000 {
        if replicas(&data) == ["1", "3"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(replicas(&data), ["1", "3"]);
    let (status, _) = server.ask("GET", "/v1/database/third").await;
    assert_eq!(status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_says_nothing_does_not_hold_up_a_stop() {
    let server = TestServer::start().await;
    let silent = tokio::net::TcpStream::connect(server.address).await;
    let silent = silent.expect("a connection");
    // Answered, so the silent one has been accepted as well.
    server.user().await;
    let dir = server.stop().await;
    // Otherwise the first server still has the directory.
    let server = TestServer::start_in(dir, config("")).await;
    drop(silent);
    server.stop().await;
}
