//! Cross-origin rules of `/v1` (06 §1.2): any origin may ask, and every OPTIONS request is answered here.

use crate::reply;
use axum::extract::Request;
use axum::http::{header, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

const HEADERS: HeaderValue = HeaderValue::from_static("authorization,accept,content-type");
/// Clients of MCP send one more.
const HEADERS_FOR_MCP: HeaderValue =
    HeaderValue::from_static("authorization,accept,content-type,mcp-protocol-version");

pub(crate) async fn layer(request: Request, next: Next) -> Response {
    let preflight = request.method() == Method::OPTIONS;
    let is_mcp = request.uri().path().ends_with("/mcp");
    let mut response = if preflight {
        reply::empty(StatusCode::OK)
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    );
    headers.append(
        header::VARY,
        HeaderValue::from_static(
            "origin, access-control-request-method, access-control-request-headers",
        ),
    );
    if preflight {
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("*"),
        );
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            if is_mcp { HEADERS_FOR_MCP } else { HEADERS },
        );
    }
    response
}
