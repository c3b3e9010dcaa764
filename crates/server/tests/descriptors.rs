//! Clients never take the last file descriptors. A process of its own, because its limit counts for all of it.

mod common;

use common::{answer, config, TestServer};
use tokio::io::AsyncReadExt as _;

const LIMIT: u64 = 256;

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

    // The client of before still has its connection, and the log its files.
    for id in 0..200 {
        let row = format!("[{id}, \"{}\"]", "x".repeat(500));
        let call = server.request("POST", "/v1/database/db/call/add");
        let call = call.header("content-type", "application/json");
        let (status, body) = answer(call.bearer_auth(&user.token).body(row)).await;
        assert_eq!(status, 200, "call {id}: {body}");
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
