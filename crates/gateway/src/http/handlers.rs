//! The HTTP handlers of modules, below `/v1/database/:name/route` (06 §5.16).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{header, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use axum::response::Response;
use axum::Extension;
use lightcone_database::{
    CallError, HandlerReply, HandlerSender, HttpHeader, HttpMethod, HttpRequest, HttpVersion,
};
use lightcone_node::config::Routes;
use lightcone_node::{auth, metrics};

use super::body::SentBody;
use super::delivery;
use super::path::{DatabasePath, RoutePath};
use crate::client_address::ConnectionAddresses;
use crate::gateway::Gateway;
use crate::reply::{Failure, Reply};

/// Most headers of a handler's answer, and their bytes. Clients and proxies take little more.
const HANDLER_HEADERS_MAX: usize = 1000;
const HANDLER_HEADER_BYTES_MAX: usize = 64 * 1024;

/// The body is read when it is clear that there is a handler for it.
pub(super) async fn handle(
    State(state): State<Arc<Gateway>>,
    DatabasePath(database): DatabasePath,
    RoutePath(path): RoutePath,
    Extension(addresses): Extension<ConnectionAddresses>,
    request: Request,
) -> Reply {
    let (parts, request_body) = request.into_parts();
    let record = state.node.record(&database)?;
    let running = state.node.databases.get(&record).await?;
    let trusted = &state.node.config.network.trusted_proxies;
    let through_proxy = trusted.contains(addresses.peer);
    let request = handler_request(&parts, through_proxy);
    if !running.handle.has_http_route(&request.method, &path) {
        return Err(no_handler());
    }
    let request_body = SentBody::of(&parts, request_body).read(&state).await?;
    let counters = running.counters.clone();
    let (identity, jwt_payload) = auth::anonymous();
    let sender = HandlerSender {
        identity,
        jwt_payload,
    };
    // Runs to its end even if the client goes away.
    let call = tokio::spawn(async move {
        let (bytes, charge) = request_body.into_parts();
        let handle = &running.handle;
        let answered = handle.http_request(path, request, bytes, sender, charge);
        answered.await
    });
    let late = "the handler did not end within limits.request-timeout; it may still be carried out [LC0112]";
    let ended = state.in_time(call, late).await?;
    let stopped = |_| Failure::internal("the HTTP handler stopped; see the server's log");
    let (reply, holder) = ended.map_err(stopped)?.map_err(|error| match error {
        CallError::NoSuchFunction => no_handler(),
        CallError::Database(text) => Failure::internal(text),
        CallError::Busy(text) => Failure::busy(text),
        _ => Failure::text(StatusCode::NOT_FOUND, "no such module"),
    })?;
    let mut response = response(reply, parts.method == Method::HEAD)?;
    delivery::hold(&mut response, holder);
    confine(&mut response, &state.node.config.routes);
    metrics::add(&counters.http_response_bytes, size(&response));
    Ok(response)
}

fn no_handler() -> Failure {
    let text = "Database has not registered a handler for this route";
    Failure::text(StatusCode::NOT_FOUND, text)
}

/// What the handler gets to see of a request.
fn handler_request(parts: &Parts, through_proxy: bool) -> HttpRequest {
    let headers = parts.headers.iter().map(|(name, value)| HttpHeader {
        name: name.as_str().to_owned(),
        value: value.as_bytes().to_vec(),
    });
    HttpRequest {
        method: method(&parts.method),
        headers: headers.collect(),
        timeout: None,
        uri: external_uri(parts, through_proxy),
        version: version(parts.version),
    }
}

/// Where the client thinks it is: trusted proxies tell in headers. Without any name of the server, the path alone.
fn external_uri(parts: &Parts, through_proxy: bool) -> String {
    if parts.uri.scheme().is_some() {
        return parts.uri.to_string();
    }
    let first = |name: &str| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        let first = value.split(',').next()?.trim();
        (!first.is_empty()).then_some(first)
    };
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let forwarded = |name| first(name).filter(|_| through_proxy);
    match forwarded("x-forwarded-host").or_else(|| first("host")) {
        Some(authority) => {
            let scheme = forwarded("x-forwarded-proto").unwrap_or("http");
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
    let status = StatusCode::from_u16(reply.head.code).ok();
    let status = status.filter(|status| !status.is_informational());
    let status = status.ok_or_else(|| Failure::internal("invalid status code"))?;
    // These have none, whatever the handler gave.
    let is_bodiless = matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    );
    let body = match is_bodiless {
        true => Body::empty(),
        false => Body::from(reply.body),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = handler_headers(reply.head.headers, is_head)?;
    Ok(response)
}

/// How the body is sent is the connection's business, and what concerns the connection is not the handler's.
const CONNECTION_HEADERS: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

fn handler_headers(given: Vec<HttpHeader>, is_head: bool) -> Result<HeaderMap, Failure> {
    let too_many = |found: usize, of: &str, max: usize| {
        Err(Failure::internal(format!(
            "the HTTP handler answered with {found} {of}; at most {max} are sent [LC0132]"
        )))
    };
    if given.len() > HANDLER_HEADERS_MAX {
        return too_many(given.len(), "headers", HANDLER_HEADERS_MAX);
    }
    let bytes = |header: &HttpHeader| header.name.len() + header.value.len();
    let bytes: usize = given.iter().map(bytes).sum();
    if bytes > HANDLER_HEADER_BYTES_MAX {
        return too_many(bytes, "bytes of headers", HANDLER_HEADER_BYTES_MAX);
    }
    let mut headers = HeaderMap::with_capacity(given.len());
    for HttpHeader { name, value } in given {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Failure::internal("invalid HTTP header name"))?;
        let value = HeaderValue::from_bytes(&value)
            .map_err(|_| Failure::internal("failed to parse header value"))?;
        if CONNECTION_HEADERS.contains(&name) {
            continue;
        }
        if name == header::CONTENT_LENGTH {
            // An answer to HEAD tells of a body that is not sent.
            if is_head && is_number(&value) {
                headers.insert(name, value);
            }
            continue;
        }
        headers.append(name, value);
    }
    Ok(headers)
}

fn is_number(value: &HeaderValue) -> bool {
    let is_digits = value.as_bytes().iter().all(u8::is_ascii_digit);
    is_digits && value.to_str().is_ok_and(|text| text.parse::<u64>().is_ok())
}

/// A page of a module must not act as this server's own page, which all modules would share.
fn confine(response: &mut Response, routes: &Routes) {
    let headers = response.headers_mut();
    if !routes.content_security_policy.is_empty() {
        if let Ok(policy) = HeaderValue::from_str(&routes.content_security_policy) {
            // Beside one of the module's own: a browser obeys both.
            headers.append(header::CONTENT_SECURITY_POLICY, policy);
        }
    }
    if routes.nosniff {
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    }
}

/// Bytes of the headers and of the body.
fn size(response: &Response) -> u64 {
    use axum::body::HttpBody as _;
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len());
    headers.sum::<usize>() as u64 + response.body().size_hint().lower()
}

#[cfg(test)]
mod tests {
    use lightcone_host::HttpResponse;

    use super::*;
    use axum::body::HttpBody as _;
    use proptest::prelude::*;

    proptest! {
        /// Whatever a module answers, it is sent or refused.
        #[test]
        fn any_answer_is_sent_or_refused(
            code: u16,
            headers in prop::collection::vec(("[a-z-]{0,20}|.{0,9}", prop::collection::vec(any::<u8>(), 0..20)), 0..20),
            repeated in prop_oneof![Just(0), 990_usize..1010, 30_000_usize..50_000],
            is_head: bool,
        ) {
            let mut headers: Vec<_> = headers
                .into_iter()
                .map(|(name, value)| HttpHeader { name, value })
                .collect();
            headers.extend((0..repeated).map(|number| HttpHeader { name: format!("x-{number}"), value: Vec::new() }));
            let count = headers.len();
            let head = HttpResponse { headers, version: HttpVersion::Http11, code };
            if let Ok(mut response) = response(HandlerReply { head, body: vec![0; 9].into() }, is_head) {
                prop_assert!(count <= HANDLER_HEADERS_MAX);
                confine(&mut response, &Routes::default());
                let bodiless = [204, 205, 304].contains(&code);
                prop_assert_eq!(response.body().size_hint().exact(), Some(if bodiless { 0 } else { 9 }));
            }
        }
    }
}
