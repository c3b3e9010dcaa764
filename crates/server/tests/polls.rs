//! No connection keeps its network thread from the others, whatever it asks for.

use crate::common::{answer, config, TestServer};
use futures_util::{SinkExt as _, StreamExt as _};
use lightcone_types::bsatn::Encode as _;
use lightcone_wire::ClientMessage;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::Message;

#[tokio::test(flavor = "multi_thread")]
async fn large_things_are_made_elsewhere() {
    let server = TestServer::start_with(config("")).await;
    let user = server.user().await;
    let name = "x".repeat(3000);
    let tables: Vec<_> = (0..120).map(|n| format!("table:t{n}_{name}")).collect();
    let program = format!("module {}", tables.join(" "));
    let padded = |bytes: usize| program.clone() + &" ".repeat(bytes);
    let ask = |method: &str, path: &str, body: String| {
        let path = format!("/v1/database/wide{path}");
        let request = server.request(method, &path).bearer_auth(&user.token);
        let request = request.header("content-type", "application/json");
        answer(request.body(body))
    };
    for (what, method, path, body, expected) in [
        ("a publish", "PUT", "", padded(24 << 20), 200),
        ("the same publish", "PUT", "", padded(24 << 20), 200),
        ("an update", "PUT", "", padded(25 << 20), 200),
        ("a plan", "POST", "/pre_publish", padded(26 << 20), 200),
        ("a reset", "PUT", "/reset", padded(27 << 20), 200),
        ("what is no module", "PUT", "", " ".repeat(28 << 20), 500),
        (
            "a definition",
            "GET",
            "/schema?version=10",
            String::new(),
            200,
        ),
        (
            "an older one",
            "GET",
            "/schema?version=9",
            String::new(),
            200,
        ),
        ("tables", "GET", "/tables", String::new(), 200),
        ("a log", "GET", "/logs", String::new(), 200),
        (
            "arguments",
            "POST",
            "/call/add",
            format!("[1, \"{}\"]", "\\n".repeat(500_000)),
            200,
        ),
        (
            "wrong ones",
            "POST",
            "/call/add",
            format!("[{}1]", "[1], ".repeat(300_000)),
            400,
        ),
        (
            "a query",
            "POST",
            "/sql",
            "SELECT * FROM person".to_owned(),
            200,
        ),
        ("metrics", "GET", "/metrics", String::new(), 200),
        ("a list of names", "GET", "/names", String::new(), 200),
    ] {
        println!("{what}");
        let (status, text) = ask(method, path, body).await;
        let start: String = text.chars().take(300).collect();
        assert_eq!(status, expected, "{what}: {start}");
        server.assert_short_polls();
    }
    let (_, text) = server.ask("GET", "/v1/metrics").await;
    assert!(text.contains("\nlightcone_network_polls_slow_total "));
    assert!(text.contains("\nlightcone_network_poll_longest_seconds 0.0"));
}

/// Messages of WebSocket, however many texts they name, and what comes back, however large.
#[tokio::test(flavor = "multi_thread")]
async fn long_messages_are_decoded_and_compressed_elsewhere() {
    let server = TestServer::start_with(config("")).await;
    let user = server.user().await;
    let request = server.request("PUT", "/v1/database/a");
    let request = request.bearer_auth(&user.token).body("module");
    assert_eq!(answer(request).await.0, 200);
    let url = format!("ws://{}/v1/database/a/subscribe", server.address);
    let mut request = url.into_client_request().expect("request");
    let protocol = "v2.bsatn.spacetimedb".parse().expect("header");
    let headers = request.headers_mut();
    headers.insert("sec-websocket-protocol", protocol);
    let connected = tokio_tungstenite::connect_async(request).await;
    let (mut socket, _) = connected.expect("connected");
    let encoded = |message: ClientMessage<'_>| {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        Message::Binary(bytes.into())
    };
    let mut args = 1_u32.to_vec();
    "a long name ".repeat(100_000).encode(&mut args);
    for message in [
        ClientMessage::Subscribe {
            request_id: 1,
            query_set_id: 1,
            query_strings: vec![""; 1_000_000],
        },
        ClientMessage::CallReducer {
            request_id: 2,
            reducer: "add",
            args: &args,
        },
        ClientMessage::OneOffQuery {
            request_id: 3,
            query_string: "SELECT * FROM person",
        },
    ] {
        socket.send(encoded(message)).await.expect("sent");
    }
    // The greeting, a refusal, a result, and all rows, compressed. Unmasking what comes takes its time here, where code is not optimized.
    let mut received = 0;
    while received < 4 {
        let message = socket.next().await.expect("a message").expect("no error");
        assert!(!message.is_close(), "{message}");
        received += usize::from(message.is_binary());
        server.assert_short_polls();
    }
}
