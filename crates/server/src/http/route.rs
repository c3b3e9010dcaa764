//! The HTTP handlers of modules, below `/v1/database/:name/route` (06 §5.16).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{header, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use axum::response::Response;

use super::body;
use super::path::{DatabasePath, RoutePath};
use super::reply::{Failure, Reply};
use crate::database::{CallError, HandlerReply, HttpHeader, HttpMethod, HttpRequest, HttpVersion};
use crate::metrics;
use crate::state::ServerState;

/// The body is read when it is clear that there is a handler for it.
pub(super) async fn handle(
    State(state): State<Arc<ServerState>>,
    DatabasePath(database): DatabasePath,
    RoutePath(path): RoutePath,
    request: Request,
) -> Reply {
    let (parts, request_body) = request.into_parts();
    let record = state.record(&database)?;
    let running = state.databases.get(&record).await?;
    let request = handler_request(&parts);
    if !running.handle.has_http_route(&request.method, &path) {
        return Err(no_handler());
    }
    let limits = &state.config.limits;
    let request_body = body::read(
        request_body,
        limits.message_bytes_max,
        limits.body_timeout,
        &state.buffered_bytes,
    )
    .await?;
    let counters = running.counters.clone();
    // Runs to its end even if the client goes away.
    let call = tokio::spawn(async move {
        let bytes = request_body.shared();
        running.handle.http_request(path, request, bytes).await
    });
    match tokio::time::timeout(limits.request_timeout, call).await {
        Ok(Ok(Ok(reply))) => {
            let response = response(reply, parts.method == Method::HEAD)?;
            metrics::add(&counters.http_response_bytes, size(&response));
            Ok(response)
        }
        Ok(Ok(Err(CallError::NoSuchFunction))) => Err(no_handler()),
        Ok(Ok(Err(CallError::Database(text)))) => Err(Failure::internal(text)),
        Ok(Ok(Err(_))) => Err(Failure::text(StatusCode::NOT_FOUND, "no such module")),
        Ok(Err(_)) => Err(Failure::internal("the HTTP handler stopped; see the server's log")),
        Err(_) => Err(Failure::text(
            StatusCode::GATEWAY_TIMEOUT,
            "the handler did not end within limits.request-timeout; it may still be carried out [LC0112]",
        )),
    }
}

fn no_handler() -> Failure {
    let text = "Database has not registered a handler for this route";
    Failure::text(StatusCode::NOT_FOUND, text)
}

/// What the handler gets to see of a request.
fn handler_request(parts: &Parts) -> HttpRequest {
    let headers = parts.headers.iter().map(|(name, value)| HttpHeader {
        name: name.as_str().to_owned(),
        value: value.as_bytes().to_vec(),
    });
    HttpRequest {
        method: method(&parts.method),
        headers: headers.collect(),
        timeout: None,
        uri: external_uri(parts),
        version: version(parts.version),
    }
}

/// Where the client thinks it is: proxies tell in headers. Without any name of the server, the path alone.
fn external_uri(parts: &Parts) -> String {
    if parts.uri.scheme().is_some() {
        return parts.uri.to_string();
    }
    let first = |name: &str| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        let first = value.split(',').next()?.trim();
        (!first.is_empty()).then_some(first)
    };
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    match first("x-forwarded-host").or_else(|| first("host")) {
        Some(authority) => {
            let scheme = first("x-forwarded-proto").unwrap_or("http");
            format!("{scheme}://{authority}{path}")
        }
        None => path.to_owned(),
    }
}

fn method(method: &Method) -> HttpMethod {
    match *method {
        Method::GET => HttpMethod::Get,
        Method::HEAD => HttpMethod::Head,
        Method::POST => HttpMethod::Post,
        Method::PUT => HttpMethod::Put,
        Method::DELETE => HttpMethod::Delete,
        Method::CONNECT => HttpMethod::Connect,
        Method::OPTIONS => HttpMethod::Options,
        Method::TRACE => HttpMethod::Trace,
        Method::PATCH => HttpMethod::Patch,
        _ => HttpMethod::Extension(method.as_str().to_owned()),
    }
}

fn version(version: Version) -> HttpVersion {
    match version {
        Version::HTTP_09 => HttpVersion::Http09,
        Version::HTTP_10 => HttpVersion::Http10,
        Version::HTTP_2 => HttpVersion::Http2,
        Version::HTTP_3 => HttpVersion::Http3,
        _ => HttpVersion::Http11,
    }
}

/// The answer as the handler wants it. Its version is not taken over: the connection has one.
fn response(reply: HandlerReply, is_head: bool) -> Reply {
    let status = StatusCode::from_u16(reply.head.code)
        .ok()
        .filter(|status| !status.is_informational())
        .ok_or_else(|| Failure::internal("invalid status code"))?;
    let mut headers = HeaderMap::with_capacity(reply.head.headers.len());
    for HttpHeader { name, value } in reply.head.headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Failure::internal("invalid HTTP header name"))?;
        let value = HeaderValue::from_bytes(&value)
            .map_err(|_| Failure::internal("failed to parse header value"))?;
        // How the body is sent is the connection's business. An answer to HEAD tells of a body that is not sent.
        let is_framing = name == header::TRANSFER_ENCODING
            || name == header::CONNECTION
            || (name == header::CONTENT_LENGTH && !is_head);
        if !is_framing {
            headers.append(name, value);
        }
    }
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Bytes of the headers and of the body.
fn size(response: &Response) -> u64 {
    use axum::body::HttpBody as _;
    let headers = response.headers().iter();
    let headers: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    headers as u64 + response.body().size_hint().lower()
}
