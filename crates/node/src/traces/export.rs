//! Sending spans to a collector: OTLP over HTTP, in protobuf.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_database::{Span, SpanName};
use lightcone_outbound::{Outbound, OutboundOptions, Url};
use lightcone_types::Timestamp;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span as OtlpSpan, Status as OtlpStatus,
};
use prost::Message as _;
use tokio::sync::mpsc;

use crate::config::Tracing;
use crate::error::Error;

/// Spans of one request to the collector.
const BATCH_SPANS_MAX: usize = 512;
/// Spans wait for others so long.
const BATCH_TIME: Duration = Duration::from_secs(1);
/// For one request to the collector. It is not repeated.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the server's log warns of a collector that takes no spans.
const COMPLAIN_INTERVAL: Duration = Duration::from_secs(60);

/// What became of spans.
#[derive(Default)]
pub struct TraceCounters {
    pub sent: AtomicU64,
    /// There was no room in the queue.
    pub dropped: AtomicU64,
    /// The collector did not take them.
    pub failed: AtomicU64,
}

pub(super) struct Exporter {
    endpoint: Url,
    headers: Vec<(String, String)>,
    resource: Resource,
    http: Outbound,
    counters: Arc<TraceCounters>,
    complained: Option<Instant>,
}

impl Exporter {
    pub fn new(
        endpoint: &Url,
        config: &Tracing,
        counters: Arc<TraceCounters>,
    ) -> Result<Exporter, Error> {
        let http = Outbound::new(OutboundOptions::current());
        Ok(Exporter {
            endpoint: endpoint.clone(),
            headers: headers_of(config),
            resource: Resource {
                attributes: vec![
                    text("service.name", &config.service_name),
                    text("service.version", env!("CARGO_PKG_VERSION")),
                ],
                ..Resource::default()
            },
            http: http.map_err(|error| Error::HttpClient(error.to_string()))?,
            counters,
            complained: None,
        })
    }

    /// Runs until the queue is closed.
    pub async fn run(mut self, mut queue: mpsc::Receiver<Span>) {
        let mut batch = Vec::with_capacity(BATCH_SPANS_MAX);
        loop {
            if queue.recv_many(&mut batch, BATCH_SPANS_MAX).await == 0 {
                return;
            }
            let until = tokio::time::Instant::now() + BATCH_TIME;
            while batch.len() < BATCH_SPANS_MAX {
                let room = BATCH_SPANS_MAX - batch.len();
                let more = tokio::time::timeout_at(until, queue.recv_many(&mut batch, room));
                if !matches!(more.await, Ok(1..)) {
                    break;
                }
            }
            self.send(&mut batch).await;
        }
    }

    async fn send(&mut self, batch: &mut Vec<Span>) {
        let count = batch.len() as u64;
        let body = self.encode(batch.drain(..));
        let sent = self
            .http
            .post(&self.endpoint, &self.headers, body, EXPORT_TIMEOUT);
        let Err(error) = sent.await else {
            self.counters.sent.fetch_add(count, Relaxed);
            return;
        };
        let complained = self.complained.map(|at| at.elapsed());
        if complained.is_none_or(|ago| ago >= COMPLAIN_INTERVAL) {
            self.complained = Some(Instant::now());
            tracing::warn!(%error, "the collector of traces takes no spans; they are dropped [LC0146]");
        }
        self.counters.failed.fetch_add(count, Relaxed);
    }

    fn encode(&self, spans: impl Iterator<Item = Span>) -> Vec<u8> {
        let scope = InstrumentationScope {
            name: "lightcone".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope),
                    spans: spans.map(otlp).collect(),
                    ..ScopeSpans::default()
                }],
                ..ResourceSpans::default()
            }],
        };
        request.encode_to_vec()
    }
}

/// The configured headers, and the content type, which is always ours.
fn headers_of(config: &Tracing) -> Vec<(String, String)> {
    let configured = config.headers.iter();
    let others = configured.filter(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
    let others = others.map(|(name, value)| (name.clone(), value.clone()));
    let own = ("content-type".into(), "application/x-protobuf".into());
    others.chain([own]).collect()
}

fn otlp(span: Span) -> OtlpSpan {
    let mut attributes = Vec::new();
    if let Some(database) = span.database {
        attributes.push(text("db.namespace", &database.to_hex()));
    }
    let (name, kind) = match &span.name {
        SpanName::WebSocketCall => ("websocket call".to_owned(), SpanKind::Server),
        SpanName::Http {
            method,
            route,
            status,
        } => {
            attributes.push(text("http.request.method", method));
            attributes.push(text("http.route", route));
            let status = Value::IntValue(i64::from(*status));
            attributes.push(attribute("http.response.status_code", status));
            (format!("{method} {route}"), SpanKind::Server)
        }
        SpanName::Wait => ("wait for the writer".to_owned(), SpanKind::Internal),
        SpanName::Function { kind, name } => {
            attributes.push(text("lightcone.function.kind", kind.name()));
            (format!("{} {name}", kind.name()), SpanKind::Internal)
        }
        SpanName::Durable => ("wait for the disk".to_owned(), SpanKind::Internal),
    };
    let parent = span.parent.map(|id| id.to_be_bytes().to_vec());
    let status = span.error.map(|error| OtlpStatus {
        message: error,
        code: StatusCode::Error.into(),
    });
    OtlpSpan {
        trace_id: span.trace_id.to_be_bytes().to_vec(),
        span_id: span.span_id.to_be_bytes().to_vec(),
        parent_span_id: parent.unwrap_or_default(),
        name,
        kind: kind.into(),
        start_time_unix_nano: nanos(span.started),
        // The clock may have been set back.
        end_time_unix_nano: nanos(span.ended.max(span.started)),
        attributes,
        status,
        ..OtlpSpan::default()
    }
}

fn nanos(time: Timestamp) -> u64 {
    let micros = u64::try_from(time.micros()).unwrap_or(0);
    micros.saturating_mul(1000)
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
