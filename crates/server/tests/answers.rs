//! Answers that are as large as a caller wants: each is counted until it is taken, and what all ask for is there once.

use crate::common::{answer, config, TestServer, User};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A module whose definition has so many tables with long names.
fn wide(tables: usize) -> String {
    let name = "x".repeat(3000);
    let tables = (0..tables).map(|number| format!("table:t{number}_{name}"));
    let tables: Vec<_> = tables.collect();
    format!("module {}", tables.join(" "))
}

async fn server_with(text: &str, program: &str) -> (TestServer, User) {
    let server = TestServer::start_with(config(text)).await;
    let user = server.user().await;
    let publish = server.request("PUT", "/v1/database/wide");
    let publish = publish.bearer_auth(&user.token).body(program.to_owned());
    let (status, body) = answer(publish).await;
    assert_eq!(status, 200, "{body}");
    (server, user)
}

/// What clients have asked for and not yet taken.
async fn held_bytes(server: &TestServer) -> usize {
    let (_, text) = server.ask("GET", "/v1/metrics").await;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("lightcone_clients_bytes "));
    line.expect("it is told").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_there_once_however_many_do_not_take_it() {
    // More than the buffers of a socket take.
    const CONNECTIONS: usize = 40;
    let (server, user) = server_with("", &wide(600)).await;
    let path = "/v1/database/wide/schema?version=10";
    let (status, text) = server.ask("GET", path).await;
    assert_eq!(status, 200);
    assert!(text.len() > 5 << 20, "{} bytes", text.len());
    let mut unread = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(server.address).await.expect("connect");
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let sent = stream.write_all(request.as_bytes()).await;
        sent.expect("sent");
        // It has begun to answer.
        let mut start = [0; 15];
        stream.read_exact(&mut start).await.expect("an answer");
        assert_eq!(&start, b"HTTP/1.1 200 OK");
        unread.push(stream);
    }
    let held = held_bytes(&server).await;
    // Counted in steps.
    let once = text.len() - (1 << 16)..2 * text.len();
    assert!(once.contains(&held), "{held} of {} bytes", text.len());
    // The old text goes with the last one that has it.
    let publish = server.request("PUT", "/v1/database/wide");
    let publish = publish
        .bearer_auth(&user.token)
        .body(wide(600) + " table:more");
    assert_eq!(answer(publish).await.0, 200);
    assert!(held_bytes(&server).await >= text.len() - (1 << 16));
    drop(unread);
    let mut left = usize::MAX;
    for _ in 0..500 {
        left = held_bytes(&server).await;
        if left < text.len() / 2 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{left} bytes are still held");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_grows_is_counted_whichever_route_answers() {
    // No caller may have more than that under way.
    let limits =
        "[limits]\nclient-bytes-max = 65536\nrequest-timeout = \"1m\"\n[metrics]\nnames = false";
    let (server, user) = server_with(limits, &wide(30)).await;
    for _ in 0..3 {
        let call = server.request("POST", "/v1/database/wide/call/fail");
        let call = call.bearer_auth(&user.token).json(&["y".repeat(40_000)]);
        assert_eq!(answer(call).await.0, 530);
    }
    let of_user = format!("/v1/identity/{}/databases", user.identity);
    let empty = String::new();
    for (method, path, body, is_large) in [
        (
            "GET",
            "/v1/database/wide/schema?version=9",
            empty.clone(),
            true,
        ),
        (
            "GET",
            "/v1/database/wide/schema?version=10",
            empty.clone(),
            true,
        ),
        ("GET", "/v1/database/wide/tables", empty.clone(), true),
        ("GET", "/v1/database/wide/logs", empty.clone(), true),
        (
            "GET",
            "/v1/database/wide/logs?num_lines=1",
            empty.clone(),
            false,
        ),
        (
            "GET",
            "/v1/database/wide/logs?num_lines=9&follow=true",
            empty.clone(),
            true,
        ),
        ("GET", "/v1/database/wide/metrics", empty.clone(), true),
        ("GET", "/v1/metrics", empty.clone(), false),
        (
            "POST",
            "/v1/database/wide/pre_publish",
            "module".to_owned(),
            true,
        ),
        (
            "POST",
            "/v1/database/wide/call/fail",
            format!("[\"{}\"]", "y".repeat(70_000)),
            true,
        ),
        ("GET", "/v1/database/wide", empty.clone(), false),
        ("GET", "/v1/database/wide/names", empty.clone(), false),
        ("GET", &of_user, empty.clone(), false),
        ("GET", "/v1/ping", empty.clone(), false),
    ] {
        let request = server.request(method, path);
        let request = request
            .bearer_auth(&user.token)
            .header("content-type", "application/json");
        let (status, text) = answer(request.body(body)).await;
        let start: String = text.chars().take(300).collect();
        if is_large {
            assert!(
                status == 400 && text.contains("[LC0706]"),
                "{path}: {status} {start}"
            );
        } else {
            assert_eq!(status, 200, "{path}: {start}");
        }
    }
    assert_eq!(held_bytes(&server).await, 0, "nothing is left");
}
