//! Requests that are traced: what comes of them is told when there is an answer.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use lightcone_database::{Span, SpanName, TraceContext, Tracer as _};
use lightcone_types::Timestamp;

use super::traceparent;
use crate::gateway::Gateway;

/// What a call that the request makes is a part of. None: it is not traced.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traced(pub Option<TraceContext>);

pub(super) async fn layer(
    State(state): State<Arc<Gateway>>,
    mut request: Request,
    next: Next,
) -> Response {
    let begun = state.node.traces.as_ref().and_then(|traces| {
        let parent = traceparent::of(request.headers());
        Some((traces, parent, traces.begin_request(parent)?))
    });
    let context = begun.map(|(_, _, context)| context);
    request.extensions_mut().insert(Traced(context));
    let Some((traces, parent, context)) = begun else {
        return next.run(request).await;
    };
    let method = name_of(request.method());
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("*", MatchedPath::as_str).into();
    let started = Timestamp::now();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    traces.tell(Span {
        trace_id: context.trace_id,
        span_id: context.span_id,
        parent: parent.map(|parent| parent.span_id),
        name: SpanName::Http {
            method,
            route,
            status,
        },
        database: None,
        started,
        ended: Timestamp::now(),
        error: (status >= 500).then(|| format!("HTTP {status}")),
    });
    response
}

/// What a client makes up is not repeated.
fn name_of(method: &axum::http::Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"];
    let found = known.into_iter().find(|known| *known == method.as_str());
    found.unwrap_or("_OTHER")
}
