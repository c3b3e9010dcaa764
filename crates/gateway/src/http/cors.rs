//! Cross-origin rules of `/v1` (06 §1.2): any origin may ask, and every OPTIONS request is answered here.

use crate::reply;
use axum::extract::Request;
use axum::http::{header, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

const ANY: HeaderValue = HeaderValue::from_static("*");
const VARY: HeaderValue = HeaderValue::from_static(
    "origin, access-control-request-method, access-control-request-headers",
);
const HEADERS: HeaderValue = HeaderValue::from_static("authorization,accept,content-type");
/// Clients of MCP send one more.
const HEADERS_FOR_MCP: HeaderValue =
    HeaderValue::from_static("authorization,accept,content-type,mcp-protocol-version");
/// Publishers set variables of the environment by headers.
const HEADERS_FOR_PUBLISHERS: HeaderValue = HeaderValue::from_static(
    "authorization,accept,content-type,spacetime-environment,spacetime-environment-remove,spacetime-environment-secret",
);

pub(crate) async fn layer(request: Request, next: Next) -> Response {
    let preflight = request.method() == Method::OPTIONS;
    let is_mcp = request.uri().path().ends_with("/mcp");
    let asked = request
        .headers()
        .get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let asked = asked
        .and_then(|names| names.to_str().ok())
        .unwrap_or_default();
    let is_of_publisher = asked.to_ascii_lowercase().contains("spacetime-environment");
    let mut response = match preflight {
        true => reply::empty(StatusCode::OK),
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
    headers.append(header::VARY, VARY);
    if preflight {
        let allowed = match (is_mcp, is_of_publisher) {
            (true, _) => HEADERS_FOR_MCP,
            (false, true) => HEADERS_FOR_PUBLISHERS,
            (false, false) => HEADERS,
        };
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, ANY);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    response
}
