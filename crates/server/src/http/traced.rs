//! Requests that are traced: what comes of them is told when there is an answer.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use lightcone_types::Timestamp;

use crate::database::{Span, SpanName, TraceContext, Tracer as _};
use crate::state::ServerState;

/// What a call that the request makes is a part of. None: it is not traced.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traced(pub Option<TraceContext>);

pub(super) async fn layer(
    State(state): State<Arc<ServerState>>,
    mut request: Request,
    next: Next,
) -> Response {
    let traces = state.traces.as_ref();
    let begun = traces.and_then(|traces| Some((traces, traces.begin_request(request.headers())?)));
    let context = begun.as_ref().map(|(_, traced)| traced.context);
    request.extensions_mut().insert(Traced(context));
    let Some((traces, traced)) = begun else {
        return next.run(request).await;
    };
    let method = name_of(request.method());
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("*", MatchedPath::as_str).into();
    let started = Timestamp::now();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    traces.tell(Span {
        trace_id: traced.context.trace_id,
        span_id: traced.context.span_id,
        parent: traced.parent,
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
