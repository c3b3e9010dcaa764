//! The WebSocket endpoint (chapter 05 §2, §3, §8, §11).

use std::time::Duration;

use crate::common::{answer, config, header, json, TestServer, User};
use futures_util::{SinkExt as _, StreamExt as _};
use lightcone_types::bsatn::Encode as _;
use lightcone_types::{ConnectionId, Identity};
use lightcone_wire::{
    payload, ClientMessage, Protocol, ReducerOutcome, ServerMessage, TableUpdateRows,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn publish(server: &TestServer, program: &'static str) -> User {
    let user = server.user().await;
    let request = server
        .request("PUT", "/v1/database/a")
        .bearer_auth(&user.token)
        .body(program);
    let (status, body) = answer(request).await;
    assert_eq!(status, 200, "{body}");
    user
}

async fn connect(
    server: &TestServer,
    query: &str,
    protocols: &'static str,
) -> Result<Socket, WsError> {
    let url = format!("ws://{}/v1/database/a/subscribe{query}", server.address);
    let mut request = url.into_client_request().expect("request");
    request
        .headers_mut()
        .insert("sec-websocket-protocol", protocols.parse().expect("header"));
    tokio_tungstenite::connect_async(request)
        .await
        .map(|(socket, _)| socket)
}

async fn next(socket: &mut Socket) -> Option<Result<Message, WsError>> {
    loop {
        match tokio::time::timeout(Duration::from_secs(10), socket.next())
            .await
            .expect("in time")
        {
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            other => return other,
        }
    }
}

async fn messages(socket: &mut Socket, protocol: Protocol) -> Vec<ServerMessage> {
    match next(socket).await {
        Some(Ok(Message::Binary(bytes))) => {
            let body = payload::decode_body(&bytes, 64 << 20).expect("payload");
            payload::decode_messages(protocol, &body).expect("messages")
        }
        other => panic!("{other:?}"),
    }
}

fn call(request_id: u32, reducer: &str, args: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    ClientMessage::CallReducer {
        request_id,
        reducer,
        args,
    }
    .encode(&mut bytes);
    bytes
}

fn person(id: u32, name: &str) -> Vec<u8> {
    let mut row = id.to_vec();
    name.to_owned().encode(&mut row);
    row
}

const V2: &str = "v2.bsatn.spacetimedb";
const BOTH: &str = "v2.bsatn.spacetimedb, v3.bsatn.spacetimedb";

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_measured() {
    let server = TestServer::start().await;
    publish(&server, "module").await;
    let mut socket = connect(&server, "?compression=None", V2)
        .await
        .expect("connected");
    messages(&mut socket, Protocol::V2).await;
    let sent = call(1, "add", &person(1, &"x".repeat(300)));
    let bytes = sent.len();
    assert!((257..=1024).contains(&bytes));
    socket
        .send(Message::Binary(sent.into()))
        .await
        .expect("sent");
    messages(&mut socket, Protocol::V2).await;
    let text = server.ask("GET", "/v1/metrics").await.1;
    let value = |name: &str, label: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with(name));
        let line = lines.find(|line| line.contains(label)).unwrap_or_default();
        line.rsplit(' ').next().unwrap_or_default().to_owned()
    };
    let received = "spacetime_websocket_request_msg_size";
    let bucket = format!("{received}_bucket");
    assert_eq!(value(&bucket, "le=\"256\""), "0", "{text}");
    assert_eq!(value(&bucket, "le=\"1024\""), "1");
    assert_eq!(value(&bucket, "le=\"+Inf\""), "1");
    assert_eq!(value(&format!("{received}_sum"), ""), bytes.to_string());
    assert_eq!(value("spacetime_websocket_requests_total", ""), "1");
    let sent = "spacetime_websocket_sent_msg_size_bytes";
    assert_eq!(value(&format!("{sent}_count"), ""), "2", "{text}");
}

/// The table of 05 §2.6, every row with all later ones wrong too.
#[tokio::test(flavor = "multi_thread")]
async fn order_of_the_handshake_checks() {
    let server = TestServer::start().await;
    publish(&server, "module").await;
    let stranger = Identity::from_claims("localhost", "stranger").to_hex();
    struct Case<'a> {
        path: &'a str,
        query: &'a str,
        headers: &'a [(&'a str, &'a str)],
        status: u16,
        body: &'a str,
    }
    const UPGRADE: &[(&str, &str)] = &[
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
    ];
    const VERSION: (&str, &str) = ("sec-websocket-version", "13");
    const KEY: (&str, &str) = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    let zero = "connection_id=00000000000000000000000000000000";
    let with = |more: &[(&'static str, &'static str)]| [UPGRADE, more].concat();
    let (no_version, no_key, complete) = (with(&[]), with(&[VERSION]), with(&[VERSION, KEY]));
    let text_protocol = with(&[
        VERSION,
        KEY,
        (
            "sec-websocket-protocol",
            "v1.json.spacetimedb, V2.bsatn.spacetimedb",
        ),
    ]);
    let cases = [
        Case {
            path: "B_",
            query: "token=x&light=1",
            headers: &[("authorization", "x")],
            status: 400,
            body: "Authorization is invalid: malformed token",
        },
        Case {
            path: "B_",
            query: "token=x&light=1",
            headers: &[],
            status: 401,
            body: "Invalid token: InvalidToken",
        },
        Case {
            path: "b_",
            query: "light=1",
            headers: &[],
            status: 400,
            body: "Invalid URL: invalid characters in database name",
        },
        Case {
            path: "b",
            query: "light=1",
            headers: &[],
            status: 400,
            body: "Failed to deserialize query string: ",
        },
        Case {
            path: "b",
            query: "compression=gzip",
            headers: &[],
            status: 400,
            body: "Failed to deserialize",
        },
        Case {
            path: "b",
            query: "connection_id=0x12",
            headers: &[],
            status: 400,
            body: "Failed to deserialize",
        },
        Case {
            path: "b",
            query: "session_id=12",
            headers: &[],
            status: 400,
            body: "Failed to deserialize",
        },
        Case {
            path: "b",
            query: "confirmed=true&confirmed=true",
            headers: &[],
            status: 400,
            body: "Failed to ",
        },
        Case {
            path: "b",
            query: zero,
            headers: &[],
            status: 426,
            body: "This service requires use of the websocket protocol",
        },
        Case {
            path: "b",
            query: zero,
            headers: &no_version,
            status: 400,
            body: "`Sec-WebSocket-Version` header did not include '13'",
        },
        Case {
            path: "b",
            query: zero,
            headers: &no_key,
            status: 400,
            body: "`Sec-WebSocket-Key` header missing",
        },
        Case {
            path: "b",
            query: zero,
            headers: &complete,
            status: 400,
            body: "Invalid connection ID: the all-zeros ConnectionId is reserved.",
        },
        Case {
            path: "b",
            query: "",
            headers: &complete,
            status: 404,
            body: "`b` not found",
        },
        Case {
            path: &stranger,
            query: "",
            headers: &complete,
            status: 404,
            body: "No such database.",
        },
        Case {
            path: "a",
            query: "",
            headers: &complete,
            status: 400,
            body: "no valid protocol selected",
        },
        Case {
            path: "a",
            query: "",
            headers: &text_protocol,
            status: 400,
            body: "no valid protocol selected",
        },
    ];
    for case in cases {
        let mut request = server.request(
            "GET",
            &format!("/v1/database/{}/subscribe?{}", case.path, case.query),
        );
        for (name, value) in case.headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.expect("response");
        let status = response.status().as_u16();
        if status == 426 {
            assert_eq!(header(&response, "upgrade"), Some("websocket"));
            assert_eq!(header(&response, "connection"), Some("upgrade"));
        }
        let body = response.text().await.expect("body");
        assert!(
            status == case.status && body.starts_with(case.body),
            "{}?{}: {status} {body}",
            case.path,
            case.query
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_handshakes() {
    let server = TestServer::start().await;
    let user = publish(&server, "module").await;
    for (offered, selected) in [
        (vec![V2], V2),
        (vec![BOTH], "v3.bsatn.spacetimedb"),
        (
            vec!["v1.json.spacetimedb", "v3.bsatn.spacetimedb"],
            "v3.bsatn.spacetimedb",
        ),
    ] {
        let mut stream = TcpStream::connect(server.address).await.expect("connect");
        let offers: String = offered
            .iter()
            .map(|offer| format!("Sec-WebSocket-Protocol: {offer}\r\n"))
            .collect();
        let request = format!(
            "GET /v1/database/a/subscribe?light=true&unknown=1 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer {}\r\n{offers}\r\n",
            user.token
        );
        stream.write_all(request.as_bytes()).await.expect("write");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("head"));
        }
        let head = String::from_utf8(head).expect("UTF-8").to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        for line in [
            "connection: upgrade",
            "upgrade: websocket",
            &"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_ascii_lowercase(),
            &format!("sec-websocket-protocol: {selected}"),
            &format!("spacetime-identity: {}", user.identity),
        ] {
            assert!(
                head.contains(&format!("\r\n{line}\r\n")),
                "{line} in {head}"
            );
        }
        assert!(!head.contains("sec-websocket-extensions"), "{head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_message_and_calls() {
    let server = TestServer::start().await;
    let user = publish(&server, "module").await;
    for (protocols, protocol) in [(V2, Protocol::V2), (BOTH, Protocol::V3)] {
        let id = ConnectionId(7 + protocol as u128);
        let query = format!(
            "?connection_id={}&token={}&compression=None",
            id.to_hex(),
            user.token
        );
        let mut socket = connect(&server, &query, protocols)
            .await
            .expect("connected");
        // Sent before the module has accepted the client.
        for request_id in 0..3 {
            let row = person(request_id + protocol as u32 * 10, "x");
            socket
                .send(Message::Binary(call(request_id, "add", &row).into()))
                .await
                .expect("send");
        }
        let mut received = Vec::new();
        while received.len() < 4 {
            let more = messages(&mut socket, protocol).await;
            assert!(protocol == Protocol::V3 || more.len() == 1);
            received.extend(more);
        }
        match &received[0] {
            ServerMessage::InitialConnection {
                identity,
                connection_id,
                token,
            } => {
                assert_eq!(identity.to_hex(), user.identity);
                assert_eq!(*connection_id, id);
                assert_eq!(**token, *user.token);
            }
            other => panic!("{other:?}"),
        }
        for (expected, message) in received[1..].iter().enumerate() {
            match message {
                ServerMessage::ReducerResult {
                    request_id, result, ..
                } => {
                    assert_eq!(*request_id, expected as u32);
                    assert!(
                        matches!(result, ReducerOutcome::Ok { .. } | ReducerOutcome::OkEmpty),
                        "{result:?}"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        // The connection is a row while it lives.
        let count = || async {
            let request = server
                .request("POST", "/v1/database/a/sql")
                .bearer_auth(&user.token);
            let rows =
                json(&answer(request.body("SELECT * FROM st_client")).await.1)[0]["rows"].clone();
            rows.as_array()
                .expect("rows")
                .iter()
                .filter(|row| row[1] == json(&id.0.to_string()))
                .count()
        };
        assert_eq!(count().await, 1);
        socket.close(None).await.expect("close");
        match next(&mut socket).await {
            None | Some(Ok(Message::Close(None))) => {}
            other => panic!("{other:?}"),
        }
        tokio::time::timeout(Duration::from_secs(5), async { while count().await > 0 {} })
            .await
            .expect("disconnected");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn anonymous_clients_get_a_lasting_token() {
    let server = TestServer::start().await;
    publish(&server, "module").await;
    let mut socket = connect(&server, "", BOTH).await.expect("connected");
    match messages(&mut socket, Protocol::V3).await.remove(0) {
        ServerMessage::InitialConnection {
            identity,
            token,
            connection_id,
        } => {
            assert!(!connection_id.is_zero());
            let path = format!("/v1/identity/{identity}/verify");
            assert_eq!(
                answer(server.request("GET", &path).bearer_auth(&*token))
                    .await
                    .0,
                204
            );
        }
        other => panic!("{other:?}"),
    }
}

async fn close_reason(socket: &mut Socket) -> (CloseCode, String) {
    loop {
        match next(socket).await {
            Some(Ok(Message::Close(Some(frame)))) => return (frame.code, frame.reason.to_string()),
            Some(Ok(Message::Binary(_))) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// 05 §3.6 and §8.
#[tokio::test(flavor = "multi_thread")]
async fn close_codes() {
    let server = TestServer::start().await;
    let user = publish(&server, "module").await;
    let two_bytes = call(0, "add", &[])[..3].to_vec();
    for (message, reason) in [
        (
            Message::Binary(vec![9].into()),
            "unknown tag 0x9 for sum type ClientMessage",
        ),
        (
            Message::Binary(two_bytes.into()),
            "data too short for u32: Expected 4, given 2",
        ),
        (
            Message::Binary(vec![].into()),
            "v3 websocket binary payload must contain at least one v2 client message",
        ),
        (
            Message::Text("{}".into()),
            "v3 websocket does not support text messages",
        ),
    ] {
        let mut socket = connect(&server, "", BOTH).await.expect("connected");
        socket.send(message).await.expect("send");
        assert_eq!(
            close_reason(&mut socket).await,
            (CloseCode::Error, reason.to_owned())
        );
        assert!(next(&mut socket).await.is_none());
    }
    // The client's own Close is echoed.
    let mut socket = connect(&server, "", V2).await.expect("connected");
    let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame {
        code: CloseCode::Library(4001),
        reason: "bye".into(),
    };
    socket.close(Some(frame)).await.expect("close");
    assert_eq!(
        close_reason(&mut socket).await,
        (CloseCode::Library(4001), "bye".to_owned())
    );
    // Deletion and clearing end clients, updates do not.
    let mut socket = connect(&server, "", V2).await.expect("connected");
    messages(&mut socket, Protocol::V2).await;
    let put = |query: &str, program: &'static str| {
        answer(
            server
                .request("PUT", &format!("/v1/database/a{query}"))
                .bearer_auth(&user.token)
                .body(program),
        )
    };
    assert_eq!(put("", "module two").await.0, 200);
    socket
        .send(Message::Binary(call(1, "add", &person(99, "x")).into()))
        .await
        .expect("send");
    assert!(matches!(
        messages(&mut socket, Protocol::V2).await[0],
        ServerMessage::ReducerResult { .. }
    ));
    assert_eq!(put("?clear=true", "module three").await.0, 200);
    assert_eq!(
        close_reason(&mut socket).await,
        (CloseCode::Away, "module exited".to_owned())
    );
    let mut socket = connect(&server, "", V2).await.expect("connected");
    messages(&mut socket, Protocol::V2).await;
    server.stop().await;
    assert_eq!(
        close_reason(&mut socket).await,
        (CloseCode::Away, "module exited".to_owned())
    );
}

/// A client whose unfinished message takes more than is left for all others is told to try again later.
#[tokio::test(flavor = "multi_thread")]
async fn half_received_messages_are_bounded() {
    let server = TestServer::start_with(config("[limits]\nbuffered-bytes-max = 131072")).await;
    publish(&server, "module").await;
    let mut socket = connect(&server, "", V2).await.expect("connected");
    messages(&mut socket, Protocol::V2).await;
    let MaybeTlsStream::Plain(stream) = socket.get_mut() else {
        panic!("no TLS here")
    };
    // A masked binary frame of a megabyte, of which a part comes.
    let mut bytes = vec![0x82, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0];
    bytes.resize(200_000, 0);
    stream.write_all(&bytes).await.expect("write");
    assert_eq!(
        close_reason(&mut socket).await,
        (CloseCode::Again, "too many requests".to_owned())
    );
}

/// 05 §2.7: the second one is told, the first one is cut, and then the session is free.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_live() {
    let server = TestServer::start().await;
    let user = publish(&server, "module").await;
    let session = "00112233445566778899aAbBcCdDeEfF";
    let query = format!("?session_id={session}&token={}", user.token);
    let mut first = connect(&server, &query, BOTH).await.expect("connected");
    messages(&mut first, Protocol::V3).await;
    let mut second = connect(&server, &query, BOTH).await.expect("upgraded");
    let (code, reason) = close_reason(&mut second).await;
    assert_eq!(code, CloseCode::Library(4000));
    assert!(reason.contains("[LC0342]"), "{reason}");
    assert!(matches!(next(&mut first).await, None | Some(Err(_))));
    let mut third = connect(&server, &query, BOTH).await.expect("upgraded");
    messages(&mut third, Protocol::V3).await;
    // Without a token each is a client of its own.
    let anonymous = format!("?session_id={session}");
    let mut stranger = connect(&server, &anonymous, BOTH).await.expect("connected");
    messages(&mut stranger, Protocol::V3).await;
    let sent = call(1, "add", &person(1, "a"));
    third
        .send(Message::Binary(sent.into()))
        .await
        .expect("sent");
    messages(&mut third, Protocol::V3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_by_the_module() {
    let server = TestServer::start().await;
    publish(&server, "module refuse").await;
    let mut socket = connect(&server, "", V2)
        .await
        .expect("the upgrade succeeds");
    match next(&mut socket).await {
        None | Some(Err(_)) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_frames_are_dropped() {
    let server = TestServer::start_with(config("[limits]\nmessage-bytes-max = 1000")).await;
    publish(&server, "module").await;
    let mut too_long = vec![0x82, 0xfe];
    too_long.extend_from_slice(&1001u16.to_be_bytes());
    for bytes in [
        vec![0x82, 0x01, 0x00],
        vec![0xc2, 0x80, 0, 0, 0, 0],
        vec![0x83, 0x80, 0, 0, 0, 0],
        too_long,
    ] {
        let mut socket = connect(&server, "", V2).await.expect("connected");
        messages(&mut socket, Protocol::V2).await;
        let MaybeTlsStream::Plain(stream) = socket.get_mut() else {
            panic!("no TLS here")
        };
        stream.write_all(&bytes).await.expect("write");
        match next(&mut socket).await {
            None | Some(Err(_)) => {}
            other => panic!("{bytes:?}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_answers_come_in_fragments_and_many_clients_work() {
    let server = TestServer::start().await;
    publish(&server, "module").await;
    let mut socket = connect(&server, "?compression=None", BOTH)
        .await
        .expect("connected");
    messages(&mut socket, Protocol::V3).await;
    // The error text comes back whole: 3 MB, more than a fragment.
    let text = "x".repeat(3_000_000);
    let mut args = Vec::new();
    text.encode(&mut args);
    socket
        .send(Message::Binary(call(5, "fail", &args).into()))
        .await
        .expect("send");
    match messages(&mut socket, Protocol::V3).await.remove(0) {
        ServerMessage::ReducerResult {
            request_id: 5,
            result: ReducerOutcome::Err(error),
            ..
        } => {
            assert_eq!(error.len(), 3_000_004);
        }
        other => panic!("{other:?}"),
    }
    let clients = (0..20u32).map(|client| {
        let url = format!(
            "ws://{}/v1/database/a/subscribe?compression=None",
            server.address
        );
        tokio::spawn(async move {
            let mut request = url.into_client_request().expect("request");
            request
                .headers_mut()
                .insert("sec-websocket-protocol", BOTH.parse().expect("header"));
            let mut socket = tokio_tungstenite::connect_async(request)
                .await
                .expect("connected")
                .0;
            let batch: Vec<u8> = (0..40)
                .flat_map(|n| call(n, "add", &person(client * 1000 + n, "name")))
                .collect();
            socket
                .send(Message::Binary(batch.into()))
                .await
                .expect("send");
            let mut received = 0;
            while received < 41 {
                received += messages(&mut socket, Protocol::V3).await.len();
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("client");
    }
    let rows = answer(
        server
            .request("POST", "/v1/database/a/sql")
            .body("SELECT COUNT(*) AS n FROM person"),
    )
    .await;
    assert_eq!(json(&rows.1)[0]["rows"][0][0], 800, "{}", rows.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn keep_alive() {
    let text = "[websocket]\nping-interval = \"100ms\"\nidle-timeout = \"3s\"";
    let server = TestServer::start_with(config(text)).await;
    publish(&server, "module").await;
    // A client that answers Pings lives on. The test itself may be held up for longer than a few Pings on a busy machine.
    let mut socket = connect(&server, "", V2).await.expect("connected");
    let mut pings = 0;
    let lives = async {
        while let Some(Ok(message)) = socket.next().await {
            pings += usize::from(message.is_ping());
            if pings == 40 {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), lives)
        .await
        .expect("pings keep coming");
    assert_eq!(pings, 40);
    // Its own Pings are answered with their payload.
    socket
        .send(Message::Ping(vec![1, 2].into()))
        .await
        .expect("ping");
    let pong = async {
        while let Some(Ok(message)) = socket.next().await {
            if message == Message::Pong(vec![1, 2].into()) {
                return true;
            }
        }
        false
    };
    assert!(tokio::time::timeout(Duration::from_secs(30), pong)
        .await
        .expect("in time"));
    // One that is silent is dropped, without a Close.
    let mut socket = connect(&server, "", V2).await.expect("connected");
    let MaybeTlsStream::Plain(stream) = socket.get_mut() else {
        panic!("no TLS here")
    };
    let mut bytes = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut bytes)).await;
    end.expect("dropped").ok();
    let pings = bytes.windows(2).filter(|frame| *frame == [0x89, 0]).count();
    assert_eq!(pings, 1, "no second Ping before the first is answered");
}

/// A byte now and then is a sign of life, but a message that never ends holds memory.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_never_ends_is_cut_off() {
    let text = "[limits]\nbody-total-timeout = \"500ms\"\n[websocket]\nping-interval = \"100ms\"\nidle-timeout = \"800ms\"";
    let server = TestServer::start_with(config(text)).await;
    publish(&server, "module").await;
    let mut socket = connect(&server, "", V2).await.expect("connected");
    let MaybeTlsStream::Plain(stream) = socket.get_mut() else {
        panic!("no TLS here")
    };
    let (mut received, mut sending) = stream.split();
    // A masked binary frame of 60,000 bytes.
    sending
        .write_all(&[0x82, 0xfe, 0xea, 0x60, 0, 0, 0, 0])
        .await
        .expect("the start");
    let trickle = async {
        while sending.write_all(&[0]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let end = async {
        let mut buffer = [0; 1024];
        while let Ok(1..) = received.read(&mut buffer).await {}
    };
    let cut = async {
        tokio::select! {
            () = trickle => {}
            () = end => {}
        }
    };
    tokio::time::timeout(Duration::from_secs(10), cut)
        .await
        .expect("the server ends the connection");
}

/// A client is written to by couriers and by its own task. However often they take turns, it gets each update once and in order.
#[tokio::test(flavor = "multi_thread")]
async fn updates_come_in_order_to_clients_that_are_slow() {
    // 8 bytes, bodies that are shared, and those that are written from where they are: couriers fill the sockets with them. Then those
    // that couriers leave.
    const NAME_BYTES: [usize; 4] = [8, 3_000, 30_000, 60_000];
    const LARGE_NAME_BYTES: usize = 90_000;
    const LARGE_FROM: u32 = 800;
    const COUNT: u32 = 900;
    let name = |id: u32| match id < LARGE_FROM {
        true => "x".repeat(NAME_BYTES[id as usize % 4]),
        false => "x".repeat(LARGE_NAME_BYTES),
    };
    let server = TestServer::start().await;
    publish(&server, "module").await;
    let mut caller = connect(&server, "?compression=None", V2)
        .await
        .expect("connected");
    messages(&mut caller, Protocol::V2).await;
    let mut readers = Vec::new();
    for query in [
        "?compression=None",
        "?compression=None",
        "",
        "?compression=None",
    ] {
        let mut reader = connect(&server, query, BOTH).await.expect("connected");
        messages(&mut reader, Protocol::V3).await;
        let mut bytes = Vec::new();
        ClientMessage::Subscribe {
            request_id: 1,
            query_set_id: 1,
            query_strings: vec!["SELECT * FROM person"],
        }
        .encode(&mut bytes);
        let subscribe = Message::Binary(bytes.into());
        reader.send(subscribe).await.expect("sent");
        messages(&mut reader, Protocol::V3).await;
        readers.push(reader);
    }
    let read = |mut reader: Socket| async move {
        let mut next_id = 0;
        while next_id < COUNT {
            for message in messages(&mut reader, Protocol::V3).await {
                let ServerMessage::TransactionUpdate { query_sets } = message else {
                    panic!("{message:?}");
                };
                let expected = person(next_id, &name(next_id));
                let TableUpdateRows::Persistent { inserts, deletes } =
                    &query_sets[0].tables[0].rows[0]
                else {
                    panic!("no table of events");
                };
                assert!(deletes.is_empty());
                assert!(inserts.iter().eq([&expected[..]]), "{next_id}");
                next_id += 1;
            }
        }
    };
    // One reads while updates come, the others when all have come: 27 MB are more than their sockets hold.
    let quick = tokio::spawn(read(readers.pop().expect("there are four")));
    for id in 0..COUNT {
        let call = Message::Binary(call(id, "add", &person(id, &name(id))).into());
        caller.send(call).await.expect("sent");
        messages(&mut caller, Protocol::V2).await;
    }
    quick.await.expect("all came");
    for reader in readers {
        read(reader).await;
    }
}

async fn subscribed(server: &TestServer, query: &'static str) -> Socket {
    let mut reader = connect(server, "?compression=None", BOTH).await;
    let reader_socket = reader.as_mut().expect("connected");
    messages(reader_socket, Protocol::V3).await;
    let mut bytes = Vec::new();
    ClientMessage::Subscribe {
        request_id: 1,
        query_set_id: 1,
        query_strings: vec![query],
    }
    .encode(&mut bytes);
    let subscribe = Message::Binary(bytes.into());
    reader_socket.send(subscribe).await.expect("sent");
    messages(reader_socket, Protocol::V3).await;
    reader.expect("connected")
}

/// What `GET /v1/database/a/queries` says of the shapes.
async fn shapes(server: &TestServer, user: &User) -> Vec<serde_json::Value> {
    let request = server.request("GET", "/v1/database/a/queries");
    let (status, body) = answer(request.bearer_auth(&user.token)).await;
    assert_eq!(status, 200, "{body}");
    let told = json(&body);
    assert_eq!(told["is_whole"], true, "{body}");
    told["queries"].as_array().expect("queries").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_are_subscribed_to_is_told_by_shape() {
    let server = TestServer::start().await;
    let user = publish(&server, "module").await;
    assert_eq!(
        shapes(&server, &user).await,
        Vec::<serde_json::Value>::new()
    );
    let mut readers = Vec::new();
    for query in [
        "SELECT * FROM person",
        "SELECT * FROM person",
        "SELECT * FROM person",
        "SELECT * FROM person WHERE id = 1",
        "SELECT * FROM person WHERE id = 2",
    ] {
        readers.push(subscribed(&server, query).await);
    }
    let mut caller = connect(&server, "?compression=None", V2).await;
    let caller = caller.as_mut().expect("connected");
    messages(caller, Protocol::V2).await;
    let add = call(7, "add", &person(1, "ada"));
    caller
        .send(Message::Binary(add.into()))
        .await
        .expect("sent");
    messages(caller, Protocol::V2).await;
    messages(&mut readers[0], Protocol::V3).await;
    let told = shapes(&server, &user).await;
    assert_eq!(told.len(), 2, "{told:?}");
    let [all, by_id] = [&told[0], &told[1]];
    assert_eq!(
        (&all["table"], &all["kind"]),
        (&"person".into(), &"rows".into())
    );
    assert_eq!(
        (&all["queries"], &all["subscribers"]),
        (&1.into(), &3.into())
    );
    assert_eq!(
        (&all["changes"], &all["changed_rows"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        (&by_id["queries"], &by_id["subscribers"]),
        (&2.into(), &2.into())
    );
    assert_eq!((&by_id["by"], &by_id["changes"]), (&"id".into(), &1.into()));
    assert!(all["change_ns"].is_null(), "not measured yet: {all}");
    for id in 2..=40 {
        let add = call(7, "add", &person(id, "bob"));
        let sent = caller.send(Message::Binary(add.into())).await;
        sent.expect("sent");
        messages(caller, Protocol::V2).await;
    }
    messages(&mut readers[0], Protocol::V3).await;
    let told = shapes(&server, &user).await;
    let took_ns = told[0]["change_ns"].as_u64().expect("some are measured");
    assert!((1..1_000_000_000).contains(&took_ns), "{told:?}");
    let stranger = server.user().await;
    let request = server.request("GET", "/v1/database/a/queries");
    let refused = answer(request.bearer_auth(&stranger.token)).await;
    assert_eq!(refused.0, 403);
    drop(readers);
}
