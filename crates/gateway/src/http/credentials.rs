//! Where a request's token is, and the layer that checks it (06 §3.1, §3.2).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{header, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use lightcone_node::auth::{Caller, TokenError};

use super::query::Query;
use super::route::Token;
use crate::gateway::Gateway;
use crate::reply::Failure;

const IDENTITY: HeaderName = HeaderName::from_static("spacetime-identity");
const IDENTITY_TOKEN: HeaderName = HeaderName::from_static("spacetime-identity-token");

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Signing(_) => Failure::internal(error.to_string()),
            _ => Failure::text(StatusCode::UNAUTHORIZED, error.to_string()),
        }
    }
}

/// What a value of the query parameter `token` that begins with `0x` is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HexToken {
    Credential,
    /// The migration token of a publish has the same parameter name (06 §5.3).
    Migration,
}

/// Only requests that publish have migration tokens.
fn hex_token(method: &Method, uri: &Uri) -> HexToken {
    let Some(path) = uri.path().strip_prefix("/v1/database") else {
        return HexToken::Credential;
    };
    let mut segments = path.split('/').skip(1);
    match (
        method,
        segments.next(),
        segments.next(),
        segments.next().is_none(),
    ) {
        (&Method::POST, None, ..)
        | (&Method::PUT, Some(_), None | Some("reset"), true)
        | (&Method::POST, Some(_), Some("pre_publish"), true) => HexToken::Migration,
        _ => HexToken::Credential,
    }
}

/// The token that a request presents. The header wins over the query parameter.
fn presented(
    headers: &HeaderMap,
    uri: &Uri,
    hex_token: HexToken,
) -> Result<Option<String>, Failure> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let token = value.to_str().ok().and_then(bearer);
        return match token {
            Some(token) => Ok(Some(token.to_owned())),
            None => Err(Failure::bad_request(
                "Authorization is invalid: malformed token",
            )),
        };
    }
    let Some(query) = uri.query() else {
        return Ok(None);
    };
    Ok(Query::parse(query)
        .text("token")?
        .filter(|token| hex_token == HexToken::Credential || !token.starts_with("0x"))
        .map(str::to_owned))
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    let well_formed =
        scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && !token.contains(' ');
    well_formed.then_some(token)
}

async fn check(
    state: &Gateway,
    headers: &HeaderMap,
    uri: &Uri,
    hex_token: HexToken,
) -> Result<Option<Caller>, Failure> {
    match presented(headers, uri, hex_token)? {
        Some(token) => Ok(Some(state.node.authority.validate(&token).await?)),
        None => Ok(None),
    }
}

/// Does what the route's row says about the token, before the handler runs.
pub(super) async fn layer(
    State((state, token)): State<(Arc<Gateway>, Token)>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_minted = token == Token::Minted;
    let hex_token = match is_minted {
        true => hex_token(request.method(), request.uri()),
        false => HexToken::Credential,
    };
    let caller = match check(&state, request.headers(), request.uri(), hex_token).await {
        Ok(None) if is_minted => state
            .node
            .authority
            .mint_anonymous()
            .map(Some)
            .map_err(Failure::from),
        Ok(None) if token == Token::Required => Err(missing()),
        checked => checked,
    };
    let caller = match caller {
        Ok(caller) => caller,
        Err(failure) => return failure.into_response(),
    };
    let told = caller.as_ref().filter(|_| is_minted);
    let told = told.map(|caller| (caller.identity.to_hex(), caller.token.clone()));
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
    let mut response = next.run(request).await;
    if let Some((identity, token)) = told {
        for (name, value) in [(IDENTITY, &*identity), (IDENTITY_TOKEN, &*token)] {
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(name, value);
            }
        }
    }
    response
}

/// For routes whose methods differ in what they need.
pub(super) async fn require(
    state: &Gateway,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Caller, Failure> {
    let caller = check(state, headers, uri, HexToken::Credential).await?;
    caller.ok_or_else(missing)
}

fn missing() -> Failure {
    Failure::text(StatusCode::UNAUTHORIZED, "Authorization required")
}
