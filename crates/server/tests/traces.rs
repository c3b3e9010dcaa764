//! Spans of calls, as a collector gets them (`[tracing]`).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::publishing::{call, created};
use crate::common::{answer, config, TestServer, User};
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::Router;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// A collector on this machine.
struct Collector {
    address: std::net::SocketAddr,
    requests: Arc<Mutex<Vec<(HeaderMap, ExportTraceServiceRequest)>>>,
}

impl Collector {
    async fn start(status: StatusCode) -> Collector {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let take = move |headers: HeaderMap, body: Bytes| {
            let decoded = ExportTraceServiceRequest::decode(body).expect("OTLP in protobuf");
            seen.lock().expect("not poisoned").push((headers, decoded));
            async move { status }
        };
        let router = Router::new().route("/v1/traces", post(take));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, router).await });
        Collector { address, requests }
    }

    fn config(&self, more: &str) -> String {
        format!(
            "[tracing]\notlp-endpoint = \"http://{}/v1/traces\"\nservice-name = \"here\"\n{more}",
            self.address
        )
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().expect("not poisoned");
        let resources = requests
            .iter()
            .flat_map(|(_, request)| &request.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// Waits until there is a span of this name in the trace.
    async fn wait_for(&self, trace_id: &[u8], name: &str) -> Span {
        for _ in 0..400 {
            let found = self
                .spans()
                .into_iter()
                .find(|span| span.trace_id == trace_id && span.name == name);
            if let Some(span) = found {
                return span;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        let names: Vec<_> = self.spans().into_iter().map(|span| span.name).collect();
        panic!("no span `{name}` among {names:?}");
    }
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn traced_call(server: &TestServer, user: &User, function: &str, args: &'static str) -> u16 {
    let request = server.request("POST", &format!("/v1/database/a/call/{function}"));
    let request = request
        .bearer_auth(&user.token)
        .header("content-type", "application/json")
        .header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"));
    answer(request.body(args)).await.0
}

fn trace_id() -> Vec<u8> {
    u128::from_str_radix(TRACE, 16)
        .expect("hexadecimal")
        .to_be_bytes()
        .to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_a_trace() {
    let collector = Collector::start(StatusCode::OK).await;
    let text = collector.config(
        "sample-ratio = 1.0\nheaders = { x-key = \"secret\", Content-Type = \"text/plain\" }",
    );
    let server = TestServer::start_with(config(&text)).await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    assert_eq!(traced_call(&server, &user, "add", r#"[1,"x"]"#).await, 200);

    let request = collector
        .wait_for(&trace_id(), "POST /v1/database/{database}/call/{function}")
        .await;
    assert_eq!(
        request.parent_span_id,
        0x00f0_67aa_0ba9_02b7_u64.to_be_bytes()
    );
    let status = request
        .attributes
        .iter()
        .find(|each| each.key == "http.response.status_code");
    let status = status.and_then(|each| each.value.clone()?.value);
    assert_eq!(status, Some(Value::IntValue(200)));
    for name in ["wait for the writer", "reducer add", "wait for the disk"] {
        let span = collector.wait_for(&trace_id(), name).await;
        assert_eq!(span.parent_span_id, request.span_id, "{name}");
        assert!(
            span.start_time_unix_nano >= request.start_time_unix_nano,
            "{name}"
        );
        assert!(
            span.end_time_unix_nano <= request.end_time_unix_nano + 1_000_000,
            "{name}"
        );
        assert_eq!(span.status, None, "{name}");
    }
    let (headers, sent) = collector.requests.lock().expect("not poisoned")[0].clone();
    assert_eq!(headers["x-key"], "secret");
    let types: Vec<_> = headers.get_all("content-type").iter().collect();
    assert_eq!(types, ["application/x-protobuf"]);
    let resource = sent.resource_spans[0].resource.clone().expect("a resource");
    let service = resource.attributes[0].value.clone().expect("a value").value;
    assert_eq!(service, Some(Value::StringValue("here".to_owned())));

    // A call that fails says why.
    assert_eq!(
        traced_call(&server, &user, "fail", r#"["exactly this"]"#).await,
        530
    );
    let failed = collector.wait_for(&trace_id(), "reducer fail").await;
    assert_eq!(failed.status.expect("a status").message, "exactly this");
    // In a few words.
    let long: &'static str = format!(r#"["{}"]"#, "x".repeat(100_000)).leak();
    assert_eq!(traced_call(&server, &user, "fail", long).await, 530);
    for _ in 0..400 {
        let spans = collector.spans().into_iter();
        let mut messages = spans.filter_map(|span| Some(span.status?.message));
        if messages.any(|text| text.ends_with("… [100000 bytes]") && text.len() < 300) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let spans = collector.spans();
    let longest = spans.iter().filter_map(|span| span.status.as_ref());
    let longest = longest.map(|status| status.message.len()).max();
    assert!(
        longest.is_some_and(|bytes| (256..300).contains(&bytes)),
        "{longest:?}"
    );
    // What stops sends what it has.
    assert_eq!(traced_call(&server, &user, "panic", "[]").await, 530);
    server.stop().await;
    assert!(collector
        .spans()
        .iter()
        .any(|span| span.name == "reducer panic"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_chosen_is_sent() {
    let collector = Collector::start(StatusCode::OK).await;
    // What the caller sends chooses nothing, nor does his flag.
    let text = collector.config("sample-ratio = 0.0");
    let server = TestServer::start_with(config(&text)).await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    for _ in 0..20 {
        assert_eq!(traced_call(&server, &user, "add", r#"[1,"x"]"#).await, 200);
    }
    server.stop().await;
    let spans = collector.spans();
    assert!(
        spans.iter().all(|span| span.trace_id != trace_id()),
        "{spans:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_fails_costs_no_call() {
    let collector = Collector::start(StatusCode::SERVICE_UNAVAILABLE).await;
    let server = TestServer::start_with(config(&collector.config("sample-ratio = 1.0"))).await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    let path = "/v1/database/a/call/add";
    assert_eq!(call(&server, &user, path, r#"[1,"x"]"#).await.0, 200);
    for _ in 0..400 {
        let metrics = server.ask("GET", "/v1/metrics").await.1;
        let failed = metrics
            .lines()
            .find_map(|line| line.strip_prefix("lightcone_trace_spans_failed_total "));
        if failed.is_some_and(|count| count != "0") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("nothing was counted");
}
