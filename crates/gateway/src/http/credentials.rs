//! Where a request's token is, and the layer that checks it (06 §3.1, §3.2).

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{header, HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use lightcone_node::auth::{Caller, TokenError};

use super::query::Query;
use super::route::{BodyMax, Route, Token};
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

/// Does a request publish? Then a value of the query parameter `token` that begins with `0x` is no credential but a migration token
/// (06 §5.3).
fn publishes(request: &Request, routes: &[Route]) -> bool {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or("", MatchedPath::as_str);
    let mut programs = routes.iter().filter(|row| row.body == BodyMax::Program);
    programs.any(|row| row.path == path && row.method == request.method().as_str())
}

/// The token that a request presents. The header wins over the query parameter.
fn presented(headers: &HeaderMap, uri: &Uri, publishes: bool) -> Result<Option<String>, Failure> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let token = value.to_str().ok().and_then(bearer);
        let malformed = || Failure::bad_request("Authorization is invalid: malformed token");
        return Ok(Some(token.ok_or_else(malformed)?.to_owned()));
    }
    let query = Query::parse(uri.query().unwrap_or_default());
    let token = query.text("token")?;
    let token = token.filter(|token| !publishes || !token.starts_with("0x"));
    Ok(token.map(str::to_owned))
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
    publishes: bool,
) -> Result<Option<Caller>, Failure> {
    match presented(headers, uri, publishes)? {
        Some(token) => Ok(Some(state.node.authority.validate(&token).await?)),
        None => Ok(None),
    }
}

/// Does what the route's row says about the token, before the handler runs.
pub(super) async fn layer(
    State((state, token, routes)): State<(Arc<Gateway>, Token, &'static [Route])>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_minted = token == Token::Minted;
    let publishes = is_minted && publishes(&request, routes);
    let caller = match check(&state, request.headers(), request.uri(), publishes).await {
        Ok(None) if is_minted => {
            let minted = state.node.authority.mint_anonymous();
            minted.map(Some).map_err(Failure::from)
        }
        Ok(None) if token == Token::Required => Err(missing()),
        checked => checked,
    };
    let caller = match caller {
        Ok(Some(caller)) => caller,
        Ok(None) => return next.run(request).await,
        Err(failure) => return failure.into_response(),
    };
    let (identity, token) = (caller.identity.to_hex(), caller.token.clone());
    request.extensions_mut().insert(caller);
    let mut response = next.run(request).await;
    if is_minted {
        for (name, value) in [(IDENTITY, &*identity), (IDENTITY_TOKEN, &*token)] {
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(name, value);
            }
        }
    }
    response
}

/// The token in the header of a request, unchecked.
pub(super) fn presented_token(headers: &HeaderMap) -> Result<String, Failure> {
    let token = presented(headers, &Uri::default(), false)?;
    token.ok_or_else(missing)
}

/// A caller with a token, for routes whose methods differ in what they need.
pub(super) struct WithToken(pub Caller);

impl FromRequestParts<Arc<Gateway>> for WithToken {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<Gateway>) -> Result<Self, Failure> {
        let caller = check(state, &parts.headers, &parts.uri, false).await?;
        caller.map(WithToken).ok_or_else(missing)
    }
}

fn missing() -> Failure {
    Failure::text(StatusCode::UNAUTHORIZED, "Authorization required")
}
