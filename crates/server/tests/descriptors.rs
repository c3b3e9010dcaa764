//! Clients never take the last file descriptors. A process of its own, because its limit counts for all of it.

mod common;

use common::{answer, config, TestServer, User};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const LIMIT: u64 = 256;

/// Calls `add` on a connection that stays, and returns the head of the answer.
async fn call(connection: &mut tokio::net::TcpStream, user: &User, args: &str) -> String {
    let request = format!(
        "POST /v1/database/db/call/add HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{args}",
        user.token,
        args.len()
    );
    let sent = connection.write_all(request.as_bytes()).await;
    sent.expect("the connection lives");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await.expect("an answer"));
    }
    let head = String::from_utf8(head).expect("text");
    let length = head.lines().find_map(|line| {
        line.to_lowercase()
            .strip_prefix("content-length: ")?
            .parse()
            .ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    let read = connection.read_exact(&mut body).await;
    read.expect("the whole answer");
    head
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_leave_descriptors_for_the_databases() {
    use rustix::process::{setrlimit, Resource, Rlimit};
    let limit = Rlimit {
        current: Some(LIMIT / 2),
        maximum: Some(LIMIT),
    };
    setrlimit(Resource::Nofile, limit).expect("a lower limit is allowed");
    // Every call begins a new segment of the log.
    let settings = "[commitlog]\nmax-segment-size = 4096\npreallocate-segments = false\n";
    let server = TestServer::start_with(config(settings)).await;
    let user = server.user().await;
    let publish = server.request("PUT", "/v1/database/db");
    let (status, body) = answer(publish.bearer_auth(&user.token).body("module")).await;
    assert_eq!(status, 200, "{body}");

    let mut kept = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("a connection");
    let answer = call(&mut kept, &user, "[1000, \"first\"]").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    // Idle connections, until one is refused. Both ends are files of this process.
    let mut idle = Vec::new();
    let refusal = loop {
        assert!(idle.len() < LIMIT as usize, "nothing bounds connections");
        let stream = tokio::net::TcpStream::connect(server.address).await;
        let mut stream = stream.expect("there are descriptors for the client");
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        match tokio::time::timeout(std::time::Duration::from_millis(50), read).await {
            Err(_) => idle.push(stream),
            Ok(_) => break answer,
        }
    };
    assert!(refusal.starts_with("HTTP/1.1 503"), "{refusal}");
    assert!(refusal.contains("[LC0329]"), "{refusal}");
    assert!(idle.len() as u64 > LIMIT / 8, "{} connections", idle.len());

    // Who is connected goes on, and the log has its files.
    for id in 0..200 {
        let args = format!("[{id}, \"{}\"]", "x".repeat(500));
        let answer = call(&mut kept, &user, &args).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "call {id}: {answer}");
    }
    drop(idle);
    for _ in 0..1000 {
        let fresh = reqwest::Client::new();
        let asked = fresh.get(format!("{}/v1/ping", server.base)).send().await;
        if asked.is_ok_and(|response| response.status() == 200) {
            return drop(server.stop().await);
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no connection after the others have gone");
}
