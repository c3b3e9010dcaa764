//! `spacetime subscribe` with servers that know the protocol v1 only.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::common;
use crate::common::{Home, DATABASE};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{accept_hdr, Message};

const SCHEMA: &str = r#"{"sections":[{"Typespace":{"types":[
   {"Product":{"elements":[{"name":{"some":"id"},"algebraic_type":{"U64":[]}},{"name":{"some":"name"},"algebraic_type":{"String":[]}}]}}]}},
 {"Tables":[{"source_name":"person","product_type_ref":0,"primary_key":[0],"indexes":[],"constraints":[],"sequences":[],
   "table_type":{"User":[]},"table_access":{"Public":[]},"default_values":[],"is_event":false}]},
 {"ExplicitNames":{"entries":[]}}]}"#;

/// What the server makes of an offer of v3.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnV3 {
    Refuse(u16),
    ChooseNothing,
}

struct OldServer {
    url: String,
    /// Paths and protocols of the WebSockets that were asked for, and what came over them.
    seen: Arc<Mutex<Vec<String>>>,
}

fn serve(on_v3: OnV3, messages: &'static [&'static str]) -> OldServer {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut head = [0; 2048];
            let length = stream.peek(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let line = head.lines().next().unwrap_or_default().to_owned();
            match line.contains("/subscribe") {
                true => web_socket(stream, on_v3, messages, &told),
                false => plain(stream, &line),
            }
        }
    });
    OldServer { url, seen }
}

fn plain(mut stream: TcpStream, line: &str) {
    let _ = stream.read(&mut [0; 4096]);
    let (kind, body) = match line {
        line if line.contains("/identity") => ("text/plain", DATABASE),
        _ => ("application/json", SCHEMA),
    };
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
}

fn web_socket(stream: TcpStream, on_v3: OnV3, messages: &[&str], seen: &Mutex<Vec<String>>) {
    let note = |text: String| seen.lock().expect("not poisoned").push(text);
    #[allow(clippy::result_large_err)]
    let answer = |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
        let offer = request.headers()["Sec-WebSocket-Protocol"]
            .to_str()
            .expect("text");
        let query = request.uri().query().unwrap_or_default();
        note(format!("{offer} {query}"));
        match (offer, on_v3) {
            ("v1.json.spacetimedb", _) => {
                let chosen = HeaderValue::from_static("v1.json.spacetimedb");
                response
                    .headers_mut()
                    .insert("Sec-WebSocket-Protocol", chosen);
                Ok(response)
            }
            (_, OnV3::ChooseNothing) => Ok(response),
            (_, OnV3::Refuse(status)) => {
                let mut refusal = ErrorResponse::new(Some("no v3 here".to_owned()));
                *refusal.status_mut() = status.try_into().expect("a status");
                Err(refusal)
            }
        }
    };
    let Ok(mut socket) = accept_hdr(stream, answer) else {
        return;
    };
    if let Ok(Message::Text(text)) = socket.read() {
        note(text.to_string());
        for message in messages {
            let _ = socket.send(Message::text(*message));
        }
    }
    let _ = socket.close(None);
    while socket.read().is_ok() {}
}

fn subscribe(server: &OldServer, more: &[&str]) -> common::Outcome {
    let home = Home::new();
    let args = [
        "subscribe",
        "shop",
        "SELECT * FROM person",
        "--anonymous",
        "-s",
        &server.url,
    ];
    home.run(&[&args, more].concat())
}

const MESSAGES: &[&str] = &[
    r#"{"IdentityToken":{"identity":{"__identity__":"0xc2"},"token":"t","connection_id":{"__connection_id__":1}}}"#,
    r#"{"InitialSubscription":{"database_update":{"tables":[{"table_id":1,"table_name":"person","num_rows":1,"updates":[{"deletes":[],"inserts":["{\"id\":1,\"name\":\"ann\"}"]}]}]},"request_id":0,"total_host_execution_duration":{"__time_duration_micros__":1}}}"#,
    r#"{"TransactionUpdateLight":{"request_id":0,"update":{"tables":[{"table_id":1,"table_name":"person","num_rows":1,"updates":[{"deletes":["{\"id\":1,\"name\":\"ann\"}"],"inserts":[]}]}]}}}"#,
];

#[test]
fn servers_of_the_first_version_are_understood() {
    for on_v3 in [OnV3::ChooseNothing, OnV3::Refuse(400), OnV3::Refuse(501)] {
        let server = serve(on_v3, MESSAGES);
        let outcome = subscribe(
            &server,
            &["-n", "1", "--print-initial-update", "--confirmed", "true"],
        )
        .ok();
        assert_eq!(
            outcome.stdout,
            "{\"person\":{\"deletes\":[],\"inserts\":[{\"id\":1,\"name\":\"ann\"}]}}\n{\"person\":{\"deletes\":[{\"id\":1,\"name\":\"ann\"}],\"inserts\":[]}}\n"
        );
        assert_eq!(
            *server.seen.lock().expect("not poisoned"),
            [
                "v3.bsatn.spacetimedb compression=None&confirmed=true",
                "v1.json.spacetimedb confirmed=true",
                r#"{"Subscribe":{"query_strings":["SELECT * FROM person"],"request_id":0}}"#,
            ]
        );
    }
}

#[test]
fn refusals_end_with_1() {
    let refused = serve(
        OnV3::ChooseNothing,
        &[r#"{"SubscriptionError":{"error":"no such table"}}"#],
    );
    let outcome = subscribe(&refused, &["-n", "0"]);
    assert!(
        outcome.status == 1
            && outcome
                .stderr
                .contains("encountered error in initial subscribe: no such table"),
        "{outcome:#?}"
    );
    let silent = serve(OnV3::ChooseNothing, &[]);
    let outcome = subscribe(&silent, &[]);
    assert!(
        outcome.status == 1 && outcome.stderr.contains("[LC0865]"),
        "{outcome:#?}"
    );
    let odd = serve(OnV3::ChooseNothing, &["[]"]);
    let outcome = subscribe(&odd, &[]);
    assert!(
        outcome.status == 1 && outcome.stderr.contains("[LC0623]"),
        "{outcome:#?}"
    );
    // Who may not enter does not get in with an older protocol.
    let closed = serve(OnV3::Refuse(403), MESSAGES);
    let outcome = subscribe(&closed, &["-n", "0"]);
    assert!(
        outcome.status == 1 && outcome.stderr.contains("[LC0615]"),
        "{outcome:#?}"
    );
    assert_eq!(closed.seen.lock().expect("not poisoned").len(), 1);
}
