//! Procedures and HTTP handlers: their transactions are committed one by one, in the order of everything else, and their
//! results come back, whichever engine runs them (03 §10, §11.6, 05 §6.4, 06 §5.11, §5.16). `modules/procedures-rs` and `modules/procedures-ts` are the same.

use crate::common::{
    bundle, caller, create_latest, module, open, options, Client, OWNER, STRANGER,
};
use lightcone_accounts::Counted;
use lightcone_database::{
    CallArgs, CallError, DatabaseHandle, DatabaseOptions, HandlerReply, HandlerSender, HostKind,
    HttpHeader, HttpMethod, HttpRequest, HttpVersion, JsonRows, ShutdownReason,
};
use lightcone_host_js::JsEngineOptions;
use lightcone_types::{Encode, Identity};
use lightcone_wire::{ClientMessage, ProcedureStatus, ServerMessage};

fn js_options(directory: &std::path::Path) -> DatabaseOptions {
    let mut options = options(directory);
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    options.limits.host.call_ms_max = 300;
    options
}

async fn create(options: DatabaseOptions, kind: HostKind) -> DatabaseHandle {
    let program = match kind {
        HostKind::Wasm => module("procedures"),
        HostKind::Js => bundle("procedures").into_bytes().into(),
    };
    let created =
        tokio::task::spawn_blocking(move || DatabaseHandle::create(options, program, kind));
    let created = created.await.expect("no panic");
    created.unwrap_or_else(|error| panic!("{error}"))
}

/// A call over HTTP: what it returned, or the error.
async fn http(database: &DatabaseHandle, function: &str, args: &str) -> Result<String, CallError> {
    let args = CallArgs::Json(args.to_owned());
    let outcome = database.call(caller(OWNER), function, args).await?;
    Ok(outcome
        .returned_json
        .map(Counted::into_inner)
        .expect("a procedure returns something"))
}

fn args(id: u32, amount: Option<u64>) -> Vec<u8> {
    let mut args = id.to_vec();
    if let Some(amount) = amount {
        amount.encode(&mut args);
    }
    args
}

/// A call over the client's protocol. Updates that come before its answer are counted.
async fn call(client: &mut Client, procedure: &str, args: &[u8]) -> (ProcedureStatus, usize) {
    client
        .send(&[ClientMessage::CallProcedure {
            request_id: 9,
            procedure,
            args,
        }])
        .await;
    let mut updates = 0;
    loop {
        match client.next().await {
            ServerMessage::TransactionUpdate { .. } => updates += 1,
            ServerMessage::ProcedureResult {
                request_id: 9,
                status,
                ..
            } => return (status, updates),
            other => panic!("{other:?}"),
        }
    }
}

fn failure(status: ProcedureStatus) -> String {
    match status {
        ProcedureStatus::InternalError(text) => text,
        other => panic!("{other:?}"),
    }
}

async fn procedures_from_call_to_reopen(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(js_options(directory.path()), kind).await;
    let mut client = Client::connect(&database, STRANGER, 5).await;
    client
        .send(&[ClientMessage::Subscribe {
            request_id: 1,
            query_set_id: 1,
            query_strings: vec!["SELECT * FROM counters"],
        }])
        .await;
    assert!(matches!(
        client.next().await,
        ServerMessage::SubscribeApplied { .. }
    ));

    // Two transactions: two updates, also for the caller, and then the result.
    let (status, updates) = call(&mut client, "add_twice", &args(1, Some(5))).await;
    assert_eq!(status, ProcedureStatus::Returned(10_u64.to_vec()));
    assert_eq!(updates, 2);
    let (status, updates) = call(&mut client, "peek", &args(1, None)).await;
    assert_eq!(
        status,
        ProcedureStatus::Returned([&[0][..], &10_u64.to_vec()].concat())
    );
    assert_eq!(updates, 0);
    let (status, _) = call(&mut client, "peek", &args(2, None)).await;
    assert_eq!(status, ProcedureStatus::Returned(vec![1]));

    // What is given up never happened; what was committed before a failure stays.
    let (status, updates) = call(&mut client, "give_up", &args(1, None)).await;
    assert_eq!(
        status,
        ProcedureStatus::Returned("gave up at 1010".to_owned().to_vec())
    );
    assert_eq!(updates, 0);
    let (status, updates) = call(&mut client, "add_and_fail", &args(1, None)).await;
    let text = failure(status);
    assert!(
        text.starts_with("The module instance encountered a fatal error: "),
        "{text}"
    );
    assert_eq!(updates, 1);
    let (status, updates) = call(&mut client, "fail_inside", &args(1, None)).await;
    failure(status);
    assert_eq!(updates, 0);

    // What cannot be done, or never ends, is told; the next call works.
    let (status, _) = call(&mut client, "loop_for_ever", &[]).await;
    let text = failure(status);
    assert!(text.contains("[LC0720]"), "{text}");
    let (status, _) = call(&mut client, "no_such", &[]).await;
    assert_eq!(failure(status), "No such procedure");
    let (status, _) = call(&mut client, "peek", &[1]).await;
    let text = failure(status);
    assert!(
        text.starts_with("invalid arguments for procedure peek: "),
        "{text}"
    );

    // The same over HTTP.
    let added = http(&database, "add_twice", "[1, 100]").await;
    assert_eq!(added.expect("added"), "211");
    let found = http(&database, "peek", r#"{"id": 1}"#).await;
    assert_eq!(found.expect("found"), "[0,211]");
    assert_eq!(
        http(&database, "peek", "[2]").await.expect("none"),
        "[1,[]]"
    );
    match http(&database, "add_and_fail", "[1]").await {
        Err(CallError::Database(text)) => assert!(
            text.starts_with("The module instance encountered a fatal error: "),
            "{text}"
        ),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        http(&database, "loop_for_ever", "[]").await,
        Err(CallError::TimedOut { .. })
    ));
    match http(&database, "peek", "[]").await {
        Err(CallError::InvalidArguments(text)) => assert!(
            text.starts_with("invalid arguments for procedure peek: "),
            "{text}"
        ),
        other => panic!("{other:?}"),
    }

    // Every transaction is in the log.
    database.shutdown(ShutdownReason::ServerStop).await;
    let database = open(js_options(directory.path())).await;
    let found = http(&database, "peek", "[1]").await;
    assert_eq!(found.expect("found"), "[0,212]");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rust() {
    procedures_from_call_to_reopen(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript() {
    procedures_from_call_to_reopen(HostKind::Js).await;
}

fn header(name: &str, value: &[u8]) -> HttpHeader {
    HttpHeader {
        name: name.to_owned(),
        value: value.to_vec(),
    }
}

async fn request(
    database: &DatabaseHandle,
    method: HttpMethod,
    path: &str,
    body: &[u8],
) -> Result<HandlerReply, CallError> {
    let request = HttpRequest {
        method,
        headers: vec![header("host", b"h"), header("x-sent", b"\xc3\xa9")],
        timeout: None,
        uri: format!("http://h/v1/database/d/route{path}?q=1"),
        version: HttpVersion::Http11,
    };
    let body = body.to_vec().into();
    let sender = HandlerSender {
        identity: STRANGER,
        jwt_payload: r#"{"sub":"s"}"#.into(),
    };
    let answered = database
        .http_request(path.to_owned(), request, body, sender, ())
        .await;
    answered.map(|(reply, _)| reply)
}

fn text_of(error: CallError) -> String {
    match error {
        CallError::Database(text) => text,
        other => panic!("{other:?}"),
    }
}

async fn http_handlers_from_request_to_reopen(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(js_options(directory.path()), kind).await;
    let mut client = Client::connect(&database, STRANGER, 5).await;
    client
        .send(&[ClientMessage::Subscribe {
            request_id: 1,
            query_set_id: 1,
            query_strings: vec!["SELECT * FROM counters"],
        }])
        .await;
    assert!(matches!(
        client.next().await,
        ServerMessage::SubscribeApplied { .. }
    ));
    let update = |message| matches!(message, ServerMessage::TransactionUpdate { .. });

    let reply = request(&database, HttpMethod::Post, "/add", b"40").await;
    let reply = reply.unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(reply.head.code, 201);
    assert_eq!(
        String::from_utf8_lossy(&reply.body),
        "POST http://h/v1/database/d/route/add?q=1 40"
    );
    let values = |name: &str| -> Vec<&[u8]> {
        let headers = reply.head.headers.iter();
        let named = headers.filter(|header| header.name == name);
        named.map(|header| &header.value[..]).collect()
    };
    assert_eq!(values("content-type"), [b"text/plain"]);
    assert_eq!(values("x-seen"), ["é".as_bytes()]);
    assert_eq!(values("set-cookie"), [b"a=1", b"b=2"]);
    assert!(update(client.next().await));

    // Bodies are bytes, of any length.
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for body in [&b""[..], &[0xff, 0], &bytes] {
        for method in [HttpMethod::Put, HttpMethod::Extension("PURGE".to_owned())] {
            let reply = request(&database, method, "/echo", body).await;
            let reply = reply.unwrap_or_else(|error| panic!("{error:?}"));
            assert_eq!((reply.head.code, &reply.body[..]), (200, body));
        }
    }
    for (method, path) in [
        (HttpMethod::Get, "/add"),
        (HttpMethod::Post, "/add/"),
        (HttpMethod::Post, ""),
    ] {
        assert!(!database.has_http_route(&method, path));
        let reply = request(&database, method, path, b"1").await;
        assert!(matches!(reply, Err(CallError::NoSuchFunction)), "{path}");
    }
    assert!(database.has_http_route(&HttpMethod::Get, ""));
    assert!(database.has_http_route(&HttpMethod::Get, "/"));
    let reply = request(&database, HttpMethod::Post, "/add", b"forty").await;
    assert_eq!(reply.expect("a refusal").head.code, 400);

    // What was committed before a failure stays, and the next request works.
    let reply = request(&database, HttpMethod::Get, "/fail", b"").await;
    let text = text_of(reply.expect_err("it fails"));
    let starts = match kind {
        HostKind::Wasm => "wasm trap: ",
        HostKind::Js => "Uncaught TypeError: after the first transaction",
    };
    assert!(text.starts_with(starts), "{text}");
    assert!(update(client.next().await));
    let reply = request(&database, HttpMethod::Post, "/add", b"1").await;
    assert!(reply.expect("added").body.ends_with(b" 42"));

    // A request is answered when it is durable.
    database.shutdown(ShutdownReason::ServerStop).await;
    let database = open(js_options(directory.path())).await;
    let found = http(&database, "peek", "[7]").await;
    assert_eq!(found.expect("found"), "[0,42]");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_handlers_in_rust() {
    http_handlers_from_request_to_reopen(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_handlers_in_typescript() {
    http_handlers_from_request_to_reopen(HostKind::Js).await;
}

/// Answers that need no fan-out take a shorter way. They overtake nothing, and show nothing that could still be lost.
#[tokio::test(flavor = "multi_thread")]
async fn answers_keep_their_order_and_wait_for_the_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(js_options(directory.path()), HostKind::Wasm).await;
    let mut writer = Client::connect_with(&database, STRANGER, 1, false).await;
    let mut reader = Client::connect(&database, OWNER, 2).await;
    let peek = |request_id, args| ClientMessage::CallProcedure {
        request_id,
        procedure: "peek",
        args,
    };
    let add = |request_id, args| ClientMessage::CallProcedure {
        request_id,
        procedure: "add_twice",
        args,
    };
    let (one, one_more, two, two_more) = (
        args(1, None),
        args(1, Some(1)),
        args(2, None),
        args(2, Some(1)),
    );
    let value = |message| match message {
        ServerMessage::ProcedureResult {
            request_id,
            status: ProcedureStatus::Returned(value),
            ..
        } => (request_id, value),
        other => panic!("{other:?}"),
    };
    // Brief procedures for which there is an instance run on the writer, in the order of the requests.
    for _ in 0..10 {
        call(&mut reader, "add_twice", &args(3, Some(1))).await;
        call(&mut reader, "peek", &args(3, None)).await;
    }
    let (status, _) = call(&mut reader, "add_twice", &two_more).await;
    assert_eq!(status, ProcedureStatus::Returned(2_u64.to_vec()));
    let before = database.stats().durable_offset;

    let mut added = 2_u64;
    for round in 0..300_u32 {
        // Its answer does not wait for the disk, but what the other one sees of it does.
        writer.send(&[add(round, &one_more)]).await;
        assert_eq!(value(writer.next().await).0, round);
        reader.send(&[peek(0, &one)]).await;
        let seen = value(reader.next().await).1;
        let durable = database.stats().durable_offset - before;
        assert_eq!(
            seen,
            [&[0][..], &(u64::from(round) * 2 + 2).to_vec()].concat()
        );
        let committed = u64::from(round) * 2 + added;
        assert!(
            durable >= committed,
            "{durable} of {committed} in round {round}"
        );

        // One after the other without waiting, in messages of their own.
        let changes = [round % 3 != 0, round % 5 == 0, round % 2 == 0, false, false];
        for (request_id, change) in (1..).zip(changes) {
            let message = match change {
                true => add(request_id, &two_more),
                false => peek(request_id, &two),
            };
            reader.send(&[message]).await;
        }
        for (expected_id, change) in (1..).zip(changes) {
            let (request_id, value) = value(reader.next().await);
            assert_eq!(request_id, expected_id);
            added += if change { 2 } else { 0 };
            let expected = match change {
                true => added.to_vec(),
                false => [&[0][..], &added.to_vec()].concat(),
            };
            assert_eq!(value, expected, "request {request_id} of round {round}");
        }
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// To a module of the newest package, handlers have a sender with a token, and internal is what the database calls by itself.
async fn callers_are_told_to_modules(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let options = options(directory.path());
    let identity = options.identity;
    let database = create_latest(options, kind).await;

    let reply = request(&database, HttpMethod::Get, "/who", b"").await;
    let reply = reply.expect("answered");
    assert_eq!(reply.body, STRANGER.to_hex());
    for function in ["called", "called_beside"] {
        let args = CallArgs::Json("[]".to_owned());
        let called = database.call(caller(OWNER), function, args).await;
        called.expect("called");
    }
    let query = || async {
        let text = "SELECT what, sender, is_internal, token FROM callers".to_owned();
        let rows = database.sql(caller(OWNER), text, true, JsonRows::default());
        serde_json::from_str::<serde_json::Value>(&rows.await.expect("rows").text())
    };
    let mut seen = query().await.expect("JSON");
    while seen.as_array().expect("rows").len() < 4 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        seen = query().await.expect("JSON");
    }
    let row = |what: &str| {
        let rows = seen.as_array().expect("rows").iter();
        let mut rows = rows.filter(|row| row[0] == what);
        rows.next().expect(what).clone()
    };
    // A number, without zeros in front.
    let sender = |of: Identity| {
        let hex = of.to_hex();
        serde_json::json!([format!("0x{}", hex.trim_start_matches('0'))])
    };
    for (what, of, is_internal) in [
        ("handler", STRANGER, false),
        ("reducer", OWNER, false),
        ("procedure", OWNER, false),
        ("schedule", identity, true),
    ] {
        assert_eq!(row(what)[1], sender(of), "{what}");
        assert_eq!(row(what)[2], is_internal, "{what}");
    }
    assert_eq!(row("handler")[3], serde_json::json!([0, r#"{"sub":"s"}"#]));
    assert_eq!(row("schedule")[3], serde_json::json!([1, []]));
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_as_the_newest_package_sees_them() {
    callers_are_told_to_modules(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_as_our_package_sees_them() {
    callers_are_told_to_modules(HostKind::Js).await;
}
