//! What holds for all routes: CORS, HEAD, 404, 405, limits (06 §1).

use std::time::Duration;

use crate::common;
use crate::common::{answer, config, header, json, TestServer};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn unknown_paths_and_wrong_methods() {
    let server = TestServer::start().await;
    for path in [
        "/",
        "/v1",
        "/v1/identity/",
        "/v2/ping",
        "/v1/database/x/pre-publish",
        "/v1/database/x/nothing",
    ] {
        let response = server.send("GET", path).await;
        assert_eq!(response.status(), 404, "{path}");
        assert_eq!(
            header(&response, "access-control-allow-origin"),
            None,
            "{path}"
        );
        assert_eq!(header(&response, "spacetime-identity"), None, "{path}");
        assert_eq!(response.text().await.expect("body"), "");
    }
    let response = server.send("PATCH", "/v1/database/x").await;
    assert_eq!(response.status(), 405);
    let mut allow: Vec<_> = header(&response, "allow")
        .expect("allow")
        .split(',')
        .collect();
    allow.sort_unstable();
    assert_eq!(allow, ["DELETE", "GET", "HEAD", "PUT"]);
    assert!(header(&response, "spacetime-identity").is_some());
    assert_eq!(header(&response, "access-control-allow-origin"), Some("*"));
    assert_eq!(response.text().await.expect("body"), "");
    assert_eq!(server.ask("POST", "/v1/ping").await, (405, String::new()));
    assert_eq!(server.ask("POST", "/v1/database/x/subscribe").await.0, 405);
}

#[tokio::test]
async fn cross_origin() {
    let server = TestServer::start().await;
    for path in [
        "/v1/ping",
        "/v1/database/x/call/f",
        "/v1/identity/websocket-token",
        "/v1/database/x/route/a",
    ] {
        let preflight = server
            .request("OPTIONS", path)
            .header("origin", "http://example.com")
            .header("access-control-request-method", "POST")
            .send()
            .await
            .expect("response");
        assert_eq!(preflight.status(), 200, "{path}");
        assert_eq!(header(&preflight, "access-control-allow-origin"), Some("*"));
        assert_eq!(
            header(&preflight, "access-control-allow-methods"),
            Some("*")
        );
        assert_eq!(
            header(&preflight, "access-control-allow-headers"),
            Some("authorization,accept,content-type")
        );
        let vary = "origin, access-control-request-method, access-control-request-headers";
        assert_eq!(header(&preflight, "vary"), Some(vary));
        assert_eq!(header(&preflight, "spacetime-identity"), None);
        assert_eq!(preflight.text().await.expect("body"), "");
    }
    let refused = server
        .request("GET", "/v1/ping")
        .header("authorization", "x")
        .send()
        .await
        .expect("response");
    assert_eq!(refused.status(), 400);
    assert_eq!(header(&refused, "access-control-allow-origin"), Some("*"));
    assert_eq!(
        header(&refused, "content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(server.ask("OPTIONS", "/v1/nothing").await.0, 404);
}

#[tokio::test]
async fn small_routes() {
    let server = TestServer::start().await;
    assert_eq!(server.ask("GET", "/v1/ping").await, (200, String::new()));
    assert_eq!(server.ask("HEAD", "/v1/health").await, (200, String::new()));
    let health = server.send("GET", "/v1/health").await;
    assert_eq!(header(&health, "content-type"), Some("application/json"));
    assert_eq!(
        json(&health.text().await.expect("body"))["schedulable"],
        true
    );
    let discovery = server.ask("GET", "/v1/prometheus/sd_config").await;
    assert_eq!(
        discovery,
        (200, r#"[{"targets":["node:80"],"labels":{}}]"#.into())
    );
    let metrics = server.send("GET", "/v1/metrics").await;
    assert_eq!(
        header(&metrics, "content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(metrics
        .text()
        .await
        .expect("body")
        .contains("\nlightcone_connections_total "));
    let user = server.user().await;
    let energy = format!("/v1/energy/{}", user.identity);
    assert_eq!(
        server.ask("GET", &energy).await,
        (200, r#"{"balance":"0"}"#.into())
    );
    assert_eq!(
        server.ask("PUT", &energy).await,
        (401, "Authorization required".into())
    );
    assert_eq!(
        answer(server.request("PUT", &energy).bearer_auth(&user.token)).await,
        (401, String::new())
    );
    let refill = server
        .request("POST", &format!("{energy}?amount=x"))
        .bearer_auth(&user.token);
    assert_eq!(answer(refill).await, (400, String::new()));
    for path in [
        "/internal/heap",
        "/internal/heap/settings",
        "/internal/task-dump",
    ] {
        let response = server.send("GET", path).await;
        assert_eq!(response.status(), 501, "{path}");
        assert_eq!(header(&response, "access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn http2_without_tls() {
    let server = TestServer::start().await;
    let mut stream = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connect");
    stream
        .write_all(b"PRI * HTTP/2.0\r\n")
        .await
        .expect("write");
    tokio::time::sleep(Duration::from_millis(50)).await;
    stream
        .write_all(b"\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .expect("write");
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.expect("settings");
    assert_eq!(frame[3], 4, "the first frame is SETTINGS");
}

#[tokio::test]
async fn too_many_connections() {
    let server = TestServer::start_with(config("[limits]\nconnections-max = 2")).await;
    let first = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connect");
    let second = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connect");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut third = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connect");
    let mut text = String::new();
    third.read_to_string(&mut text).await.expect("answer");
    assert!(
        text.starts_with("HTTP/1.1 503 ") && text.contains("[LC0116]"),
        "{text}"
    );
    drop((first, second));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.ask("GET", "/v1/ping").await.0, 200);
}

#[tokio::test]
async fn slow_clients_are_cut_off() {
    let text = "[limits]\nheader-timeout = \"200ms\"\nbody-timeout = \"200ms\"";
    let server = TestServer::start_with(config(text)).await;
    for start in [
        "",
        "P",
        "PRI * HT",
        "GET /v1/ping HTTP/1.1\r\nhost: localhost\r\n",
    ] {
        let mut stream = tokio::net::TcpStream::connect(server.address)
            .await
            .expect("connect");
        stream.write_all(start.as_bytes()).await.expect("write");
        let mut rest = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        end.expect("the server ends the connection").ok();
    }
    let mut stream = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connect");
    let start = "POST /v1/database HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nabc";
    stream.write_all(start.as_bytes()).await.expect("write");
    let mut answer = vec![0; 1024];
    let count = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut answer))
        .await
        .expect("in time");
    let answer = String::from_utf8_lossy(&answer[..count.expect("answer")]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

/// Over HTTP/2 a client can leave no room for an answer while its connection looks alive.
#[tokio::test]
async fn an_answer_that_is_not_taken_is_cut_off() {
    let text = "[limits]\nbody-timeout = \"200ms\"";
    let server = TestServer::start_with(config(text)).await;
    let mut stream = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connect");
    // SETTINGS with INITIAL_WINDOW_SIZE 0, and GET of a path from `localhost` as stream 1 (RFC 9113 §6.2, RFC 7541 §6.2.2).
    let path = b"/v1/identity/public-key";
    let mut headers = vec![0x82, 0x86, 0x04, path.len() as u8];
    headers.extend_from_slice(path);
    headers.extend_from_slice(b"\x01\x09localhost");
    let mut start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    start.extend_from_slice(b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0");
    start.extend_from_slice(&[0, 0, headers.len() as u8, 1, 5, 0, 0, 0, 1]);
    start.extend_from_slice(&headers);
    stream.write_all(&start).await.expect("write");
    let mut answered = Vec::new();
    let end = stream.read_to_end(&mut answered);
    let end = tokio::time::timeout(Duration::from_secs(10), end).await;
    end.expect("the server ends the connection").ok();
    assert!(answered.len() > 50, "settings and the answer's headers");
}

/// A byte now and then is not for ever; a body that comes fast enough may take its time.
#[tokio::test]
async fn slow_bodies_have_a_deadline() {
    let text = "[limits]\nbody-timeout = \"10s\"\nbody-total-timeout = \"300ms\"";
    let server = TestServer::start_with(config(text)).await;
    let send = |part: &'static [u8], pause_ms| {
        let address = server.address;
        async move {
            let mut stream = tokio::net::TcpStream::connect(address)
                .await
                .expect("connect");
            let length = 40 * part.len();
            let start = format!(
                "POST /v1/database HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
            );
            stream.write_all(start.as_bytes()).await.expect("write");
            for _ in 0..40 {
                // The server may have answered and closed already.
                let _ = stream.write_all(part).await;
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            }
            let mut answer = String::new();
            let end = stream.read_to_string(&mut answer);
            let ended = tokio::time::timeout(Duration::from_secs(30), end).await;
            let _ = ended.expect("the server answers");
            answer
        }
    };
    let answer = send(b"x", 20).await;
    assert!(answer.is_empty() || answer.contains("LC0110"), "{answer}");
    static PART: [u8; 64 << 10] = [0; 64 << 10];
    let answer = send(&PART, 20).await;
    assert!(!answer.is_empty() && !answer.contains("LC0110"), "{answer}");
}

/// Sends a body of 1 MB in parts, and returns the answer. Fails if the server ends the connection before.
async fn answer_to_a_long_body(server: &TestServer, request_line: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connect");
    let parts = 50;
    let part = vec![0; 20_000];
    let start = format!(
        "{request_line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        parts * part.len()
    );
    stream.write_all(start.as_bytes()).await.expect("write");
    for _ in 0..parts {
        stream.write_all(&part).await.expect("the server reads on");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("answer");
    text
}

/// Whatever the reason, and however little of the body was read.
#[tokio::test]
async fn a_client_that_sends_too_much_sees_the_answer() {
    let server = TestServer::start_with(config("[limits]\nprogram-bytes-max = 1000")).await;
    for (request_line, status, text) in [
        ("POST /v1/database", "413", "length limit exceeded"),
        ("POST /v1/database/missing/pre_publish", "404", "missing"),
        ("POST /v1/database/missing/call/f", "404", "missing"),
        ("POST /v1/database?clear=perhaps", "400", ""),
        ("GET /v1/identity/public-key", "200", "PUBLIC KEY"),
        ("DELETE /v1/ping", "405", ""),
        ("POST /nowhere", "404", ""),
    ] {
        let answer = answer_to_a_long_body(&server, request_line).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(text),
            "{request_line}: {answer}"
        );
    }
}

/// The body of a client that waits for `100 Continue` is not asked for when the answer is known: no user uploads a module that
/// he may not publish.
#[tokio::test]
async fn a_client_that_asks_first_is_answered_at_once() {
    let server = TestServer::start_with(config("[publish]\nallowed = []")).await;
    for (request_line, status) in [
        ("POST /v1/database/missing/call/f", "404"),
        ("POST /v1/database", "403"),
        ("PUT /v1/database/new", "403"),
        ("PUT /v1/database/missing/reset", "404"),
        ("POST /v1/database/missing/pre_publish", "404"),
    ] {
        let mut stream = tokio::net::TcpStream::connect(server.address)
            .await
            .expect("connect");
        let request = format!(
            "{request_line} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 1000\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("write");
        let mut start = [0; 13];
        let read = stream.read_exact(&mut start);
        tokio::time::timeout(Duration::from_secs(10), read)
            .await
            .unwrap_or_else(|_| panic!("{request_line} is not answered"))
            .expect("read");
        let start = String::from_utf8_lossy(&start);
        assert_eq!(start, format!("HTTP/1.1 {status} "), "{request_line}");
    }
}

#[tokio::test]
async fn the_default_configuration_is_written() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let options = || {
        let address = "127.0.0.1:0".parse().expect("address");
        let mut options = lightcone_server::ServerOptions::new(
            address,
            dir.path().join("data"),
            common::fake::engines(),
        );
        options.node.jwt_key_dir = Some(dir.path().join("keys"));
        options
    };
    let handle = lightcone_server::Server::bind(options())
        .await
        .expect("start");
    let text = std::fs::read_to_string(dir.path().join("data/config.toml")).expect("config.toml");
    assert_eq!(text, lightcone_node::config::default_text());
    let second = lightcone_server::Server::bind(options())
        .await
        .err()
        .expect("locked");
    assert!(second
        .to_string()
        .starts_with("cannot take lock on database; spacetime.pid already exists"));
    handle.shutdown().await;
    // Everything is released.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let handle = lightcone_server::Server::bind(options())
        .await
        .expect("start again");
    handle.shutdown().await;
    let mut without_keys = options();
    without_keys.node.jwt_key_dir = None;
    assert!(lightcone_server::Server::bind(without_keys).await.is_err());
}

/// Clients open connections that they may use later, and a stop does not wait for them.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_request_does_not_hold_the_server() {
    let server = TestServer::start().await;
    let mut unused = Vec::new();
    for _ in 0..3 {
        unused.push(
            tokio::net::TcpStream::connect(server.address)
                .await
                .expect("socket"),
        );
    }
    // So that they are accepted.
    server.user().await;
    let directory = server.stop().await;
    let server = TestServer::start_in(directory, config("")).await;
    server.user().await;
    drop(unused);
}
