//! Spans of calls, for a collector of traces. Without a [`Tracer`], and for calls that it does not choose, nothing is done.

use std::sync::Arc;

use lightcone_types::{cut, Identity, Timestamp};

/// The most of a text about an error that a span has: modules make them, and spans wait in memory.
const ERROR_BYTES_MAX: usize = 256;

/// Where a span belongs: a trace, and the span that it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: u128,
    /// Of the span that others are parts of.
    pub span_id: u64,
}

/// What took the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanName {
    /// A message of a client, from when it has come to when its answer may go.
    WebSocketCall,
    /// A request, by its method and the pattern of its route.
    Http {
        method: &'static str,
        route: Arc<str>,
        status: u16,
    },
    /// From when a call has come to when it began.
    Wait,
    /// A function of the module, with its commit.
    Function {
        kind: crate::metrics::FunctionKind,
        name: Arc<str>,
    },
    /// From the commit to when it is durable.
    Durable,
}

/// A time that something took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub trace_id: u128,
    pub span_id: u64,
    /// None: the trace begins here.
    pub parent: Option<u64>,
    pub name: SpanName,
    pub database: Option<Identity>,
    pub started: Timestamp,
    pub ended: Timestamp,
    /// Why it failed. Short.
    pub error: Option<String>,
}

/// Chooses calls, and takes their spans. Never waits: spans for which there is no room are lost.
pub trait Tracer: std::fmt::Debug + Send + Sync {
    /// A new trace, if this call is chosen. The context is of the span that the caller will tell of.
    fn begin(&self) -> Option<TraceContext>;

    /// An id that no span of the trace has.
    fn span_id(&self) -> u64;

    fn tell(&self, span: Span);
}

/// A call that is traced.
#[derive(Clone, Debug)]
pub(crate) struct Traced {
    pub tracer: Arc<dyn Tracer>,
    pub context: TraceContext,
    pub database: Identity,
}

impl Traced {
    /// A part of the call.
    pub fn tell(&self, name: SpanName, time: (Timestamp, Timestamp), error: Option<String>) {
        let ids = (self.tracer.span_id(), Some(self.context.span_id));
        self.tell_span(name, ids, time, error);
    }

    /// The call itself, where it is the trace's first span.
    pub fn tell_whole(&self, name: SpanName, time: (Timestamp, Timestamp)) {
        self.tell_span(name, (self.context.span_id, None), time, None);
    }

    fn tell_span(
        &self,
        name: SpanName,
        (span_id, parent): (u64, Option<u64>),
        (started, ended): (Timestamp, Timestamp),
        error: Option<String>,
    ) {
        self.tracer.tell(Span {
            trace_id: self.context.trace_id,
            span_id,
            parent,
            name,
            database: Some(self.database),
            started,
            ended,
            error: error.map(shortened),
        });
    }
}

fn shortened(error: String) -> String {
    match error.len() <= ERROR_BYTES_MAX {
        true => error,
        false => cut(&error, ERROR_BYTES_MAX).into_owned(),
    }
}
